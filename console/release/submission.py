"""Exactly once: from an OK to a job that Slurm has, and back from a lost answer to certainty.

The order is fixed. The bytes are compared with the approved digest; the intent is logged, which uses the OK up;
then, and only then, the cluster is asked to submit. Whatever is not a proven answer is UNKNOWN, and UNKNOWN
leads to questions, never to a second submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from backends.slurm.advice import after_refusal
from backends.slurm.model import Accepted, NotSubmitted, Refused, SubmitOutcome, SubmitRequest, Unknown, Upload
from console.release import deciding, effects, queue, rules, signing
from console.release.job import ExactJob, JobError
from console.release.journal import Entry
from console.release.policy import POLICY
from console.release.ports import Scheduler
from console.release.signing import Signers
from console.release.state import Attempt
from console.release.writer import RunWriter

RECONCILE_SECONDS = 2.0
"""First pause between two rounds of questions about an unknown submission; it doubles up to a minute."""


class Invalid(Exception):
    """The approved job is not the one that lies there now. Says which and how both differ."""


def check_approved(attempt: Attempt, proposal: queue.Proposal, decision: queue.Decision | None) -> ExactJob:
    """Make sure that what lies in the queue is exactly what was logged, shown and approved.

    Returns:
        The job, read from the approved bytes.

    Raises:
        Invalid: When it is not; nothing may be submitted then.
    """
    if proposal.digest != attempt.digest:
        raise Invalid(
            f"job.json was changed after the proposal: it has digest {proposal.digest}, proposed was {attempt.digest}"
        )
    if decision is None or decision.decision != queue.APPROVED:
        raise Invalid("there is no approval for it")
    if decision.digest != attempt.digest:
        raise Invalid(f"the approval names digest {decision.digest}, the job has {attempt.digest}")
    try:
        job = proposal.job()
        proposal.uploads()
    except (JobError, queue.QueueError) as error:
        raise Invalid(str(error)) from None
    if job.kind != "sbatch":
        raise Invalid(f"it is a {job.kind}, which is never submitted")
    if (job.stage, job.task, job.attempt, job.token) != (attempt.stage, attempt.task, attempt.attempt, attempt.token):
        raise Invalid("job.json is a job of another attempt")
    return job


def to_request(job: ExactJob, uploads: dict[str, bytes]) -> SubmitRequest:
    """What the backend submits, built from the approved job and nothing else."""
    files = tuple(Upload(ref.name, uploads[ref.name], ref.sha256, ref.mode) for ref in job.uploads)
    return SubmitRequest(
        token=job.token,
        digest=job.digest,
        job_name=job.job_name,
        options=job.sbatch_options(),
        script=job.script.encode("utf-8"),
        job_dir=job.job_dir,
        claim_dir=job.claim_dir,
        uploads=files,
    )


async def submit(writer: RunWriter, slurm: Scheduler, attempt: Attempt, signers: Signers | None = None) -> None:
    """Submit an approved job: check, use the OK up, log the intent, ask the cluster, log the answer.

    Args:
        writer: Log and state.
        slurm: The scheduler.
        attempt: What was approved.
        signers: Whose signatures count; without any, nothing counts that must be signed.
    """
    try:
        proposal = queue.load(writer.run_dir, attempt.id)
        decision = _decision(proposal)
        job = check_approved(attempt, proposal, decision)
        assert decision is not None, "check_approved refuses where there is none"
        problem = await _against_signature(writer, attempt, proposal, decision, signers)
        problem = problem or against_rules(writer, attempt, decision)
        if problem:
            raise Invalid(problem)
        if queue.is_used(proposal):
            raise Invalid("this OK was used before")
        uploads = proposal.uploads()
    except (Invalid, queue.QueueError) as error:
        writer.record(
            "job_decided",
            f"{attempt.id} is not submitted: {error}",
            stage=attempt.stage,
            id=attempt.id,
            digest=attempt.digest,
            decision="invalidated",
            by="conductor",
            reason=str(error),
        )
        return
    intent = writer.record(
        "submit_intent",
        f"Submitting {attempt.id} to {job.user}@{job.host}: {job.summary}",
        stage=attempt.stage,
        id=attempt.id,
        digest=attempt.digest,
        token=job.token,
    )
    # The time of the entry, so that the mark follows from the log.
    if not deciding.use(proposal, datetime.fromisoformat(intent.time)):
        outcome: SubmitOutcome = Unknown("the OK was used by another process at this moment")
    else:
        with effects.effect(f"submit {attempt.id}"):
            outcome = await slurm.submit(to_request(job, uploads))
    record_outcome(writer, attempt, outcome)


def against_rules(writer: RunWriter, attempt: Attempt, decision: queue.Decision) -> str:
    """Why a decision does not count under the rules of the release; empty when it does.

    Raises:
        console.release.queue.QueueError: When the proposal is gone.
    """
    proposal = queue.load(writer.run_dir, attempt.id)
    account = rules.owner(proposal.folder / "decision.json")
    return rules.against(rules.rules_of(writer.state.inputs), proposal, decision, account)


async def _against_signature(
    writer: RunWriter, attempt: Attempt, proposal: queue.Proposal, decision: queue.Decision, signers: Signers | None
) -> str:
    """The signature again, as of when the decision was taken: the file could be another one by now."""
    asked = rules.rules_of(writer.state.inputs)
    if decision.operator == POLICY and attempt.decided_by != POLICY:
        return "the decision that lies there is by a policy, and the log has another"
    at = datetime.fromisoformat(attempt.decided_at)
    return await signing.against(asked, signers, proposal, decision, writer.state.run_id, at)


def _decision(proposal: queue.Proposal) -> queue.Decision | None:
    try:
        return queue.decision_of(proposal)
    except queue.QueueError:
        return None


async def reconcile(writer: RunWriter, slurm: Scheduler, attempt: Attempt, settle_seconds: float) -> None:
    """One round of questions about a submission whose outcome is not known."""
    proposal = queue.load(writer.run_dir, attempt.id)
    deciding.use(proposal, datetime.fromisoformat(attempt.submitted_at))
    if proposal.digest != attempt.digest:
        outcome: SubmitOutcome = Unknown("job.json was changed after the submission; what to ask for is not certain")
    else:
        # Nothing is submitted here, so the uploads are not needed and may even be gone.
        job = proposal.job()
        request = to_request(job.model_copy(update={"uploads": ()}), {})
        since = datetime.fromisoformat(attempt.submitted_at).timestamp()
        with effects.effect(f"reconcile {attempt.id}"):
            outcome = await slurm.reconcile(request, submitted_at=since, settle_seconds=settle_seconds)
    record_outcome(writer, attempt, outcome)


def record_outcome(writer: RunWriter, attempt: Attempt, outcome: SubmitOutcome) -> None:
    """Log what became of a submission; the same unknown answer twice in a row is logged once."""
    job_id: str | None = None
    match outcome:
        case Accepted():
            word, text, job_id = "accepted", f"Slurm took it as job {outcome.job_id}", outcome.job_id
            said = outcome.warning
        case Refused():
            text = f"Slurm refused it: {outcome.said}; what to do: {after_refusal(outcome.said)}"
            word, said = "refused", outcome.said
        case NotSubmitted():
            word, text, job_id, said = (
                "not_submitted",
                f"It surely was not submitted: {outcome.proof}",
                None,
                outcome.proof,
            )
        case Unknown():
            word, said = "unknown", _questions(outcome)
            text = f"Nobody can say yet whether Slurm has it: {said}"
    current = writer.state.attempt(attempt.id)
    if word == "unknown" and current is not None and current.outcome == "unknown" and current.said == said:
        return
    writer.record(
        "submit_outcome",
        f"{attempt.id}: {text}",
        stage=attempt.stage,
        id=attempt.id,
        digest=attempt.digest,
        outcome=word,
        job_id=job_id,
        said=said,
    )
    mend_outcome(writer, attempt.id)


def outcome_of(entries: Sequence[Entry], attempt_id: str) -> dict[str, Any] | None:
    """What outcome.json says of an attempt, by the log; None before anything is known."""
    keys = ("outcome", "job_id", "said", "digest")
    known = [item.data for item in entries if item.data["event"] == "submit_outcome" and item.data["id"] == attempt_id]
    return {key: known[-1][key] for key in keys} if known else None


def mend_outcome(writer: RunWriter, attempt_id: str) -> None:
    """Make outcome.json say what the log says; a process that died between the two left the older word."""
    said = outcome_of(writer.entries, attempt_id)
    try:
        proposal = queue.load(writer.run_dir, attempt_id)
        if said is not None and not queue.says_outcome(proposal, said):
            queue.write_outcome(proposal, said)
    except queue.QueueError:
        return  # the folder is gone; the log has what it said


def _questions(outcome: Unknown) -> str:
    asked = "; ".join(f"{item.source}: {item.answer}" for item in outcome.asked)
    return f"{outcome.said} ({asked})" if asked else outcome.said


async def pause(writer: RunWriter, round_number: int) -> None:
    """Wait before the next round of questions: longer each time, and no longer than until something happens."""
    await writer.changed(timeout=min(60.0, RECONCILE_SECONDS * 2**round_number))
