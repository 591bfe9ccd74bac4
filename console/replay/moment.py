"""The run as the screens show it, at one moment of its log. What the log did not record is not in it.

Not recorded are: the link, who conducted, which result files were watched, and what the scheduler said between two
entries. None of that is taken from the run folder, which tells of the present.
"""

from __future__ import annotations

from console.release.state import Attempt, Outcome, RunState
from console.replay.recording import Recording
from console.snapshot import Live, LiveJob, LogView, Snapshot, Waiting


def moment(recording: Recording, count: int) -> Snapshot:
    """The run after the first `count` entries of its log."""
    state = recording.state(count)
    return Snapshot(
        state=state,
        live=Live(jobs=tuple(_job(attempt) for attempt in state.attempts if _on_cluster(attempt))),
        log=view(recording, count),
        waiting=tuple(_waiting(attempt) for attempt in state.attempts if _waits(state, attempt)),
        unrecorded=recording.unrecorded,
    )


def view(recording: Recording, count: int) -> LogView:
    """The log up to an entry."""
    return LogView(
        recording.entries,
        count,
        verified=min(count, recording.sound),
        problem=recording.problem,
        torn=recording.torn and count == len(recording),
    )


def _waits(state: RunState, attempt: Attempt) -> bool:
    return state.verdict is None and attempt.outcome is Outcome.PROPOSED


def _waiting(attempt: Attempt) -> Waiting:
    return Waiting(attempt.id, attempt.stage, attempt.task, attempt.attempt, attempt.summary, attempt.proposed_at)


def _on_cluster(attempt: Attempt) -> bool:
    return attempt.outcome is Outcome.SUBMITTED


def _job(attempt: Attempt) -> LiveJob:
    """A job as the log last heard of it: that it was submitted, where nothing else was written down."""
    return LiveJob(
        id=attempt.id,
        job_id=attempt.job_id or "",
        name="",
        presence="recorded",
        state=attempt.job_state or "submitted",
        reason=attempt.job_reason,
        node=attempt.node,
        elapsed_s=None,
        limit_s=float(attempt.limit_s) if attempt.limit_s else None,
        gpus=attempt.gpus,
        hanging=False,
    )
