"""The acceptance and accuracy gates: exact at the boundary, units by producer and field, missing never passes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.verdict import FailureClass
from tests.catalog.catalogs import (
    MODEL,
    atom,
    bar,
    catalog,
    entry,
    failing,
    judge,
    score,
    server_info,
    vllm,
)
from tests.gates import passing

FP4 = "DeepSeek-R1-0528-FP4 MTP"
SEED = {
    "DeepSeek-V4-Pro MTP": (63.70, 0.622),
    "DeepSeek-R1-0528 MTP": (63.50, 0.62),
    "DeepSeek-R1-0528 MTP Online-Quant": (59.74, 0.582),
    FP4: (60.84, 0.593),
    "Kimi-K2.5-MXFP4 Eagle3": (68.52, 0.67),
    "GLM-5.2-MXFP4 MTP": (61.02, 0.595),
    "Qwen3.5-397B-A17B-FP8 MTP": (84.39, 0.829),
    "Qwen3.5-397B-A17B-MXFP4 MTP": (84.27, 0.828),
    "MiniMax-M3-MXFP4 Eagle3": (72.99, 0.715),
    "MiMo-V2-Flash MTP": (83.49, 0.82),
}


@pytest.mark.parametrize("model", SEED)
def test_every_shipped_bar_passes_its_minimum_and_itself_and_fails_a_hundredth_of_a_point_under_it(model: str) -> None:
    minimum, threshold = SEED[model]
    percent = round(threshold * 100, 4)

    def verdict(rate: float) -> Any:
        return judge("acceptance", atom(rate, None), model=model)

    assert verdict(minimum).passed
    assert verdict(percent).passed
    under = verdict(round(percent - 0.01, 4))
    assert under.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    check = failing(under)["acceptance_rate"]
    assert check.limit == f">= {threshold:g}"
    assert check.field == "atom_ci_metadata.mtp_acceptance_rate"
    assert isinstance(check.measured, float)
    assert abs(check.measured - (percent - 0.01) / 100) < 1e-12


@pytest.mark.parametrize(("percent", "passes"), [(60.0, True), (59.99, False), (60, True), (59.99999999, False)])
def test_sixty_per_cent_passes_six_tenths_exactly(percent: float, passes: bool) -> None:
    verdict = judge("acceptance", atom(percent, None), using=catalog(), model=MODEL)
    assert verdict.passed is passes
    if not passes:
        # What is shown never reads like the bar that it is under.
        assert f"{failing(verdict)['acceptance_rate'].measured!s:.8}" != "0.6"


def test_decimals_that_binary_fractions_get_wrong() -> None:
    # 0.55 * 100 is 55.000000000000007 in floating point, and 0.29 * 100 is 28.999999999999996.
    for bar_, percent in ((0.55, 55.0), (0.29, 29.0), (0.57, 57.0), (0.58, 58.0)):
        using = catalog(entry(bars={"acceptance_rate": bar(bar_)}))
        assert judge("acceptance", atom(percent, None), using=using, model=MODEL).passed
        assert not judge("acceptance", atom(percent - 0.01, None), using=using, model=MODEL).passed


def test_the_drop_that_accuracy_did_not_see() -> None:
    healthy, broken = atom(61.02, accuracy=0.9538), atom(36.02, accuracy=0.9538)
    assert judge("accuracy", healthy, model=FP4).passed
    assert judge("acceptance", healthy, model=FP4).passed
    assert judge("accuracy", broken, model=FP4).passed
    verdict = judge("acceptance", broken, model=FP4)
    assert verdict.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    assert set(failing(verdict)) == {"acceptance_rate"}
    assert failing(verdict)["acceptance_rate"].measured == 0.3602
    assert "0.3602" in verdict.detail
    assert ">= 0.593" in verdict.detail


def test_the_unit_follows_from_producer_and_field_never_from_the_size() -> None:
    # Half a per cent is not one half, although it is smaller than one.
    assert judge("acceptance", atom(0.625, None), using=catalog(), model=MODEL).passed is False
    plugin = atom(None)
    plugin["atom_ci_metadata"] |= {"mtp_acceptance_overall": 0.625, "mtp_per_pos_acceptance": [0.8, 0.625, 0.45]}
    assert judge("acceptance", plugin, using=catalog(), model=MODEL).passed
    fewer = judge("acceptance", plugin, using=catalog(entry(draft_tokens=5)), model=MODEL)
    assert failing(fewer)["draft_tokens"].measured == 3
    plugin["atom_ci_metadata"]["mtp_acceptance_overall"] = 62.5
    verdict = judge("acceptance", plugin, using=catalog(), model=MODEL)
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID
    assert failing(verdict)["field"].field == "atom_ci_metadata.mtp_acceptance_overall"


def test_one_file_of_vllm_with_two_units() -> None:
    bars = {"acceptance_rate": bar(0.6), "per_position": bar([0.8, 0.6, 0.4]), "acceptance_length": bar(2.8)}
    using = catalog(entry(bars=bars))
    assert judge("acceptance", vllm(), using=using, model=MODEL).passed
    verdict = judge("acceptance", vllm(40.0), using=using, model=MODEL)
    assert set(failing(verdict)) == {"acceptance_rate", "acceptance_length", "position_1", "position_2", "position_3"}
    third = failing(verdict)["position_3"]
    assert third.field == "spec_decode_per_position_acceptance_rates[2]"
    assert third.unit == "fraction 0-1"


def test_every_failing_check_is_reported_with_value_limit_file_and_field() -> None:
    bars = {"acceptance_rate": bar(0.9), "acceptance_length": bar(3.5)}
    verdict = judge("acceptance", atom(62.5, 2.4), using=catalog(entry(bars=bars)), model=MODEL)
    assert set(failing(verdict)) == {"sound", "acceptance_identity", "acceptance_rate", "acceptance_length"}
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID
    for check in failing(verdict).values():
        assert check.file == "acceptance.json"
        assert check.field.startswith("atom_ci_metadata.")
        assert check.name == "sound" or check.measured in (0.625, 2.4)


def test_missing_is_a_regression_and_null_and_text_never_pass() -> None:
    verdict = judge("acceptance", atom(None), using=catalog(), model=MODEL)
    assert verdict.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    check = failing(verdict)["acceptance_rate"]
    assert check.measured is None
    assert check.field == "atom_ci_metadata.mtp_acceptance_rate"
    for spoilt in (None, "62.5", True, [62.5], {"value": 62.5}, -1, 101, 10**16):
        document = atom(62.5, None)
        document["atom_ci_metadata"]["mtp_acceptance_rate"] = spoilt
        assert not judge("acceptance", document, using=catalog(), model=MODEL).passed, spoilt
    for number in ("NaN", "Infinity", "1e999"):
        text = json.dumps(atom(62.5, None)).replace("62.5", number)
        assert not judge("acceptance", text.encode(), using=catalog(), model=MODEL).passed, number


def test_a_producer_that_never_writes_what_the_bar_is_about_is_the_wrong_file() -> None:
    verdict = judge("acceptance", server_info(), using=catalog(entry(draft_tokens=5)), model=MODEL)
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID
    assert "never writes it" in failing(verdict)["acceptance_rate"].limit


def test_another_number_of_draft_tokens_is_another_measurement() -> None:
    own = passing.accuracy()
    using = catalog(entry(model=passing.CATALOGUED, draft_tokens=4))
    verdict = judge("acceptance", own, using=using, model=passing.CATALOGUED)
    assert set(failing(verdict)) == {"draft_tokens"}
    assert failing(verdict)["draft_tokens"].measured == 3
    # Fewer draft tokens have a higher rate, which would pass the bar of more of them.
    verdict = judge("acceptance", vllm(80.0), using=catalog(entry(draft_tokens=5)), model=MODEL)
    assert set(failing(verdict)) == {"draft_tokens"}
    assert failing(verdict)["draft_tokens"].field == "spec_decode_draft_tokens"
    uneven = vllm(80.0)
    uneven["spec_decode_draft_tokens"] -= 1
    uneven["spec_decode_acceptance_rate"] = (
        100 * uneven["spec_decode_accepted_tokens"] / uneven["spec_decode_draft_tokens"]
    )
    assert judge("acceptance", uneven, using=catalog(), model=MODEL).passed
    verdict = judge("acceptance", uneven, using=catalog(entry(draft_tokens=5)), model=MODEL)
    assert set(failing(verdict)) == {"acceptance_identity"}
    # Where the file does not state it, length and rate do not fit together.
    verdict = judge("acceptance", atom(62.5, 2.25), using=catalog(), model=MODEL)
    assert set(failing(verdict)) == {"acceptance_identity"}
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID


def test_the_files_of_a_release_are_measurements_too() -> None:
    using = catalog(entry(draft_tokens=4, bars={"acceptance_rate": bar(0.2), "per_position": bar([0.5, 0.2])}))
    for make in (passing.smoke, passing.bench):
        assert judge("acceptance", make(), using=using, model=MODEL, token=passing.TOKEN).passed
        verdict = judge("acceptance", make(), using=using, model=MODEL, token="f" * 16)
        assert set(failing(verdict)) == {"token"}
    # A rate of exactly the bar, from counters: 106 of 400 tokens.
    using = catalog(entry(draft_tokens=4, bars={"acceptance_rate": bar(0.265)}))
    assert judge("acceptance", passing.smoke(), using=using, model=MODEL).passed
    using = catalog(entry(draft_tokens=4, bars={"acceptance_rate": bar(0.2650001)}))
    assert not judge("acceptance", passing.smoke(), using=using, model=MODEL).passed


def test_a_foreign_file_cannot_show_the_token_of_an_attempt() -> None:
    verdict = judge("acceptance", atom(), using=catalog(), model=MODEL, token="f" * 16)
    assert set(failing(verdict)) == {"token"}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry()], {"model": "tiny"}),
        ([entry()], {"model": MODEL.upper()}),
        ([entry()], {}),
        ([entry(), entry(draft_tokens=1)], {"model": MODEL}),
        ([entry(), entry()], {"model": MODEL}),
        ([entry()], {"model": MODEL, "draft_tokens": 1}),
        ([entry(draft_tokens=...)], {"model": MODEL, "draft_tokens": 3}),
        ([entry()], {"model": MODEL, "drafter": "eagle3"}),
        ([entry(bars={})], {"model": MODEL}),
        ([entry(bars={"accuracy": bar(0.9)})], {"model": MODEL}),
        ([entry(drafter=None, draft_tokens=...)], {"model": MODEL}),
        ([entry(bars={"acceptance_rate": bar(0.0)})], {"model": MODEL}),
        ([entry(bars={"acceptance_rate": bar(0.04)})], {"model": MODEL}),
        ([entry(bars={"acceptance_length": bar(1.0)})], {"model": MODEL}),
        ([entry(bars={"acceptance_rate": bar(1.0)})], {"model": MODEL}),
    ],
)
def test_a_catalog_that_guards_nothing_is_no_pass(entries: list[Any], expected: dict[str, Any]) -> None:
    verdict = judge("acceptance", atom(), using=catalog(*entries), **expected)
    assert verdict.failure_class is FailureClass.USER_CONFIG_ERROR
    assert failing(verdict)


def test_what_the_catalog_does_not_have_is_answered_with_what_it_has() -> None:
    verdict = judge("acceptance", atom(), model="DeepSeek-R1-0528-FP4")
    assert "DeepSeek-R1-0528-FP4 MTP" in failing(verdict)["entry"].limit


def test_two_of_three() -> None:
    using = catalog(entry(repeat={"runs": 3, "passes": 2}))
    low, other_low = atom(58.0, None), atom(58.1, None)
    good = [atom(61.0 + i / 10, None) for i in range(3)]

    def verdict(*measured: Any) -> Any:
        return judge("acceptance", *measured, using=using, model=MODEL)

    assert verdict(*good[:2]).passed
    assert verdict(good[0], low, good[1]).passed
    assert dict(verdict(good[0], low, good[1]).facts)["run_2_under_bar"] == "acceptance_rate 0.58 (wanted >= 0.6)"
    lost = verdict(low, good[0], other_low)
    assert lost.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    assert set(failing(lost)) == {"acceptance_rate", "repeats"}
    assert verdict(low, other_low).failure_class is FailureClass.ACCEPTANCE_REGRESSION
    for undecided in ((good[0],), (low,), (good[0], low)):
        assert verdict(*undecided).failure_class is FailureClass.MEASUREMENT_INVALID
        assert "not decided yet" in failing(verdict(*undecided))["repeats"].limit
    assert set(failing(verdict(good[0], good[0]))) == {"runs_differ"}
    assert "runs" in failing(verdict(*good, low))
    # What cannot count is neither a pass nor one of the tries.
    assert not verdict(good[0], good[1], b"{").passed
    assert not verdict(good[0], good[1], atom(62.5, 2.25)).passed


def test_more_files_than_the_policy_allows_is_picking_the_best() -> None:
    verdict = judge("acceptance", atom(58.0, None), atom(62.0, None), using=catalog(), model=MODEL)
    assert verdict.failure_class is FailureClass.USER_CONFIG_ERROR
    assert "runs" in failing(verdict)


GEMMA = {"gemma-4-26B-A4B": 0.42, "gemma-4-31B": 0.775, "gemma-4-E4B": 0.65}


@pytest.mark.parametrize("topk", [1, 3])
@pytest.mark.parametrize("model", GEMMA)
def test_gemma4_passes_at_its_bar_and_fails_under_it(model: str, topk: int) -> None:
    at, expected = GEMMA[model], {"model": model, "topk": topk}
    assert judge("accuracy", score(at), server=server_info(topk, 1.5), **expected).passed
    under = judge("accuracy", score(round(at - 0.005, 4)), server=server_info(topk), **expected)
    assert under.failure_class is FailureClass.ACCURACY_REGRESSION
    assert failing(under)["accuracy"].measured == round(at - 0.005, 4)
    dull = judge("accuracy", score(at), server=server_info(topk, 1.49), **expected)
    assert dull.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    assert failing(dull)["acceptance_length"].field == "internal_states[0].avg_spec_accept_length"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"disable_cuda_graph": True}, "disable_cuda_graph"),
        ({"disable_cuda_graph": ...}, "disable_cuda_graph"),
        ({"disable_cuda_graph": None}, "disable_cuda_graph"),
        ({"speculative_eagle_topk": 3}, "speculative_eagle_topk"),
        ({"speculative_eagle_topk": ...}, "speculative_eagle_topk"),
        ({"speculative_num_draft_tokens": 4}, "speculative_num_draft_tokens"),
        ({"speculative_num_steps": ...}, "speculative_num_steps"),
    ],
)
def test_a_server_that_is_not_as_asked_invalidates_the_run_whatever_its_numbers(
    changed: dict[str, Any], field: str
) -> None:
    verdict = judge("accuracy", score(0.99), server=server_info(1, **changed), model="gemma-4-E4B", topk=1)
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID
    assert field in {check.field for check in verdict.checks if not check.ok}


def test_gemma4_needs_the_servers_account_and_a_length_of_every_rank() -> None:
    alone = judge("accuracy", score(0.99), model="gemma-4-E4B", topk=1)
    assert {"server_setting", "acceptance_length"} <= set(failing(alone))
    silent = judge("accuracy", score(0.99), server=server_info(1, None), model="gemma-4-E4B", topk=1)
    assert set(failing(silent)) == {"acceptance_length"}
    half = server_info(1)
    del half["internal_states"][1]["avg_spec_accept_length"]
    check = failing(judge("accuracy", score(0.99), server=half, model="gemma-4-E4B", topk=1))["acceptance_length"]
    assert check.field == "internal_states[1].avg_spec_accept_length"
    which = judge("accuracy", score(0.99), server=server_info(1), model="gemma-4-E4B")
    assert which.failure_class is FailureClass.USER_CONFIG_ERROR


def test_samples_shots_and_rule_are_those_of_the_bar() -> None:
    accuracy = bar(0.9, task="gsm8k", samples=1319, shots=3, rule="strict")
    using = catalog(entry(bars={"acceptance_rate": bar(0.6), "accuracy": accuracy}))
    assert judge("accuracy", atom(accuracy=0.904), using=using, model=MODEL).passed
    # The flexible rule would pass here, the strict one is asked for.
    assert set(failing(judge("accuracy", atom(accuracy=0.903), using=using, model=MODEL))) == {"accuracy"}
    fewer = atom()
    fewer["n-samples"]["gsm8k"]["effective"] = 200
    assert set(failing(judge("accuracy", fewer, using=using, model=MODEL))) == {"samples"}
    other = atom()
    other["n-shot"]["gsm8k"] = 5
    assert set(failing(judge("accuracy", other, using=using, model=MODEL))) == {"shots"}


def test_the_noise_is_told_beside_the_verdict() -> None:
    verdict = judge("accuracy", atom(accuracy=0.926), model=FP4)
    facts = dict(verdict.facts)
    assert verdict.failure_class is FailureClass.ACCURACY_REGRESSION
    assert facts["within_one_stderr"] is True
    assert 0.006 < float(facts["accuracy_stderr"] or 0) < 0.009


def test_a_drafter_that_hardly_drafts_lets_no_accuracy_pass() -> None:
    verdict = judge("accuracy", atom(15.0), model=FP4)
    assert set(failing(verdict)) == {"acceptance_length"}
    assert judge("accuracy", atom(15.0), model=FP4, min_acceptance_length=1.4).passed
