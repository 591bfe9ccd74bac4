"""Files over a shell: read, write and stat for any host that can run a framed script."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.base import Conversation, FileStat, Link, RunResult
from backends.hosts.framing import frame, opening, own_errors, unframe

MISSING, ODD = 44, 45
"""Exit statuses of FIND: surely not there; and there was no telling, for which its words are on standard error."""

# Leaves the stat line of $1 in $found. The system's own words decide: a folder that may not be searched, or a mount
# that is gone, is no missing file. The folder is listed before a file counts as missing: network file systems remember
# a "not there" for a while.
FIND = f"""
export LC_ALL=C
look() {{ stat -L -c '%s %i %.9Y %.9Z' -- "$1" 2>&1; }}
found=$(look "$1") || {{ ls -a -- "$(dirname -- "$1")" >/dev/null 2>&1; found=$(look "$1"); }} || case "$found" in
  *': No such file or directory'|*': Not a directory') exit {MISSING} ;;
  *) printf '%s\\n' "$found" >&2; exit {ODD} ;;
esac
"""

_READ = (
    FIND
    + """
if [ -d "$1" ]; then printf '%s: Is a directory\\n' "$1" >&2; exit 45; fi
( : < "$1" ) || exit 45
if [ "$3" -ge 0 ]; then tail -c "+$(($2 + 1))" -- "$1" | head -c "$3"; else tail -c "+$(($2 + 1))" -- "$1"; fi
"""
)

_WRITE = """
umask 077
if [ -d "$1" ]; then printf '%s: Is a directory\\n' "$1" >&2; exit 3; fi
cat > "$2" || { rm -f -- "$2"; exit 3; }
if command -v sha256sum >/dev/null 2>&1; then set -- "$@" "$(sha256sum < "$2" | cut -c1-64)"
else set -- "$@" "$(shasum -a 256 < "$2" | cut -c1-64)"; fi
if [ "$5" != "$3" ]; then rm -f -- "$2"; echo "what arrived has SHA-256 $5" >&2; exit 4; fi
chmod "$4" "$2" && mv -f -- "$2" "$1" || exit 5
"""

_STAT = (
    FIND
    + """
printf '%s\\n' "$found"
"""
)


class Pipes(Protocol):
    """The open ends of a running command."""

    def write(self, data: bytes) -> None:
        """Pass bytes to its standard input."""
        ...

    async def drain(self) -> None:
        """Wait until they have gone."""
        ...

    async def readline(self) -> bytes:
        """Its next line; empty at its end."""
        ...

    async def close(self) -> None:
        """End its input, and forget it."""
        ...


LOST = (OSError, EOFError, ValueError, asyncio.IncompleteReadError)
"""What broken pipes raise; SSH hosts turn the library's own errors into OSError."""


class Talk:
    """A conversation over the pipes of a command.

    Args:
        name: The host's name, for messages.
        pipes: The command.
    """

    def __init__(self, name: str, pipes: Pipes) -> None:
        self._name = name
        self._pipes = pipes

    async def send(self, data: bytes) -> None:
        """Send bytes; see `backends.hosts.base.Conversation`."""
        try:
            self._pipes.write(data)
            await self._pipes.drain()
        except LOST as error:
            raise CouldNotAsk(self._name, "talk to a script", str(error) or "the link was lost") from None

    async def line(self, timeout: float) -> bytes:
        """The next line; see `backends.hosts.base.Conversation`."""
        try:
            async with asyncio.timeout(timeout):
                line = await self._pipes.readline()
        except TimeoutError:
            raise CouldNotAsk(self._name, "listen to a script", f"it said nothing for {timeout:g} s") from None
        except LOST as error:
            raise CouldNotAsk(self._name, "listen to a script", str(error) or "the link was lost") from None
        if not line.endswith(b"\n"):
            raise CouldNotAsk(self._name, "listen to a script", "it has ended")
        return line[:-1]

    async def close(self) -> None:
        """End it; see `backends.hosts.base.Conversation`."""
        with contextlib.suppress(*LOST):
            await self._pipes.close()


