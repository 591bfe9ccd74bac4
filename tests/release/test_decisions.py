"""What comes next: each situation of a release, and the one step that follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.release.decisions import (
    IN_VAIN,
    AwaitDecision,
    AwaitOperator,
    CheckTarget,
    Close,
    DecideTriage,
    FindTarget,
    Finished,
    Freeze,
    Judge,
    PassStage,
    Plan,
    PlannedTask,
    Probe,
    Propose,
    Reconcile,
    Session,
    StartStage,
    StopSystemic,
    Submit,
    VerifyFreeze,
    Watch,
    next_step,
)
from console.release.state import (
    Attempt,
    GateRecord,
    Outcome,
    ReleaseVerdict,
    RunState,
    Stage,
    StageStatus,
    Triage,
    put_attempt,
    put_stage,
)

STAGE = PlannedTask("stage_target", "stage_target", ("target",))
TRAIN = PlannedTask("train", "train", ("train",))
SMOKE = PlannedTask("train", "smoke", ("smoke",))
FREEZE = PlannedTask("freeze", "freeze", ("freeze",))
BENCH = PlannedTask("bench", "bench", ("bench", "correctness"))
PLAN = Plan((STAGE, TRAIN, SMOKE, FREEZE, BENCH), freeze_job_above=1000)
HERE = Session(probed=True)


def at(stage: str, **changes: object) -> RunState:
    """A state in which all stages before `stage` passed and it is running."""
    state = RunState(run_id="r")
    for item in state.stages:
        if item.name == stage:
            return replace(put_stage(state, replace(item, status=StageStatus.RUNNING)), **changes)
        state = put_stage(state, replace(item, status=StageStatus.PASSED))
    raise AssertionError(stage)


def with_attempt(state: RunState, task: PlannedTask, outcome: Outcome, number: int = 1, **changes: object) -> RunState:
    name = f"{task.task}-{number}"
    attempt = Attempt(number, "sbatch", name, "d" * 64, "t" * 16, task.stage, task.task, outcome=outcome, **changes)
    return put_attempt(state, attempt)


def with_gate(state: RunState, stage: str, gate: str, name: str, passed: bool) -> RunState:
    record = GateRecord(gate, name, passed, None if passed else "UNKNOWN", "words", "s" * 64, "now")
    item = state.stage(stage)
    return put_stage(state, replace(item, gates=(*item.gates, record)))


def with_triage(state: RunState, stage: str, name: str, step: str, **values: object) -> RunState:
    item = state.stage(stage)
    return put_stage(state, replace(item, triage=(*item.triage, Triage(name, "UNKNOWN", step, "words", values))))


def test_a_session_begins_with_the_cluster_whatever_the_log_says() -> None:
    assert next_step(RunState(), PLAN, Session()) == Probe()
    assert next_step(at("bench"), PLAN, Session()) == Probe()


def test_a_closed_release_is_finished_without_asking_the_cluster() -> None:
    state = replace(at("bench"), verdict=ReleaseVerdict.INFEASIBLE)
    assert next_step(state, PLAN, Session()) == Finished()


def test_every_stage_is_entered_and_left_in_order() -> None:
    state = at("setup", setup={"host": "h"})
    assert next_step(state, PLAN, HERE) == PassStage("setup")
    passed = put_stage(state, replace(state.stage("setup"), status=StageStatus.PASSED))
    assert next_step(passed, PLAN, HERE) == StartStage("stage_target")


@pytest.mark.parametrize(
    ("outcome", "step"),
    [
        (Outcome.PROPOSED, AwaitDecision("train-1")),
        (Outcome.APPROVED, Submit("train-1")),
        (Outcome.SUBMITTING, Reconcile("train-1")),
        (Outcome.UNKNOWN, Reconcile("train-1")),
        (Outcome.SUBMITTED, Watch("train-1")),
        (Outcome.RESULTS_READ, Judge("train-1", ("train",))),
        (Outcome.RESULT_MISSING, DecideTriage("train", "train", "train-1", "")),
    ],
)
def test_what_an_attempt_needs_next(outcome: Outcome, step: object) -> None:
    assert next_step(with_attempt(at("train"), TRAIN, outcome), PLAN, HERE) == step


def test_only_an_approved_attempt_is_ever_submitted() -> None:
    for outcome in Outcome:
        step = next_step(with_attempt(at("train"), TRAIN, outcome), PLAN, HERE)
        assert isinstance(step, Submit) == (outcome is Outcome.APPROVED)


@pytest.mark.parametrize("outcome", [Outcome.INVALIDATED, Outcome.NOT_SUBMITTED])
def test_what_surely_never_ran_is_proposed_again_as_a_new_attempt(outcome: Outcome) -> None:
    step = next_step(with_attempt(at("train"), TRAIN, outcome), PLAN, HERE)
    assert isinstance(step, Propose)
    assert (step.task, step.attempt) == (TRAIN, 2)


def test_attempts_that_come_to_nothing_again_and_again_need_a_person() -> None:
    state = at("train")
    for number in range(1, IN_VAIN + 1):
        state = with_attempt(state, TRAIN, Outcome.NOT_SUBMITTED, number)
    assert isinstance(next_step(state, PLAN, HERE), AwaitOperator)


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.REFUSED, Outcome.EXPIRED])
def test_a_no_waits_for_the_operator_until_reopened(outcome: Outcome) -> None:
    state = with_attempt(at("train"), TRAIN, outcome)
    assert isinstance(next_step(state, PLAN, HERE), AwaitOperator)
    reopened = with_attempt(at("train"), TRAIN, outcome, reopened=True)
    assert next_step(reopened, PLAN, HERE) == Propose(TRAIN, 2, "asked for again by the operator")


def test_the_next_task_begins_only_after_every_gate_of_the_one_before_passed() -> None:
    state = with_attempt(at("train"), TRAIN, Outcome.RESULTS_READ)
    assert next_step(with_gate(state, "train", "train", "train-1", True), PLAN, HERE) == Propose(SMOKE, 1)
    failed = with_gate(state, "train", "train", "train-1", False)
    assert next_step(failed, PLAN, HERE) == DecideTriage("train", "train", "train-1", "train")


def test_both_gates_of_the_bench_are_asked() -> None:
    state = with_attempt(at("bench"), BENCH, Outcome.RESULTS_READ)
    session = replace(HERE, freeze_verified=True)
    state = with_gate(state, "bench", "bench", "bench-1", True)
    assert next_step(state, PLAN, session) == Judge("bench-1", ("bench", "correctness"))
    state = with_gate(state, "bench", "correctness", "bench-1", True)
    assert next_step(state, PLAN, session) == PassStage("bench")


def test_triage_leads_to_a_retry_a_verdict_a_stop_or_a_person() -> None:
    state = with_gate(with_attempt(at("train"), TRAIN, Outcome.RESULTS_READ), "train", "train", "train-1", False)
    assert next_step(with_triage(state, "train", "train-1", "retry"), PLAN, HERE) == Propose(TRAIN, 2, "words")
    verdict = next_step(with_triage(state, "train", "train-1", "verdict", verdict="ANOMALOUS"), PLAN, HERE)
    assert verdict == Close(ReleaseVerdict.ANOMALOUS, "UNKNOWN", "words", "train")
    assert next_step(with_triage(state, "train", "train-1", "stop"), PLAN, HERE) == StopSystemic("train-1", "words")
    asked = next_step(with_triage(state, "train", "train-1", "ask the operator"), PLAN, HERE)
    assert asked == AwaitOperator("train-1", "words", bad_input=True)


def test_the_target_is_looked_for_then_checked_or_staged() -> None:
    assert next_step(at("stage_target"), PLAN, HERE) == FindTarget()
    found = at("stage_target", target={"present": True})
    assert next_step(found, PLAN, HERE) == CheckTarget()
    assert next_step(with_gate(found, "stage_target", "target", "stage_target", True), PLAN, HERE) == PassStage(
        "stage_target"
    )
    bad = with_gate(found, "stage_target", "target", "stage_target", False)
    assert next_step(bad, PLAN, HERE) == DecideTriage("stage_target", "stage_target", "stage_target", "target")
    assert next_step(at("stage_target", target={"present": False}), PLAN, HERE) == Propose(STAGE, 1)


def test_a_small_export_is_frozen_by_a_command_and_a_large_one_by_a_job() -> None:
    assert next_step(at("freeze", freeze={"export_bytes": 1000}), PLAN, HERE) == Freeze()
    assert next_step(at("freeze", freeze={"export_bytes": 1001}), PLAN, HERE) == Propose(FREEZE, 1)


def test_a_frozen_drafter_is_verified_before_it_is_benchmarked() -> None:
    assert next_step(at("bench"), PLAN, HERE) == VerifyFreeze()
    assert next_step(at("bench"), PLAN, replace(HERE, freeze_verified=True)) == Propose(BENCH, 1)
    failed = with_gate(at("bench"), "bench", "freeze", "verify", False)
    assert next_step(failed, PLAN, HERE) == DecideTriage("bench", "verify", "verify", "freeze")


def test_ready_needs_every_stage_to_have_passed() -> None:
    step = next_step(at("closeout"), PLAN, HERE)
    assert isinstance(step, Close)
    assert step.verdict is ReleaseVerdict.DRAFTER_READY
    for stage in ("setup", "stage_target", "train", "freeze", "bench"):
        state = at("closeout")
        state = put_stage(state, replace(state.stage(stage), status=StageStatus.RUNNING))
        assert not isinstance(next_step(state, PLAN, HERE), Close)


def test_a_stage_without_tasks_passes() -> None:
    assert next_step(at("train"), Plan((), 0), HERE) == PassStage("train")


def test_a_failed_stage_is_never_passed_over() -> None:
    state = put_stage(at("train"), Stage("train", StageStatus.FAILED))
    assert state.current.name == "train"
