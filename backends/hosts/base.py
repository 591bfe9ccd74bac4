"""What a host can do for us: run a shell script, read, write and stat files. Nothing else touches a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class LinkState(StrEnum):
    """State of the connection to a host, as the operator sees it."""

    DOWN = "down"
    CONNECTING = "connecting"
    UP = "up"
    SUSPECT = "suspect"
    NEEDS_OPERATOR = "needs operator"


@dataclass(frozen=True, slots=True)
class Link:
    """The connection to a host at one moment.

    Attributes:
        state: Where the connection stands.
        last_seen: Monotonic seconds of the last byte or answer from the host, None before the first.
        detail: Why, in the words of whoever refused; empty when there is nothing to say.
    """

    state: LinkState
    last_seen: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a script really printed and how it really ended (exit status seen, output complete)."""

    stdout: bytes
    stderr: bytes
    exit_status: int


@dataclass(frozen=True, slots=True)
class FileStat:
    """Identity and extent of a file at one look; any difference means that it changed.

    Attributes:
        size: Bytes.
        mtime_ns: Modification time by the host's own clock, nanoseconds (whole seconds over SFTP).
        inode: Inode number, 0 where the transport does not tell.
        ctime_ns: Change time, nanoseconds, 0 where the transport does not tell.
    """

    size: int
    mtime_ns: int
    inode: int = 0
    ctime_ns: int = 0


class Conversation(Protocol):
    """A script that goes on running on a host while lines pass to and fro."""

    async def send(self, data: bytes) -> None:
        """Send bytes to its standard input; raises CouldNotAsk when the link is lost."""
        ...

    async def line(self, timeout: float) -> bytes:
        """Its next line, without the line's end; raises CouldNotAsk when it ended, or said nothing for so long."""
        ...

    async def close(self) -> None:
        """End its input, which ends it; never raises."""
        ...


class Host(Protocol):
    """A machine that runs our fixed `/bin/sh -s` and holds files.

    Every method raises CouldNotAsk (or NeedsOperator) when there is no answer within the timeout (seconds).
    """

    @property
    def name(self) -> str:
        """The name that the operator knows, `user@host:port` or `localhost`."""
        ...

    @property
    def link(self) -> Link:
        """The connection as it stands now."""
        ...

    async def run(
        self, script: str, args: Sequence[str] = (), *, data: bytes = b"", timeout: float = 30.0
    ) -> RunResult:
        """Run a POSIX shell script; `args` become $1, $2...; `data` is on the script's standard input."""
        ...

    async def converse(self, script: str, args: Sequence[str] = (), *, timeout: float = 30.0) -> Conversation:
        """Start a script that stays; noise before its first line of its own is passed over."""
        ...

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None, timeout: float = 30.0) -> bytes:
        """Bytes of a file; raises FileMissing when the host says that it is not there."""
        ...

    async def write(self, path: str, data: bytes, *, mode: int = 0o600, timeout: float = 60.0) -> None:
        """Write a whole file: temporary sibling, digest of what arrived compared, rename over."""
        ...

    async def stat(self, path: str, *, timeout: float = 30.0) -> FileStat | None:
        """Stat a file; None only when the host says that it is not there."""
        ...

    async def close(self) -> None:
        """Close the connection; never raises."""
        ...
