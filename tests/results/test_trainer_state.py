"""trainer_state.json: Python's NaN, losses that hide one, and a mean that is no final loss."""

from __future__ import annotations

from typing import Any

import pytest

from gates.results import trainer_state
from gates.results.meaning import Scope
from tests.results.foreign_files import drop, file, put, refusal
from tests.results.foreign_files import trainer_state as valid

NAN = float("nan")


def read(document: Any) -> trainer_state.TrainerState:
    return trainer_state.read(file(document))


def faults(document: Any) -> list[str]:
    return [remark.field for remark in read(document).remarks if remark.unusable]


def test_a_finished_run() -> None:
    made = read(valid())
    assert made.usable
    assert made.remarks == ()
    assert made.finished
    assert made.stopping is True
    assert made.final_loss is not None
    assert (made.final_loss.value, made.final_loss.field) == (7.0, "log_history[6].loss")
    assert made.final_loss.meaning.scope is Scope.STEP
    assert [entry.step.value for entry in made.entries] == [10, 20, 30, 40, 50, 60]
    assert made.evaluations[0].metrics.written == (("eval_loss", 7.5), ("eval_runtime", 3.5))
    assert made.flops is not None
    assert made.flops.value == 1.5e18


def test_the_mean_of_the_run_is_not_its_final_loss() -> None:
    made = read(valid())
    mean = made.summaries[0].train_loss
    assert mean is not None
    assert made.final_loss is not None
    assert mean.value != made.final_loss.value
    assert "not a final loss" in mean.meaning.name


def test_a_run_that_is_not_at_its_end() -> None:
    made = read(put(valid(), ("max_steps",), 120))
    assert not made.finished
    assert made.usable
    assert made.remarks[0].text == "not finished: 60 of 120 steps"


def test_bare_nan_is_read_and_is_no_number() -> None:
    document = put(valid(), ("log_history", 6, "grad_norm"), NAN)
    assert b"NaN" in (file(document).data or b"")
    made = read(document)
    assert made.entries[-1].grad_norm is None
    assert made.entries[-1].loss is not None
    assert faults(document) == ["log_history[6].grad_norm"]
    assert read(put(valid(), ("log_history", 6, "loss"), NAN)).final_loss is None


@pytest.mark.parametrize("norm", [NAN, 0.0, None])
def test_a_loss_of_zero_without_a_gradient_was_never_finite(norm: float | None) -> None:
    document = put(put(valid(), ("log_history", 6, "loss"), 0.0), ("log_history", 6, "grad_norm"), norm)
    assert "log_history[6].loss" in faults(document)


def test_a_loss_of_zero_with_a_gradient_is_what_some_trainers_write() -> None:
    assert faults(put(valid(), ("log_history", 6, "loss"), 0.0)) == []


def test_a_repeated_mean_hides_losses_that_were_not_finite() -> None:
    document = valid()
    for i in (1, 2, 4, 5, 6):
        document["log_history"][i]["loss"] = 7.25
    assert faults(document) == ["log_history"]


def test_a_step_without_a_norm_among_others_with_one() -> None:
    made = read(drop(valid(), ("log_history", 2, "grad_norm")))
    assert made.usable
    assert made.remarks[0].field == "log_history[2].grad_norm"


@pytest.mark.parametrize(
    ("keys", "value", "field"),
    [
        (("global_step",), 61, "global_step"),
        (("log_history", 6, "step"), 70, "log_history[6].step"),
        (("log_history", 6, "step"), 40, "log_history"),
        (("log_history",), [], "log_history"),
    ],
)
def test_logs_that_cannot_be(keys: Any, value: Any, field: str) -> None:
    assert faults(put(valid(), keys, value)) == [field]


def test_an_entry_of_no_known_kind() -> None:
    made = read(put(valid(), ("log_history", 0), {"step": 10, "epoch": 0.1, "note": 1}))
    assert made.remarks[0].field == "log_history[0]"


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("global_step",), None),
        (("global_step",), 60.0),
        (("global_step",), NAN),
        (("max_steps",), "60"),
        (("log_history",), {}),
        (("log_history", 0), 5),
        (("log_history", 0, "step"), None),
        (("log_history", 0, "loss"), "7.0"),
        (("log_history", 0, "grad_norm"), -1),
        (("total_flos",), True),
        (("total_flos",), 10**60),
    ],
)
def test_what_is_refused(keys: Any, value: Any) -> None:
    error = refusal(trainer_state.read, put(valid(), keys, value))
    assert error.problems[0].field.startswith(str(keys[0]))
    refusal(trainer_state.read, drop(valid(), ("log_history",)))


def test_keys_that_come_twice_and_marks_before_the_text() -> None:
    text = (file(valid()).data or b"").replace(b'"max_steps"', b'"global_step"')
    assert "duplicate key: global_step is there twice" in str(refusal(trainer_state.read, text))
    assert "byte-order mark" in str(refusal(trainer_state.read, b"\xef\xbb\xbf" + text))
