"""From a failure to what follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.release.state import Attempt, Outcome, Stage
from console.release.triage import ASK, RETRY, RULES, SYSTEMIC, VERDICT, Failure, triage
from gates.verdict import FailureClass


def attempt(number: int, task: str = "smoke") -> Attempt:
    name = f"{task}-{number}"
    return Attempt(number, "sbatch", name, "d" * 64, "t" * 16, "train", task, outcome=Outcome.RESULTS_READ)


def fail(failure_class: FailureClass, number: int = 1, **more: object) -> Failure:
    return Failure(f"smoke-{number}", "smoke", failure_class, "words", **more)


@pytest.mark.parametrize(("granted", "retries"), [(None, 1), (0, 0), (1, 1), (9, 1)])
@pytest.mark.parametrize("failure_class", [FailureClass.RESULT_MISSING, FailureClass.MEASUREMENT_INVALID])
def test_a_recipe_may_grant_fewer_retries_and_never_more(
    failure_class: FailureClass, granted: int | None, retries: int
) -> None:
    decided = triage(Failure("train-1", "train", failure_class, "words"), Stage("train"), granted)
    assert (decided.step == RETRY) is bool(retries)


@pytest.mark.parametrize(("granted", "step"), [(None, RETRY), (1, RETRY), (0, VERDICT)])
def test_a_longer_time_limit_is_a_retry_too(granted: int | None, step: str) -> None:
    facts, values = {"stage": "server_timeout"}, {"server_timeout": 30}
    failure = Failure("smoke-1", "smoke", FailureClass.CHECKPOINT_NOT_SERVABLE, "words", facts, values)
    assert triage(failure, Stage("train"), granted).step == step


def test_the_table_covers_every_class() -> None:
    assert set(RULES) == set(FailureClass)


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_every_class_ends_in_a_verdict_a_stop_or_a_question_after_its_retries(failure_class: FailureClass) -> None:
    stage = Stage("train")
    steps = []
    for number in range(1, 6):
        stage = replace(stage, attempts=(*stage.attempts, attempt(number)))
        decided = triage(fail(failure_class, number), stage)
        stage = replace(stage, triage=(*stage.triage, decided))
        steps.append(decided.step)
        if decided.step != RETRY:
            break
    assert steps[-1] in (VERDICT, SYSTEMIC, ASK)
    assert steps.count(RETRY) == RULES[failure_class].retries


def test_a_server_that_did_not_come_up_gets_more_time_once() -> None:
    stage = Stage("train", attempts=(attempt(1),))
    first = triage(
        fail(FailureClass.CHECKPOINT_NOT_SERVABLE, facts={"stage": "server_timeout"}, values={"server_timeout": 4}),
        stage,
    )
    assert (first.step, first.values) == (RETRY, {"server_timeout": 8})
    again = replace(stage, attempts=(attempt(1), attempt(2)), triage=(first,))
    second = triage(
        fail(FailureClass.CHECKPOINT_NOT_SERVABLE, 2, facts={"stage": "server_timeout"}, values={"server_timeout": 8}),
        again,
    )
    assert (second.step, second.values) == (VERDICT, {"verdict": "INFEASIBLE"})


def test_a_server_that_died_is_final() -> None:
    stage = Stage("train", attempts=(attempt(1),))
    decided = triage(
        fail(FailureClass.CHECKPOINT_NOT_SERVABLE, facts={"stage": "server_died"}, values={"server_timeout": 4}), stage
    )
    assert (decided.step, decided.values) == (VERDICT, {"verdict": "INFEASIBLE"})


@pytest.mark.parametrize("value", [None, 0, -1, True, "60", 1.5])
def test_a_time_limit_that_is_no_whole_number_is_never_doubled(value: object) -> None:
    decided = triage(
        fail(FailureClass.CHECKPOINT_NOT_SERVABLE, facts={"stage": "server_timeout"}, values={"server_timeout": value}),
        Stage("train", attempts=(attempt(1),)),
    )
    assert decided.step == VERDICT


def test_retries_of_another_task_do_not_count() -> None:
    other = attempt(1, "train")
    stage = Stage("train", attempts=(other, attempt(1)))
    used = triage(Failure("train-1", "train", FailureClass.RESULT_MISSING, "words"), stage)
    stage = replace(stage, triage=(used,))
    assert triage(fail(FailureClass.RESULT_MISSING), stage).step == RETRY
