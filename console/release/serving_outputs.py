"""Follows the output that somebody looks at, and keeps what was read of it. Nothing is decided from it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from backends.hosts.base import FileStat
from backends.watcher.following import SEAM_BYTES, FileFollower, Follows, Look, Parts
from backends.watcher.model import FilePresence, Tail
from console.release import output_paths, queue
from console.release.leases import Lease, Leases
from console.release.spool import Segment, Spool, place

if TYPE_CHECKING:
    from console.release.conductor import Conductor

LOOK_SECONDS = 1.0
"""So often is a file looked at, and so often whether somebody looks."""


class Followed:
    """One file that is followed, and kept.

    Args:
        parts: Who reads.
        folder: Where it is kept.
        what: Under which name.
        path: The file on the cluster.

    Raises:
        OSError: When nothing can be kept there.
    """

    def __init__(self, parts: Parts, folder: Path, what: str, path: str) -> None:
        self._spool = Spool(folder, what, path)
        kept = self._spool.kept
        offset, data = self._spool.known_end(SEAM_BYTES)
        since = None
        if kept.segments:
            since = Tail(path, FileStat(offset, 0, kept.inode), offset - len(data), data)
        self._follower = FileFollower(parts, path, since=since)

    async def look(self, now: str) -> bool:
        """Look once.

        Args:
            now: The time.

        Returns:
            Whether there is more to read at once.

        Raises:
            OSError: When what was read cannot be kept.
        """
        seen = await self._follower.look()
        if seen.stat is None:
            self._spool.answer(now, str(seen.presence), seen.said)
            return False
        self._spool.add(now, seen.data, size=seen.stat.size, inode=seen.stat.inode, segment=_segment(seen))
        return seen.presence is FilePresence.SEEN and bool(seen.data) and not seen.caught_up


def _segment(seen: Look) -> Segment | None:
    if seen.follows is Follows.ON:
        return None
    return Segment(0, seen.offset, str(seen.follows), seen.skipped)


async def serve_outputs(conductor: Conductor) -> None:
    """Follow what is looked at, until cancelled. It costs the watcher's channel, and only while somebody looks."""
    leases = Leases(conductor.writer.run_dir, conductor.monotonic)
    lease: Lease | None = None
    followed: Followed | None = None
    while True:
        more = False
        try:
            wanted = leases.current()
            if wanted != lease:
                lease, followed = wanted, None
            if lease is not None:
                followed = followed or _follow(conductor, lease)
                more = followed is not None and await followed.look(conductor.now())
        except OSError as error:
            # A run never ends because an output could not be kept.
            followed = None
            conductor.live.problems = (f"the output cannot be kept in the run folder: {error}",)
        if not more:
            await asyncio.sleep(LOOK_SECONDS)


def _follow(conductor: Conductor, lease: Lease) -> Followed | None:
    """Begin to follow; None where there is nothing to follow yet, which is noted where it is looked for."""
    run_dir = conductor.writer.run_dir
    attempt = conductor.writer.state.attempt(lease.id)
    if attempt is None or attempt.job_id is None:
        return None
    folder = place(run_dir, attempt.id)
    try:
        path = output_paths.path_of(queue.load(run_dir, attempt.id).job(), attempt.job_id, lease.what)
    except (output_paths.UnknownPath, queue.QueueError) as error:
        Spool(folder, lease.what, "").answer(conductor.now(), "unknown", str(error))
        return None
    return Followed(conductor.connection.watcher, folder, lease.what, path)
