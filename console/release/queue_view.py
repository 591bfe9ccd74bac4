"""The queue as people and programs look at it: every proposal with where it stands, from files and state together.

The log is ahead of nothing: a decision lies in `submissions/` before the conductor has logged it, and a proposal
that was changed after it was logged is void before anybody has said so. So the state of a proposal is what the
log says, corrected by what the files say already.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.release import queue
from console.release.job_view import Background, previous_approved
from console.release.rules import rules_of
from console.release.state import ASKED, Attempt, Outcome, RunState

PENDING, INVALIDATED = "pending", "invalidated"

_NOT_ASKED_FOR = (Outcome.PROPOSED, Outcome.APPROVED, Outcome.REJECTED, Outcome.EXPIRED, Outcome.INVALIDATED)
_NEVER_RAN = (*_NOT_ASKED_FOR, Outcome.REFUSED, Outcome.NOT_SUBMITTED)


@dataclass(frozen=True, slots=True)
class Item:
    """One proposal in the queue.

    Attributes:
        id: Its name.
        digest: SHA-256 of job.json as it lies there now; of the proposed job where there is no file.
        state: "pending", "approved", "rejected", ... as `console.release.state.Outcome` has them.
        problem: Why it cannot be decided on although nobody decided, empty where nothing is wrong.
        expires_at: From when on nobody can decide on it any more, UTC; empty for never.
        first_by: Who gave the first of two approvals; empty where nobody has or one is enough.
        decided_by: Who decided, with `decided_at` and `reason`; empty while nobody has.
    """

    id: str
    digest: str
    stage: str = ""
    task: str = ""
    attempt: int = 0
    kind: str = ""
    state: str = PENDING
    summary: str = ""
    proposed_at: str = ""
    proposer: str = ""
    decided_by: str = ""
    decided_at: str = ""
    reason: str = ""
    job_id: str | None = None
    problem: str = ""
    expires_at: str = ""
    first_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON form of one element of `gonogo queue list --json`."""
        return {name: getattr(self, name) for name in self.__slots__}


def items(run_dir: Path, state: RunState | None) -> list[Item]:
    """Every proposal of a run, oldest first.

    Args:
        run_dir: The run folder.
        state: What the log says, None where there is no state yet.
    """
    return [item(run_dir, state, name) for name in queue.ids(run_dir)]


def item(run_dir: Path, state: RunState | None, proposal_id: str) -> Item:
    """One proposal by its name; never raises for what lies in its folder."""
    attempt = state.attempt(proposal_id) if state is not None else None
    refusal = dict(state.refusals).get(proposal_id) if state is not None and proposal_id in state.refused else None
    if refusal is not None:
        return _refused(run_dir, proposal_id, refusal)
    try:
        proposal = queue.load(run_dir, proposal_id)
    except queue.QueueError as error:
        known = _from_attempt(attempt) if attempt is not None else {"digest": ""}
        word = PENDING if attempt is None else _word(attempt.outcome)
        return Item(proposal_id, **known, state=INVALIDATED if word == PENDING else word, problem=str(error))
    known = _from_attempt(attempt) if attempt is not None else _from_job(proposal)
    known |= {"digest": proposal.digest, "proposed_at": proposal.time, "proposer": proposal.proposer}
    problem = str(known.pop("problem", ""))
    first, _ = _first(state, proposal)
    known |= {"expires_at": _expires_at(state, proposal), "first_by": first.operator if first else ""}
    if attempt is not None and attempt.outcome not in (Outcome.PROPOSED, Outcome.APPROVED):
        return Item(proposal_id, **known, state=str(attempt.outcome), problem=problem)
    if attempt is not None and attempt.digest != proposal.digest:
        problem = f"job.json was changed after the proposal: proposed was digest {attempt.digest}"
    return _before_submission(proposal, known, problem)


def _refused(run_dir: Path, proposal_id: str, reason: str) -> Item:
    """A proposal that the conductor found to be none: nobody can decide on it, whatever lies there now."""
    known: dict[str, Any] = {"digest": ""}
    try:
        proposal = queue.load(run_dir, proposal_id)
        known |= {"digest": proposal.digest, "proposed_at": proposal.time, "proposer": proposal.proposer}
    except queue.QueueError:
        pass  # the reason says what was wrong with it
    problem = f"refused before anybody was asked: {reason}"
    return Item(proposal_id, **known, stage=ASKED, state=INVALIDATED, problem=problem)


