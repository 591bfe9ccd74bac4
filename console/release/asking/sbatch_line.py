"""sbatch's own command line, read as sbatch reads it: options, `#SBATCH` lines, script, arguments.

The table is that of sbatch 22.05 (`sbatch --help`). What an approved job cannot represent is refused by name: it
would run as something else than what was approved, or give the proposer an answer that is not true.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from console.release.errors import InputError, Problem

WHAT = "sbatch command line"

_WITH_VALUE = (
    "array", "account", "bb", "bbf", "begin", "comment", "cpu-freq", "cpus-per-task", "dependency", "deadline",
    "delay-boot", "chdir", "error", "export", "gres", "gres-flags", "input", "job-name", "licenses", "container",
    "distribution", "mail-type", "mail-user", "mcs-label", "ntasks", "ntasks-per-node", "nodes", "output",
    "partition", "power", "priority", "profile", "qos", "core-spec", "signal", "switches", "thread-spec", "time",
    "time-min", "wckey", "wrap", "cluster-constraint", "constraint", "mem", "mincpus", "reservation", "tmp",
    "nodelist", "exclude", "mem-per-cpu", "sockets-per-node", "cores-per-socket", "threads-per-core",
    "extra-node-info", "ntasks-per-core", "ntasks-per-socket", "cpus-per-gpu", "gpus", "gpu-bind", "gpu-freq",
    "gpus-per-node", "gpus-per-socket", "gpus-per-task", "mem-per-gpu", "hint", "ntasks-per-gpu", "acctg-freq",
    "kill-on-invalid-dep",
)  # fmt: skip
_OPTIONAL_VALUE = ("nice", "exclusive", "propagate", "oversubscribe")
_FLAGS = (
    "hold", "ignore-pbs", "no-kill", "no-requeue", "overcommit", "parsable", "quiet", "reboot", "requeue",
    "spread-job", "use-min-nodes", "verbose", "contiguous",
)  # fmt: skip
REFUSED = {
    "wait": "the answer would come before the job has run; watch it instead",
    "clusters": "a run works on one cluster",
    "export-file": "the file is not part of what is approved; name the variables in --export",
    "get-user-env": "what it loads is not part of what is approved",
    "uid": "the job runs as the cluster's account",
    "gid": "the job runs as the cluster's account",
    "nodefile": "the file is not part of what is approved; name the hosts in --nodelist",
    "test-only": "nothing would be submitted",
    "bbf": "the file is not part of what is approved",
    "help": "",
    "usage": "",
}
"""Options that an approved job cannot represent, and why."""

_SHORT = {
    "a": "array", "A": "account", "b": "begin", "c": "cpus-per-task", "d": "dependency", "D": "chdir", "e": "error",
    "H": "hold", "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "M": "clusters", "m": "distribution",
    "n": "ntasks", "N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet",
    "s": "oversubscribe", "S": "core-spec", "t": "time", "v": "verbose", "W": "wait", "C": "constraint",
    "F": "nodefile", "w": "nodelist", "x": "exclude", "B": "extra-node-info", "G": "gpus", "h": "help",
}  # fmt: skip
_VALUED = {*_WITH_VALUE, "clusters", "export-file", "uid", "gid", "nodefile"}
_KNOWN = {*_VALUED, *_OPTIONAL_VALUE, *_FLAGS, *REFUSED}

Option = tuple[str, str | None]
"""Long name without dashes, and its value; None where it has none."""


@dataclass(frozen=True, slots=True)
class Line:
    """A command line, read.

    Attributes:
        options: In order, by long name.
        words: The script and its arguments.
    """

    options: tuple[Option, ...]
    words: tuple[str, ...]

    def value(self, name: str) -> str | None:
        """The value of an option, the last one where it is repeated, as sbatch takes it."""
        return next((value for known, value in reversed(self.options) if known == name), None)

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return any(known == name for known, _ in self.options)


def refuse(option: str, expected: str, found: str, advice: str = "") -> InputError:
    """One clear line about an option."""
    return InputError(Problem(WHAT, option, expected, found, advice))


def read_line(words: Sequence[str], *, where: str = WHAT) -> Line:
    """Read options up to the first word that is none: that is the script, and the rest is its own.

    Raises:
        InputError: Naming the option that is unknown, lacks its value, or cannot be represented.
    """
    options: list[Option] = []
    rest = list(words)
    while rest:
        word = rest[0]
        if word == "--":
            rest.pop(0)
            break
        if word == "-" or not word.startswith("-"):
            break
        rest.pop(0)
        options += _long(word, rest) if word.startswith("--") else _cluster(word, rest)
    return Line(tuple(options), tuple(rest))


def _long(word: str, rest: list[str]) -> list[Option]:
    name, given, value = word[2:].partition("=")
    name = _full(name)
    if name in REFUSED:
        raise refuse(f"--{name}", "an option that an approved job can represent", f"--{name}", REFUSED[name])
    if given:
        if name in _FLAGS:
            raise refuse(f"--{name}", "no value", repr(value))
        return [(name, value)]
    if name in _VALUED:
        return [(name, _next(f"--{name}", rest))]
    return [(name, None)]


def _full(name: str) -> str:
    """An option by its name, or by a beginning of it that only one has, as getopt takes it."""
    if name in _KNOWN:
        return name
    found = sorted(known for known in _KNOWN if known.startswith(name)) if name else []
    if len(found) != 1:
        said = f"it could be {', '.join(f'--{item}' for item in found[:4])}" if found else "see `sbatch --help`"
        raise refuse(f"--{name}", "an option of sbatch", f"--{name}", said)
    return found[0]


def _cluster(word: str, rest: list[str]) -> list[Option]:
    """Short options that stand together: `-Hn4`, `-N 2`, `-pbatch`."""
    options: list[Option] = []
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        if name is None:
            raise refuse(f"-{letter}", "an option of sbatch", f"-{letter}", "see `sbatch --help`")
        if name in REFUSED:
            raise refuse(f"-{letter}", "an option that an approved job can represent", f"--{name}", REFUSED[name])
        if name in _VALUED:
            options.append((name, letters or _next(f"-{letter}", rest)))
            break
        options.append((name, None))
    return options


def _next(option: str, rest: list[str]) -> str:
    if not rest:
        raise refuse(option, "a value", "nothing")
    return rest.pop(0)


def directives(script: str) -> tuple[Option, ...]:
    """Options of a script's `#SBATCH` lines; they end at its first command, as sbatch reads them.

    Raises:
        InputError: As `read_line`, naming the line.
    """
    options: list[Option] = []
    for number, line in enumerate(script.split("\n"), 1):
        if line.startswith("#SBATCH"):
            try:
                words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError as error:
                raise refuse(f"script, line {number}", "words that a shell can read", str(error)) from None
            found = read_line(words)
            if found.words:
                raise refuse(f"script, line {number}", "options only", found.words[0])
            options += found.options
        elif line.strip() and not line.startswith("#"):
            break
    return tuple(options)


def seconds_of(time: str) -> int:
    """A time limit as sbatch takes it (minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s), in seconds.

    Raises:
        InputError: When it is none.
    """
    found = re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?", time)
    if found is None:
        raise refuse("--time", "a time limit, such as 90 (minutes), 1:30:00 or 1-12", repr(time))
    days, *rest = found.groups()
    first, second, third = (int(part or 0) for part in rest)
    if days is not None:
        return int(days) * 86400 + first * 3600 + second * 60 + third
    return first * 3600 + second * 60 + third if rest[2] is not None else first * 60 + second


def clock_of(seconds: int) -> str:
    """Seconds as an exact job holds them ("01:30:00", "2-00:00:00")."""
    days, rest = divmod(seconds, 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text
