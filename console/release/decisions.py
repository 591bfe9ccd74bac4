"""What the conductor does next: a pure function from the state of a release to one step.

Nothing here reads a clock, a file or a cluster. The conductor carries out the step, writes what happened into
the log, and asks again; so a run that was killed anywhere goes on from its log alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from backends.slurm.advice import after_refusal
from console.release.state import Attempt, Outcome, ReleaseVerdict, RunState, Stage, StageStatus
from console.release.triage import ASK, RETRY, SYSTEMIC, VERDICT

TARGET_CHECK = "stage_target"
"""Name under which a target that was found, not staged by a job, is judged."""


POLICY = "policy"
"""The task under which a policy stands in the stage setup."""

IN_VAIN = 3
"""After so many attempts in a row that never reached the scheduler, a person must look."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of the recipe as this release uses it: which stage, and which gates read its results."""

    stage: str
    task: str
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which jobs make up this release.

    Attributes:
        tasks: In order; those that an existing drafter makes unnecessary are not in it.
        freeze_job_above: Size of an export in bytes above which the freeze is a job of its own.
        policy: Whether a policy is asked for before the first job.
    """

    tasks: tuple[PlannedTask, ...]
    freeze_job_above: int
    policy: bool = False

    def of(self, stage: str) -> tuple[PlannedTask, ...]:
        """The tasks of one stage."""
        return tuple(task for task in self.tasks if task.stage == stage)


@dataclass(frozen=True, slots=True)
class Session:
    """What this process did itself, which a process before it cannot vouch for.

    Attributes:
        probed: The cluster answered.
        freeze_verified: The frozen drafter was written or verified.
    """

    probed: bool = False
    freeze_verified: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Base of all steps."""


@dataclass(frozen=True, slots=True)
class Probe(Step):
    """Ask the cluster; on a first run this is the setup stage."""


@dataclass(frozen=True, slots=True)
class StartStage(Step):
    """Enter a stage."""

    stage: str


@dataclass(frozen=True, slots=True)
class PassStage(Step):
    """Leave a stage whose gates all passed."""

    stage: str


@dataclass(frozen=True, slots=True)
class FindTarget(Step):
    """Look for a copy of the target on the cluster."""


@dataclass(frozen=True, slots=True)
class CheckTarget(Step):
    """Check the copy that was found, and judge it."""


@dataclass(frozen=True, slots=True)
class Propose(Step):
    """Put a job into the queue; `change` says in words why, and in what it differs from the attempt before."""

    task: PlannedTask
    attempt: int
    change: str = ""


@dataclass(frozen=True, slots=True)
class ProposePolicy(Step):
    """Put the policy into the queue, which approves jobs within its bounds once it is approved itself."""

    attempt: int
    change: str = ""


@dataclass(frozen=True, slots=True)
class AwaitDecision(Step):
    """Wait for an operator's decision."""

    id: str


@dataclass(frozen=True, slots=True)
class Submit(Step):
    """Submit an approved job, once."""

    id: str


@dataclass(frozen=True, slots=True)
class Reconcile(Step):
    """Find out whether a submission reached the scheduler."""

    id: str


@dataclass(frozen=True, slots=True)
class Watch(Step):
    """Wait for the result files of a submitted job."""

    id: str


@dataclass(frozen=True, slots=True)
class Judge(Step):
    """Let the gates read the results of an attempt."""

    id: str
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecideTriage(Step):
    """Decide what follows from a failed attempt, and write it down."""

    stage: str
    task: str
    id: str
    gate: str


@dataclass(frozen=True, slots=True)
class Freeze(Step):
    """Freeze the export by a command on the login node."""


@dataclass(frozen=True, slots=True)
class VerifyFreeze(Step):
    """Verify the frozen drafter again before it is benchmarked."""


@dataclass(frozen=True, slots=True)
class AwaitOperator(Step):
    """Nothing can go on before a person acts.

    Attributes:
        bad_input: Whether what must be corrected is an input of the release.
    """

    id: str
    why: str
    bad_input: bool = False


