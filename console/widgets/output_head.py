"""What stands above a job's output: which job, and how live its lines are. Nothing here imports Textual."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from console.release.output_paths import STDERR
from console.release.spool import Kept
from console.snapshot import Snapshot
from console.widgets.figures import NOTHING, age, duration, since, size
from console.widgets.ink import Line, Span, foreign
from console.widgets.output_rows import Search
from console.widgets.words import attempt_mark, given

LIVE_SECONDS = 5.0
"""A look that is no older counts as now."""


class Shown(NamedTuple):
    """What is shown of an output.

    Attributes:
        lines: Lines so far.
        dropped: How many of them are not kept any more.
        following: Whether the list stays at its end.
        search: What is searched for.
        place: Which of the lines that were found the cursor is on, from 1 on.
        hidden: Control sequences of the line under the cursor that are left out.
    """

    lines: int
    dropped: int
    following: bool
    search: Search | None = None
    place: int = 0
    hidden: int = 0


def job_line(snapshot: Snapshot, attempt_id: str, what: str, apart: bool | None) -> Line:
    """Which job, where it is, and which stream."""
    attempt = snapshot.run.attempt(attempt_id)
    if attempt is None:
        return (foreign(attempt_id, "strong"),)
    mark = attempt_mark(snapshot, attempt, snapshot.run.stage(attempt.stage).gates)
    live = snapshot.live.job(attempt_id)
    node = (live.node if live is not None else "") or attempt.node
    reason = given((live.reason if live is not None else "") or attempt.job_reason)
    elapsed = duration(live.elapsed_s if live is not None else None)
    limit = duration(attempt.limit_s) if attempt.limit_s else NOTHING
    stream = {True: "stderr" if what == STDERR else "stdout", False: "stdout and stderr"}.get(bool(apart), what)
    return (
        Span(f"{mark.sign} ", mark.style),
        foreign(f"{attempt_id} ", "strong"),
        foreign(f"job {attempt.job_id or NOTHING} "),
        foreign(mark.word, mark.style),
        foreign(f" on {node}" if node else "", "muted"),
        foreign(f" ({reason})" if reason else "", "muted"),
        Span(f"  {elapsed} / {limit}  ", "muted"),
        Span(stream if apart is not None else what, "title"),
    )


def feed_line(kept: Kept | None, shown: Shown, now: datetime, *, reads: bool, problem: str = "") -> Line:
    """How live the lines are, how many there are, and what was found.

    Args:
        kept: What is kept; None for nothing.
        shown: What is shown.
        now: The time.
        reads: Whether somebody reads on: this console asks, and a conductor listens.
        problem: Why this console cannot ask.
    """
    if problem:
        return (foreign(f"✗ {problem}", "failed"),)
    words: list[Span] = [*_feed(kept, now, reads)]
    words.append(Span(f"  {shown.lines} lines", "muted"))
    if shown.dropped:
        words.append(Span(f", the first {shown.dropped} dropped", "waiting"))
    words.append(Span(f" · {'following' if shown.following else 'not following'}", "muted"))
    if shown.search is not None:
        found = f"{shown.place} of {len(shown.search.numbers)}" if shown.search.numbers else "not found"
        words += [Span(" · ", "muted"), foreign(f"/{shown.search.words}: {found}", "human")]
    if shown.hidden:
        words.append(Span(f" · {shown.hidden} control sequences left out here: v shows them", "muted"))
    if kept is not None and kept.path:
        # Its folder is told with the job.
        words.append(foreign(f" · {kept.path.rpartition('/')[2]}", "muted"))
    return tuple(words)


def _feed(kept: Kept | None, now: datetime, reads: bool) -> Line:
    if kept is None:
        if reads:
            return (Span("… asking the cluster", "running"),)
        return (Span("? nothing was read of it, and nobody reads it for this console", "unknown"),)
    seconds = since(kept.looked_at, now)
    old = "" if seconds is not None and seconds <= LIVE_SECONDS else f", {age(seconds)} ago"
    if kept.presence == "seen":
        if not old:
            return (Span("● live", "passed"), Span(f" {size(kept.size)}", "muted"))
        return (Span(f"? as it was {age(seconds)} ago", "unknown"), Span(f" {size(kept.size)}", "muted"))
    if kept.presence == "missing":
        return (Span(f"· not there yet, or not any more{old}", "idle"),)
    if not kept.presence:
        return (Span("… asking the cluster", "running"),)
    said = f": {kept.said}" if kept.said else ""
    return (foreign(f"? {'could not ask' if kept.presence != 'unknown' else 'unknown'}{old}{said}", "unknown"),)
