"""gate_correctness: the rule with its control, at its boundaries, and what makes a comparison worthless."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.verdict import FailureClass
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, change, digest, exact_match, ids, judge, the

INVALID = FailureClass.MEASUREMENT_INVALID
MISMATCH = FailureClass.CORRECTNESS_MISMATCH


def judged(document: Any, expected: dict[str, Any] | None = None) -> Any:
    return judge("correctness", {"exact_match": document}, expected)


@pytest.mark.parametrize(
    ("prompts", "differ", "control", "failure_class"),
    [
        (160, 7, 4, None),  # 0.956, as in healthy releases
        (160, 6, 0, None),  # 0.9625
        (24, 2, 2, None),  # 22 of 24, the noise of a real engine in bfloat16
        (30, 3, 0, None),  # exactly 0.9
        (1000, 100, 0, None),
        (1000, 101, 0, MISMATCH),  # 0.899
        (30, 4, 0, MISMATCH),
        (20, 3, 2, None),  # control 0.9: exactly 0.85 is enough
        (20, 4, 2, MISMATCH),
        (20, 3, 1, MISMATCH),  # control 0.95: 0.9 is needed
        (20, 5, 5, None),  # control 0.75, exactly its own bar
        (20, 6, 5, None),  # exactly 0.7
        (20, 7, 5, MISMATCH),
        (20, 0, 6, INVALID),  # a server that does not even agree with itself
        (20, 6, 6, INVALID),
        (20, 20, 6, INVALID),
        (20, 20, 0, MISMATCH),
        (24, 0, 0, None),
    ],
)
def test_the_rule(prompts: int, differ: int, control: int, failure_class: FailureClass | None) -> None:
    verdict = judged(exact_match(prompts, differ=differ, control_differs=control))
    assert verdict.failure_class is failure_class, verdict.detail
    assert verdict.passed is (failure_class is None)
    facts = dict(verdict.facts)
    assert facts["exact_match"] == (prompts - differ) / prompts
    assert facts["control_exact_match"] == (prompts - control) / prompts
    if failure_class is INVALID:
        assert "control" in passing.names(verdict)
    elif failure_class is MISMATCH:
        assert passing.names(verdict) == {"exact_match"}
        assert (
            str(differ) in the(verdict, "exact_match").limit
            or str(prompts - differ) in the(verdict, "exact_match").limit
        )


@given(prompts=st.integers(16, 60), differ=st.integers(0, 60), control=st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_a_better_match_never_turns_a_pass_into_a_failure(prompts: int, differ: int, control: int) -> None:
    differ, control = min(differ, prompts), min(control, prompts)
    verdict = judged(exact_match(prompts, differ=differ, control_differs=control))
    if verdict.passed and differ:
        assert judged(exact_match(prompts, differ=differ - 1, control_differs=control)).passed
    if verdict.passed:
        assert (prompts - differ) / prompts >= 0.7
        assert (prompts - control) / prompts >= 0.75


@pytest.mark.parametrize(
    ("changes", "checks"),
    [
        ({"token": "another"}, {"token"}),
        ({"problems": ["one arm was run twice"]}, {"problems"}),
        ({"compared": "text"}, {"compared"}),
        ({"prompts": 23}, {"prompts"}),
        ({"exact_match": 0.9}, {"exact_match_identity"}),
        ({"exact_match": 95.8}, {"exact_match_identity"}),
        ({"control_exact_match": 1.0}, {"control_exact_match_identity"}),
        ({"control_exact_match": None}, {"field"}),
        ({"outputs[5].control": GONE}, {"field"}),
        ({"outputs[5].control": None}, {"field"}),
        ({"outputs[5].b": []}, {"field"}),
        ({"outputs[5].a": ["1", "2"]}, {"field"}),
        ({"outputs[5].a": [1, True, 3]}, {"field"}),
        ({"outputs[5].a": "1 2 3"}, {"field"}),
        ({"outputs[5].a": [1, -2]}, {"field"}),
        ({"outputs[5].error": "HTTP 500"}, {"answered"}),
        ({"outputs[5].id": "p4"}, {"ids_differ"}),
        ({"outputs[5].prompt_sha256": digest("prompt 4")}, {"prompts_differ"}),
        ({"outputs[5].prompt_sha256": "abc"}, {"field"}),
        ({"max_tokens": 23}, {"length_limit_a", "length_limit_control", "length_limit_b"}),
        ({"drafter": "/elsewhere"}, {"drafter"}),
        ({"drafter_manifest_sha256": digest("other")}, {"manifest"}),
        ({"num_draft_tokens": 5}, {"draft_tokens_served"}),
        ({"num_draft_tokens": "4"}, {"field"}),
    ],
)
def test_what_makes_a_comparison_worthless(changes: dict[str, Any], checks: set[str]) -> None:
    assert_fails(judged(change(exact_match(), changes)), INVALID, *checks)


def test_what_was_served_may_be_repeated() -> None:
    served = {
        "drafter": passing.DRAFTER,
        "drafter_manifest_sha256": digest("manifest"),
        "num_draft_tokens": passing.K,
    }
    assert judged({**exact_match(), **served}).passed


def test_an_output_may_be_as_long_as_it_may_be() -> None:
    assert judged(change(exact_match(), {"max_tokens": 24})).passed


def test_outputs_of_one_token_are_not_dull() -> None:
    document = exact_match(differ=0, control_differs=0)
    for i, row in enumerate(document["outputs"][:13]):
        row["a"] = row["b"] = row["control"] = [i]
    assert judged(document).passed


def test_too_few_prompts() -> None:
    assert judged(exact_match(16, differ=0)).passed
    assert_fails(judged(exact_match(15, differ=0)), INVALID, "samples")
    assert judged(exact_match(15, differ=0), {"min_prompts": 15}).passed
    assert not judged(exact_match(0, differ=0, control_differs=0)).passed


def test_outputs_that_are_hardly_there() -> None:
    document = exact_match(differ=0, control_differs=0)
    for i, row in enumerate(document["outputs"]):
        row["a"] = row["b"] = row["control"] = ids(i, 7)
    assert_fails(judged(document), INVALID, "length_a", "length_b", "length_control")
    assert judged(document, {"min_mean_tokens": 7}).passed


def test_the_same_output_for_every_prompt() -> None:
    document = exact_match(differ=0, control_differs=0)
    for row in document["outputs"]:
        row["a"] = row["b"] = row["control"] = ids(1)
    assert_fails(judged(document), INVALID, "outputs_differ")


@pytest.mark.parametrize(("dull", "passed"), [(12, True), (13, False)])
def test_one_token_repeated_in_most_outputs(dull: int, passed: bool) -> None:
    document = exact_match(differ=0, control_differs=0)
    for i, row in enumerate(document["outputs"][:dull]):
        row["a"] = row["b"] = row["control"] = [i] * 24
    verdict = judged(document)
    assert passing.names(verdict) == (set() if passed else {"outputs_vary"})


def test_an_output_that_is_the_beginning_of_the_other_is_not_the_same() -> None:
    document = exact_match(differ=0, control_differs=0)
    for row in document["outputs"]:
        row["b"] = row["b"][:-1]
    document["exact_match"] = 0.0
    verdict = judged(document)
    assert_fails(verdict, MISMATCH, "exact_match")
    assert dict(verdict.facts)["first_difference"] == 23


def test_where_outputs_part_is_a_fact() -> None:
    document = exact_match(differ=0, control_differs=0)
    document["outputs"][3]["b"][5] += 1
    document["exact_match"] = 23 / 24
    facts = dict(judged(document).facts)
    assert facts["first_difference"] == 5
    assert facts["control_first_difference"] is None


@pytest.mark.parametrize(("stated", "passed"), [(0.958, True), (0.9583, True), (0.96, False), (0.957, False)])
def test_a_stated_share_may_be_rounded_to_three_decimals(stated: float, passed: bool) -> None:
    assert judged(change(exact_match(), {"exact_match": stated})).passed is passed


@pytest.mark.parametrize("setting", ["min_exact_match", "min_control"])
@pytest.mark.parametrize("value", [0, 0.5, 1, 1.0, 90, float("nan"), "0.9", None, True])
def test_bars_that_cannot_fail_or_cannot_pass_are_refused(setting: str, value: object) -> None:
    verdict = judged(exact_match(), {setting: value})
    assert_fails(verdict, FailureClass.USER_CONFIG_ERROR, "setting")
    assert not verdict.readable


def test_bars_of_ones_own() -> None:
    strict = {"min_exact_match": 0.99, "control_slack": 0.01}
    assert judged(exact_match(100, differ=1, control_differs=0), strict).passed
    assert not judged(exact_match(100, differ=2, control_differs=0), strict).passed
    assert not judged(exact_match(20, differ=3, control_differs=2), {"control_slack": 0.049}).passed


@pytest.mark.parametrize(("bar", "passed"), [(0.95, True), (0.951, False), (0.99, False)])
def test_a_bar_that_a_perfect_control_would_lower_is_refused(bar: float, passed: bool) -> None:
    verdict = judged(exact_match(differ=0, control_differs=0), {"min_exact_match": bar})
    assert passing.names(verdict) == (set() if passed else {"setting"})
    assert verdict.failure_class is (None if passed else FailureClass.USER_CONFIG_ERROR)


def test_a_stage_that_is_not_done() -> None:
    verdict = judged({**passing.head(), "stage": "server_died", "detail": "arm B"})
    assert_fails(verdict, FailureClass.CHECKPOINT_NOT_SERVABLE, "stage")
