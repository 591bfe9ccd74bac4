"""sbatch's own command line, read as sbatch reads it: options in any spelling, variables, script and arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.release.asking.options import (
    FLAGS,
    KNOWN,
    OPTIONAL_VALUE,
    REFUSED,
    REFUSED_VARIABLES,
    SHORT,
    VARIABLES,
    WITH_VALUE,
    takes_effect,
)
from console.release.errors import InputError, Problem

WHAT = "sbatch command line"
_HETEROGENEOUS = "a heterogeneous job is several jobs, and one OK covers one"

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
    if rest[:1] == [":"]:
        raise refuse(":", "one job", "several, divided by `:`", _HETEROGENEOUS)
    return Line(tuple(options), tuple(rest))


def from_environment(environ: Mapping[str, str]) -> tuple[Option, ...]:
    """The options for which variables of the environment stand (`SBATCH_PARTITION`).

    Raises:
        InputError: Naming the variable that an approved job cannot represent.
    """
    options: list[Option] = []
    for variable, name in sorted(VARIABLES.items()):
        value = environ.get(variable)
        if value is None:
            continue
        flag = name in FLAGS or name in ("no-kill", "wait", "get-user-env")
        if flag and not takes_effect(value):
            continue
        if name in REFUSED:
            raise refuse(variable, "a variable that an approved job can represent", f"--{name}", REFUSED[name])
        options.append((name, None if flag or (name in OPTIONAL_VALUE and not value) else value))
    for variable, advice in REFUSED_VARIABLES.items():
        if variable in environ:
            raise refuse(variable, "a variable that an approved job can represent", environ[variable], advice)
    return tuple(options)


def _long(word: str, rest: list[str]) -> list[Option]:
    name, given, value = word[2:].partition("=")
    name = _full(name)
    if name in REFUSED:
        raise refuse(f"--{name}", "an option that an approved job can represent", f"--{name}", REFUSED[name])
    if given:
        if name in FLAGS:
            raise refuse(f"--{name}", "no value", repr(value))
        return [(name, value)]
    if name in WITH_VALUE:
        return [(name, _next(f"--{name}", rest))]
    return [(name, None)]


def _full(name: str) -> str:
    """An option by its name, or by a beginning of it that only one has, as getopt takes it."""
    if name in KNOWN:
        return name
    found = sorted(known for known in KNOWN if known.startswith(name)) if name else []
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
        name = SHORT.get(letter)
        if name is None:
            raise refuse(f"-{letter}", "an option of sbatch", f"-{letter}", "see `sbatch --help`")
        if name in REFUSED:
            raise refuse(f"-{letter}", "an option that an approved job can represent", f"--{name}", REFUSED[name])
        if name in WITH_VALUE:
            options.append((name, letters or _next(f"-{letter}", rest)))
            break
        if name in OPTIONAL_VALUE:
            options.append((name, letters or None))
            break
        options.append((name, None))
    return options


def _next(option: str, rest: list[str]) -> str:
    if not rest:
        raise refuse(option, "a value", "nothing")
    return rest.pop(0)
