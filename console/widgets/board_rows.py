"""The pipeline and the queue as rows. Nothing here imports Textual."""

from __future__ import annotations

from datetime import datetime

from console.release.state import Attempt, Stage, StageStatus
from console.snapshot import Snapshot
from console.widgets.figures import between, duration, since
from console.widgets.ink import Line, Span, foreign, pad
from console.widgets.words import Mark, attempt_mark, stage_mark

STAGE, ATTEMPT = "stage:", "attempt:"
"""What keys of pipeline rows begin with."""

Table = tuple[list[Line], list[str]]
"""Rows and their keys."""


def pipeline(snapshot: Snapshot, now: datetime, width: int) -> Table:
    """The stages, and under each the newest attempt of every task that it has begun."""
    lines: list[Line] = []
    keys: list[str] = []
    for stage in snapshot.run.stages:
        lines.append(_stage_row(snapshot, stage, now, width))
        keys.append(f"{STAGE}{stage.name}")
        for attempt in newest(stage):
            lines.append(_task_row(snapshot, stage, attempt, now, width))
            keys.append(f"{ATTEMPT}{attempt.id}")
    return lines, keys


def newest(stage: Stage) -> list[Attempt]:
    """The newest attempt of each task of a stage, in the order in which the tasks began."""
    found: dict[str, Attempt] = {}
    for attempt in stage.attempts:
        found[attempt.task] = attempt
    return list(found.values())


def _stage_row(snapshot: Snapshot, stage: Stage, now: datetime, width: int) -> Line:
    mark = stage_mark(snapshot, stage)
    begun = stage.status is not StageStatus.NOT_STARTED
    seconds = between(stage.started_at, stage.ended_at, now) if begun else None
    style = "strong" if begun else "muted"
    return _state_row((Span(f"{mark.sign} ", mark.style), foreign(stage.name, style)), mark, seconds, width)


def _task_row(snapshot: Snapshot, stage: Stage, attempt: Attempt, now: datetime, width: int) -> Line:
    mark = attempt_mark(snapshot, attempt, stage.gates)
    again = f" ×{attempt.attempt}" if attempt.attempt > 1 else ""
    left = (Span(f"  {mark.sign} ", mark.style), foreign(attempt.task), Span(again, "muted"))
    start = attempt.submitted_at or attempt.proposed_at
    return _state_row(left, mark, between(start, _end_of(attempt), now), width)


def _end_of(attempt: Attempt) -> str:
    """When an attempt ended: its job, or where there was none the decision that ended it."""
    read = [result.time for result in attempt.results]
    return attempt.ended_at or max(read, default="") or ("" if attempt.submitted_at else attempt.decided_at)


_WORD, _TIME = 9, 6
"""Widths of the columns for the word of a state and for a time."""


def _state_row(left: Line, mark: Mark, seconds: float | None, width: int) -> Line:
    """A name, the word of its state and a time, in columns; a long word takes the place of the time."""
    time = duration(seconds) if seconds is not None else ""
    room = max(12, width - _WORD - _TIME - 2)
    word = foreign(mark.word, mark.style)
    rest = max(0, width - room - 1)
    if len(mark.word) + 1 + len(time) > rest:
        return (*pad(left, room), Span(" "), *pad((word,), rest))
    return (*pad(left, room), Span(" "), *pad((word,), rest - len(time)), Span(time, "muted"))


def queue_rows(snapshot: Snapshot, now: datetime, width: int) -> Table:
    """The proposals that wait, oldest first; each says since when."""
    lines: list[Line] = []
    for item in snapshot.waiting:
        seconds = since(item.proposed_at, now)
        time = "" if seconds is None else f" {duration(seconds)}"
        name = foreign(item.id, "waiting")
        text = foreign(item.problem or item.summary, "failed" if item.problem else "text")
        room = max(0, width - len(time))
        lines.append((*pad((Span("◆ ", "waiting"), name, Span(" "), text), room), Span(time, "muted")))
    if not lines:
        lines.append((Span("nothing waits for you", "muted"),))
        return lines, [""]
    return lines, [item.id for item in snapshot.waiting]
