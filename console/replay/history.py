"""The state of a release after any number of its log's entries: the fold, with checkpoints on the way.

States are immutable and share what did not change, so a checkpoint costs little. Two things make a jump short: an
entry whose event the fold does not read only counts, and of several entries that say how one job was last seen only
the last is folded, since each sets the same four fields and nothing else. Both change no state; that any state here
is the fold from scratch is tested.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from console.release.events import change
from console.release.journal import Entry, Kind
from console.release.state import RunState
from console.replay.entries import IndexedEntries
from console.replay.index import LogIndex
from console.replay.marks import INTERVENTION

STEP = 150
"""A checkpoint is kept after so many entries that must be folded one by one."""

WIDEST = 20_000
"""Checkpoints lie at most so many entries that the fold reads apart."""


def take(state: RunState, entry: Entry) -> RunState:
    """The state after one more entry; one that the fold cannot read counts, and changes nothing else."""
    return _counted(_try(state, entry) or state, entry)


def _try(state: RunState, entry: Entry) -> RunState | None:
    try:
        return change(state, entry)
    except (KeyError, ValueError, TypeError, AttributeError, StopIteration):
        # A log that was changed by hand, or that a newer version wrote: its entries are shown all the same.
        return None


def _counted(state: RunState, entry: Entry) -> RunState:
    human = entry.kind is Kind.HUMAN_INTERVENTION
    return replace(
        state,
        entries=entry.seq,
        head=entry.hash,
        updated_at=entry.time,
        interventions=state.interventions + human,
    )


def fold_all(entries: Iterable[Entry]) -> RunState:
    """The state after some entries from the first on, one after the other: what every other way must come to."""
    state = RunState()
    for entry in entries:
        state = take(state, entry)
    return state


class History:
    """States of an indexed log.

    Args:
        index: The index.
        entries: Its entries.
    """

    def __init__(self, index: LogIndex, entries: IndexedEntries) -> None:
        self._index = index
        self._entries = entries
        # Checkpoints are made in a thread of their own while the screen asks for states.
        self._lock = threading.RLock()
        self._checkpoints = [RunState()]
        self._places = [0]
        self._planned = (-1, 0)
        self._last: tuple[int, RunState] = (0, RunState())

    @property
    def ready(self) -> bool:
        """Whether every checkpoint is there, so that any jump is a short one."""
        return self._next(self._places[-1]) >= len(self._index.folded)

    def prepare(self) -> bool:
        """Make one more checkpoint; returns whether all are there."""
        with self._lock:
            start = self._places[-1]
            end = self._next(start)
            if end >= len(self._index.folded):
                return True
            self._checkpoints.append(self._fold(self._checkpoints[-1], start, end))
            self._places.append(end)
            return False

    def reaches(self, count: int) -> bool:
        """Whether the state after so many entries is a short way behind a checkpoint that is there."""
        return bisect_left(self._index.folded, count) <= self._next(self._places[-1])

    def _next(self, start: int) -> int:
        """Where the checkpoint after one belongs: so far behind it that the way there is just short enough."""
        if self._planned[0] == start:
            return self._planned[1]
        seen = self._index.seen[start : start + WIDEST]
        cost, known = 0, set[int]()
        for place, attempt in enumerate(seen):
            if attempt == 0 or attempt not in known:
                known.add(attempt)
                cost += 1
                if cost >= STEP:
                    seen = seen[: place + 1]
                    break
        self._planned = (start, start + max(1, len(seen)))
        return self._planned[1]

    def state(self, count: int) -> RunState:
        """The state after the first `count` entries.

        Args:
            count: From 0 to the number of entries.
        """
        if count == 0:
            return RunState()
        folded = bisect_left(self._index.folded, count)
        while self._places[-1] < folded and not self.prepare():
            pass
        with self._lock:
            return self._state(count, folded)

    def _state(self, count: int, folded: int) -> RunState:
        place = bisect_right(self._places, folded) - 1
        start, state = self._places[place], self._checkpoints[place]
        if start <= self._last[0] <= folded:
            start, state = self._last
        state = self._fold(state, start, folded)
        self._last = (folded, state)
        entry = self._entries[count - 1]
        human = self._index.marks.before(INTERVENTION, count)
        return replace(state, entries=entry.seq, head=entry.hash, updated_at=entry.time, interventions=human)

    def _fold(self, state: RunState, start: int, end: int) -> RunState:
        """Fold the entries that the fold reads, from one of them up to another."""
        before = state
        for position, needed in self._needed(start, end):
            entry = self._entries.fresh(position)
            if entry is None:
                continue
            after = _try(state, entry)
            if after is None and needed:
                # The last word on a job cannot be read: then one of those that were passed over counts.
                return self._fold_each(before, start, end)
            state = after or state
        return state

    def _fold_each(self, state: RunState, start: int, end: int) -> RunState:
        for position in self._index.folded[start:end]:
            entry = self._entries.fresh(position)
            state = state if entry is None else _try(state, entry) or state
        return state

    def _needed(self, start: int, end: int) -> Iterator[tuple[int, bool]]:
        """Positions that must be folded, and whether others were passed over for the sake of one."""
        folded, seen = self._index.folded[start:end], self._index.seen[start:end]
        last = {attempt: place for place, attempt in enumerate(seen) if attempt}
        for place, attempt in enumerate(seen):
            if not attempt or last[attempt] == place:
                yield folded[place], bool(attempt)
