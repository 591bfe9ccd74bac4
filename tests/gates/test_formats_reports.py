"""Measuring gone wrong as it was reported in public: each file here looks like a measurement, and none may pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from gates.reading import ResultBytes
from gates.results.producers import BY_NAME
from gates.verdict import FailureClass, Verdict
from tests.catalog.catalogs import MODEL, bar, catalog, entry, failing, judge, server_info, vllm
from tests.gates import passing
from tests.results import foreign_files as foreign

INVALID = FailureClass.MEASUREMENT_INVALID
Change = Callable[[Any], Any]


def put(**values: Any) -> Change:
    """Fields of the outermost object that are replaced, or added."""
    return lambda document: {**document, **values}


def at(path: str, value: Any) -> Change:
    """One field, wherever it is."""
    return lambda document: passing.change(copy.deepcopy(document), {path: value})


def accepted(document: Any, draft_tokens: Any = 3, **more: Any) -> Verdict:
    """The acceptance gate with a bar that the unspoilt file holds easily."""
    using = catalog(entry(draft_tokens=draft_tokens, bars={"acceptance_length": bar(1.5)}))
    return judge("acceptance", json.dumps(document).encode(), using=using, model=MODEL, **more)


SETTINGS: dict[str, dict[str, Any]] = {
    "a rejection sampler that makes acceptance up": {"rejection_sample_method": "synthetic"},
    "a length to pretend": {"synthetic_acceptance_length": 2.5},
    "both inside the speculative configuration": {"speculative_config": {"rejection_sample_method": "synthetic"}},
    "the same as text": {"speculative_config": '{"method": "eagle3", "rejection_sample_method": "synthetic"}'},
    "a flag among the arguments": {"arguments": ["serve", "--spec-decode-acceptance-length", "3"]},
    "an environment variable": {"environment": {"SGLANG_SIMULATE_ACC_LEN": "3"}},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_acceptance_that_the_engine_was_told_to_pretend_never_counts(settings: dict[str, Any]) -> None:
    bench = passing.bench()
    for arm in bench["arms"].values():
        arm["server_config"] |= settings
    assert "not_simulated" in passing.names(passing.judge("bench", {"bench": bench}))
    smoke = passing.smoke()
    smoke["server"] |= settings
    passing.assert_fails(passing.judge("smoke", {"smoke": smoke}), INVALID, "not_simulated")
    accuracy = passing.accuracy()
    accuracy["server"] |= settings
    for gate in ("accuracy", "acceptance"):
        passing.assert_fails(passing.judge(gate, {gate: accuracy}), INVALID, "not_simulated")
    assert "sound" in failing(accepted({**vllm(), **settings}))
    configuration = json.dumps({**foreign.specdec_configuration(), "runtime_params": settings}).encode()
    assert not BY_NAME["specdec-configuration"].read(ResultBytes("configuration.json", configuration)).usable


def test_settings_that_only_name_acceptance_are_welcome() -> None:
    settings = {"rejection_sample_method": "standard", "synthetic_acceptance_length": None, "note": "not synthetic"}
    bench = passing.bench()
    for arm in bench["arms"].values():
        arm["server_config"] |= settings
    assert passing.judge("bench", {"bench": bench}).passed
    assert accepted({**vllm(), **settings, "generated_texts": ["rejection_sample_method=synthetic"]}).passed


def sampled(lengths: dict[int, int]) -> list[dict[str, Any]]:
    """A result of specdec_bench with so many steps of each length, from one request."""
    made = copy.deepcopy(foreign.specdec_acceptance())
    steps, before = sum(lengths.values()), 1.0
    joint, conditional = {}, {}
    for length in lengths:
        share = sum(count for other, count in lengths.items() if other >= length) / steps
        joint[str(length)], conditional[str(length)] = share, share / before
        before = share
    mean = sum(length * count for length, count in lengths.items()) / steps
    made[0] |= {
        "Request_AL": {"0": {"0": mean}},
        "Average_AL": mean,
        "Acceptance_Length_Histogram": {str(length): count for length, count in lengths.items()},
        "Conditional_Acceptance_Rate": conditional,
        "Joint_Acceptance_Rate": joint,
    }
    return made


MEASUREMENTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "vllm": (vllm, 3),
    "sglang serving": (foreign.sglang_serving, 5),
    "sglang server": (server_info, 5),
    "specdec_bench": (lambda: sampled({1: 400, 2: 300, 4: 300}), 3),
    "profile": (foreign.speculation_profile, 3),
    "atom serving": (foreign.atom_serving, ...),
}


@pytest.mark.parametrize(("make", "draft_tokens"), MEASUREMENTS.values(), ids=MEASUREMENTS)
def test_each_measurement_counts_as_long_as_nothing_is_wrong_with_it(
    make: Callable[[], Any], draft_tokens: Any
) -> None:
    verdict = accepted(make(), draft_tokens)
    assert verdict.passed, verdict.detail


NOTHING = {"num_prompts": 0, "completed": 0, "request_throughput": 0.0, "max_concurrency": None}
INVALID_MEASUREMENTS: dict[str, tuple[str, Change, str]] = {
    "nothing was answered, and other clients were counted": ("vllm", put(**NOTHING), "completed"),
    "the counters saw more than the answers hold": (
        "vllm",
        put(total_output_tokens=1200, output_throughput=120.0),
        "spec_decode_num_drafts",
    ),
    "no output at all": ("vllm", put(total_output_tokens=0, output_throughput=0.0), "spec_decode_num_drafts"),
    "random prompts, as somebody noted": ("vllm", put(dataset="random"), "dataset"),
    "random prompts by the newer key": ("vllm", put(dataset_name="random"), "dataset_name"),
    "an error among the answers": ("vllm", put(errors=["", "connection reset"]), "errors"),
    "a request failed": ("vllm", put(completed=63, failed=1, request_throughput=6.3), "failed"),
    "a request is missing": ("vllm", put(completed=63, request_throughput=6.3), "completed"),
    "32 at a time with fewer prompts": ("vllm", put(max_concurrency=128), "max_concurrency"),
    "32 at a time that were never seen": ("vllm", put(max_concurrent_requests=5), "max_concurrent_requests"),
    "a rate as a fraction in the field of per cent": (
        "vllm",
        put(spec_decode_acceptance_rate=0.625),
        "spec_decode_acceptance_rate",
    ),
    "a mean without the bonus token": (
        "vllm",
        put(spec_decode_acceptance_length=1.875),
        "spec_decode_acceptance_length",
    ),
    "a length that flaked below one": (
        "vllm",
        put(spec_decode_acceptance_length=0.9909),
        "spec_decode_acceptance_length",
    ),
    "counters of one of two engines": ("vllm", put(spec_decode_draft_tokens=6000), "spec_decode_accepted_tokens"),
    "a benchmark that nobody answered": (
        "sglang serving",
        put(completed=0, request_throughput=0.0),
        "completed",
    ),
    "an error that only the details show": ("sglang serving", put(errors=["", "timed out"]), "errors"),
    "a length that its server does not state": ("sglang serving", put(accept_length=5.5), "accept_length"),
    "random text": ("sglang serving", put(dataset_name="random-ids"), "dataset_name"),
    "a rank that says nothing": ("sglang server", lambda made: {**made, "dp_size": 3}, "internal_states"),
    "speculation off": ("sglang server", put(speculative_algorithm=None), "internal_states[0].avg_spec_accept_length"),
    "a leftover server that had served nothing": (
        "sglang server",
        at("internal_states[0].avg_spec_accept_length", 0.0),
        "internal_states[0].avg_spec_accept_length",
    ),
    "more tokens in a step than k allows": (
        "specdec_bench",
        lambda _: sampled({1: 400, 2: 300, 4: 300, 9: 50}),
        "[0].Acceptance_Length_Histogram",
    ),
    "two runs in one folder": ("specdec_bench", lambda made: made * 2, ""),
    "two neighbouring lengths only": (
        "specdec_bench",
        lambda _: sampled({2: 400, 3: 300}),
        "[0].Acceptance_Length_Histogram",
    ),
    "a mean of other requests": ("specdec_bench", lambda made: [{**made[0], "Average_AL": 3.4849}], "[0].Average_AL"),
    "a placeholder": ("profile", put(measured=False), "measured"),
    "a profile of no samples": (
        "profile",
        at("measurement_conditions.num_samples", 0),
        "measurement_conditions.num_samples",
    ),
    "ATOM's benchmark without an answer": (
        "atom serving",
        put(num_prompts=0, completed=0, request_throughput=0.0),
        "completed",
    ),
    "no steps, written as a length of zero": ("atom serving", put(accept_length=0.0), "accept_length"),
}


@pytest.mark.parametrize(("base", "change", "field"), INVALID_MEASUREMENTS.values(), ids=INVALID_MEASUREMENTS)
def test_a_measurement_gone_wrong_is_invalid_and_names_the_field(base: str, change: Change, field: str) -> None:
    make, draft_tokens = MEASUREMENTS[base]
    verdict = accepted(change(make()), draft_tokens)
    assert verdict.failure_class is INVALID, verdict.detail
    assert field in {check.field for check in passing.failing(verdict)}, verdict.detail


def test_the_worst_rank_counts_in_a_benchmark_too() -> None:
    made = at("server_info.internal_states[1].avg_spec_accept_length", 1.0)(foreign.sglang_serving())
    verdict = accepted(made, 5)
    assert verdict.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    assert failing(verdict)["acceptance_length"].field == "server_info.internal_states[1].avg_spec_accept_length"


@pytest.mark.parametrize(
    ("setting", "value"),
    [("disable_cuda_graph", True), ("disable_cuda_graph", None), ("speculative_eagle_topk", 3)],
)
def test_every_decode_server_must_be_as_asked_not_only_the_first(setting: str, value: Any) -> None:
    score = {"score": 0.8, "score:std": 0.4, "latency": 60.0}

    def verdict(second: Any) -> Verdict:
        account = {"prefill": [{}], "decode": [server_info(), second]}
        return judge("accuracy", score, server=account, model="gemma-4-E4B", topk=1)

    assert verdict(server_info()).passed
    check = failing(verdict({**server_info(), setting: value}))["server_setting"]
    assert check.field == setting
    assert str(value) in str(check.measured)


@pytest.mark.parametrize(
    ("measured", "draft_tokens"),
    [(vllm(62.5, 3, 16), 3), (sampled({1: 10, 2: 5, 4: 5}), 3), (sampled({1: 4, 2: 9, 4: 3}), 3)],
    ids=["vllm", "specdec_bench", "specdec_bench, fewer"],
)
def test_a_handful_of_steps_is_luck(measured: Any, draft_tokens: int) -> None:
    verdict = accepted(measured, draft_tokens)
    assert set(failing(verdict)) == {"steps"}
    assert verdict.failure_class is INVALID
