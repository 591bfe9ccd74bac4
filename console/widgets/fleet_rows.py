"""Releases as rows, made when they are looked at. Nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from console.fleet.listing import Row, Wish
from console.fleet.release import Kind, Release, sign, word
from console.snapshot import LiveJob
from console.widgets.figures import NOTHING, duration
from console.widgets.ink import Column, Line, Span, foreign, table_row
from console.widgets.status import Status
from console.widgets.words import HUMAN_SIGN, given, job_mark

COLUMNS = (
    Column("", 1),
    Column("release", 0),
    Column("cluster", 10),
    Column("state", 15),
    Column("for", 8, right=True),
    Column("stage", 12, least=96),
    Column("attempt", 16, least=140),
    Column("interventions", 2, right=True),
    Column("cluster time", 12, right=True, least=150),
    Column("target", 20, least=180),
    Column("what it waits for", 0, least=100),
)
_WIDE = 100
"""From this width on there is room for what a release waits for, and its name has as much as a name needs."""


def _columns(width: int) -> tuple[Column, ...]:
    if width < _WIDE:
        return COLUMNS
    name = 22 if width < 150 else 30
    return tuple(column._replace(width=name) if column.title == "release" else column for column in COLUMNS)


_SHORT_TITLES = {"interventions": HUMAN_SIGN, "cluster time": "cluster time"}


def heading(width: int, wish: Wish) -> Line:
    """The headings; a sign stands behind the one that the list is sorted by, and a click sorts by another."""
    arrow = "▴" if wish.reverse else "▾"
    spans = []
    for column in COLUMNS:
        title = _SHORT_TITLES.get(column.title, column.title)
        here = column.title == wish.column
        verb = f"sort:{column.title}" if column.title not in ("", "what it waits for") else ""
        spans.append(Span(f"{title}{arrow}" if here else title, "title" if here else "muted", verb))
    return table_row(_columns(width), spans, width)


class FleetRows:
    """The rows.

    Args:
        rows: What they are about.
        now: The time.
        folded: Groups of which only the heading is there.
        empty: What is said where there is none.
    """

    def __init__(self, rows: Sequence[Row], now: datetime, folded: frozenset[str], empty: str) -> None:
        self.rows = rows
        self._now = now
        self._folded = folded
        self._empty = empty
        self._places = {row.key: index for index, row in enumerate(rows)}
        self._made: dict[tuple[int, int], Line] = {}

    def __len__(self) -> int:
        return len(self.rows) or 1

    def line(self, index: int, width: int) -> Line:
        """One row."""
        found = self._made.get((index, width))
        if found is None:
            found = self._made[index, width] = self._line(index, width)
        return found

    def _line(self, index: int, width: int) -> Line:
        if not self.rows:
            return (Span(self._empty, "muted"),)
        row = self.rows[index]
        if row.release is None or row.status is None:
            return _group(row, row.group in self._folded)
        if row.job is not None:
            return table_row(_columns(width), _job(row.job), width)
        return table_row(_columns(width), _release(row.release, row.status, self._now), width)

    def key(self, index: int) -> str:
        """What a row is about."""
        return self.rows[index].key if index < len(self.rows) else ""

    def find(self, key: str) -> int | None:
        """The row that is about something."""
        return self._places.get(key)


def detail(row: Row, now: datetime) -> list[Line]:
    """What there is to say of the row under the cursor: where it runs, for whose account, and what it waits for."""
    release, found = row.release, row.status
    if release is None or found is None:
        return []
    run, attempt = release.snapshot.run, release.attempt
    facts = [
        ("cluster", release.cluster), ("account", release.account), ("stage", run.current.name if attempt else ""),
        ("attempt", attempt.id if attempt else ""), ("interventions", str(run.interventions)),
        ("cluster time", duration(release.cluster_seconds(now))), ("GPU hours", f"{release.gpu_hours(now):.2f}"),
    ] if release.snapshot.state is not None else []  # fmt: skip
    shown: list[Span] = []
    for name, value in facts:
        if value:
            shown += [Span(f"{'  ' if shown else ''}{name} ", "muted"), foreign(value)]
    place = (Span("folder ", "muted"), foreign(release.path))
    return [tuple(shown), (foreign(found.text, found.style.removeprefix("chip-")),), place]


def _group(row: Row, folded: bool) -> Line:
    waits = "" if not row.waiting else f" · {row.waiting} {'waits' if row.waiting == 1 else 'wait'} for you"
    return (
        Span("▸ " if folded else "▾ ", "muted"),
        foreign(row.group, "title"),
        Span(f" · {row.size}", "muted"),
        Span(waits, "waiting"),
    )


def _release(release: Release, found: Status, now: datetime) -> list[Span | Line]:
    run, attempt = release.snapshot.run, release.attempt
    style = found.style.removeprefix("chip-")
    ours = release.kind is Kind.OURS and release.snapshot.state is not None
    human = run.interventions
    seconds = release.cluster_seconds(now) if ours else 0.0
    return [
        Span(sign(found), style),
        foreign(release.name, "strong"),
        foreign(release.cluster or NOTHING, "text" if release.cluster else "muted"),
        Span(_SHORT_STATES.get(word(found), word(found)), style),
        Span(duration(found.seconds), "muted"),
        foreign(run.current.name if ours and run.verdict is None else NOTHING, "muted"),
        foreign(f"{attempt.task} {attempt.attempt}" if attempt else NOTHING, "muted"),
        Span(str(human) if ours else NOTHING, "human" if human else "muted"),
        Span(duration(seconds) if seconds else NOTHING, "muted"),
        foreign(run.inputs.get("target", NOTHING) if ours else NOTHING, "muted"),
        foreign(found.text, "text" if style in ("waiting", "failed") else "muted"),
    ]


_SHORT_STATES = {"WAITS FOR THE CLUSTER": "FOR THE CLUSTER"}


def _job(job: LiveJob) -> list[Span | Line]:
    mark = job_mark(job)
    limit = duration(job.limit_s) if job.limit_s else NOTHING
    return [
        Span(" "),
        (Span(f"  {mark.sign} ", mark.style), foreign(job.id, "muted")),
        foreign(job.job_id, "muted"),
        foreign(mark.word, mark.style),
        Span(duration(job.elapsed_s), "text"),
        Span(f"of {limit}", "muted"),
        foreign(job.node or NOTHING, "muted"),
        Span(""),
        Span(f"{job.gpus} GPUs" if job.gpus else "", "muted"),
        Span(""),
        foreign(given(job.reason) or job.name, "muted"),
    ]
