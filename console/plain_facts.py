"""What the board shows, as plain lines: for screen readers, pipes, and terminals that cannot draw.

Every line stands for itself: it names what it is about, says states in words, and has no columns to be lined up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from backends.quoting import quote
from console.release.policy_words import usage
from console.release.state import Attempt, GateRecord, Stage, StageStatus
from console.safe_text import safe
from console.snapshot import LiveJob, Snapshot, WatchedFile
from console.widgets.figures import NOTHING, age, between, duration, size, time_of_day
from console.widgets.status import Status, status
from console.widgets.words import PRESENCE, attempt_mark, given, job_mark, link_mark, stage_mark


def facts(snapshot: Snapshot, run_dir: Path, now: datetime) -> Iterator[str]:
    """Everything that the board shows but the log, line by line.

    Args:
        snapshot: The run.
        run_dir: Its folder.
        now: The time.
    """
    run = snapshot.run
    inputs = {name: safe(str(value)) for name, value in run.inputs.items()}
    yield (
        f"Release {safe(run.run_id or run_dir.name)}: {inputs.get('algorithm', 'algorithm not known yet')} for "
        f"{inputs.get('target', 'a target not known yet')} on {inputs.get('cluster', 'a cluster not known yet')}"
    )
    yield state_line(status(snapshot, now))
    yield _conductor_line(snapshot, run_dir)
    yield link_line(snapshot, now)
    yield f"Interventions: {run.interventions}"
    if run.policy:
        yield f"Policy {safe(str(run.policy['id']))}: used {safe(usage(run.policy))}"
    yield from problem_lines(snapshot)
    for stage in run.stages:
        yield from _stage(snapshot, stage, now)
    if run.asked:
        yield "Jobs that other programs asked for:"
        yield from (_attempt(snapshot, attempt, ()) for attempt in run.asked)
    yield from _jobs(snapshot, now)


def state_line(found: Status) -> str:
    """Where a run is: a verdict, or what it waits for and since when."""
    _, _, word = found.word.partition(" ")
    held = "" if found.seconds is None else f" for {duration(found.seconds)}"
    text = f": {safe(found.text)}" if found.text else ""
    return f"State: {word}{held}{text}"


def _conductor_line(snapshot: Snapshot, run_dir: Path) -> str:
    if snapshot.conductor is not None:
        return f"Conductor: {safe(str(snapshot.conductor))}"
    if snapshot.run.verdict is not None:
        return "Conductor: none, the release is closed"
    return f"Conductor: none is running; go on with `gonogo resume {safe(quote(str(run_dir)))}`"


def link_line(snapshot: Snapshot, now: datetime, *, ages: bool = True) -> str:
    """The connection to the cluster, as far as anybody says; without `ages` only what is no mere passing of time."""
    live, dead = snapshot.live, snapshot.feed_is_dead(now)
    if snapshot.run.verdict is not None and snapshot.conductor is None:
        return "Link: closed, the release is"
    heard = live.age(now) if dead else live.link.age_s
    last = "" if heard is None or not ages else f", last heard {age(heard)} ago"
    detail = f" ({safe(live.link.detail)})" if live.link.detail and not dead else ""
    return f"Link: {safe(link_mark(live.link, dead).word)}{detail}{last}"


def problem_lines(snapshot: Snapshot) -> list[str]:
    """What could not be read."""
    return [f"Problem: {safe(text)}" for text in snapshot.problems]


def _stage(snapshot: Snapshot, stage: Stage, now: datetime) -> Iterator[str]:
    word = safe(stage_mark(snapshot, stage).word)
    took = ""
    if stage.status is not StageStatus.NOT_STARTED:
        seconds = duration(between(stage.started_at, stage.ended_at, now))
        took = f", {'took' if stage.ended_at else 'for'} {seconds}, begun at {safe(time_of_day(stage.started_at))}"
    detail = f": {safe(stage.detail)}" if stage.detail else ""
    yield f"Stage {safe(stage.name)}: {word}{took}{detail}"
    judged = {attempt.id for attempt in stage.attempts}
    for attempt in stage.attempts:
        yield _attempt(snapshot, attempt, stage.gates)
        yield from (_gate(gate) for gate in stage.gates if gate.id == attempt.id)
    yield from (_gate(gate) for gate in stage.gates if gate.id not in judged)
    yield from (
        f"  Triage of {safe(item.id)} ({safe(item.failure_class)}): {safe(item.step)}: {safe(item.detail)}"
        for item in stage.triage
    )


def _attempt(snapshot: Snapshot, attempt: Attempt, gates: tuple[GateRecord, ...]) -> str:
    parts = [f"  Attempt {safe(attempt.id)}: {safe(attempt_mark(snapshot, attempt, gates).word)}"]
    if attempt.job_id is not None:
        state = " ".join(filter(None, (attempt.job_state, given(attempt.job_reason))))
        where = f" on {safe(attempt.node)}" if attempt.node else ""
        parts.append(f"job {safe(attempt.job_id)} {safe(state)}".rstrip() + where)
    if attempt.decided_by:
        parts.append(f"decided by {safe(attempt.decided_by)}")
    parts += [safe(text) for text in (attempt.summary, attempt.said) if text]
    return "; ".join(parts)


def _gate(gate: GateRecord) -> str:
    word = "GO" if gate.passed else f"NO-GO {safe(gate.failure_class or '')}".rstrip()
    detail = f": {safe(gate.detail)}" if gate.detail else ""
    return f"  Gate {safe(gate.name)} over {safe(gate.id)}: {word}{detail}"


def _jobs(snapshot: Snapshot, now: datetime) -> Iterator[str]:
    """Jobs and files as the conductor last spoke of them; how long ago, where that is not now."""
    live = snapshot.live
    old = "" if not snapshot.feed_is_dead(now) else f" (as of {age(live.age(now))} ago)"
    yield from (f"{job_line(job)}{old}" for job in live.jobs)
    yield from (f"{_file_line(file)}{old}" for file in live.files)


def job_line(job: LiveJob) -> str:
    """A job as the scheduler last described it."""
    mark = job_mark(job)
    reason = f" ({safe(given(job.reason))})" if given(job.reason) else ""
    where = f" on {safe(job.node)}" if job.node else ""
    limit = duration(job.limit_s) if job.limit_s else NOTHING
    name = f"Job {safe(job.job_id)} of {safe(job.id)}"
    return f"{name}: {safe(mark.word)}{reason}{where}, {duration(job.elapsed_s)} of {limit}"


def _file_line(file: WatchedFile) -> str:
    mark = PRESENCE.get(file.presence)
    word = mark.word if mark is not None else safe(file.presence) or "unknown"
    return f"Result file {safe(file.kind)} of {safe(file.id)}: {word}, {size(file.size)}, {safe(file.path)}"
