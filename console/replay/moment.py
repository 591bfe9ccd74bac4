"""The run as the screens show it, at one moment of its log. What the log did not record is not in it.

Not recorded are: the link, who conducted, which result files were watched, and what the scheduler said between two
entries. None of that is taken from the run folder, which tells of the present.
"""

from __future__ import annotations

from console.release.state import STAGES, Attempt, Outcome, RunState
from console.replay.marks import INTERVENTION
from console.replay.recording import Recording
from console.snapshot import Live, LiveJob, LogView, Snapshot, Waiting

READING = "reading"
"""The word for the status of every stage at a moment up to which the log was not folded yet."""


def moment(recording: Recording, count: int) -> Snapshot:
    """The run after the first `count` entries of its log."""
    if not recording.reaches(count):
        return _not_reached(recording, count)
    state = recording.state(count)
    return Snapshot(
        state=state,
        live=Live(jobs=tuple(_job(attempt) for attempt in state.attempts if _on_cluster(attempt))),
        log=view(recording, count),
        waiting=tuple(_waiting(attempt) for attempt in state.attempts if _waits(state, attempt)),
        unrecorded=recording.unrecorded,
    )


def _not_reached(recording: Recording, count: int) -> Snapshot:
    """A moment so far on in a long log that its state is not folded yet: the log is shown, and of the board nothing.

    Which run it is, is known from the first entry.
    """
    begun = recording.state(min(1, count))
    state = RunState(
        run_id=begun.run_id,
        inputs=begun.inputs,
        started_at=begun.started_at,
        updated_at=recording.entries[count - 1].time,
        interventions=recording.marks.before(INTERVENTION, count),
        entries=count,
    )
    return Snapshot(state=state, log=view(recording, count), unrecorded=dict.fromkeys(STAGES, READING))


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
