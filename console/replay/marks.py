"""What one may jump to in a log: approvals, gates, interventions and failures, found entry by entry.

The names of events are those that `console.release.events` reads. Nothing here keeps entries: a mark is the position
of one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

APPROVAL, GATE, INTERVENTION, FAILURE = "approval", "gate", "intervention", "failure"
KINDS = (APPROVAL, GATE, INTERVENTION, FAILURE)
"""The kinds of marks, in the order in which they are listed."""

MARKING = frozenset(
    {"job_decided", "gate", "stage_failed", "submit_outcome", "result_missing", "stopped", "verdict", "triaged"}
)
"""Events that may make a mark; all others need not be looked into."""

_NO_SUBMISSION = ("refused", "not_submitted", "unknown")


def kinds_of(event: str, data: Mapping[str, Any]) -> list[str]:
    """The marks that an entry's event makes; interventions are known by the entry's kind alone.

    Args:
        event: Name of the event.
        data: The entry's data.
    """
    if event == "job_decided":
        return [APPROVAL] if data.get("decision") == "approved" else []
    if event == "gate":
        return [GATE] if data.get("pass") is True else [GATE, FAILURE]
    if event == "submit_outcome":
        return [FAILURE] if data.get("outcome") in _NO_SUBMISSION else []
    if event == "verdict":
        return [] if data.get("verdict") == "DRAFTER_READY" else [FAILURE]
    return [FAILURE] if event in MARKING else []


class Marks:
    """Positions of marked entries by kind, each list in ascending order."""

    def __init__(self) -> None:
        self._positions: dict[str, array[int]] = {kind: array("I") for kind in KINDS}

    def add(self, position: int, kinds: Iterable[str]) -> None:
        """Mark an entry that lies behind all marked before."""
        for kind in kinds:
            self._positions[kind].append(position)

    def of(self, kind: str) -> Sequence[int]:
        """Positions of one kind."""
        return self._positions[kind]

    def before(self, kind: str, count: int) -> int:
        """How many of a kind are among the first `count` entries."""
        return bisect_left(self._positions[kind], count)

    def after(self, kind: str, position: int) -> int | None:
        """The first mark of a kind behind a position; None where there is none."""
        found = self._positions[kind]
        index = bisect_right(found, position)
        return found[index] if index < len(found) else None

    def ahead(self, kind: str, position: int) -> int | None:
        """The last mark of a kind before a position; None where there is none."""
        found = self._positions[kind]
        index = bisect_left(found, position) - 1
        return found[index] if index >= 0 else None
