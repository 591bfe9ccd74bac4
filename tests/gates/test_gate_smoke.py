"""gate_smoke: every check, its class, and the cases that operators meet."""

from __future__ import annotations

from typing import Any

import pytest

from gates.stages import STAGE_CLASSES
from gates.verdict import FailureClass
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, change, ids, judge, smoke, the

INVALID = FailureClass.MEASUREMENT_INVALID
NOT_SERVABLE = FailureClass.CHECKPOINT_NOT_SERVABLE
LOW = FailureClass.ACCEPTANCE_REGRESSION


def with_counters(drafts: int, positions: tuple[int, ...], k: int = passing.K) -> dict[str, Any]:
    """A smoke result whose every number, and the length of its outputs, follows from these counts."""
    counted = passing.counters(drafts, positions, k)
    document = smoke()
    for i, row in enumerate(document["outputs"]):
        row["token_ids"] = row["reference_token_ids"] = ids(i, 2 + (drafts + sum(positions)) // 8)
    return change(
        document,
        {
            "counters": counted,
            "acceptance_length": passing.length(counted),
            "acceptance_rate": counted["accepted_tokens"] / counted["draft_tokens"],
            "per_position_rates": [count / drafts for count in positions],
            "server.num_draft_tokens": k,
            "requested.num_draft_tokens": k,
        },
    )


def test_a_healthy_result_passes_with_the_facts_of_a_report() -> None:
    verdict = judge("smoke")
    assert verdict.passed
    assert verdict.failure_class is None
    facts = dict(verdict.facts)
    assert facts["acceptance_length"] == pytest.approx(2.06)
    assert facts["acceptance_rate"] == pytest.approx(0.265)
    assert facts["reference_identical"] == 8
    assert facts["stage"] == "done"
    assert all(check.file == "smoke.json" for check in verdict.checks)


@pytest.mark.parametrize(("stage", "failure_class"), STAGE_CLASSES.items())
def test_each_stage_word_has_its_class_and_is_a_fact(stage: str, failure_class: FailureClass) -> None:
    stopped = {**passing.head(), "stage": stage, "detail": "what happened", "server": {"timeout_s": 30}}
    verdict = judge("smoke", {"smoke": stopped})
    assert_fails(verdict, failure_class, "stage")
    facts = dict(verdict.facts)
    assert facts["stage"] == stage
    assert facts["stopped_by"] == "what happened"
    assert facts["server_timeout_s"] == 30
    assert "what happened" in verdict.detail


@pytest.mark.parametrize("stage", ["Done", "done ", "finished", "skipped", ""])
def test_a_word_that_is_no_stage_is_never_a_pass(stage: str) -> None:
    verdict = judge("smoke", {"smoke": change(smoke(), {"stage": stage})})
    assert not verdict.passed
    assert verdict.failure_class is (FailureClass.UNKNOWN if stage else INVALID)


def test_a_broken_draft_head_is_collapsed_acceptance_with_unchanged_output() -> None:
    verdict = judge("smoke", {"smoke": with_counters(180, (0, 0, 0, 0))})
    assert_fails(verdict, LOW, "acceptance_length", "first_position")
    facts = dict(verdict.facts)
    assert facts["acceptance_length"] == 1.0
    assert facts["acceptance_rate"] == 0.0
    assert facts["reference_identical"] == facts["prompts_passed"] == 8
    assert the(verdict, "acceptance_length").limit == ">= 1.05"


@pytest.mark.parametrize(
    ("drafts", "positions", "passed"),
    [
        (100, (5, 0, 0, 0), True),  # 1.05 exactly
        (10_000 // 50, (10, 0, 0, 0), True),  # 1.05 exactly, other counts
        (120, (5, 0, 0, 0), False),  # 1.0417
        (100, (4, 0, 0, 0), False),  # 1.04
        (100, (1, 0, 0, 0), False),  # 1.01, as exports without their output head serve
        (100, (100, 100, 100, 100), True),  # k + 1
    ],
)
def test_the_bar_on_acceptance_length_is_exact(drafts: int, positions: tuple[int, ...], passed: bool) -> None:
    document = with_counters(drafts, positions)
    verdict = judge("smoke", {"smoke": document})
    assert verdict.passed is passed, verdict.detail
    if not passed:
        assert_fails(verdict, LOW, "acceptance_length")


@pytest.mark.parametrize(("bar", "passed"), [(2.06, True), (2.0600001, False), (1.75, True)])
def test_a_bar_of_ones_own(bar: float, passed: bool) -> None:
    assert judge("smoke", expected={"min_acceptance_length": bar}).passed is passed


@pytest.mark.parametrize("bar", [0, 1, 1.0, 1.001, 1.04, float("nan"), float("inf"), "1.5", True, None])
def test_a_bar_at_or_under_the_noise_is_a_configuration_error(bar: object) -> None:
    verdict = judge("smoke", expected={"min_acceptance_length": bar})
    assert_fails(verdict, FailureClass.USER_CONFIG_ERROR, "setting")
    assert not verdict.readable


@pytest.mark.parametrize("bar", [5, 5.0, 6])
def test_a_bar_that_nothing_can_reach_is_a_configuration_error(bar: float) -> None:
    verdict = judge("smoke", expected={"min_acceptance_length": bar})
    assert verdict.failure_class is FailureClass.USER_CONFIG_ERROR
    assert "setting" in passing.names(verdict)


ONE_CHANGE = [
    ({"token": "another"}, INVALID, {"token"}),
    ({"schema_version": 2}, INVALID, {"schema_version"}),
    ({"problems": ["acceptance_length is not finite"]}, INVALID, {"problems"}),
    ({"server.model": "other/model"}, INVALID, {"model_served"}),
    ({"requested.model": "other/model"}, INVALID, {"model_requested", "model_served"}),
    ({"server.drafter": "/elsewhere"}, INVALID, {"drafter_served"}),
    ({"requested.drafter": "/elsewhere"}, INVALID, {"drafter_requested", "drafter_served"}),
    ({"server.drafter": None}, INVALID, {"field"}),
    ({"server.num_draft_tokens": 5}, INVALID, {"draft_tokens_served"}),
    ({"requested.num_draft_tokens": 5, "server.num_draft_tokens": 5}, INVALID, {"draft_tokens_requested"}),
    ({"server.num_draft_tokens": 10**6, "requested.num_draft_tokens": 10**6}, INVALID, {"draft_tokens"}),
    ({"server.version": ""}, INVALID, {"field"}),
    ({"prompts_passed": 7}, NOT_SERVABLE, {"prompts_passed", "passed_recounted"}),
    ({"prompts_expected": 9}, NOT_SERVABLE, {"prompts_expected", "prompts_passed", "outputs"}),
    ({"outputs[3].id": "p0"}, INVALID, {"ids_differ"}),
    ({"outputs[2].finish_reason": "abort"}, NOT_SERVABLE, {"answered", "passed_recounted", "reference_recounted"}),
    ({"outputs[2].error": "500"}, NOT_SERVABLE, {"answered", "passed_recounted", "reference_recounted"}),
    ({"outputs[2].token_ids": []}, NOT_SERVABLE, {"field", "passed_recounted", "reference_recounted"}),
    ({"reference_identical": 7}, INVALID, {"reference_recounted"}),
    ({"reference_identical": None}, INVALID, {"reference_recounted"}),
    ({"counters.drafts": 0}, NOT_SERVABLE, {"drafter_active"}),
    ({"counters.draft_tokens": 0}, NOT_SERVABLE, {"tokens_drafted"}),
    ({"counters.draft_tokens": 401}, INVALID, {"drafted_within_k"}),
    ({"counters.per_position": [60, 30, 4, 12]}, INVALID, {"positions_fall", "position_rates"}),
    ({"counters.per_position": [60, 30, 12, 4, 0]}, INVALID, {"positions"}),
    ({"counters.per_position": [60, 30, 12]}, INVALID, {"positions_add_up", "position_rates"}),
    ({"acceptance_length": 1.06}, INVALID, {"acceptance_identity"}),
    ({"acceptance_length": 0.06}, INVALID, {"acceptance_identity"}),
    ({"acceptance_rate": 26.5}, INVALID, {"rate_identity"}),
    ({"acceptance_rate": 0.515}, INVALID, {"rate_identity"}),
    ({"per_position_rates": [0.6, 0.3, 0.12]}, INVALID, {"position_rates"}),
    ({"per_position_rates": [60, 30, 12, 4]}, INVALID, {"position_rates"}),
]


@pytest.mark.parametrize(("changes", "failure_class", "checks"), ONE_CHANGE)
def test_each_check_fails_alone(changes: dict[str, Any], failure_class: FailureClass, checks: set[str]) -> None:
    verdict = judge("smoke", {"smoke": change(smoke(), changes)})
    classes = {check.failure_class for check in passing.failing(verdict)}
    assert passing.names(verdict) == checks, verdict.detail
    # What was not measured properly comes before what was measured to be bad.
    assert verdict.failure_class is (INVALID if INVALID in classes else failure_class)
    assert failure_class in classes
    for check in passing.failing(verdict):
        assert check.file == "smoke.json"
        assert check.field
        assert check.limit


def test_all_failing_checks_are_reported_not_the_first() -> None:
    document = change(
        smoke(), {"token": "x", "server.version": 5, "acceptance_rate": "0.265", "reference_identical": 1}
    )
    verdict = judge("smoke", {"smoke": document})
    assert passing.names(verdict) == {"token", "field", "reference_recounted"}
    assert {check.field for check in passing.failing(verdict)} == {
        "token",
        "server.version",
        "acceptance_rate",
        "reference_identical",
    }


@pytest.mark.parametrize(
    ("stated", "passed"), [(2.06 * 1.0099, True), (2.06 * 1.011, False), (2.06 * 0.9905, True), (2.06 * 0.988, False)]
)
def test_identities_hold_within_one_per_cent(stated: float, passed: bool) -> None:
    assert judge("smoke", {"smoke": change(smoke(), {"acceptance_length": stated})}).passed is passed


def test_without_a_reference_arm_nothing_is_compared_with_it() -> None:
    document = smoke()
    for row in document["outputs"]:
        row["reference_token_ids"] = None
    verdict = judge("smoke", {"smoke": change(document, {"reference_identical": None})})
    assert verdict.passed
    assert dict(verdict.facts)["reference_identical"] is None


@pytest.mark.parametrize(
    ("answer", "reference", "passed"),
    [
        ([7] * 24, ids(3), False),
        ([7] * 24, [7] * 24, True),
        ([7, 8] * 12, None, True),
    ],
)
def test_one_token_repeated_is_no_answer_unless_the_target_says_so_too(
    answer: list[int], reference: list[int] | None, passed: bool
) -> None:
    document = smoke()
    document["outputs"][0] |= {"token_ids": answer, "reference_token_ids": reference}
    row = document["outputs"][0]
    document["reference_identical"] = 7 + (row["token_ids"] == row["reference_token_ids"])
    verdict = judge("smoke", {"smoke": document})
    assert verdict.passed is passed, verdict.detail
    if not passed:
        assert_fails(verdict, NOT_SERVABLE, "outputs_vary")
        assert the(verdict, "outputs_vary").field == "outputs[0].token_ids"


def test_outputs_that_differ_from_the_target_are_a_fact_not_a_failure() -> None:
    document = change(smoke(), {"outputs[0].token_ids": ids(99), "reference_identical": 7})
    verdict = judge("smoke", {"smoke": document})
    assert verdict.passed
    assert dict(verdict.facts)["reference_identical"] == 7


@pytest.mark.parametrize(("drafts", "name"), [(300, "tokens_accounted"), (40, "drafted_share")])
def test_counters_that_do_not_fit_the_outputs(drafts: int, name: str) -> None:
    document = with_counters(drafts, tuple(drafts * share // 100 for share in (60, 30, 12, 4)))
    document["outputs"] = smoke()["outputs"]
    assert_fails(judge("smoke", {"smoke": document}), INVALID, name)


@pytest.mark.parametrize(("drafts", "passed"), [(118, True), (119, False)])
def test_a_step_emits_what_it_accepts_and_one_more(drafts: int, passed: bool) -> None:
    document = with_counters(drafts, (60, 30, 12, 4))  # 192 output tokens, and 8 requests cut by 4 at most: 224
    document["outputs"] = smoke()["outputs"]
    assert passing.names(judge("smoke", {"smoke": document})) == (set() if passed else {"tokens_accounted"})


@pytest.mark.parametrize(("drafts", "passed"), [(72, True), (71, False)])
def test_half_of_the_tokens_at_least_come_from_drafting_steps(drafts: int, passed: bool) -> None:
    document = with_counters(drafts, (15, 4, 1, 0))  # 92 of 8 x 23 tokens behind the first ones
    document["outputs"] = smoke()["outputs"]
    assert passing.names(judge("smoke", {"smoke": document})) == (set() if passed else {"drafted_share"})


@pytest.mark.parametrize(("k", "passed"), [(256, True), (257, False)])
def test_no_drafter_proposes_hundreds_of_tokens(k: int, passed: bool) -> None:
    verdict = judge("smoke", {"smoke": with_counters(100, (60, 30, 12, 4), k)}, {"draft_tokens": k})
    assert passing.names(verdict) == (set() if passed else {"draft_tokens"})


@pytest.mark.parametrize(("count", "passed"), [(3, True), (4, False)])
def test_a_short_answer_may_be_one_token_repeated(count: int, passed: bool) -> None:
    document = with_counters(100, (40, 12))
    for row in document["outputs"][:2]:
        row |= {"token_ids": [7] * count, "reference_token_ids": None}
    document["outputs"][2]["token_ids"] = document["outputs"][2]["reference_token_ids"] = ids(2, 60)
    verdict = judge("smoke", {"smoke": change(document, {"reference_identical": 6})})
    assert verdict.passed is passed, verdict.detail
    assert passing.names(verdict) == (set() if passed else {"outputs_vary"})


@pytest.mark.parametrize(
    ("drafts", "positions", "synthetic"),
    [
        (100, (100, 60, 0, 0), True),  # always one or two accepted
        (100, (100, 100, 30, 0), True),
        (100, (100, 100, 0, 0), True),  # always two
        (100, (90, 40, 15, 5), False),
        (100, (99, 98, 97, 96), False),  # an almost perfect drafter
        (60, (60, 60, 60, 58), False),
        (100, (7, 0, 0, 0), False),  # a weak one, too few steps to see the rest
    ],
)
def test_synthetic_acceptance_is_recognised(drafts: int, positions: tuple[int, ...], synthetic: bool) -> None:
    document = with_counters(drafts, positions)
    verdict = judge("smoke", {"smoke": document})
    assert ("not_synthetic" in passing.names(verdict)) is synthetic, verdict.detail
    assert verdict.passed is not synthetic
    if synthetic:
        assert verdict.failure_class is INVALID


@pytest.mark.parametrize(("drafts", "passed"), [(32, True), (31, False)])
def test_a_few_steps_are_no_measurement(drafts: int, passed: bool) -> None:
    verdict = judge("smoke", {"smoke": with_counters(drafts, (16, 8, 2, 1))})
    assert passing.names(verdict) == (set() if passed else {"samples"})
    assert verdict.failure_class is (None if passed else INVALID)


def test_positions_that_are_not_listed_are_zero() -> None:
    document = with_counters(100, (40, 12))
    assert judge("smoke", {"smoke": change(document, {"per_position_rates": [0.4, 0.12, 0, 0]})}).passed


def test_a_path_may_be_written_with_a_slash_at_its_end() -> None:
    document = change(smoke(), {"server.drafter": passing.EXPORT + "/"})
    assert judge("smoke", {"smoke": document}, {"drafter": passing.EXPORT + "//"}).passed


def test_without_expectations_the_file_is_held_against_itself() -> None:
    from gates.registry import run

    assert run("smoke", {"smoke": passing.encode(smoke())}).passed
    assert not run("smoke", {"smoke": passing.encode(change(smoke(), {"requested": GONE}))}).passed


def test_a_prompt_that_failed_is_the_checkpoints_fault() -> None:
    document = change(smoke(), {"outputs[2].error": "HTTP 500", "outputs[2].token_ids": [], "prompts_passed": 7})
    verdict = judge("smoke", {"smoke": change(document, {"reference_identical": 7})})
    assert_fails(verdict, NOT_SERVABLE, "answered", "prompts_passed")
    assert the(verdict, "answered").field == "outputs[2].error"
    assert the(verdict, "prompts_passed").measured == 7
