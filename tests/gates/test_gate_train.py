"""gate_train: did it end, did it learn, is the export its last state?"""

from __future__ import annotations

from typing import Any

import pytest

from gates.verdict import FailureClass
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, change, judge, regression_check, the

INVALID = FailureClass.MEASUREMENT_INVALID
REGRESSION = FailureClass.TRAINING_REGRESSION
EXPORT = FailureClass.EXPORT_INVALID
CONFIG = FailureClass.USER_CONFIG_ERROR


def judged(changes: dict[str, Any], expected: dict[str, Any] | None = None) -> Any:
    return judge("train", {"regression_check": change(regression_check(), changes)}, expected)


def with_losses(*losses: float) -> dict[str, Any]:
    log = [{"step": i + 1, "loss": loss, "grad_norm": 1.0} for i, loss in enumerate(losses)]
    return {
        "log": log,
        "global_step": len(log),
        "max_steps": len(log),
        "first_loss": losses[0],
        "final_loss": losses[-1],
        "thresholds": None,
    }


@pytest.mark.parametrize(("first", "final", "accuracy"), [(9.1, 6.37, 0.175), (9.1, 6.71, 0.167), (7.4, 2.93, 0.31)])
def test_the_losses_of_healthy_releases_pass(first: float, final: float, accuracy: float) -> None:
    changes = {**with_losses(first, 8.0, 7.5, 7.2, final), "final_loss": final, "final_accuracy": accuracy}
    changes["log"][1]["loss"] = first - 0.1
    verdict = judged(changes)
    assert verdict.passed, verdict.detail
    facts = dict(verdict.facts)
    assert facts["final_loss"] == final
    assert facts["final_accuracy"] == accuracy


@pytest.mark.parametrize(
    ("changes", "failure_class", "checks"),
    [
        ({"token": "another"}, INVALID, {"token"}),
        ({"algorithm": "dflash"}, INVALID, {"algorithm"}),
        ({"status": "error", "detail": "CUDA out of memory"}, REGRESSION, {"status"}),
        ({"problems": ["final_loss is nan"]}, REGRESSION, {"problems"}),
        ({"global_step": 79, "log[7].step": 79}, REGRESSION, {"finished"}),
        ({"global_step": 81}, REGRESSION, {"finished"}),
        ({"max_steps": 100}, REGRESSION, {"finished"}),
        ({"max_steps": 0}, INVALID, {"field"}),
        ({"final_loss": None}, REGRESSION, {"field"}),
        ({"final_loss": 0.0}, REGRESSION, {"field"}),
        ({"final_loss": GONE}, INVALID, {"field"}),
        ({"final_loss": "6.45"}, INVALID, {"field"}),
        ({"final_loss": 6.9}, REGRESSION, {"loss_fell"}),
        ({"final_loss": 6.99}, REGRESSION, {"loss_fell"}),
        ({"final_loss": 7.5, "first_loss": 8}, REGRESSION, {"final_loss"}),
        ({"final_grad_norm": None}, REGRESSION, {"field"}),
        ({"final_accuracy": 1.0}, REGRESSION, {"accuracy_possible"}),
        ({"final_accuracy": 17.0}, REGRESSION, {"accuracy_possible"}),
        ({"final_accuracy": 0.999}, REGRESSION, {"accuracy_possible"}),
        ({"final_accuracy": 0.09}, REGRESSION, {"final_accuracy"}),
        ({"final_accuracy": GONE}, INVALID, {"field"}),
        ({"final_accuracy": None}, REGRESSION, {"field"}),
        ({"log": []}, INVALID, {"field"}),
        ({"log[3].loss": None}, REGRESSION, {"field"}),
        ({"log[3].loss": 0.0}, REGRESSION, {"field"}),
        ({"log[7].grad_norm": None}, REGRESSION, {"field"}),
        ({"log[2].accuracy": 0.9999}, REGRESSION, {"accuracy_possible"}),
        ({"log[3].step": 30}, INVALID, {"steps_rise"}),
        ({"log[7].step": 90}, INVALID, {"log_complete"}),
        ({"thresholds.min_final_accuracy": 0.999}, CONFIG, {"bar", "final_accuracy"}),
        ({"thresholds.min_final_accuracy": 0}, INVALID, {"field"}),
        ({"thresholds.max_final_loss": "7"}, INVALID, {"field"}),
        ({"thresholds.max_final_perplexity": 500}, CONFIG, {"bars_known"}),
        ({"export_written_after_last_step": False}, EXPORT, {"export_is_last"}),
        ({"export_path": "/elsewhere/export"}, INVALID, {"export_of_training"}),
    ],
)
def test_each_check_fails_alone(changes: dict[str, Any], failure_class: FailureClass, checks: set[str]) -> None:
    assert_fails(judged(changes), failure_class, *checks)


