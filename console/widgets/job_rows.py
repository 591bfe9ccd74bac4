"""Jobs and result files as rows. Nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from backends.slurm.advice import after_refusal, while_waiting
from console.release.state import Attempt, Outcome
from console.snapshot import LiveJob, Snapshot
from console.widgets.board_rows import Table
from console.widgets.figures import NOTHING, age, between, digest, duration, size
from console.widgets.ink import Column, Line, Paragraph, Span, foreign, heading, table_row
from console.widgets.words import PRESENCE, Mark, attempt_mark, given

_JOBS = (
    Column("", 1),
    Column("attempt", 20),
    Column("job", 10, right=True),
    Column("state", 14),
    Column("elapsed / limit", 16, right=True),
    Column("GPUs", 4, right=True),
    Column("node", 14, least=100),
    Column("reason, or what it does", 0, least=100),
)
_JOBS_SHORT = (Column("", 1), Column("attempt", 0), Column("state", 11), Column("elapsed", 8, right=True))

_FILES = (
    Column("", 1),
    Column("file", 14),
    Column("kind", 18),
    Column("attempt", 18, least=100),
    Column("size", 9, right=True),
    Column("age", 8, right=True),
    Column("digest", 12, least=120),
    Column("path", 0, tail=True),
)
_FILES_SHORT = (Column("", 1), Column("kind", 0), Column("file", 13), Column("size", 8, right=True))

SEPARATOR = "\n"
"""Stands between attempt and kind in the key of a row."""

READ = Mark("✓", "read", "passed")
"""A result file whose bytes were read and kept."""


def feed_note(snapshot: Snapshot, now: datetime) -> str:
    """Says so where live data is old; empty while it is fresh."""
    if snapshot.run.verdict is not None or not snapshot.feed_is_dead(now):
        return ""
    since = snapshot.live.age(now)
    return "no live data" if since is None else f"as of {age(since)} ago"


def newest_first(snapshot: Snapshot) -> list[Attempt]:
    """All attempts, the last proposed one first."""
    return sorted(snapshot.run.attempts, key=lambda attempt: (attempt.proposed_at, attempt.id), reverse=True)


def job_rows(snapshot: Snapshot, now: datetime, width: int, *, short: bool = False) -> Table:
    """Every attempt with its job, the newest first."""
    lines: list[Line] = []
    keys: list[str] = []
    columns = _JOBS_SHORT if short else _JOBS
    for attempt in newest_first(snapshot):
        lines.append(table_row(columns, _job_cells(snapshot, attempt, now, columns), width))
        keys.append(attempt.id)
    if not lines:
        return [(Span("no job was proposed yet", "muted"),)], [""]
    return lines, keys


def job_heading(width: int) -> Line:
    """The headings of the rows."""
    return heading(_JOBS, width)


def _job_cells(snapshot: Snapshot, attempt: Attempt, now: datetime, columns: tuple[Column, ...]) -> list[Span | Line]:
    stage = snapshot.run.stage(attempt.stage)
    mark = attempt_mark(snapshot, attempt, stage.gates)
    live = snapshot.live.job(attempt.id)
    elapsed = duration(elapsed_seconds(attempt, live, now))
    limit = duration(attempt.limit_s) if attempt.limit_s else NOTHING
    reason = given((live.reason if live is not None else "") or attempt.job_reason)
    cells: dict[str, Span | Line] = {
        "": Span(mark.sign, mark.style),
        "attempt": foreign(attempt.id, "strong"),
        "job": foreign(attempt.job_id or NOTHING, "text" if attempt.job_id else "muted"),
        "state": foreign(mark.word, mark.style),
        "elapsed": Span(elapsed, "muted"),
        "elapsed / limit": (Span(elapsed), Span(f" / {limit}", "muted")),
        "GPUs": Span(str(attempt.gpus) if attempt.gpus else NOTHING, "muted"),
        "node": foreign((live.node if live is not None else "") or attempt.node or NOTHING, "muted"),
        "reason, or what it does": foreign(reason or attempt.summary, "text" if reason else "muted"),
    }
    return [cells[column.title] for column in columns]


_ON_CLUSTER = (Outcome.SUBMITTED, Outcome.RESULTS_READ, Outcome.RESULT_MISSING)


def elapsed_seconds(attempt: Attempt, live: LiveJob | None, now: datetime) -> float | None:
    """How long a job has run: in Slurm's words while it has some, else since its submission."""
    if live is not None and live.elapsed_s is not None:
        return live.elapsed_s
    if attempt.outcome not in _ON_CLUSTER:
        return None
    read = max((result.time for result in attempt.results), default="")
    return between(attempt.submitted_at, attempt.ended_at or read, now)


