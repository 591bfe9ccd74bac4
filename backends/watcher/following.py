"""Follows one growing file: from near its end, new bytes only, through the watcher's own channel.

It costs its end, however long the file is. Each look says what it says and no more: seen, surely not there, or nobody
could be asked; and where bytes were passed over, or the file became another, that is said with the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.base import FileStat
from backends.watcher.model import FilePresence, Tail

FIRST_BYTES = 256 * 1024
"""So much of the end is read at the first look."""

MOST_BYTES = 2**20
"""One look takes no more; a file that is further ahead than twice that is gone on with near its end, with a count."""

_PROBE = 32768
"""So much is asked for before it is known how much there is."""

SEAM_BYTES = 64
"""So many bytes are read again before new ones: they tell a file that was written anew from one that grew."""


class Follows(StrEnum):
    """How bytes follow on those before them."""

    ON = "follows on"
    BEGIN = "first look"
    SKIPPED = "grew too fast"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the file.

    Attributes:
        presence: The three answers.
        stat: The file, where it was seen.
        offset: Where the bytes begin in the file.
        data: New bytes.
        follows: How they follow on those of the look before.
        skipped: Bytes before them that were not read.
        said: What came instead of an answer, where nobody could be asked.
    """

    presence: FilePresence
    stat: FileStat | None = None
    offset: int = 0
    data: bytes = b""
    follows: Follows = Follows.ON
    skipped: int = 0
    said: str = ""

    @property
    def caught_up(self) -> bool:
        """Whether nothing is left that could be read at once."""
        return self.stat is None or self.offset + len(self.data) >= self.stat.size


class Parts(Protocol):
    """Who reads parts of files; `backends.watcher.watcher.ResultWatcher` does."""

    async def part(self, path: str, *, offset: int, limit: int, known: FileStat | None = None) -> Tail | None:
        """A part of a file, None while it is as known; raises FileMissing and CouldNotAsk."""
        ...


class FileFollower:
    """Follows one file.

    Args:
        parts: Who reads.
        path: The file; it need not be there yet.
        first: Bytes of its end that the first look reads.
        most: Most bytes of one look.
        since: The end of what was read of it before, to go on from there.
    """

    def __init__(
        self,
        parts: Parts,
        path: str,
        *,
        first: int = FIRST_BYTES,
        most: int = MOST_BYTES,
        since: Tail | None = None,
    ) -> None:
        self._parts = parts
        self.path = path
        self._first, self._most = first, most
        self._known: FileStat | None = None
        self._position = 0
        self._seam = b""
        if since is not None:
            self._known, self._seam = since.stat, since.data[-SEAM_BYTES:]
            self._position = since.offset + len(since.data)

    async def look(self) -> Look:
        """Look once; never raises for a file that is not there or a host that does not answer."""
        try:
            return await self._look()
        except FileMissing:
            # What comes under this name later is another file, whatever its inode.
            if self._known is not None:
                self._known, self._seam, self._position = FileStat(0, 0, -1), b"", 0
            return Look(FilePresence.MISSING)
        except CouldNotAsk as error:
            return Look(FilePresence.COULD_NOT_ASK, said=str(error))

    async def _look(self) -> Look:
        before, begin = self._known, self._position - len(self._seam)
        seen = await self._parts.part(self.path, offset=begin, limit=_PROBE if before else 0, known=before)
        if seen is None:
            return Look(FilePresence.SEEN, before, self._position)
        if before is None:
            return await self._begin(seen, Follows.BEGIN, self._first)
        if not self._grew(before, seen):
            return await self._begin(seen, Follows.REPLACED, self._first)
        data = seen.data[len(self._seam) :]
        left = seen.stat.size - self._position - len(data)
        if left > 2 * self._most:
            return await self._begin(seen, Follows.SKIPPED, self._most)
        return self._took(seen.stat, self._position, data + await self._rest(seen, left), Follows.ON, 0)

    async def _rest(self, seen: Tail, left: int) -> bytes:
        """What stands behind a part that was seen, as far as it is of the same file."""
        if left <= 0:
            return b""
        start = seen.offset + len(seen.data)
        more = await self._parts.part(self.path, offset=start, limit=min(left, self._most))
        return more.data if more is not None and more.stat.inode == seen.stat.inode else b""

    def _grew(self, before: FileStat, seen: Tail) -> bool:
        """Whether it is still the file that it was, with maybe more at its end."""
        return (
            seen.stat.inode == before.inode
            and seen.stat.size >= self._position
            and seen.data[: len(self._seam)] == self._seam
        )

    async def _begin(self, seen: Tail, follows: Follows, most: int) -> Look:
        """Go on near the end of the file as it is now."""
        old = self._position if follows is Follows.SKIPPED else 0
        start = max(old, seen.stat.size - most)
        found = await self._parts.part(self.path, offset=start, limit=most)
        if found is None or found.stat.inode != seen.stat.inode or found.stat.size < start:
            # It changed between two questions: the next look finds out into what.
            return Look(FilePresence.SEEN, seen.stat, self._position)
        return self._took(found.stat, start, found.data, follows, start - old)

    def _took(self, stat: FileStat, offset: int, data: bytes, follows: Follows, skipped: int) -> Look:
        self._position = offset + len(data)
        self._seam = ((self._seam if follows is Follows.ON else b"") + data)[-SEAM_BYTES:]
        # Where more is there already than was read, the next look must not be told that nothing changed.
        self._known = stat if self._position >= stat.size else FileStat(stat.size, 0, stat.inode)
        return Look(FilePresence.SEEN, stat, offset, data, follows, skipped)
