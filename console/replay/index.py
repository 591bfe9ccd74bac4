"""An index over a work log of this program: where each entry stands, when it was, and what it is about.

It is made in one pass without parsing the entries: a record is canonical JSON (`console.release.journal`), so the
fields behind `data` stand in a known order at its end, and a name like `"event":"` cannot stand within a text, where
quotes are escaped. Each chunk is taken apart by one regular expression and then column by column, so that hardly
anything is done entry by entry. Entries are parsed when they are asked for. The pass compares each hash with the `prev`
of the next entry; that every entry hashes to its own hash is what `console.replay.checking` finds out afterwards.
"""

from __future__ import annotations

import gc
import json
import re
from array import array
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import accumulate
from operator import add
from pathlib import Path
from typing import BinaryIO

from console.release.events import READERS as READ_BY_THE_FOLD
from console.release.journal import GENESIS, PREAMBLE
from console.replay.errors import ReplayError
from console.replay.marks import INTERVENTION, MARKING, Marks, kinds_of

CHUNK_BYTES = 4_000_000
"""So much of a log is read at once."""

LONGEST_BYTES = 256_000_000
"""A single entry longer than this is no entry of ours."""

_MARKER, _END = b"\n<!-- gonogo ", b" -->\n"
_FORM = (
    rb'\n<!-- gonogo \{"actor":"[^"\\\n]*(?:\\.[^"\\\n]*)*","data":\{'
    # The event, where no other object stands before it: then it is that of the data themselves.
    rb'(?:[^{}\n]*?"event":"([a-z_]{1,40})"(?:,"id":"([^"\\\n]*)")?)?'
    rb'.*\},"hash":"(.{64})","kind":"([AH])[A-Z_]+","prev":"(.{64})","seq":(\d{1,18}),'
    rb'"stage":"([^"\\\n]*(?:\\.[^"\\\n]*)*)","text":".*","time":"%s"\} -->\n'
)
_RECORD = re.compile(_FORM % rb"(.{17})(.{9})Z")
_ODD_RECORD = re.compile(_FORM % rb'([^"\\\n]*(?:\\.[^"\\\n]*)*)()')
"""The same with anything for a time."""

_SEEN, _PROPOSED = "job_seen", "job_proposed"

_Row = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]


class LogIndex:
    """The columns of the index; position 0 is the first entry.

    Attributes:
        path: The log.
        size: Bytes of the log that were there when it was opened; what is added later is not replayed.
        starts: Byte offset of each record's JSON.
        times: Seconds since 1970 (UTC) of each entry, never smaller than those before it: a clock that was put back
            does not turn the time line round.
        events: Number of each entry's event in `event_names`.
        stages: Number of its stage in `stage_names`.
        folded: Positions of the entries whose event the fold reads; the others only count.
        seen: For each of `folded`, a number of the attempt where it only says how a job was last seen, else 0.
        marks: What one may jump to.
        problem: The first thing that is wrong with the chain; empty while nothing is known to be.
        sound: How many entries from the first on are linked without a break.
        torn: Whether bytes follow the last entry.
        undated: How many entries have a time that is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.starts = array("Q")
        self.times = array("d")
        self.events = array("H")
        self.stages = array("H")
        self.folded = array("I")
        self.seen = array("I")
        self.marks = Marks()
        self.problem = ""
        self.sound = 0
        self.torn = False
        self.undated = 0
        self.event_names: list[str] = [""]
        self.stage_names: list[str] = [""]

    def __len__(self) -> int:
        return len(self.starts)

    def span(self, position: int) -> tuple[int, int]:
        """Byte offset of a record's JSON, and a number of bytes that holds all of it and no other record."""
        start = self.starts[position]
        end = self.starts[position + 1] if position + 1 < len(self.starts) else self.size
        return start, end - start

    def event(self, position: int) -> str:
        """Name of an entry's event; empty where it has none that is known."""
        return self.event_names[self.events[position]]

    def stage(self, position: int) -> str:
        """Name of an entry's stage."""
        return self.stage_names[self.stages[position]]


def is_own(head: bytes) -> bool:
    """Whether a log that begins with these bytes is of this program."""
    return head.startswith(PREAMBLE[:60]) or _MARKER in head