def test_a_bar_whose_number_is_missing_never_passes() -> None:
    for gone in (GONE, None):
        verdict = judged({"final_accuracy": gone})
        assert not verdict.passed
        assert the(verdict, "field").field == "final_accuracy"


@pytest.mark.parametrize("spoilt", [b"NaN", b"Infinity", b"1e999"])
def test_a_loss_that_is_not_finite_is_the_trainings_fault(spoilt: bytes) -> None:
    data = passing.encode(change(regression_check(), {"log[4].loss": "@"})).replace(b'"@"', spoilt)
    verdict = judge("train", {"regression_check": data})
    assert_fails(verdict, REGRESSION, "finite")
    assert the(verdict, "finite").field == "log[4].loss"


def test_a_gradient_norm_that_is_null_early_is_a_skipped_step() -> None:
    assert judged({"log[0].grad_norm": None, "log[2].grad_norm": GONE}).passed
    assert not judged({"log[3].grad_norm": None}).passed
    assert not judged({"log[0].grad_norm": "1.0"}).passed


def test_a_log_that_stops_before_the_end_hides_how_it_ended() -> None:
    document = regression_check()
    document["log"] = document["log"][:-1]
    assert judge("train", {"regression_check": document}).passed  # the last entry is one interval from the end
    document["log"] = document["log"][:-1]
    assert_fails(judge("train", {"regression_check": document}), INVALID, "log_complete")


@pytest.mark.parametrize(
    ("losses", "checks"),
    [
        ((6.9, 6.8, 6.5, 6.5, 6.5, 6.5, 6.5), {"loss_moves"}),
        ((6.9, 6.8, 6.5, 6.5, 6.5, 6.5), set()),
        ((6.9, 6.5, 6.9, 6.9, 6.8), {"curve_fell"}),
        ((6.9,), {"log_long_enough", "loss_fell"}),
        ((6.9, 6.8), set()),
        ((7.0, 6.0, 6.25, 6.75), {"curve_fell"}),  # both halves 6.5
        ((6.5,) * 5, {"loss_fell", "curve_fell", "loss_moves"}),
        ((6.5,) * 4, {"loss_fell", "curve_fell"}),
    ],
)
def test_the_curve(losses: tuple[float, ...], checks: set[str]) -> None:
    verdict = judged({**with_losses(*losses), "final_accuracy": None})
    assert passing.names(verdict) == checks, verdict.detail
    assert verdict.failure_class is (REGRESSION if checks else None)


@pytest.mark.parametrize(("bar", "passed"), [(6.45, True), (6.4499, False)])
def test_a_bar_on_the_loss_of_ones_own(bar: float, passed: bool) -> None:
    assert judged({}, {"max_final_loss": bar}).passed is passed


@pytest.mark.parametrize(("accuracy", "passed"), [(0.6, True), (0.5999, False)])
def test_sixty_per_cent_passes_a_bar_of_sixty(accuracy: float, passed: bool) -> None:
    assert judged({"final_accuracy": accuracy}, {"min_final_accuracy": 0.6}).passed is passed


@pytest.mark.parametrize(
    ("setting", "value"),
    [("max_final_loss", 0), ("max_final_loss", -1), ("min_final_accuracy", 0), ("min_final_accuracy", 0.999)],
)
def test_bars_outside_their_bounds_are_refused(setting: str, value: float) -> None:
    assert_fails(judged({}, {setting: value}), CONFIG, "setting")


@pytest.mark.parametrize("algorithm", ["eagle3", "dspark", "domino", "DFlash2"])
def test_an_algorithm_that_is_not_known_is_a_configuration_error(algorithm: str) -> None:
    assert judged({}, {"algorithm": algorithm}).failure_class is CONFIG


def test_training_and_export_are_both_reported_and_the_training_decides() -> None:
    export = change(passing.export_check(), {"tensors[0].non_finite": 9})
    verdict = judge(
        "train", {"regression_check": change(regression_check(), {"final_loss": None}), "export_check": export}
    )
    assert_fails(verdict, REGRESSION, "field", "tensors_finite")
    only_export = judge("train", {"export_check": export})
    assert_fails(only_export, EXPORT, "tensors_finite")


def test_one_unreadable_file_does_not_hide_what_is_wrong_with_the_other() -> None:
    verdict = judge(
        "train", {"regression_check": None, "export_check": change(passing.export_check(), {"status": "x"})}
    )
    assert passing.names(verdict) == {"readable", "status"}
    assert verdict.failure_class is FailureClass.RESULT_MISSING
    assert not verdict.readable
