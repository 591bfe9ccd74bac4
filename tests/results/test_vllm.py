"""vLLM's three outputs: two units in one file, counters since the start, and one request."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from gates.counters import Counters
from gates.results import vllm_bench, vllm_metrics, vllm_request
from gates.results.fields import ResultError
from gates.results.meaning import Bonus, Scope, Unit
from tests.results.foreign_files import (
    drop,
    file,
    put,
    refusal,
)
from tests.results.foreign_files import (
    vllm_bench as bench,
)
from tests.results.foreign_files import (
    vllm_metrics as metrics,
)
from tests.results.foreign_files import (
    vllm_request as request,
)


def read(document: Any) -> vllm_bench.VllmBench:
    return vllm_bench.read(file(document))


def faults(made: Any) -> list[str]:
    return [remark.field for remark in made.remarks if remark.unusable]


def speculation(document: Any) -> vllm_bench.Speculation:
    found = read(document).runs[0].speculation
    assert found is not None
    return found


def test_per_cent_and_fractions_in_one_file() -> None:
    found = speculation(bench())
    assert (found.rate.written, found.rate.value, found.rate.exact) == (25.0, 0.25, Fraction(1, 4))
    assert found.rate.meaning.unit is Unit.FRACTION
    assert found.positions.values == (0.5, 0.15, 0.1)
    assert found.length is not None
    assert found.length.meaning.bonus is Bonus.WITH
    assert found.length.meaning.scope is Scope.WINDOW
    assert read(bench()).usable


def test_a_small_rate_is_still_in_per_cent() -> None:
    document = {
        **bench(),
        "spec_decode_acceptance_rate": 0.5,
        "spec_decode_acceptance_length": 1.015,
        "spec_decode_accepted_tokens": 9,
        "spec_decode_per_position_acceptance_rates": [0.015, 0.0, 0.0],
    }
    assert speculation(document).rate.exact == Fraction(5, 1000)
    assert read(document).usable


def test_no_speculation_keys_have_three_causes() -> None:
    document = {key: value for key, value in bench().items() if not key.startswith("spec_decode")}
    made = read(document)
    assert made.runs[0].speculation is None
    assert made.usable
    assert any("the file cannot tell" in remark.text for remark in made.remarks)


def test_some_of_the_speculation_keys_are_not_enough() -> None:
    error = refusal(vllm_bench.read, drop(bench(), ("spec_decode_num_drafts",)))
    assert str(error) == "result.json: spec_decode_num_drafts: expected a whole number; found nothing"


def test_a_length_of_zero_stands_for_no_drafts() -> None:
    document = {
        **bench(),
        "spec_decode_acceptance_rate": 0.0,
        "spec_decode_acceptance_length": 0.0,
        "spec_decode_num_drafts": 0,
        "spec_decode_accepted_tokens": 0,
        "spec_decode_per_position_acceptance_rates": [],
    }
    made = read(document)
    assert not made.usable
    assert made.runs[0].speculation is not None
    assert made.runs[0].speculation.length is None


def test_a_drafter_of_which_nothing_is_taken() -> None:
    document = {
        **bench(),
        "spec_decode_acceptance_rate": 0.0,
        "spec_decode_acceptance_length": 1.0,
        "spec_decode_accepted_tokens": 0,
        "spec_decode_per_position_acceptance_rates": [0.0, 0.0, 0.0],
    }
    assert "exactly 1: not one drafted token was taken" in [remark.text for remark in read(document).remarks]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spec_decode_acceptance_rate", 0.25),
        ("spec_decode_acceptance_length", 0.75),
        ("spec_decode_acceptance_length", 2.75),
        ("spec_decode_per_position_acceptance_rates", [0.5, 0.1, 0.15]),
        ("spec_decode_per_position_acceptance_rates", [0.5, 0.5, 0.5]),
        ("output_throughput", 900.0),
        ("request_throughput", 3.0),
        ("max_concurrent_requests", 7),
    ],
)
def test_numbers_that_contradict_each_other(key: str, value: Any) -> None:
    assert faults(read(put(bench(), (key,), value))) == [key]


def test_more_accepted_than_drafted() -> None:
    assert "spec_decode_accepted_tokens" in faults(read(put(bench(), ("spec_decode_accepted_tokens",), 1801)))
    assert "spec_decode_draft_tokens" in faults(read(put(bench(), ("spec_decode_draft_tokens",), 599)))


def test_a_concurrency_that_was_never_reached() -> None:
    assert faults(read(put(bench(), ("max_concurrency",), 128))) == ["max_concurrency"]
    assert read(put(bench(), ("max_concurrency",), None)).runs[0].concurrency is None


def test_unlimited_rate_is_the_text_inf_and_no_other_text() -> None:
    assert read(bench()).runs[0].request_rate is None
    rate = read(put(bench(), ("request_rate",), 4.0)).runs[0].request_rate
    assert rate is not None
    assert rate.value == 4
    refusal(vllm_bench.read, put(bench(), ("request_rate",), "4.0"))


def test_metadata_are_texts_and_may_stand_in_for_a_number() -> None:
    assert "num_prompts: expected a whole number; found text '80'" in str(
        refusal(vllm_bench.read, put(bench(), ("num_prompts",), "80"))
    )


@pytest.mark.parametrize("between", ["\n", "", "\n\n  "])
def test_appended_documents(between: str) -> None:
    text = between.join(json.dumps(bench(level)) for level in (1, 8, 32))
    made = read(text)
    assert made.usable
    assert [run.concurrency and run.concurrency.value for run in made.runs] == [1, 8, 32]
    assert made.at(8).prompts.field == "document 2: num_prompts"
    with pytest.raises(ResultError, match="exactly one run with 16; found 0"):
        made.at(16)


def test_two_runs_of_one_concurrency() -> None:
    made = read(json.dumps(bench()) + json.dumps(bench()))
    assert not made.usable
    with pytest.raises(ResultError, match="exactly one run with 8; found 2"):
        made.at(8)


def test_appended_documents_of_which_the_last_is_cut_off() -> None:
    text = json.dumps(bench(1)) + "\n" + json.dumps(bench(8))[:-200]
    assert "truncated" in str(refusal(vllm_bench.read, text))


def test_a_list_is_not_what_it_writes_and_duplicate_keys_are_named() -> None:
    assert "a JSON list" in str(refusal(vllm_bench.read, [bench()]))
    text = json.dumps(bench()) + json.dumps(bench(1)).replace('"failed"', '"completed"')
    assert "document 2: completed is there twice" in str(refusal(vllm_bench.read, text))


def test_latencies_and_failures() -> None:
    run = read(bench()).runs[0]
    assert run.latencies.meaning.unit is Unit.MILLISECONDS
    assert ("p99_ttft_ms", 10.5) in run.latencies.written
    assert len(run.latencies.written) == 12
    made = read(drop(bench(), ("failed",)))
    assert made.runs[0].failed is None
    assert any(remark.field == "failed" for remark in made.remarks)
    made = read({**bench(), "completed": 70, "failed": 10, "request_throughput": 70 / 25})
    assert made.remarks[0].text == "70 of 80 prompts were answered"
    assert not read(put(bench(), ("p99_ttft_ms",), float("nan"))).usable


# One request


def test_one_request() -> None:
    made = vllm_request.read(file(request()))
    assert made.usable
    assert made.remarks == ()
    assert made.length is not None
    assert (made.length.value, made.length.meaning.bonus, made.length.meaning.scope) == (1.8, Bonus.WITH, Scope.REQUEST)
    assert made.histogram.meaning.bonus is Bonus.WITHOUT
    assert made.histogram.mean == Fraction(8, 10)
    assert made.histogram.counts == ((0, 5), (1, 3), (2, 1), (3, 1))
    assert made.rate is not None
    assert made.rate.meaning.unit is Unit.FRACTION


SPEC = ("metrics", "speculative_decoding")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mean_acceptance_length", 0.8),
        ("draft_acceptance_rate", 0.5),
        ("num_spec_steps", 11),
        ("num_spec_tokens", 2),
        ("acceptance_histogram", [5, 3, 1, 2]),
    ],
)
def test_a_request_that_contradicts_itself(key: str, value: Any) -> None:
    assert faults(vllm_request.read(file(put(request(), (*SPEC, key), value))))


def test_more_tokens_in_steps_than_in_the_answer() -> None:
    assert faults(vllm_request.read(file(put(request(), ("usage", "completion_tokens"), 14)))) == [
        "usage.completion_tokens"
    ]
    assert not faults(vllm_request.read(file(put(request(), ("usage", "completion_tokens"), 15))))


def test_a_request_without_a_draft_has_no_length() -> None:
    document = put(request(), (*SPEC, "acceptance_histogram"), [0, 0, 0, 0])
    made = vllm_request.read(file(document))
    assert made.length is None
    assert made.rate is None
    assert "metrics" in str(refusal(vllm_request.read, drop(request(), ("metrics",))))
    assert "a whole number" in str(refusal(vllm_request.read, put(document, (*SPEC, "acceptance_histogram", 0), 1.0)))


# /metrics


def counters(document: str) -> vllm_metrics.VllmMetrics:
    return vllm_metrics.read(file(document, "metrics.txt"))


def test_counters_are_summed_over_engines_and_times_are_not_counters() -> None:
    made = counters(metrics())
    assert made.usable
    assert made.remarks == ()
    assert [(engine.engine, engine.drafts.value) for engine in made.engines] == [("0", 300), ("1", 300)]
    assert made.totals == Counters(600, 1800, 450, (300, 150))
    assert made.length is not None
    assert (made.length.value, made.length.meaning.scope) == (1.75, Scope.SERVER)
    assert made.rate is not None
    assert made.rate.value == 0.25


def test_a_position_without_a_series_is_zero_and_moves_nothing() -> None:
    text = metrics(engines=1, position_1=False).replace('position="0"', 'position="1"')
    made = counters(text)
    assert made.engines[0].positions.values == (0, 150)
    place = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    assert faults(made) == [place, place], "they rise, and do not add up"


def test_a_server_that_does_not_speculate() -> None:
    made = counters("\n".join(line for line in metrics().split("\n") if "spec_decode" not in line))
    assert made.engines == ()
    assert made.length is None
    assert made.usable
    assert "does not speculate" in made.remarks[0].text


def test_what_was_counted_between_two_readings() -> None:
    one, other = counters(metrics()), counters(metrics(3))
    assert vllm_metrics.difference(one, other) == Counters(1200, 3600, 900, (600, 300))
    with pytest.raises(ResultError, match="one that fell"):
        vllm_metrics.difference(other, one)
    with pytest.raises(ResultError, match="process_start_time_seconds"):
        vllm_metrics.difference(one, counters(metrics(3).replace("1.78700000025e+09", "1.78700009e+09")))
    with pytest.raises(ResultError, match="engines"):
        vllm_metrics.difference(one, counters(metrics(3, engines=1)))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("} 300.0", "} NaN", "expected a count; found NaN"),
        ("} 300.0", "} +Inf", "expected a count; found +Inf"),
        ("} 300.0", "} 300.5", "expected a count; found 300.5"),
        ("} 300.0", "} -1", "expected a count; found -1"),
        ("} 300.0", "}", "line"),
        ("} 300.0", "} three", "line"),
        ('engine="1"', 'engine="0"', "the same labels again"),
        ('position="0"', 'position="00"', "expected a position"),
        ('position="0"', 'position="256"', "expected a position"),
        ('engine="0",model_name', 'engine="0",engine="1",model_name', "line"),
        ("num_drafts_total", "num_drafts", "one series for engine"),
    ],
)
def test_metrics_that_are_refused(old: str, new: str, found: str) -> None:
    assert found in str(refusal(vllm_metrics.read, metrics().replace(old, new)))


def test_metrics_that_are_cut_off_anywhere_are_refused() -> None:
    text = metrics()
    for end in range(1, len(text)):
        if text[end - 1] != "\n":
            refusal(vllm_metrics.read, text[:end])


def test_several_models_on_one_server() -> None:
    made = counters(metrics().replace('engine="1",model_name="Qwen/Qwen3-8B"', 'engine="0",model_name="other"'))
    assert not made.usable


def test_carriage_returns_and_time_stamps_are_legal() -> None:
    text = metrics(engines=1).replace("} 300.0\n", "} 3e+02 1787000000000\r\n")
    assert counters(text).totals.drafts == 300


def test_counters_that_look_simulated() -> None:
    """Every step takes one or two draft tokens: a mean of 1.5, as an engine makes it that was told so."""
    rates = [1.0, 0.5, 0.0]
    document = {
        **bench(),
        "spec_decode_acceptance_rate": 50.0,
        "spec_decode_acceptance_length": 2.5,
        "spec_decode_accepted_tokens": 900,
        "spec_decode_per_position_acceptance_rates": rates,
    }
    made = read(document)
    assert faults(made) == ["spec_decode_per_position_acceptance_rates"]
    assert "every step took 1 or 2 draft tokens" in made.remarks[0].text
    few = {**document, "spec_decode_num_drafts": 60, "spec_decode_draft_tokens": 180, "spec_decode_accepted_tokens": 90}
    assert read(few).usable, "sixty steps may do so by chance"
    text = metrics(engines=1).replace('position="0"} 150.0', 'position="0"} 300.0')
    text = text.replace('position="1"} 75.0', 'position="1"} 150.0').replace("} 225.0", "} 450.0")
    assert faults(counters(text)) == ["vllm:spec_decode_num_accepted_tokens_per_pos_total"]


def test_one_draft_token_does_not_look_simulated() -> None:
    document = {
        **bench(),
        "spec_decode_acceptance_rate": 75.0,
        "spec_decode_acceptance_length": 1.75,
        "spec_decode_draft_tokens": 600,
        "spec_decode_per_position_acceptance_rates": [0.75],
    }
    assert read(document).usable