@dataclass(frozen=True, slots=True)
class StopSystemic(Step):
    """The cluster is not usable: stop without a verdict."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Close(Step):
    """Close the release with a verdict."""

    verdict: ReleaseVerdict
    failure_class: str
    detail: str
    failed_stage: str = ""


@dataclass(frozen=True, slots=True)
class Finished(Step):
    """There is a verdict; nothing is left to do but the report."""


def next_step(state: RunState, plan: Plan, session: Session) -> Step:
    """The one next step of a release."""
    if state.verdict is not None:
        return Finished()
    if not session.probed:
        return Probe()
    stage = state.current
    if stage.status is StageStatus.NOT_STARTED:
        return StartStage(stage.name)
    if stage.name == "setup":
        if not state.setup:
            return Probe()
        return (_policy(stage) if plan.policy else None) or PassStage("setup")
    if stage.name == "stage_target":
        return _target(state, plan, stage)
    if stage.name == "freeze":
        return _freeze(state, plan, stage)
    if stage.name == "bench" and not session.freeze_verified:
        failed = _failed(stage, "verify")
        return failed or VerifyFreeze()
    if stage.name == "closeout":
        return Close(ReleaseVerdict.DRAFTER_READY, "", "every gate passed")
    return _tasks(plan, stage)


def _policy(stage: Stage) -> Step | None:
    """What the policy needs; None when it was decided on, or came to nothing: then every job is asked about."""
    attempt = stage.latest(POLICY)
    if attempt is None:
        return ProposePolicy(1)
    if attempt.outcome is Outcome.PROPOSED:
        return AwaitDecision(attempt.id)
    if attempt.outcome is Outcome.INVALIDATED and not _in_vain(stage, PlannedTask(stage.name, POLICY, ())):
        return ProposePolicy(attempt.attempt + 1, f"attempt {attempt.attempt} was invalidated: {attempt.said}")
    return None


def _target(state: RunState, plan: Plan, stage: Stage) -> Step:
    if "present" not in state.target:
        return FindTarget()
    if not state.target["present"]:
        return _tasks(plan, stage)
    gate = stage.gate("target", TARGET_CHECK)
    if gate is None:
        return CheckTarget()
    return PassStage(stage.name) if gate.passed else _failed(stage, TARGET_CHECK) or CheckTarget()


def _freeze(state: RunState, plan: Plan, stage: Stage) -> Step:
    if state.freeze.get("export_bytes", 0) > plan.freeze_job_above:
        return _tasks(plan, stage)
    gate = stage.gate("freeze", "freeze")
    if gate is None:
        return Freeze()
    return PassStage(stage.name) if gate.passed else _failed(stage, "freeze") or Freeze()


def _failed(stage: Stage, name: str) -> Step | None:
    """What follows from a failed judgement that had no job of its own; None when nothing failed."""
    gate = next((gate for gate in stage.gates if gate.id == name and not gate.passed), None)
    if gate is None:
        return None
    return _after_failure(stage, PlannedTask(stage.name, name, (gate.name,)), 0, name, gate.name)


def _tasks(plan: Plan, stage: Stage) -> Step:
    """The step of the first task of a stage that is not through; the end of the stage when all are."""
    for task in plan.of(stage.name):
        attempt = stage.latest(task.task)
        if attempt is None:
            return Propose(task, 1)
        step = _attempt(stage, task, attempt)
        if step is not None:
            return step
    return PassStage(stage.name)


def _attempt(stage: Stage, task: PlannedTask, attempt: Attempt) -> Step | None:
    """What an attempt needs next; None when it is through and its gates passed."""
    again = attempt.attempt + 1
    if attempt.reopened:
        return Propose(task, again, "asked for again by the operator")
    match attempt.outcome:
        case Outcome.PROPOSED:
            return AwaitDecision(attempt.id)
        case Outcome.APPROVED:
            return Submit(attempt.id)
        case Outcome.SUBMITTING | Outcome.UNKNOWN:
            return Reconcile(attempt.id)
        case Outcome.SUBMITTED:
            return Watch(attempt.id)
        case Outcome.INVALIDATED | Outcome.NOT_SUBMITTED if not _in_vain(stage, task):
            return Propose(task, again, f"attempt {attempt.attempt} was {attempt.outcome}: {attempt.said}")
        case Outcome.INVALIDATED | Outcome.NOT_SUBMITTED:
            return AwaitOperator(attempt.id, f"{IN_VAIN} attempts in a row came to nothing: {attempt.said}")
        case Outcome.REJECTED | Outcome.EXPIRED:
            # Where nobody was there to decide, asking again by itself would only fill the queue.
            expired = attempt.outcome is Outcome.EXPIRED
            why = "it expired" if expired else f"{attempt.decided_by} rejected it"
            return AwaitOperator(attempt.id, f"{why}: {attempt.said}")
        case Outcome.REFUSED:
            why = f"the scheduler refused it: {attempt.said}; {after_refusal(attempt.said)}"
            return AwaitOperator(attempt.id, why, bad_input=True)
        case Outcome.RESULT_MISSING:
            return _after_failure(stage, task, attempt.attempt, attempt.id, "")
        case Outcome.RESULTS_READ:
            return _judged(stage, task, attempt)


def _in_vain(stage: Stage, task: PlannedTask) -> bool:
    """Whether the last attempts of a task all ended before they reached the scheduler."""
    nothing = (Outcome.INVALIDATED, Outcome.NOT_SUBMITTED)
    last = [item for item in stage.attempts if item.task == task.task][-IN_VAIN:]
    return len(last) == IN_VAIN and all(item.outcome in nothing for item in last)


def _judged(stage: Stage, task: PlannedTask, attempt: Attempt) -> Step | None:
    records = [stage.gate(name, attempt.id) for name in task.gates]
    if any(record is None for record in records):
        return Judge(attempt.id, task.gates)
    failed = next((record for record in records if record is not None and not record.passed), None)
    if failed is None:
        return None
    return _after_failure(stage, task, attempt.attempt, attempt.id, failed.name)


def _after_failure(stage: Stage, task: PlannedTask, attempt: int, name: str, gate: str) -> Step:
    decided = stage.triage_of(name)
    if decided is None:
        return DecideTriage(stage.name, task.task, name, gate)
    if decided.step == RETRY:
        return Propose(task, attempt + 1, decided.detail)
    if decided.step == VERDICT:
        verdict = ReleaseVerdict(decided.values["verdict"])
        return Close(verdict, decided.failure_class, decided.detail, stage.name)
    if decided.step == SYSTEMIC:
        return StopSystemic(name, decided.detail)
    assert decided.step == ASK, "triage knows four steps"
    return AwaitOperator(name, decided.detail, bad_input=True)
