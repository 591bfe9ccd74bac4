"""What was read of a job's output or of a file, kept in the run folder: `outputs/<attempt>/`.

Beside the bytes lies a description, rewritten at each look: which file it is, when it was asked for and with which of
the three answers, and where in the kept bytes something is missing. It is worth nothing for the record: nothing of it
is made durable, no verdict rests on it, and it is bounded.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

FOLDER = "outputs"

MOST_BYTES = 64 * 2**20
"""So much is kept of one file; beyond it, the older half goes."""

MOST_SEGMENTS = 1000


@dataclass(frozen=True, slots=True)
class Segment:
    """A place in the kept bytes where they do not follow on those before.

    Attributes:
        at: Where, in the kept bytes.
        offset: Where in the file on the cluster the bytes after it begin.
        why: In the words of `backends.watcher.following.Follows`.
        skipped: Bytes of the file before them that were not read.
    """

    at: int
    offset: int
    why: str
    skipped: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The description of what is kept.

    Attributes:
        path: The file on the cluster.
        presence: The last answer: "seen", "missing", "could not ask"; empty before the first.
        said: What came instead of an answer, or why there is nobody to ask.
        looked_at: Time of the last look, ISO 8601.
        seen_at: Time of the last look that saw the file.
        size: Its size then, bytes.
        inode: Its inode then.
        file: Name of the file with the bytes.
        trimmed: Kept bytes that were given up for newer ones.
        segments: Where something is missing.
    """

    path: str = ""
    presence: str = ""
    said: str = ""
    looked_at: str = ""
    seen_at: str = ""
    size: int = 0
    inode: int = 0
    file: str = ""
    trimmed: int = 0
    segments: tuple[Segment, ...] = ()


def place(run_dir: Path, attempt_id: str) -> Path:
    """Folder of what was read of an attempt's files."""
    return run_dir / FOLDER / attempt_id


def read_kept(folder: Path, what: str) -> Kept | None:
    """The description; None where nothing readable is there."""
    try:
        data: Any = json.loads((folder / f"{what}.json").read_bytes())
        segments = tuple(Segment(**item) for item in data.pop("segments"))
        kept = Kept(**data, segments=segments)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    texts = (kept.path, kept.presence, kept.said, kept.looked_at, kept.seen_at, kept.file)
    numbers = [kept.size, kept.inode, kept.trimmed]
    numbers += [number for item in segments for number in (item.at, item.offset, item.skipped)]
    if not all(isinstance(text, str) for text in (*texts, *(item.why for item in segments))):
        return None
    # A name with a folder in it would lead elsewhere.
    if "/" in kept.file or not all(type(number) is int and number >= 0 for number in numbers):
        return None
    return kept


class Spool:
    """Keeps what is read of one file. One conductor writes it.

    Args:
        folder: See `place`; it is made.
        what: Name of what is read.
        path: The file on the cluster.
        most: Most bytes kept.

    Raises:
        OSError: When it cannot be written.
    """

    def __init__(self, folder: Path, what: str, path: str, *, most: int = MOST_BYTES) -> None:
        from console.release import effects

        folder.mkdir(parents=True, exist_ok=True)
        for made in (folder.parent, folder):
            effects.share_as(made, folder.parent.parent)
        self._folder, self._what, self._most = folder, what, most
        known = read_kept(folder, what)
        self.kept = known if known is not None and known.path == path else Kept(path, file=f"{what}.1")
        if self.kept is not known:
            self._bytes.unlink(missing_ok=True)
        self._write(self.kept)
        with open(self._bytes, "ab") as file:
            self._size = file.tell()
        effects.share_as(self._bytes, folder)

    @property
    def _bytes(self) -> Path:
        return self._folder / self.kept.file

    def known_end(self, length: int) -> tuple[int, bytes]:
        """Where in the file on the cluster the kept bytes end, and the last of them."""
        if not self.kept.segments:
            return 0, b""
        last = self.kept.segments[-1]
        with open(self._bytes, "rb") as file:
            file.seek(max(last.at, self._size - length))
            return last.offset + self._size - last.at, file.read(length)

    def answer(self, time: str, presence: str, said: str = "") -> None:
        """Note an answer that brought no bytes.

        Raises:
            OSError: When it cannot be written.
        """
        self._write(replace(self.kept, presence=presence, said=said, looked_at=time))

    def add(self, time: str, data: bytes, *, size: int, inode: int, segment: Segment | None) -> None:
        """Keep bytes; the description goes first, so that whoever reads the bytes and then it knows what is missing.

        Args:
            time: Now.
            data: The bytes.
            size: Size of the file on the cluster.
            inode: Its inode.
            segment: Says so where the bytes do not follow on those before; its `at` is set here.

        Raises:
            OSError: When it cannot be written.
        """
        segments = self.kept.segments
        if segment is not None:
            segments = (*segments, replace(segment, at=self._size))
        seen = replace(self.kept, presence="seen", said="", looked_at=time, seen_at=time, size=size, inode=inode)
        self._write(replace(seen, segments=segments))
        if data:
            with open(self._bytes, "ab") as file:
                file.write(data)
            self._size += len(data)
        if self._size > self._most or len(segments) > MOST_SEGMENTS:
            self._trim()

    def _trim(self) -> None:
        """Give up the older half, in a new file: whoever reads the old one goes on to its end."""
        keep = min(self._size, self._most // 2)
        old, gone = self._bytes, self._size - keep
        number = int(self.kept.file.rpartition(".")[2]) + 1
        name = f"{self._what}.{number}"
        with open(old, "rb") as file:
            file.seek(gone)
            data = file.read()
        (self._folder / name).write_bytes(data)
        before = [item for item in self.kept.segments if item.at <= gone]
        first = before[-1] if before else Segment(0, 0, "", 0)
        lost = replace(first, at=0, offset=first.offset + gone - first.at, why="trimmed", skipped=gone)
        later = [replace(item, at=item.at - gone) for item in self.kept.segments if item.at > gone]
        segments = (lost, *later[-(MOST_SEGMENTS // 2) :])
        self._write(replace(self.kept, file=name, trimmed=self.kept.trimmed + gone, segments=segments))
        self._size = len(data)
        old.unlink(missing_ok=True)

    def _write(self, kept: Kept) -> None:
        target = self._folder / f"{self._what}.json"
        temporary = target.with_name(f".{target.name}")
        temporary.write_text(json.dumps(asdict(kept)), encoding="ascii")
        os.replace(temporary, target)
        self.kept = kept
