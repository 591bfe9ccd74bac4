"""What all commands share: options read as Slurm reads them, times written as Slurm writes them, refusals."""

from __future__ import annotations

import getopt
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence

from backends.sandbox.store import Job, Store


class SlurmError(Exception):
    """A command refuses.

    Attributes:
        text: What it prints on standard error.
        status: Its exit status.
    """

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"


def need_controller(store: Store, before: str) -> None:
    """Answer as Slurm does while its controller is down.

    Raises:
        SlurmError: When the knob says that it is.
    """
    if store.knobs().get("controller") == "down":
        raise SlurmError(f"{before}{NO_CONTROLLER}")


def options(
    command: str, arguments: Sequence[str], short: str, long: Sequence[str], *, stop: bool = False
) -> tuple[dict[str, str], list[str]]:
    """Options by their long or short name without dashes, and what is left.

    Args:
        command: For the message.
        arguments: The command line.
        short: Short options, as getopt takes them.
        long: Long options, as getopt takes them.
        stop: Whether options end at the first other word, as with sbatch, whose script has its own.

    Raises:
        SlurmError: For options that are not known here, in the words of getopt.
    """
    parse: Callable[..., tuple[list[tuple[str, str]], list[str]]] = getopt.getopt if stop else getopt.gnu_getopt
    try:
        found, rest = parse(list(arguments), short, list(long))
    except getopt.GetoptError as error:
        dashes = "--" if len(error.opt) > 1 else "-"
        said = "unrecognized option" if "not recognized" in error.msg else error.msg + ":"
        text = f"{command}: {said} '{dashes}{error.opt}'\nTry \"{command} --help\" for more information"
        raise SlurmError(text, 255 if command == "sbatch" else 1) from None
    return {name.lstrip("-"): value for name, value in found}, rest


def clock(seconds: int, *, wide: bool = False) -> str:
    """Seconds as squeue writes them (`1-02:03:04`, `3:04`), or with hours always, as sacct does."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{secs:02}"
    if wide:
        return f"{hours:02}:{minutes:02}:{secs:02}"
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def moment(at: float | None) -> str:
    """A time as Slurm writes it, in the zone of the environment."""
    return "Unknown" if at is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))


def fill(pattern: str, values: Mapping[str, str]) -> str:
    """Fill a `%8i %.10j` pattern."""

    def one(found: re.Match[str]) -> str:
        right, width, letter = found.groups()
        if letter not in values:
            return found.group(0)
        text = values[letter]
        if not width:
            return text
        text = text[: int(width)]
        return text.rjust(int(width)) if right else text.ljust(int(width))

    return re.sub(r"%(\.?)(\d*)([a-zA-Z])", one, pattern)


def numbers(text: str, refusal: str) -> list[int]:
    """Job ids, separated by commas.

    Raises:
        SlurmError: With `refusal` when one is none.
    """
    words = [word for word in text.split(",") if word]
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        raise SlurmError(refusal)
    return [int(word) for word in words]


def state_text(store: Store, job: Job) -> str:
    """A job's state, or the odd one that the knob asks for."""
    odd = store.knobs().get("odd_state")
    return str(odd) if odd else job.state


def whoami() -> str:
    """The account that logged in."""
    return os.environ.get("USER", "operator")
