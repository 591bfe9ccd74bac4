"""gate_bench: every check, and the ways in which an A|B measurement goes wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gates.verdict import FailureClass
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, bench, change, digest, judge, the

INVALID = FailureClass.MEASUREMENT_INVALID


def recomputed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with everything computed again that follows from tokens, times and counters."""
    arms = document["arms"]
    for arm in arms.values():
        for point in arm["points"]:
            point["output_tokens_per_s"] = point["output_tokens"] / point["duration_s"]
            point["mean_output_tokens"] = point["output_tokens"] / point["completed"]
            if point["counters"]:
                point["acceptance_length"] = passing.length(point["counters"])
    document["speedup"] = [
        {"concurrency": a["concurrency"], "value": b["output_tokens_per_s"] / a["output_tokens_per_s"]}
        for a, b in zip(arms["A"]["points"], arms["B"]["points"], strict=True)
    ]
    return document


def judged(changes: dict[str, Any], expected: dict[str, Any] | None = None, *, again: bool = False) -> Any:
    document = change(bench(), changes)
    return judge("bench", {"bench": recomputed(document) if again else document}, expected)


def test_a_healthy_measurement_passes_and_its_facts_fill_the_table() -> None:
    facts = dict(judge("bench").facts)
    assert facts["speedup_c1"] == pytest.approx(1.4)
    assert facts["acceptance_length_c32"] == pytest.approx(2.037, abs=0.001)
    assert facts["tokens_per_s_a_c1"] < facts["tokens_per_s_b_c1"]
    assert {f"speedup_c{c}" for c in (1, 8, 32)} <= facts.keys()


ONE_CHANGE = [
    ({"token": "another"}, {"token"}),
    ({"schema_version": 0}, {"schema_version"}),
    ({"problems": ["warm-up was cut short"]}, {"problems"}),
    ({"warmup_requests": 0}, {"warmup"}),
    ({"sampling.temperature": 0.7}, {"temperature"}),
    ({"sampling.max_tokens": 31}, {"length_within_limit"}),
    ({"sampling.ignore_eos": "yes"}, {"field"}),
    ({"prompts_sha256": "abc"}, {"field"}),
    ({"arms.A": GONE}, {"field"}),
    ({"arms.B": None}, {"field"}),
    ({"arms.A.model": "other/model"}, {"model"}),
    ({"arms.B.model": "other/model"}, {"model"}),
    ({"arms.A.drafter": passing.DRAFTER}, {"baseline_without_drafter"}),
    ({"arms.A.drafter": GONE}, {"baseline_without_drafter"}),
    ({"arms.A.drafter_manifest_sha256": digest("manifest")}, {"baseline_without_manifest"}),
    ({"arms.A.num_draft_tokens": 4}, {"baseline_draft_tokens"}),
    ({"arms.A.num_draft_tokens": False}, {"baseline_draft_tokens"}),
    ({"arms.A.num_draft_tokens": GONE}, {"field"}),
    ({"arms.A.points[1].counters": passing.counters()}, {"baseline_without_counters"}),
    ({"arms.A.points[1].counters": {}}, {"baseline_without_counters"}),
    ({"arms.A.points[1].acceptance_length": 1.0}, {"baseline_without_acceptance"}),
    ({"arms.A.points[1].acceptance_length": GONE}, {"baseline_without_acceptance"}),
    ({"arms.B.server_config.max_num_seqs": 64}, {"same_server_config"}),
    ({"arms.B.server_config.max_num_seqs": 32.0}, {"same_server_config"}),
    ({"arms.B.server_config.max_num_seqs": GONE}, {"same_server_config"}),
    ({"arms.A.server_config.prefix_caching": None}, {"same_server_config"}),
    ({"arms.A.server_config": {}, "arms.B.server_config": {}}, {"server_config_stated"}),
    (
        {
            "arms.A.server_config.speculative_config": {"method": "dflash"},
            "arms.B.server_config.speculative_config": {"method": "dflash"},
        },
        {"baseline_config"},
    ),
    ({"arms.B.drafter": "/elsewhere"}, {"drafter"}),
    ({"arms.B.drafter": None}, {"field"}),
    ({"arms.B.drafter_manifest_sha256": digest("other")}, {"manifest"}),
    ({"arms.B.drafter_manifest_sha256": "0" * 63}, {"field"}),
    ({"arms.B.num_draft_tokens": 5}, {"draft_tokens_served"}),
    ({"arms.A.points[0].completed": 15}, {"completed", "mean_length_identity", "length_within_limit", "same_length"}),
    ({"arms.B.points[0].failed": 1}, {"failed"}),
    ({"arms.B.points[2].failed": 1}, {"failed"}),
    ({"arms.A.points[0].output_tokens_per_s": 100.0}, {"throughput_identity"}),
    ({"arms.B.points[2].mean_output_tokens": 31.0}, {"mean_length_identity"}),
    ({"arms.B.points[2].mean_ttft_s": 10**6}, {"ttft_within_duration"}),
    ({"arms.B.points[2].mean_ttft_s": -0.1}, {"field"}),
    ({"arms.B.points[1].acceptance_length": 1.9}, {"acceptance_identity"}),
    ({"arms.B.points[1].counters": None}, {"field"}),
    ({"arms.B.points[1].counters.drafts": 0}, {"drafter_active"}),
    ({"arms.B.points[1].counters.draft_tokens": 10**6}, {"drafted_within_k"}),
    ({"arms.B.points[1].counters.per_position": [100, 130, 22, 10]}, {"positions_fall"}),
    ({"speedup[0].value": 1.42}, {"speedup_identity"}),
    ({"speedup[0].concurrency": 2}, {"speedup_points"}),
    ({"speedup": []}, {"field"}),
]


