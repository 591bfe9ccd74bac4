"""What the watcher knows of a result file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backends.hosts.base import FileStat


class FilePresence(StrEnum):
    """The three answers about a file."""

    SEEN = "seen"
    MISSING = "missing"
    COULD_NOT_ASK = "could not ask"


@dataclass(frozen=True, slots=True)
class FileReading:
    """One watched file as last seen.

    Attributes:
        path: Absolute path on the cluster.
        presence: Seen, surely not there, or nobody could be asked.
        stat: Where it was seen.
        stable: It looked the same in two looks in a row.
        looked_at: Monotonic seconds of the last look that got an answer, None before the first.
    """

    path: str
    presence: FilePresence
    stat: FileStat | None = None
    stable: bool = False
    looked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file as it was at one look.

    Attributes:
        path: Absolute path on the cluster.
        stat: The file at that look.
        offset: Where the bytes begin in the file.
        data: The bytes.
    """

    path: str
    stat: FileStat
    offset: int
    data: bytes
