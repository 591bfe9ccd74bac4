"""One stage in full: its attempts, what every gate measured against which limit, and what follows from a failure.

Nothing here imports Textual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from console.release.state import Attempt, GateRecord, Stage, StageStatus, Triage
from console.safe_text import safe
from console.snapshot import LiveJob, Snapshot
from console.widgets.figures import NOTHING, between, digest, duration, measured, size, time_of_day
from console.widgets.ink import Column, Line, Paragraph, Span, foreign, heading, table_row, widths
from console.widgets.words import FAILED, PASSED, attempt_mark, given, stage_mark

_WIDE, _MIDDLE = 96, 60
"""From these widths on a check is one row; or its limit at least stands beside what was measured."""

_INDENT = Span("  ")
_BLANK = Paragraph((Span(""),))

_CHECKS = (
    Column("check", 22),
    Column("measured", 14, right=True),
    Column("limit", 0),
    Column("", 4),
    Column("file · field", 36),
)
_CHECKS_NARROW = (Column("check", 0), Column("measured", 11, right=True), Column("", 4))
_CHECKS_MIDDLE = _CHECKS[:4]


def stage_detail(snapshot: Snapshot, stage: Stage, now: datetime, width: int, attempt_id: str = "") -> list[Paragraph]:
    """Everything that is known of a stage.

    Args:
        snapshot: The run.
        stage: The stage.
        now: The time.
        width: Cells that a row may have.
        attempt_id: Show only this attempt and what belongs to it; empty for all.
    """
    shown = [_heading(snapshot, stage, now)]
    if stage.detail:
        shown.append(_note("", foreign(stage.detail)))
    if snapshot.run.stopped and stage.status is StageStatus.RUNNING:
        shown.append(_note("stopped", foreign(snapshot.run.stopped, "failed")))
    attempts = [item for item in stage.attempts if attempt_id in ("", item.id)]
    judged = {item.id for item in attempts}
    for attempt in reversed(attempts):
        shown += [_BLANK, *_attempt(snapshot, stage, attempt, now), *_judgement(stage, attempt.id, width)]
    if not attempt_id:
        # What was judged without a job of its own: the target's copy, the freeze on the login node.
        named = [*(gate.id for gate in stage.gates), *(item.id for item in stage.triage)]
        for name in dict.fromkeys(name for name in named if name not in judged):
            shown += [_BLANK, *_judgement(stage, name, width)]
        shown += _facts(snapshot, stage)
    if len(shown) == 1:
        shown.append(_note("", Span("nothing to show yet", "muted")))
    return shown


def _heading(snapshot: Snapshot, stage: Stage, now: datetime) -> Paragraph:
    mark = stage_mark(snapshot, stage)
    line: list[Span] = [Span(f"{mark.sign} ", mark.style), foreign(stage.name, "strong"), Span(" ")]
    line.append(foreign(mark.word, mark.style))
    if stage.status is not StageStatus.NOT_STARTED:
        took = duration(between(stage.started_at, stage.ended_at, now))
        line += [Span(f"  {took} since {safe(time_of_day(stage.started_at))}", "muted")]
    return Paragraph(tuple(line))


def _note(name: str, value: Span) -> Paragraph:
    """A named line under what it is about."""
    label = Span(f"{name} ", "muted") if name else Span("")
    return Paragraph((label, value), (_INDENT,))


def _attempt(snapshot: Snapshot, stage: Stage, attempt: Attempt, now: datetime) -> Iterator[Paragraph]:
    mark = attempt_mark(snapshot, attempt, stage.gates)
    yield Paragraph(
        (
            Span(f"{mark.sign} ", mark.style),
            foreign(attempt.id, "strong"),
            Span(" "),
            foreign(mark.word, mark.style),
        )
    )
    yield _note("", foreign(attempt.summary, "muted"))
    if attempt.job_id is not None:
        yield Paragraph(_job(attempt, snapshot.live.job(attempt.id), now), (_INDENT,))
    if attempt.decided_by:
        at = time_of_day(attempt.decided_at)
        yield _note(_decision_word(attempt), foreign(f"{attempt.decided_by} at {at}"))
    if attempt.change:
        yield _note("why again", foreign(attempt.change))
    if attempt.said:
        yield _note("said", foreign(attempt.said, "text"))
    for result in attempt.results:
        line = (Span("read ", "muted"), foreign(result.kind), Span(f"  {size(result.size)}  sha256 ", "muted"))
        yield Paragraph((*line, foreign(digest(result.sha256), "muted")), (_INDENT,))


def _decision_word(attempt: Attempt) -> str:
    return "rejected by" if attempt.outcome == "rejected" else "decided by"


def _job(attempt: Attempt, live: LiveJob | None, now: datetime) -> Line:
    """A job in one line: id, state, reason, node, elapsed against its limit."""
    state, reason, node = attempt.job_state, attempt.job_reason, attempt.node
    elapsed: float | None = None
    if live is not None and not attempt.ended_at:
        state, reason, node, elapsed = live.state or state, live.reason or reason, live.node or node, live.elapsed_s
    else:
        elapsed = between(attempt.submitted_at, attempt.ended_at, now)
    line = [Span("job ", "muted"), foreign(attempt.job_id, "strong"), Span(" "), foreign(state or "submitted")]
    if given(reason):
        line += [Span(" ("), foreign(reason), Span(")")]
    if node:
        line += [Span(" on ", "muted"), foreign(node)]
    limit = duration(attempt.limit_s) if attempt.limit_s else NOTHING
    line += [Span("  "), Span(duration(elapsed), "strong"), Span(f" of {limit}", "muted")]
    if attempt.gpus:
        line.append(Span(f"  {attempt.gpus} GPUs", "muted"))
    return tuple(line)


def _judgement(stage: Stage, name: str, width: int) -> Iterator[Paragraph]:
    for gate in stage.gates:
        if gate.id == name:
            yield from _gate(gate, width)
    for item in stage.triage:
        if item.id == name:
            yield _next_step(item)


def _gate(gate: GateRecord, width: int) -> Iterator[Paragraph]:
    mark = PASSED if gate.passed else FAILED
    word = "GO" if gate.passed else "NO-GO"
    line = [Span(f"{mark.sign} ", mark.style), Span("gate ", "muted"), foreign(gate.name, "strong"), Span(" ")]
    line.append(Span(word, mark.style))
    if gate.failure_class:
        line += [Span(" "), foreign(gate.failure_class, "failed")]
    if gate.passed or len(gate.checks) < 2:
        # The words of a gate that failed on several checks only repeat what stands below.
        line += [Span("  "), foreign(gate.detail, "muted" if gate.passed else "text")]
    yield Paragraph(tuple(line), (_INDENT,))
    room = width - 2
    if gate.checks:
        yield Paragraph((Span("  "), *heading(_columns(room), room - 2)), (_INDENT,))
    for check in gate.checks:
        yield from _check(check, room)
    if gate.facts:
        facts = "  ".join(f"{name} {measured(value)}" for name, value in gate.facts.items())
        yield Paragraph((Span("also measured  ", "muted"), foreign(facts)), (_INDENT, _INDENT))
    for file in gate.files:
        text = f"{file.get('kind', '')} sha256 {digest(str(file.get('sha256', '')))}"
        yield Paragraph((Span("from ", "muted"), foreign(text, "muted")), (_INDENT, _INDENT))


def _columns(room: int) -> tuple[Column, ...]:
    return _CHECKS if room >= _WIDE else _CHECKS_MIDDLE if room >= _MIDDLE else _CHECKS_NARROW


def _check(check: Mapping[str, Any], room: int) -> Iterator[Paragraph]:
    """A check as a row of the table, and under it whatever the table had to cut or leave out."""
    ok = check.get("ok") is True
    mark = PASSED if ok else FAILED
    columns = _columns(room)
    name, limit, unit = (str(check.get(key, "")) for key in ("name", "limit", "unit"))
    value = measured(check.get("measured"))
    place = " · ".join(str(check[key]) for key in ("file", "field") if check.get(key))
    cells: dict[str, Span | Line] = {
        "check": foreign(name),
        "measured": foreign(value, "strong"),
        "limit": (foreign(limit), Span(" "), foreign(unit, "muted")),
        "": Span("PASS" if ok else "FAIL", mark.style),
        "file · field": foreign(place, "muted"),
    }
    row = table_row(columns, [cells[column.title] for column in columns], room - 2)
    yield Paragraph((Span(f"{mark.sign} ", mark.style), *row), (_INDENT,))
    sizes = dict(zip((column.title for column in columns), widths(columns, room - 2), strict=True))
    texts = {"check": name, "measured": value, "limit": f"{limit} {unit}", "file · field": place}
    style = "muted" if ok else "text"
    under = (_INDENT, Span("  "))
    if any(len(texts[title]) > sizes[title] for title in ("check", "measured")):
        yield Paragraph((foreign(f"{name} is {value}", style),), under)
    wanted = len(texts["limit"].rstrip()) > sizes.get("limit", 0)
    if wanted or len(place) > sizes.get("file · field", 0):
        words = f"wanted {limit} {unit}".rstrip() if wanted else ""
        yield Paragraph((foreign(words, style), foreign(f"{' · ' if words else ''}{place}", "muted")), under)


def _next_step(item: Triage) -> Paragraph:
    line = (Span("→ ", "waiting"), Span("next step ", "muted"), foreign(item.step, "waiting"))
    return Paragraph((*line, Span(": "), foreign(item.detail)), (_INDENT,))


def _facts(snapshot: Snapshot, stage: Stage) -> Iterator[Paragraph]:
    """What a stage left for those after it."""
    run = snapshot.run
    known: Mapping[str, Any] = {}
    if stage.name == "setup":
        known = {**run.inputs, **run.setup}
    elif stage.name == "stage_target":
        known = run.target
    elif stage.name == "freeze":
        known = run.freeze
    elif stage.name == "closeout" and run.verdict is not None:
        known = {"verdict": run.verdict, "why": run.verdict_detail, "failure class": run.failure_class}
        known = {**known, "report": "SPECDEC_REPORT.md in the run folder"}
    rows = [(key, value) for key, value in known.items() if value not in ("", None, [], {})]
    if rows:
        yield _BLANK
    column = min(20, max((len(key) for key, _ in rows), default=0))
    for key, value in rows:
        yield Paragraph((foreign(value),), (_INDENT, foreign(f"{key.replace('_', ' '):<{column}}  ", "muted")))
    if stage.name == "closeout" and run.verdict is not None:
        yield _BLANK
        yield from _all_gates(snapshot)
        yield from _measurements(snapshot)


def _all_gates(snapshot: Snapshot) -> Iterator[Paragraph]:
    """Every station's answer, in the order of the flow."""
    for stage in snapshot.run.stages:
        for gate in stage.gates:
            mark, word = (PASSED, "GO") if gate.passed else (FAILED, "NO-GO")
            gutter = (_INDENT, Span(f"{mark.sign} {word:<6}", mark.style), foreign(f"{gate.name:<13}"))
            yield Paragraph((foreign(f"{gate.id}: {gate.detail}", "muted"),), gutter)


_POINT = re.compile(r"(.+)_c(\d{1,6})")
"""Name of a number that was measured at one of several concurrencies."""


def _measurements(snapshot: Snapshot) -> Iterator[Paragraph]:
    """What the bench measured beside its checks, a row for each series: what the drafter is worth."""
    series: dict[str, list[tuple[int, str]]] = {}
    # Of a gate that was asked again, the last answer counts.
    for gate in {gate.name: gate for gate in snapshot.run.stage("bench").gates}.values():
        for name, value in gate.facts.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found = _POINT.fullmatch(name)
                key, at = (found[1], int(found[2])) if found else (name, 0)
                series.setdefault(key, []).append((at, measured(value)))
    if series:
        yield _BLANK
        yield _note("", Span("measured by the bench, C concurrent requests", "muted"))
    column = min(24, max(map(len, series), default=0))
    for name, points in series.items():
        line: list[Span] = []
        for at, value in sorted(points):
            line += [Span(f"C={at} ", "muted")] if at else []
            line += [foreign(f"{value:<10}", "strong"), Span(" ")]
        yield Paragraph(tuple(line), (_INDENT, foreign(f"{name:<{column}}  ")))