def _before_submission(proposal: queue.Proposal, known: dict[str, Any], problem: str) -> Item:
    """A proposal that the log has not seen submitted: its own files say whether somebody decided."""
    try:
        decision = queue.decision_of(proposal)
    except queue.QueueError as error:
        return Item(proposal.id, **known, problem=str(error))
    if decision is None:
        return Item(proposal.id, **known, state=INVALIDATED if problem else PENDING, problem=problem)
    known |= {"decided_by": decision.operator, "decided_at": decision.time, "reason": decision.reason}
    word = decision.decision
    if decision.digest != proposal.digest:
        problem = problem or f"the decision names digest {decision.digest}, which is not the job that lies there now"
    if problem and word == queue.APPROVED:
        word = INVALIDATED
    elif word == queue.APPROVED and queue.is_used(proposal):
        word = str(Outcome.SUBMITTING)
    return Item(proposal.id, **known, state=word, problem=problem)


def _word(outcome: Outcome) -> str:
    return PENDING if outcome is Outcome.PROPOSED else str(outcome)


def _from_attempt(attempt: Attempt) -> dict[str, Any]:
    names = ("digest", "stage", "task", "attempt", "kind", "summary", "proposed_at", "proposer", "decided_at", "job_id")
    decided_by = attempt.decided_by.removeprefix("operator:")
    return {**{name: getattr(attempt, name) for name in names}, "decided_by": decided_by, "reason": attempt.said}


def _from_job(proposal: queue.Proposal) -> dict[str, Any]:
    from console.release.job import JobError

    try:
        job = proposal.job()
    except JobError as error:
        return {"problem": str(error)}
    return {name: getattr(job, name) for name in ("stage", "task", "attempt", "kind", "summary")}


def gpu_hours_asked(state: RunState, but: str = "") -> float:
    """GPU hours that the release's submitted jobs asked for: all their GPUs for their whole time limits.

    A submission whose outcome is unknown counts; one that surely never reached the scheduler does not.

    Args:
        state: The release.
        but: A proposal that is left out, which the others are compared with.
    """
    ran = (attempt for attempt in state.attempts if attempt.outcome not in _NEVER_RAN and attempt.id != but)
    return sum(attempt.gpus * attempt.limit_s for attempt in ran) / 3600


def background(run_dir: Path, state: RunState | None, proposal: queue.Proposal) -> Background:
    """What an operator should know beside the job itself.

    Raises:
        console.release.job.JobError: When the proposal's job is not one.
    """
    previous = previous_approved(run_dir, proposal)
    return Background(
        id=proposal.id,
        proposer=proposal.proposer,
        proposed_at=proposal.time,
        change=proposal.change,
        previous=None if previous is None else previous[1],
        previous_id="" if previous is None else previous[0],
        gpu_hours_before=None if state is None else gpu_hours_asked(state, but=proposal.id),
        terms=_terms(state, proposal),
    )


def _terms(state: RunState | None, proposal: queue.Proposal) -> tuple[str, ...]:
    """The rules of the release for one proposal, and how far it is under them."""
    words = () if state is None else rules_of(state.inputs).words()
    expires_at = _expires_at(state, proposal)
    first, problem = _first(state, proposal)
    return (
        *words,
        *((f"it expires at {expires_at}",) if expires_at else ()),
        *((f"approved by {first.operator} at {first.time}; one more account must approve",) if first else ()),
        *((problem,) if problem else ()),
    )


def _expires_at(state: RunState | None, proposal: queue.Proposal) -> str:
    attempt = None if state is None else state.attempt(proposal.id)
    return proposal.expires_at if attempt is None else attempt.expires_at


def _first(state: RunState | None, proposal: queue.Proposal) -> tuple[queue.Decision | None, str]:
    """The first of two approvals, where the rules ask for two; what is wrong with it."""
    if state is None or rules_of(state.inputs).approvals < 2:
        return None, ""
    try:
        return queue.first_of(proposal), ""
    except queue.QueueError as error:
        return None, str(error)