@pytest.mark.parametrize(("changes", "checks"), ONE_CHANGE)
def test_each_check_fails_alone(changes: dict[str, Any], checks: set[str]) -> None:
    assert_fails(judged(changes), INVALID, *checks)


@pytest.mark.parametrize(
    ("stage", "failure_class"),
    [
        ("port_in_use", FailureClass.INFRA_TRANSIENT),
        ("server_died", FailureClass.CHECKPOINT_NOT_SERVABLE),
        ("drafter_inactive", FailureClass.CHECKPOINT_NOT_SERVABLE),
        ("model_mismatch", INVALID),
    ],
)
def test_a_benchmark_that_stopped_says_where(stage: str, failure_class: FailureClass) -> None:
    verdict = judge("bench", {"bench": {**passing.head(), "stage": stage, "detail": "arm B"}})
    assert_fails(verdict, failure_class, "stage")
    assert dict(verdict.facts)["stage"] == stage


@pytest.mark.parametrize("arm", ["A", "B"])
@pytest.mark.parametrize("levels", [(0, 1), (0, 1, 1), (0, 1, 2, 2)])
def test_every_concurrency_is_there_once_in_both_arms(arm: str, levels: tuple[int, ...]) -> None:
    document = bench()
    document["arms"][arm]["points"] = [copy.deepcopy(document["arms"][arm]["points"][i]) for i in levels]
    verdict = judge("bench", {"bench": document})
    assert_fails(verdict, INVALID, "concurrency")
    assert the(verdict, "concurrency").field == f"arms.{arm}.points"


@pytest.mark.parametrize(
    ("asked", "passed"), [("1,8,32", True), ([32, 8, 1], True), ((1, 8), False), ("1,8,16", False)]
)
def test_concurrencies_are_those_that_were_asked_for(asked: object, passed: bool) -> None:
    assert judged({}, {"concurrency": asked}).passed is passed


@pytest.mark.parametrize("asked", [[], "", "1,1", [1, 1], "1;8", [0, 8], ["1"], 8, [True], None, "9" * 30])
def test_concurrencies_that_make_no_sense_are_a_configuration_error(asked: object) -> None:
    assert_fails(judged({}, {"concurrency": asked}), FailureClass.USER_CONFIG_ERROR, "setting")


@pytest.mark.parametrize(("level", "requests", "passed"), [(0, 8, True), (0, 7, False), (2, 32, True), (2, 31, False)])
def test_enough_requests_to_reach_the_concurrency(level: int, requests: int, passed: bool) -> None:
    document = bench()
    for arm in document["arms"].values():
        point = arm["points"][level]
        point |= {"requested": requests, "completed": requests, "output_tokens": requests * 32}
        if point["counters"]:
            drafts = requests * 16
            point["counters"] = passing.counters(drafts, tuple(drafts * i // 100 for i in (60, 30, 10, 4)))
    verdict = judge("bench", {"bench": recomputed(document)})
    assert verdict.passed is passed, verdict.detail
    assert passing.names(verdict) == (set() if passed else {"samples"})


@pytest.mark.parametrize(("tokens", "passed"), [(512, True), (502, True), (501, False), (400, False)])
def test_mean_output_lengths_agree_within_two_per_cent(tokens: int, passed: bool) -> None:
    verdict = judged({"arms.A.points[0].output_tokens": tokens}, again=True)
    assert passing.names(verdict) == (set() if passed else {"same_length"}), verdict.detail


@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_requests": 1},
        {"sampling.seed": None},
        {"sampling.max_tokens": 32},
        {"arms.A.num_draft_tokens": 0},
        {"arms.B.points[0].mean_ttft_s": 4.0},  # as long as the point itself
        {"arms.B.points[0].mean_ttft_s": None},
        {"arms.A.server_config.speculative_config": None, "arms.B.server_config.speculative_config": None},
    ],
)
def test_what_is_just_good_enough(changes: dict[str, Any]) -> None:
    verdict = judged(changes)
    assert verdict.passed, verdict.detail


@pytest.mark.parametrize(("wanted", "passed"), [(digest("prompts"), True), (digest("others"), False)])
def test_the_prompts_are_those_that_were_asked_for(wanted: str, passed: bool) -> None:
    verdict = judged({}, {"prompts_sha256": wanted})
    assert passing.names(verdict) == (set() if passed else {"prompts"})