def build(path: Path, stream: BinaryIO) -> LogIndex:
    """Make the index of a log.

    Args:
        path: Where the log lies, for messages.
        stream: The log, opened for reading bytes.

    Raises:
        ReplayError: When it holds an entry longer than any that this program writes.
        OSError: When it cannot be read.
    """
    # Rows by the million that hold no cycles: looking for some takes longer than making them.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _build(path, stream)
    finally:
        if collecting:
            gc.enable()


def _build(path: Path, stream: BinaryIO) -> LogIndex:
    index = LogIndex(path)
    builder = _Builder(index)
    rest, offset = b"", 0
    while chunk := stream.read(CHUNK_BYTES):
        data = rest + chunk if rest else chunk
        whole = data.rfind(_END) + len(_END) if _END in data else 0
        if whole:
            builder.take(data[:whole], offset)
        # One byte stays, since the marker of a record begins with the end of the line before.
        keep = max(0, whole - 1)
        rest, offset = data[keep:], offset + keep
        if len(rest) > LONGEST_BYTES:
            raise ReplayError(f"{path}: byte {offset}: an entry longer than {LONGEST_BYTES} bytes; this is no work log")
    index.size = offset + len(rest)
    index.torn = bool(rest.strip()) and not PREAMBLE.startswith(rest)
    if not index.problem:
        index.sound = len(index)
    return index


class _Codes(dict[bytes, int]):
    """Numbers for names, given out as they come."""

    def __init__(self, new: Callable[[bytes], int]) -> None:
        self._new = new

    def __missing__(self, name: bytes) -> int:
        number = self[name] = self._new(name)
        return number


class _Minutes(dict[bytes, float]):
    """Seconds since 1970 of whole minutes, by how a time stamp begins ("2026-08-12T09:30:")."""

    def __missing__(self, prefix: bytes) -> float:
        found = _moment(prefix + b"00Z")
        if found is None:
            raise ValueError(prefix)
        if len(self) > 100_000:
            self.clear()
        self[prefix] = found
        return found


