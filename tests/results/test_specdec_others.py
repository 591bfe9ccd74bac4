"""timing.json, aa_timing.json, configuration.json and speculation_profile.json."""

from __future__ import annotations

from typing import Any

import pytest

from gates.results import specdec_configuration, specdec_timing, speculation_profile
from gates.results.fields import ResultError
from gates.results.meaning import Bonus, Scope, Unit
from tests.results.foreign_files import (
    drop,
    file,
    put,
    refusal,
    specdec_aa_timing,
)
from tests.results.foreign_files import (
    specdec_configuration as configuration,
)
from tests.results.foreign_files import (
    specdec_timing as timing,
)
from tests.results.foreign_files import (
    speculation_profile as profile,
)


def fields_of(made: Any) -> list[str]:
    return [remark.field for remark in made.remarks]


def test_statistics_are_texts_in_seconds() -> None:
    made = specdec_timing.read(file(timing()))
    assert made.usable
    run = made.only()
    assert run.throughput.value == 812.5
    assert run.throughput.meaning.unit is Unit.TOKENS_PER_SECOND
    assert (run.ttft.median.value, run.ttft.median.meaning.unit) == (0.06, Unit.SECONDS)
    assert run.ttft.median.field == '[0]["TTFT Time"].quantiles["0.5"]'
    assert run.step is not None
    assert "not a time per output token" in run.step.mean.meaning.name
    assert run.output.largest.value == 512


def test_a_bare_number_is_no_statistic_and_a_text_no_throughput() -> None:
    error = refusal(specdec_timing.read, put(timing(), (0, "TTFT Time", "mean"), 0.06))
    assert '[0]["TTFT Time"].mean: expected a number written as text; found 0.06' in str(error)
    error = refusal(specdec_timing.read, put(timing(), (0, "Output TPS"), "812.5"))
    assert """[0]["Output TPS"]: expected a number; found text '812.5'""" in str(error)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "", " 1.0", "1,0", "0x10", "1_0", "1e999", "١"])
def test_text_that_is_no_number(text: str) -> None:
    refusal(specdec_timing.read, put(timing(), (0, "TTFT Time", "mean"), text))


def test_a_missing_step_time_is_not_zero() -> None:
    document = drop(drop(timing(), (0, "Request Generation Step Time")), (0, "Request Generation Tokens Per Second"))
    made = specdec_timing.read(file(document))
    assert made.only().step is None
    assert made.only().generation is None
    assert made.usable
    assert "no request got more than two chunks" in made.remarks[0].text


def test_timings_of_several_runs() -> None:
    made = specdec_timing.read(file(timing() * 2))
    assert not made.usable
    with pytest.raises(ResultError, match="exactly one run"):
        made.only()
    assert not specdec_timing.read_aa(file(specdec_aa_timing() * 2)).usable


@pytest.mark.parametrize(
    ("keys", "value", "field"),
    [
        ((0, "Output TPS/gpu"), 500.0, '[0]["Output TPS/gpu"]'),
        ((0, "Output TPS/gpu"), 0, '[0]["Output TPS/gpu"]'),
        ((0, "Output TPS/gpu"), 1625.0, '[0]["Output TPS/gpu"]'),
        ((0, "TTFT Time", "mean"), "0.0900", '[0]["TTFT Time"]'),
        ((0, "TTFT Time", "quantiles", "0.5"), "0.0300", '[0]["TTFT Time"]'),
    ],
)
def test_timings_that_contradict_each_other(keys: Any, value: Any, field: str) -> None:
    made = specdec_timing.read(file(put(timing(), keys, value)))
    assert not made.usable
    assert fields_of(made) == [field]


def test_aa_timing() -> None:
    made = specdec_timing.read_aa(file(specdec_aa_timing()))
    assert made.usable
    assert made.runs[0].throughput.value == 700.25