def test_with_sampling_output_lengths_may_differ() -> None:
    changes = {"arms.A.points[0].output_tokens": 400, "sampling.temperature": 1.0}
    assert judged(changes, {"temperature": 1.0}, again=True).passed


@pytest.mark.parametrize(("requests", "passed"), [(32, True), (33, False)])
def test_both_arms_do_the_same_requests(requests: int, passed: bool) -> None:
    changes = {
        "arms.A.points[2].requested": requests,
        "arms.A.points[2].completed": requests,
        "arms.A.points[2].output_tokens": requests * 32,
    }
    verdict = judged(changes, again=True)
    assert passing.names(verdict) == (set() if passed else {"same_requests"})


@pytest.mark.parametrize(("value", "passed"), [(1.4 * 1.0099, True), (1.4 * 1.0102, False), (1 / 1.4, False)])
def test_the_speedup_is_recomputed(value: float, passed: bool) -> None:
    verdict = judged({"speedup[0].value": value})
    assert verdict.passed is passed
    assert dict(verdict.facts)["speedup_c1"] == pytest.approx(1.4)


@pytest.mark.parametrize(("duration", "passed"), [(2.51, True), (2.5, False), (0.5, False)])
def test_alone_nothing_is_sped_up_by_more_than_its_acceptance_length(duration: float, passed: bool) -> None:
    verdict = judged({"arms.A.points[0].duration_s": 5.6, "arms.B.points[0].duration_s": duration}, again=True)
    assert passing.names(verdict) == (set() if passed else {"speedup_possible"})
    assert dict(verdict.facts)["acceptance_length_c1"] == 2.03125  # 5.6 / 2.51 is just within 110 % of it


def test_at_high_concurrency_there_is_no_such_bound() -> None:
    assert judged({"arms.A.points[2].duration_s": 100.0}, again=True).passed


def test_a_speedup_below_one_is_a_finding_not_a_fault_of_the_measurement() -> None:
    verdict = judged({"arms.B.points[0].duration_s": 8.0}, again=True)
    assert verdict.passed
    assert dict(verdict.facts)["speedup_c1"] == pytest.approx(0.7)


@pytest.mark.parametrize(("accepted", "passed"), [((160, 76, 26, 10), True), ((170, 90, 35, 15), False)])
def test_acceptance_does_not_depend_on_concurrency(accepted: tuple[int, ...], passed: bool) -> None:
    verdict = judged({"arms.B.points[1].counters": passing.counters(256, accepted)}, again=True)
    assert passing.names(verdict) == (set() if passed else {"acceptance_stable"}), verdict.detail


def test_collapsed_acceptance_is_not_a_measurement_of_this_drafter() -> None:
    document = bench()
    for point in document["arms"]["B"]["points"]:
        drafts = point["output_tokens"] - point["completed"]
        point["counters"] = passing.counters(drafts, (drafts // 50, 0, 0, 0))
        point["duration_s"] *= 1.5
    verdict = judge("bench", {"bench": recomputed(document)})
    assert_fails(verdict, INVALID, "acceptance_length")
    assert {check.field for check in passing.failing(verdict)} == {
        f"arms.B.points[{i}].acceptance_length" for i in range(3)
    }


def test_a_drafter_that_is_off_most_of_the_time_is_named() -> None:
    verdict = judged({"arms.B.points[2].counters": passing.counters(100, (60, 30, 10, 4))}, again=True)
    assert_fails(verdict, INVALID, "drafted_share")
    assert the(verdict, "drafted_share").field == "arms.B.points[2].counters.drafts"


def test_synthetic_acceptance_in_a_benchmark() -> None:
    document = bench()
    for point in document["arms"]["B"]["points"]:
        drafts = point["output_tokens"] // 2
        point["counters"] = passing.counters(drafts, (drafts, drafts // 32, 0, 0))
    verdict = judge("bench", {"bench": recomputed(document)})
    assert_fails(verdict, INVALID, "not_synthetic")


def test_an_arm_that_is_a_copy_of_the_other() -> None:
    document = bench()
    for a, b in zip(document["arms"]["A"]["points"], document["arms"]["B"]["points"], strict=True):
        b["duration_s"] = a["duration_s"]
    assert_fails(judge("bench", {"bench": recomputed(document)}), INVALID, "measured_apart")


def test_times_that_are_almost_nothing_agree_with_nothing() -> None:
    verdict = judged({"arms.A.points[0].duration_s": 5e-324})
    assert {"throughput_identity", "speedup_identity"} <= passing.names(verdict)


@pytest.mark.parametrize(
    "setting", ["length_tolerance", "acceptance_spread", "speedup_slack", "min_acceptance_length", "min_requests"]
)
@pytest.mark.parametrize("value", [0, -1, 100, float("nan"), "0.1", True, None])
def test_thresholds_outside_their_bounds_are_refused(setting: str, value: object) -> None:
    verdict = judged({}, {setting: value})
    if verdict.passed or (setting == "min_requests" and value == 100):
        assert setting == "min_requests"
        assert value == 100
        return
    assert verdict.failure_class is FailureClass.USER_CONFIG_ERROR