class ShellHost(ABC):
    """A host that runs framed scripts; everything else is built on that."""

    name: str

    @property
    @abstractmethod
    def link(self) -> Link:
        """The connection as it stands now."""

    def _within(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """The time limit of one question; raises TimeoutError when it has passed."""
        return asyncio.timeout(seconds)

    @abstractmethod
    async def _exchange(self, stdin: bytes) -> tuple[bytes, bytes]:
        """Run the fixed command with these bytes on its standard input; returns both outputs.

        Raises:
            CouldNotAsk: When there is no connection.
        """

    @abstractmethod
    async def _open(self, stdin: bytes) -> Pipes:
        """Start the fixed command with these bytes, and leave its standard input open.

        Raises:
            CouldNotAsk: When there is no connection.
        """

    async def converse(self, script: str, args: Sequence[str] = (), *, timeout: float = 30.0) -> Conversation:
        """Start a script that stays; see `backends.hosts.base.Host.converse`."""
        framed = opening(script, args)
        try:
            async with self._within(timeout):
                pipes = await self._open(framed.stdin)
        except TimeoutError:
            raise CouldNotAsk(self.name, "start a script", f"no answer within {timeout:g} s") from None
        talk = Talk(self.name, pipes)
        try:
            while await talk.line(timeout) != f"BEGIN-{framed.mark}".encode():
                pass
        except BaseException:
            await talk.close()
            raise
        return talk

    async def run(
        self, script: str, args: Sequence[str] = (), *, data: bytes = b"", timeout: float = 30.0
    ) -> RunResult:
        """Run a POSIX shell script; see `backends.hosts.base.Host.run`."""
        framed = frame(script, args, data)
        asked = " ".join(script.split())[:60]
        try:
            async with self._within(timeout):
                stdout, stderr = await self._exchange(framed.stdin)
        except TimeoutError:
            raise CouldNotAsk(self.name, asked, f"no answer within {timeout:g} s") from None
        result = unframe(framed.mark, stdout, stderr)
        if result is None:
            raise CouldNotAsk(self.name, asked, _instead(framed.mark, stdout, stderr))
        return result

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None, timeout: float = 30.0) -> bytes:
        """Bytes of a file; see `backends.hosts.base.Host.read`."""
        result = await self.run(_READ, [path, str(offset), str(-1 if limit is None else limit)], timeout=timeout)
        if result.exit_status == MISSING:
            raise FileMissing(self.name, path)
        if result.exit_status != 0:
            raise CouldNotAsk(self.name, f"read {path}", _said(result))
        return result.stdout

    async def write(self, path: str, data: bytes, *, mode: int = 0o600, timeout: float = 60.0) -> None:
        """Write a whole file; see `backends.hosts.base.Host.write`."""
        temporary = f"{path}.{secrets.token_hex(6)}.tmp"
        digest = hashlib.sha256(data).hexdigest()
        arguments = [path, temporary, digest, f"{mode:o}"]
        result = await self.run(_WRITE, arguments, data=data or b"", timeout=timeout)
        if result.exit_status != 0:
            raise CouldNotAsk(self.name, f"write {path}", _said(result))

    async def stat(self, path: str, *, timeout: float = 30.0) -> FileStat | None:
        """Stat a file; see `backends.hosts.base.Host.stat`."""
        result = await self.run(_STAT, [path], timeout=timeout)
        if result.exit_status == MISSING:
            return None
        stat = parse_stat(result.stdout)
        if result.exit_status != 0 or stat is None:
            raise CouldNotAsk(self.name, f"stat {path}", _said(result))
        return stat


def parse_stat(line: bytes) -> FileStat | None:
    """One line of `stat -c '%s %i %.9Y %.9Z'`; None when it is not one."""
    words = line.split()
    if len(words) != 4:
        return None
    try:
        size, inode = int(words[0]), int(words[1])
        mtime, ctime = (_nanoseconds(word) for word in words[2:])
    except ValueError:
        return None
    return FileStat(size=size, mtime_ns=mtime, inode=inode, ctime_ns=ctime)


def _nanoseconds(word: bytes) -> int:
    seconds, _, fraction = word.partition(b".")
    return int(seconds) * 1_000_000_000 + int((fraction + b"0" * 9)[:9])


def _instead(mark: str, stdout: bytes, stderr: bytes) -> str:
    """What came instead of an answer. Where our script did not even begin, the login's own words say why."""
    said = own_errors(mark, stderr).decode("utf-8", "replace").strip()
    if f"BEGIN-{mark}".encode() not in stdout:
        said = f"{said}\n{stdout.decode('utf-8', 'replace').strip()}".strip()
        said = said and f"the login shell did not run our script, but said: {said[-300:]}"
    return said[-360:] or "the link was lost before the exit status arrived"


def _said(result: RunResult) -> str:
    said = result.stderr.decode("utf-8", "replace").strip()[-300:]
    return said or f"exit status {result.exit_status}"