def test_settings_are_not_measurements() -> None:
    made = specdec_configuration.read(file(configuration()))
    assert made.usable
    assert made.temperature is None
    assert made.concurrency is not None
    assert made.concurrency.meaning.scope is Scope.SETTING
    assert made.redacted == ("runtime_params.speculative_config.num_speculative_tokens", "tokenizer")
    texts = [remark.text for remark in made.remarks]
    assert "written before the run" in texts[0]
    assert any("DFLASH ignores it" in text for text in texts)
    assert made.checkpoint_size is not None
    assert made.checkpoint_size.meaning.unit is Unit.BYTES


def test_a_redacted_number_is_not_known() -> None:
    made = specdec_configuration.read(file(put(configuration(), ("draft_length",), "***REDACTED***")))
    assert made.draft_length is None
    assert "draft_length" in made.redacted


def test_a_variable_that_was_never_filled_in_and_a_drafter_without_algorithm() -> None:
    made = specdec_configuration.read(file(put(configuration(), ("save_dir",), "/cicd/<<global_vars.output_dir>>/x")))
    assert not made.usable
    assert "save_dir" in fields_of(made)
    assert not specdec_configuration.read(file(put(configuration(), ("speculative_algorithm",), "NONE"))).usable


def test_a_profile_has_both_rates_and_both_means() -> None:
    made = speculation_profile.read(file(profile()))
    assert made.usable
    assert made.remarks == ()
    assert made.marginal.values == (0.6, 0.3, 0.3)
    assert made.per_step.meaning.bonus is Bonus.WITH
    assert made.per_request is not None
    assert made.per_request.value != made.per_step.value
    assert made.producer == "ar_validate"


def test_a_placeholder_was_not_measured() -> None:
    document = {**profile(), "measured": False, "mean_accept_length": None, "marginal_accept_rates": [0.0, 0.0, 0.0]}
    error = refusal(speculation_profile.read, document)
    assert "measured: expected true; found false: a placeholder" in str(error)


@pytest.mark.parametrize(
    ("keys", "value", "fields"),
    [
        (("marginal_accept_rates",), [0.6, 0.0, 0.3], ["marginal_accept_rates"] * 2 + ["mean_accept_length"]),
        (("mean_accept_length",), 2.4, ["mean_accept_length", "acceptance_length_histogram"]),
        (
            ("num_speculative_tokens",),
            2,
            ["conditional_accept_rates", "marginal_accept_rates", "acceptance_length_histogram"],
        ),
        (("acceptance_length_histogram",), {"1": 5, "2": 5}, ["acceptance_length_histogram"]),
    ],
)
def test_profiles_that_contradict_themselves(keys: Any, value: Any, fields: list[str]) -> None:
    made = speculation_profile.read(file(put(profile(), keys, value)))
    assert not made.usable
    assert fields_of(made) == fields


def test_rates_in_per_cent_and_other_schemas_are_refused() -> None:
    assert "from 0 to 1" in str(refusal(speculation_profile.read, put(profile(), ("marginal_accept_rates", 0), 60)))
    assert "schema_version" in str(refusal(speculation_profile.read, put(profile(), ("schema_version",), "2.0")))


def test_other_verification_is_remarked_on() -> None:
    made = speculation_profile.read(file({**profile(), "verification_method": "block"}))
    assert made.usable
    assert fields_of(made) == ["verification_method"]


def test_categories_of_both_writers() -> None:
    for categories in ({"coding": 2.4}, {"coding": {"mean_accept_length": 2.4}}):
        made = speculation_profile.read(file({**profile(), "per_category": categories}))
        assert made.categories is not None
        assert made.categories.written == (("coding", 2.4),)


def test_a_profile_that_looks_simulated() -> None:
    document = {
        **profile(),
        "conditional_accept_rates": [1.0, 0.5, 0.0],
        "marginal_accept_rates": [1.0, 0.5, 0.0],
        "mean_accept_length": 2.5,
        "acceptance_length_histogram": {"2": 60, "3": 60},
    }
    assert fields_of(speculation_profile.read(file(document))) == ["marginal_accept_rates"]
    few = {**document, "acceptance_length_histogram": {"2": 6, "3": 6}}
    assert speculation_profile.read(file(few)).usable
