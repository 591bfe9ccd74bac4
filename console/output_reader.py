"""Reads what the conductor kept of a job's output, each time only what is new. It holds nothing that could write.

Reading blocks, so the console calls `read` in a thread; what it returns is frozen.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from backends.watcher.folding import Fold
from console.release.spool import Kept, Segment, place, read_kept
from console.widgets.figures import size

CHUNK_BYTES = 256 * 1024
"""So much is read and folded at once: the screen lives on between two."""

MOST_BYTES = 16 * 2**20
"""So much of what was kept is read when an output is opened; the rest is counted."""


class Gap(NamedTuple):
    """A place where something is missing.

    Attributes:
        words: What.
        torn: Whether what follows may begin in the middle of a line.
    """

    words: str
    torn: bool


class Batch(NamedTuple):
    """What one reading brought.

    Attributes:
        kept: The description of what is kept; None where nothing is.
        anew: Whether it is another file than before: lines from before do not belong to it.
        parts: Bytes, and the gaps between them.
        more: Whether there is more to read at once.
    """

    kept: Kept | None = None
    anew: bool = False
    parts: tuple[bytes | Gap, ...] = ()
    more: bool = False


class OutputReader:
    """Follows what is kept of one output.

    Args:
        run_dir: The run folder.
        attempt_id: The attempt.
        what: Which of its files, as in `console.release.output_paths`.
    """

    def __init__(self, run_dir: Path, attempt_id: str, what: str) -> None:
        self._folder = place(run_dir, attempt_id)
        self._what = what
        self._path: str | None = None
        self._position = 0

    def read(self) -> Batch:
        """Read on."""
        before = read_kept(self._folder, self._what)
        if before is None:
            return Batch()
        anew = before.path != self._path
        start = 0 if anew else self._position - before.trimmed
        lost = -start if start < 0 else 0
        try:
            with open(self._folder / before.file, "rb") as file:
                end = file.seek(0, 2)
                if anew and end > MOST_BYTES:
                    start = lost = end - MOST_BYTES
                file.seek(max(0, start))
                data = file.read(CHUNK_BYTES)
        except (OSError, ValueError):
            # It may have been given up for a newer one just now; an output without bytes has no file yet.
            return Batch(before)
        # Of bytes that were read, the description that was written before them says what is missing between them.
        kept = read_kept(self._folder, self._what)
        if kept is None or (kept.file, kept.path) != (before.file, before.path):
            return Batch(before, more=True)
        self._path = kept.path
        start = max(0, start)
        self._position = kept.trimmed + start + len(data)
        gaps = (Gap(f"{size(lost)} that were read before are not shown", True),) if lost else ()
        return Batch(kept, anew, (*gaps, *_parted(kept, start, data)), end > start + len(data))


def _parted(kept: Kept, start: int, data: bytes) -> list[bytes | Gap]:
    """Bytes with the gaps that stand between them."""
    parts: list[bytes | Gap] = []
    done = start
    for item in kept.segments:
        if start <= item.at < start + len(data):
            parts += [data[done - start : item.at - start]] if item.at > done else []
            words = _gap(item)
            parts += [Gap(words, item.skipped > 0)] if words else []
            done = item.at
    parts += [data[done - start :]] if done < start + len(data) else []
    return parts


def _gap(item: Segment) -> str:
    """What is missing at a place; empty for nothing."""
    missing = f"{size(item.skipped)} were not read" if item.skipped else ""
    if item.why == "trimmed":
        return f"{size(item.skipped)} that were read before are not kept any more"
    if item.why == "replaced":
        return f"the file was cut, or another took its place: it begins anew{'; ' + missing if missing else ''}"
    if item.why == "grew too fast":
        return f"it grew faster than it could be followed: {missing}"
    return f"followed from near its end: {missing} before this" if missing else ""


def fold_in(fold: Fold, batch: Batch) -> None:
    """Take what a reading brought into the lines."""
    for part in batch.parts:
        if isinstance(part, bytes):
            fold.feed(part)
            continue
        fold.gap(part.words)
        if part.torn:
            fold.begin_torn()