def job_detail(snapshot: Snapshot, attempt: Attempt) -> list[Paragraph]:
    """What identifies an attempt, and what was said about it."""
    live = snapshot.live.job(attempt.id)
    rows: list[tuple[str, str]] = [
        ("does", attempt.summary),
        ("outcome", str(attempt.outcome)),
        ("said", attempt.said),
        ("why again", attempt.change),
        ("Slurm says", f"{attempt.job_state} {given(attempt.job_reason)}".strip()),
        ("asked last", "" if live is None else _last_answer(live)),
        ("next step", _next_step(attempt, live)),
        ("decided by", f"{attempt.decided_by} {attempt.decided_at}".strip()),
        ("proposed", f"{attempt.proposer} {attempt.proposed_at}"),
        ("submitted", attempt.submitted_at),
        ("ended", attempt.ended_at),
        ("folder", attempt.job_dir),
        ("digest", attempt.digest),
        ("token", attempt.token),
    ]
    return [Paragraph((foreign(value),), (Span(f"{name:<12}", "muted"),), exact=True) for name, value in rows if value]


def _last_answer(live: LiveJob) -> str:
    """What Slurm said last of a job: at every width of the window there is its node, and its time."""
    where = f" on {live.node}" if live.node else ""
    said = f"{live.presence}: {live.state} {given(live.reason)}".strip()
    return f"{said}{where}, {duration(live.elapsed_s)} of {duration(live.limit_s or None)}"


def _next_step(attempt: Attempt, live: LiveJob | None) -> str:
    """What the operator can do about Slurm's words; empty where nothing has to be done."""
    if attempt.outcome in (Outcome.REFUSED, Outcome.UNKNOWN):
        return after_refusal(attempt.said)
    if attempt.outcome is not Outcome.SUBMITTED:
        return ""
    return while_waiting((live.reason if live is not None else "") or attempt.job_reason)


class _File(NamedTuple):
    mark: Mark
    kind: str
    attempt: str
    size: int | None
    age_s: float | None
    sha256: str
    path: str


def _all_files(snapshot: Snapshot, now: datetime) -> Iterator[_File]:
    read = {result.path for attempt in snapshot.run.attempts for result in attempt.results}
    for file in snapshot.live.files:
        if file.path not in read:
            mark = PRESENCE.get(file.presence, Mark("?", file.presence or "unknown", "unknown"))
            yield _File(mark, file.kind, file.id, file.size, file.age_s, "", file.path)
    for attempt in newest_first(snapshot):
        for result in attempt.results:
            seconds = between(result.time, "", now)
            yield _File(READ, result.kind, attempt.id, result.size, seconds, result.sha256, result.path)


def file_rows(snapshot: Snapshot, now: datetime, width: int, *, short: bool = False) -> Table:
    """Result files: first those that are watched, then those that were read, the newest first."""
    columns = _FILES_SHORT if short else _FILES
    files = list(_all_files(snapshot, now))
    lines = [table_row(columns, _file_cells(file, columns), width) for file in files]
    return (
        (lines, [f"{file.attempt}{SEPARATOR}{file.kind}" for file in files])
        if lines
        else (
            [(Span("no file is watched, and none was read yet", "muted"),)],
            [""],
        )
    )


def file_heading(width: int) -> Line:
    """The headings of the rows."""
    return heading(_FILES, width)


def _file_cells(file: _File, columns: tuple[Column, ...]) -> list[Span]:
    cells = {
        "": Span(file.mark.sign, file.mark.style),
        "file": foreign(file.mark.word, file.mark.style),
        "kind": foreign(file.kind or file.path.rpartition("/")[2], "strong"),
        "attempt": foreign(file.attempt or NOTHING, "muted"),
        "size": Span(size(file.size)),
        "age": Span(NOTHING if file.age_s is None else age(file.age_s), "muted"),
        "digest": Span(digest(file.sha256) or NOTHING, "muted"),
        "path": foreign(file.path, "muted"),
    }
    return [cells[column.title] for column in columns]