class _Builder:
    """Fills an index, chunk by chunk."""

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        self._hash = GENESIS.encode("ascii")
        self._last = 0.0
        self._minutes = _Minutes()
        self._reads, self._marking = [False], [False]
        self._numbers = {"": 0}
        self._events = _Codes(lambda name: self._number(name.decode("ascii")))
        self._stages = _Codes(self._stage)
        self._attempts: dict[bytes, int] = {}
        self._attempt_number = 0

    def take(self, data: bytes, offset: int) -> None:
        """Take up the records of some bytes, which end with one."""
        pieces = data.split(_MARKER)
        rows: list[_Row] = _RECORD.findall(data)
        step = len(_MARKER)
        ends = accumulate(map(len, pieces))
        starts = list(map(add, ends, range(offset + step, offset + step * len(pieces), step)))
        del pieces[0]
        if len(rows) != len(pieces):
            rows, starts, pieces = self._one_by_one(pieces, starts)
        if rows:
            self._columns(rows, starts, pieces)

    def _one_by_one(self, pieces: list[bytes], starts: list[int]) -> tuple[list[_Row], list[int], list[bytes]]:
        """The same for bytes in which something has the marker of a record and is none."""
        found = [
            (_ODD_RECORD.match(_MARKER + piece), start, piece) for piece, start in zip(pieces, starts, strict=True)
        ]
        kept = [(match.groups(b""), start, piece) for match, start, piece in found if match is not None]
        odd = next((place for place, (match, _, _) in enumerate(found) if match is None), None)
        if odd is not None and not self._index.problem:
            self._broken(len(self._index) + odd, "its record was changed")
        return [row for row, _, _ in kept], [start for _, start, _ in kept], [piece for _, _, piece in kept]  # type: ignore[misc]

    def _columns(self, rows: Sequence[_Row], starts: list[int], pieces: list[bytes]) -> None:
        index = self._index
        base = len(index)
        names, attempts, hashes, kinds, prevs, seqs, stages, minutes, seconds = zip(*rows, strict=True)
        self._check_chain(hashes, prevs, seqs)
        index.starts.extend(starts)
        index.times.extend(self._times(minutes, seconds))
        index.stages.extend(map(self._stages.__getitem__, stages))
        events = list(map(self._events.__getitem__, names))
        for place in [place for place, name in enumerate(names) if not name]:
            events[place] = self._number(_parsed_event(pieces[place]))
        index.events.extend(events)
        self._take_folded(base, events, attempts)
        marking = self._marking
        for place in [place for place, event in enumerate(events) if marking[event]]:
            index.marks.add(base + place, _marks(pieces[place], index.event_names[events[place]]))
        for place in [place for place, kind in enumerate(kinds) if kind != b"A"]:
            index.marks.add(base + place, (INTERVENTION,))

    def _check_chain(self, hashes: Sequence[bytes], prevs: Sequence[bytes], seqs: Sequence[bytes]) -> None:
        first = len(self._index)
        wanted = (self._hash, *hashes[:-1])
        numbers = list(map(int, seqs))
        self._hash = hashes[-1]
        if self._index.problem or (prevs == wanted and numbers == list(range(first + 1, first + 1 + len(numbers)))):
            return
        pairs = enumerate(zip(prevs, wanted, numbers, strict=True))
        place = next(place for place, (prev, want, seq) in pairs if prev != want or seq != first + place + 1)
        self._broken(first + place, "it does not follow the entry before it: an entry was removed, added or moved")

    def _broken(self, position: int, why: str) -> None:
        self._index.sound = position
        self._index.problem = f"{self._index.path.name}: entry {position + 1}: {why}"

    def _times(self, minutes: Sequence[bytes], seconds: Sequence[bytes]) -> Sequence[float]:
        """Seconds since 1970 of time stamps, each at least that of the one before."""
        try:
            found = list(map(add, map(self._minutes.__getitem__, minutes), map(float, seconds)))
        except ValueError:
            found = list(map(self._time, minutes, seconds))
        times = list(accumulate(found, max, initial=self._last))
        self._last = times[-1]
        return times[1:]

    def _time(self, minute: bytes, second: bytes) -> float:
        whole = minute + second + b"Z" if second else minute
        moment = None if len(whole) != 27 else _moment(whole)
        if moment is None:
            self._index.undated += 1
            return 0.0
        return moment

    def _take_folded(self, base: int, events: list[int], attempts: Sequence[bytes]) -> None:
        """Note the entries that the fold reads, and which of them only say how a job was seen."""
        reads, seen, proposed = self._reads, self._numbers.get(_SEEN), self._numbers.get(_PROPOSED)
        folded = [place for place, event in enumerate(events) if reads[event]]
        self._index.folded.extend([base + place for place in folded])
        numbers = []
        for place in folded:
            event = events[place]
            if event == seen and attempts[place]:
                numbers.append(self._attempts.get(attempts[place]) or self._attempt(attempts[place]))
                continue
            if event == proposed:
                # What an id stands for may change here: what is said of it later supersedes nothing said before.
                self._attempts.clear()
            numbers.append(0)
        self._index.seen.extend(numbers)

    def _attempt(self, name: bytes) -> int:
        self._attempt_number += 1
        self._attempts[name] = self._attempt_number
        return self._attempt_number

    def _number(self, name: str) -> int:
        # A log with more kinds of events than anybody writes does not need a number for each.
        if name not in READ_BY_THE_FOLD and len(self._numbers) > 1000:
            return 0
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
            self._index.event_names.append(name)
            self._reads.append(name in READ_BY_THE_FOLD)
            self._marking.append(name in MARKING)
        return number

    def _stage(self, raw: bytes) -> int:
        names = self._index.stage_names
        if not raw or len(names) >= 60_000:
            return 0
        try:
            name = json.loads(b'"' + raw + b'"')
        except ValueError:
            return 0
        names.append(name)
        return len(names) - 1


def _moment(stamp: bytes) -> float | None:
    """Seconds since 1970 of a time stamp as the journal writes it; None where it is none."""
    try:
        found = datetime.fromisoformat(stamp.decode("ascii"))
        return found.timestamp() if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _parsed_event(piece: bytes) -> str:
    """The event of a record whose data hold other objects too."""
    try:
        return str(json.loads(piece[: piece.index(_END)])["data"].get("event", ""))
    except (ValueError, KeyError, AttributeError, RecursionError):
        return ""


def _marks(piece: bytes, event: str) -> list[str]:
    try:
        data = json.loads(piece[: piece.index(_END)])["data"]
        return kinds_of(event, data) if isinstance(data, dict) else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
