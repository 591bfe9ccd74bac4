"""From a proposal to a logged decision: who decided, whether it counts, or that nobody did in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.release import deciding, policing, policy, queue, rules, signing, submission
from console.release.job import ExactJob, JobError
from console.release.policing import Covered
from console.release.policy import Used
from console.release.state import ASKED, Attempt
from console.release.writer import CONDUCTOR, RunWriter

if TYPE_CHECKING:
    from console.release.conductor import Conductor


def attempt(conductor: Conductor, name: str) -> Attempt:
    """An attempt that the log knows."""
    found = conductor.writer.state.attempt(name)
    assert found is not None, "steps name attempts that are in the state"
    return found


def log_proposal(writer: RunWriter, proposal: queue.Proposal, job: ExactJob, text: str, actor: str = CONDUCTOR) -> None:
    """Log a proposal, whoever made it, so that everything that follows can be held against it."""
    expires_at = _expires_at(writer, proposal)
    limits: dict[str, Any] = {"expires_at": expires_at} if expires_at else {}
    until = f"; it expires at {expires_at}" if expires_at else ""
    writer.record(
        "job_proposed",
        f"{text}{until}",
        stage=job.stage,
        actor=actor,
        id=proposal.id,
        digest=proposal.digest,
        token=job.token,
        task=job.task,
        attempt=job.attempt,
        kind=job.kind,
        summary=job.summary,
        change=proposal.change,
        gpus=job.gpus,
        limit_s=job.limit_s,
        job_dir=job.job_dir,
        proposer=proposal.proposer,
        proposal_sha256=queue.about_digest(proposal),
        cluster=job.cluster,
        host=job.host,
        **limits,
    )


def _expires_at(writer: RunWriter, proposal: queue.Proposal) -> str:
    """When a proposal expires: when it says so itself, and at the latest when the release says so."""
    limit = rules.deadline(writer.clock(), rules.rules_of(writer.state.inputs).decide_within_s)
    return min(filter(None, (proposal.expires_at, limit)), key=rules.read_time, default="")


async def await_decision(conductor: Conductor, name: str) -> None:
    """Wait until somebody decided, and log the decision with what its receipt says.

    A proposal that is not what was proposed any more is invalidated at once: nobody could approve it.
    """
    current = attempt(conductor, name)
    try:
        decision = await _decision(conductor, current)
    except queue.QueueError as error:
        _record_decision(conductor, current, "invalidated", "conductor", str(error), None)
        return
    if decision is not None:
        await _log_decision(conductor, current, decision)


async def take_decision(conductor: Conductor, current: Attempt) -> None:
    """Log the decision on a proposal if there is one by now, or that there will be none; nothing else waits for it."""
    over = rules.is_past(current.expires_at, conductor.writer.clock())
    place = conductor.writer.run_dir / "submissions" / current.id
    first = not current.first_by and (place / queue.FIRST).exists()
    if not over and not first and not (place / "decision.json").exists():
        return
    try:
        proposal = _as_proposed(conductor, current)
    except queue.QueueError as error:
        _record_decision(conductor, current, "invalidated", "conductor", str(error), None)
        return
    try:
        decision = _standing(conductor, proposal, current)
    except queue.QueueError as error:
        # A file that is no decision decides nothing, and nobody can decide beside it.
        _record_decision(conductor, current, "invalidated", "conductor", str(error), None)
        return
    if decision is not None:
        await _log_decision(conductor, current, decision)


def _note_first(conductor: Conductor, proposal: queue.Proposal, current: Attempt) -> None:
    """Log the first of two approvals, once, so that whoever reads the log knows that one more is waited for."""
    if current.first_by or rules.rules_of(conductor.writer.state.inputs).approvals < 2:
        return
    try:
        first = queue.first_of(proposal)
    except queue.QueueError:
        return  # it counts for nothing; whoever approves next is told so
    if first is None:
        return
    conductor.writer.record(
        "first_approved",
        f"{current.id} approved by {first.operator}, the first of two; digest {first.digest}",
        stage=current.stage,
        actor=f"operator:{first.operator}",
        id=current.id,
        by=first.operator,
        account=rules.owner(proposal.folder / queue.FIRST),
        receipt=first.to_json(),
    )


def _standing(conductor: Conductor, proposal: queue.Proposal, current: Attempt) -> queue.Decision | None:
    """The decision, or the end of the time for one, whichever was first; None while there is neither.

    Raises:
        console.release.queue.QueueError: When there is a file that is no decision.
    """
    _note_first(conductor, proposal, current)
    decision = queue.decision_of(proposal)
    now = conductor.writer.clock()
    if decision is None and rules.is_past(current.expires_at, now):
        return deciding.expire(proposal, current.digest, current.expires_at, now)
    return decision


async def _log_decision(conductor: Conductor, current: Attempt, decision: queue.Decision) -> None:
    """Log what was decided, and whether it counts."""
    forged = await _against_signature(conductor, current, decision)
    if attempt(conductor, current.id).outcome != "proposed":
        return  # while the signature was checked, the log moved on in another way
    if decision.digest != current.digest:
        reason = f"the decision is on digest {decision.digest}, proposed was {current.digest}"
        _record_decision(conductor, current, "invalidated", "conductor", reason, decision)
        return
    if decision.decision == queue.EXPIRED:
        _record_decision(conductor, current, queue.EXPIRED, CONDUCTOR, decision.reason, decision)
        return
    if not rules.decided_in_time(decision, current.expires_at):
        reason = (
            f"{decision.operator} {decision.decision} it at {decision.time}; its time was up at {current.expires_at}"
        )
        _record_decision(conductor, current, queue.EXPIRED, CONDUCTOR, reason, decision)
        return
    problem = forged or submission.against_rules(conductor.writer, current, decision)
    if problem:
        _record_decision(conductor, current, "invalidated", CONDUCTOR, problem, decision)
        return
    if decision.operator == policy.POLICY:
        found = _decided_by_policy(conductor, current)
        if found.problem:
            _record_decision(conductor, current, "invalidated", CONDUCTOR, found.problem, decision)
            return
        _record_decision(conductor, current, decision.decision, policy.POLICY, decision.reason, decision, found.takes)
        return
    by = f"operator:{decision.operator}"
    _record_decision(conductor, current, decision.decision, by, decision.reason, decision)


async def _against_signature(conductor: Conductor, current: Attempt, decision: queue.Decision) -> str:
    """Why a decision does not count for its signature; empty when it may."""
    writer = conductor.writer
    try:
        proposal = queue.load(writer.run_dir, current.id)
    except queue.QueueError as error:
        return str(error)
    asked = rules.rules_of(writer.state.inputs)
    run_id, now = writer.state.run_id, writer.clock()
    return await signing.against(asked, conductor.signers, proposal, decision, run_id, now)


def _approve_by_policy(conductor: Conductor, proposal: queue.Proposal, current: Attempt) -> None:
    if current.kind == policy.KIND:
        return  # a policy is a person's to approve
    writer = conductor.writer
    reason = "approve_submissions is none"
    if rules.rules_of(writer.state.inputs).bounds:
        found = _covered(conductor, proposal)
        if found.problem:
            _ask_instead(writer, current, found.problem)
            return
        reason = found.words
    stamp = rules.stamp(writer.clock())
    decision = queue.Decision(proposal.id, current.digest, queue.APPROVED, "policy", reason, stamp, "conductor")
    try:
        deciding.decide(conductor.writer.run_dir, decision)
    except queue.AlreadyDecided:
        return


def _covered(conductor: Conductor, proposal: queue.Proposal) -> Covered:
    """What the policy says to a job now."""
    writer = conductor.writer
    try:
        job = proposal.job()
    except JobError as error:
        return Covered(str(error))
    return policing.covered(writer.run_dir, writer.state.policy, job, writer.clock())


def _ask_instead(writer: RunWriter, current: Attempt, why: str) -> None:
    """Say, once, that a job is outside the policy and waits for a person."""
    if any(item.data["event"] == "outside_policy" and item.data["id"] == current.id for item in writer.entries):
        return
    text = f"{current.id} is outside the policy and waits for a decision: {why}"
    writer.record("outside_policy", text, stage=current.stage, id=current.id, digest=current.digest, reason=why)


def _decided_by_policy(conductor: Conductor, current: Attempt) -> Covered:
    """Whether a decision that names the policy as its maker counts: anybody can write such a file."""
    asked = rules.rules_of(conductor.writer.state.inputs)
    if current.kind == policy.KIND or current.stage == ASKED:
        return Covered("no policy decides on it")
    if not asked.bounds:
        return Covered("")
    try:
        return _covered(conductor, _as_proposed(conductor, current))
    except queue.QueueError as error:
        return Covered(str(error))


def _as_proposed(conductor: Conductor, current: Attempt) -> queue.Proposal:
    """The proposal as it lies there now.

    Raises:
        queue.QueueError: When it is gone, or is not what was proposed.
    """
    proposal = queue.load(conductor.writer.run_dir, current.id)
    if proposal.digest != current.digest:
        raise queue.QueueError(
            f"job.json was changed after the proposal: it has digest {proposal.digest}, proposed was {current.digest}"
        )
    return proposal


async def _decision(conductor: Conductor, proposed: Attempt) -> queue.Decision | None:
    """The decision once there is one; None when the log moved on in another way meanwhile.

    Raises:
        queue.QueueError: When there is nothing left to decide on: it is gone, or is not what was proposed.
    """
    from console.release.conductor import WAITING, Stop

    writer, live = conductor.writer, conductor.live
    start = conductor.monotonic()
    complaint = ""
    if conductor.approve == "none":
        _approve_by_policy(conductor, _as_proposed(conductor, proposed), proposed)
    while True:
        current = writer.state.attempt(proposed.id)
        if current is None or current.outcome != "proposed":
            return None
        proposal = _as_proposed(conductor, proposed)
        try:
            decision = _standing(conductor, proposal, current)
            if decision is not None:
                return decision
        except queue.QueueError as error:
            if str(error) != complaint:
                complaint = str(error)
                writer.record("odd_decision", complaint, stage=current.stage, id=proposal.id)
        live.wait("operator", f"approval of {proposal.id}: {current.summary}", conductor.now())
        if conductor.wait_s is not None and conductor.monotonic() - start >= conductor.wait_s:
            raise Stop(WAITING, f"waiting for an approval: {proposal.id}")
        await conductor.mailbox.wait()


def _record_decision(
    conductor: Conductor,
    current: Attempt,
    word: str,
    by: str,
    reason: str,
    decision: queue.Decision | None,
    takes: Used | None = None,
) -> None:
    human = word == queue.REJECTED
    said = f": {reason}" if reason else ""
    now = attempt(conductor, current.id)
    also = f" after {now.first_by}" if now.first_by and word == queue.APPROVED else ""
    conductor.writer.record(
        "job_decided",
        f"{current.id} {word} by {by}{also}{said}; digest {current.digest}",
        stage=current.stage,
        actor=by,
        human=human,
        id=current.id,
        digest=current.digest,
        decision=word,
        by=by,
        reason=reason,
        receipt=None if decision is None else decision.to_json(),
        **_accounts(conductor, current),
        **_of_policy(conductor, current, word, takes),
    )


def _of_policy(conductor: Conductor, current: Attempt, word: str, takes: Used | None) -> dict[str, Any]:
    """What a decision does to the policy: it becomes the one that stands, or a part of it is used up."""
    state = conductor.writer.state
    if current.kind == policy.KIND and word == queue.APPROVED:
        made = policing.read(conductor.writer.run_dir, {"id": current.id, "digest": current.digest})
        # What is no policy in its exact form covers nothing, whoever approved it.
        return {} if isinstance(made, str) else {"policy": policy.limits(made, conductor.writer.clock())}
    if takes is not None and state.policy:
        return {"takes": {"policy": state.policy["id"], "jobs": takes.jobs, "gpu_seconds": takes.gpu_seconds}}
    return {}


def _accounts(conductor: Conductor, current: Attempt) -> dict[str, Any]:
    """Which accounts the files of a decision belong to, where the rules are about accounts: a copy has other owners."""
    if not rules.rules_of(conductor.writer.state.inputs).about_accounts:
        return {}
    place = conductor.writer.run_dir / "submissions" / current.id
    files = {"proposer": "proposal.json", "first": queue.FIRST, "decision": "decision.json"}
    return {"accounts": {who: rules.owner(place / name) for who, name in files.items() if (place / name).exists()}}
