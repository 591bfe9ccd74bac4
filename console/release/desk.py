"""The desk: takes up what other programs asked for, and carries each such job to its end beside the flow.

It never decides. A proposal becomes a logged job or a logged refusal; a decision in the queue is logged and acted
on; what was submitted is watched by the monitor like any other job.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from backends.errors import CouldNotAsk, FileMissing
from console.release import judging, queue, submission
from console.release.asking.admitting import admit
from console.release.asking.building import is_asked
from console.release.job import JobError
from console.release.state import ASKED, Attempt, Outcome

if TYPE_CHECKING:
    from console.release.conductor import Conductor

LOOK_SECONDS = 1.0
"""Between two looks at the queue; a round over proposals that are settled costs one listing of a folder."""


async def serve_desk(conductor: Conductor) -> None:
    """Serve until cancelled."""
    rounds: dict[str, int] = {}
    while True:
        _take_up(conductor)
        for attempt in conductor.writer.state.asked:
            try:
                await _carry_on(conductor, attempt, rounds)
            except (CouldNotAsk, queue.QueueError) as error:
                conductor.live.problems = (f"{attempt.id}: {error}",)
        await asyncio.sleep(LOOK_SECONDS)


def _take_up(conductor: Conductor) -> None:
    """Log every asked proposal that is new: as a job that waits for a decision, or as refused, with the reason."""
    from console.release import taking

    writer = conductor.writer
    state = writer.state
    known = {attempt.id for attempt in state.asked} | set(state.refused)
    for name in queue.ids(writer.run_dir):
        if name in known or not is_asked(name):
            continue
        try:
            proposal = queue.load(writer.run_dir, name)
            job = admit(proposal, writer.state, conductor.release.cluster)
        except (JobError, queue.QueueError) as error:
            text = f"Refused the proposal {name}: {error}"
            writer.record("proposal_refused", text, stage=ASKED, id=name, reason=str(error))
            continue
        text = f"{proposal.proposer} asks for {proposal.id}: {job.summary}; digest {proposal.digest}"
        taking.log_proposal(writer, proposal, job, text, actor=f"proposer:{proposal.proposer}")


async def _carry_on(conductor: Conductor, attempt: Attempt, rounds: dict[str, int]) -> None:
    """One step of one job, if there is one to take."""
    from console.release import taking

    match attempt.outcome:
        case Outcome.PROPOSED:
            await taking.take_decision(conductor, attempt)
        case Outcome.APPROVED:
            await submission.submit(conductor.writer, conductor.connection.slurm, attempt, conductor.signers)
        case Outcome.SUBMITTING | Outcome.UNKNOWN:
            # Asked at growing distances, like a submission of the flow.
            turn = rounds.get(attempt.id, 0)
            rounds[attempt.id] = turn + 1
            if turn & (turn - 1) == 0:
                settle = conductor.release.cluster.settle_seconds
                await submission.reconcile(conductor.writer, conductor.connection.slurm, attempt, settle)
        case Outcome.SUBMITTED if attempt.ended_at:
            await _keep_results(conductor, attempt)


async def _keep_results(conductor: Conductor, attempt: Attempt) -> None:
    """Keep the bytes of the result files that an ended job said it would write, for whoever asked for it."""
    job = queue.load(conductor.writer.run_dir, attempt.id).job()
    kept = {result.kind for result in attempt.results}
    missing = []
    for kind, path in job.results:
        if kind in kept:
            continue
        where = f"{job.job_dir}/{path}"
        try:
            data = await conductor.connection.watcher.fetch(where, limit=judging.MAX_RESULT_BYTES, fresh=True)
        except FileMissing:
            data = None
        if data is None:
            missing.append(kind)
        else:
            judging.keep(conductor.writer, attempt, kind, where, data)
    lacking = f"; missing: {', '.join(missing)}" if missing else ""
    text = f"{attempt.id} has ended; read {len(job.results) - len(missing)} result files{lacking}"
    conductor.writer.record("results_complete", text, stage=ASKED, id=attempt.id, missing=missing)
