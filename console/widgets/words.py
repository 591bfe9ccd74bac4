"""States as a sign, a word and a style: no state is shown by its colour alone. Nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from console.release.state import Attempt, GateRecord, Outcome, Stage, StageStatus
from console.snapshot import Link, LiveJob, Snapshot


class Mark(NamedTuple):
    """How a state is shown.

    Attributes:
        sign: One cell.
        word: A word or two.
        style: Name of a style.
    """

    sign: str
    word: str
    style: str


PASSED = Mark("✓", "passed", "passed")
FAILED = Mark("✗", "failed", "failed")
RUNNING = Mark("▸", "running", "running")
WAITING = Mark("◆", "needs YOU", "waiting")
UNKNOWN = Mark("?", "unknown", "unknown")
IDLE = Mark("·", "not yet", "idle")
NOT_RECORDED = Mark("?", "not recorded", "unknown")
STOPPED = Mark("■", "stopped", "failed")
HUMAN_SIGN = "◈"
"""Stands before an intervention."""

_OUTCOMES: Mapping[Outcome, Mark] = {
    Outcome.PROPOSED: WAITING,
    Outcome.APPROVED: Mark("▸", "approved", "running"),
    Outcome.REJECTED: Mark(HUMAN_SIGN, "rejected", "human"),
    Outcome.EXPIRED: Mark("■", "expired", "idle"),
    Outcome.INVALIDATED: Mark("✗", "invalidated", "failed"),
    Outcome.SUBMITTING: Mark("▸", "submitting", "running"),
    Outcome.UNKNOWN: UNKNOWN,
    Outcome.REFUSED: Mark("✗", "refused", "failed"),
    Outcome.NOT_SUBMITTED: Mark("✗", "not submitted", "failed"),
    Outcome.SUBMITTED: RUNNING,
    Outcome.RESULTS_READ: Mark("▸", "judging", "running"),
    Outcome.RESULT_MISSING: Mark("✗", "no result", "failed"),
}

PRESENCE: Mapping[str, Mark] = {
    "seen": Mark("✓", "seen", "passed"),
    "missing": Mark("·", "not there yet", "idle"),
    "could not ask": Mark("?", "could not ask", "unknown"),
}
"""Whether a watched file is there: seen, surely not, or nobody could say."""


def stage_mark(snapshot: Snapshot, stage: Stage) -> Mark:
    """Where a stage stands."""
    if (said := snapshot.unrecorded.get(stage.name)) is not None:
        return NOT_RECORDED._replace(word=said) if said else NOT_RECORDED
    if stage.status is StageStatus.PASSED:
        return PASSED
    if stage.status is StageStatus.FAILED:
        return FAILED
    if any(item.stage == stage.name for item in snapshot.waiting):
        return WAITING
    if stage.status is StageStatus.NOT_STARTED:
        return IDLE
    if any(attempt.outcome is Outcome.UNKNOWN for attempt in stage.attempts):
        return UNKNOWN
    return STOPPED if snapshot.run.stopped else RUNNING


def attempt_mark(snapshot: Snapshot, attempt: Attempt, gates: tuple[GateRecord, ...]) -> Mark:
    """Where an attempt stands; `gates` are the records of its stage."""
    if attempt.outcome is Outcome.PROPOSED and attempt.id in snapshot.decided:
        return Mark("▸", "decided", "running")
    if attempt.outcome is Outcome.RESULTS_READ:
        own = [gate for gate in gates if gate.id == attempt.id]
        if any(not gate.passed for gate in own):
            return Mark("✗", "gate failed", "failed")
        return PASSED if own else _OUTCOMES[attempt.outcome]
    if attempt.outcome is Outcome.SUBMITTED:
        live = snapshot.live.job(attempt.id)
        return RUNNING if live is None else job_mark(live)
    return _OUTCOMES[attempt.outcome]


_QUEUED = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED")
_DISTURBED = ("FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


def job_mark(job: LiveJob) -> Mark:
    """How the scheduler's word on a job is shown: what it said, or that it could not be asked."""
    if job.presence == "could not ask":
        return Mark("?", "could not ask", "unknown")
    if job.presence == "surely gone":
        return Mark("?", "surely gone", "unknown")
    if job.hanging:
        return Mark("▲", "hanging", "waiting")
    word = job.state.split(" ")[0].rstrip("+").upper()
    if word in _QUEUED:
        return Mark("○", "queued", "idle")
    if word.startswith(_DISTURBED):
        return Mark("✗", job.state.lower(), "failed")
    if word == "COMPLETED":
        return Mark("✓", "ended", "running")
    return Mark("▸", job.state.lower() or "running", "running")


def given(reason: str) -> str:
    """Slurm's reason for a job's state; empty where it has none, for which Slurm writes "None"."""
    return "" if reason == "None" else reason


_LINKS: Mapping[str, Mark] = {
    "up": Mark("●", "up", "passed"),
    "connecting": Mark("◌", "connecting", "running"),
    "suspect": Mark("◍", "suspect", "waiting"),
    "down": Mark("✗", "down", "failed"),
    "needs operator": Mark("◆", "needs YOU", "waiting"),
}


def link_mark(link: Link, dead: bool) -> Mark:
    """The connection's state. What a dead feed said last is not what is true now."""
    if dead or not link.state:
        return Mark("?", "unknown", "unknown")
    return _LINKS.get(link.state, Mark("?", link.state, "unknown"))
