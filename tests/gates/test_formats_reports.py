"""Measuring gone wrong as it was reported in public: each file here looks like a measurement, and none may pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from gates.reading import ResultBytes
from gates.results.producers import BY_NAME
from gates.verdict import FailureClass, Verdict
from tests.catalog.catalogs import MODEL, atom, bar, catalog, entry, failing, judge, server_info, vllm
from tests.gates import passing
from tests.results import foreign_files as foreign
from tests.results.every_producer import SAMPLES

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


REGRESSED = FailureClass.ACCEPTANCE_REGRESSION
TRAINED_BADLY = FailureClass.TRAINING_REGRESSION
BAD_EXPORT = FailureClass.EXPORT_INVALID
CONFIG = FailureClass.USER_CONFIG_ERROR
TRANSIENT = FailureClass.INFRA_TRANSIENT


def nothing_taken(accepted_tokens: int) -> dict[str, Any]:
    """A smoke result of 100 steps in which so many tokens were taken, all at the first position."""
    counted = passing.counters(100, (accepted_tokens, 0, 0, 0))
    return {
        "counters": counted,
        "acceptance_length": 1 + accepted_tokens / 100,
        "acceptance_rate": accepted_tokens / 400,
        "per_position_rates": [accepted_tokens / 100, 0.0, 0.0, 0.0],
    }


def both_arms(**settings: Any) -> dict[str, Any]:
    return {f"arms.{arm}.server_config.{key}": value for arm in "AB" for key, value in settings.items()}


LOG = [f"log[{i}]" for i in range(8)]
OWN: dict[str, tuple[str, str, dict[str, Any], FailureClass, str]] = {
    "a missing head drafts at random: length exactly one": (
        "smoke",
        "smoke",
        nothing_taken(0),
        REGRESSED,
        "acceptance_length",
    ),
    "a compact export with a wrong format: length 1.01": (
        "smoke",
        "smoke",
        nothing_taken(1),
        REGRESSED,
        "acceptance_length",
    ),
    "an engine path that accepts nothing": ("smoke", "smoke", nothing_taken(0), REGRESSED, "counters.per_position"),
    "more drafted than the steps can hold": (
        "smoke",
        "smoke",
        {"counters.draft_tokens": 500},
        INVALID,
        "counters.draft_tokens",
    ),
    "a length of another definition": ("smoke", "smoke", {"acceptance_length": 1.06}, INVALID, "acceptance_length"),
    "a length over k + 1": ("smoke", "smoke", {"acceptance_length": 6.5}, INVALID, "acceptance_length"),
    "another server was on the port": ("smoke", "smoke", {"server.model": "other/model"}, INVALID, "server.model"),
    "the port was taken": ("smoke", "smoke", {"stage": "port_in_use"}, TRANSIENT, "stage"),
    "the checkpoint did not load": (
        "smoke",
        "smoke",
        {"stage": "server_died"},
        FailureClass.CHECKPOINT_NOT_SERVABLE,
        "stage",
    ),
    "the temperature is not stated": (
        "bench",
        "bench",
        {"sampling.temperature": passing.GONE},
        INVALID,
        "sampling.temperature",
    ),
    "the temperature is another": ("bench", "bench", {"sampling.temperature": 0.7}, INVALID, "sampling.temperature"),
    "graphs were lowered in one arm": (
        "bench",
        "bench",
        {**both_arms(cudagraph_mode="FULL"), "arms.B.server_config.cudagraph_mode": "PIECEWISE"},
        INVALID,
        "arms.B.server_config",
    ),
    "the arms ran with different templates": (
        "bench",
        "bench",
        {**both_arms(chat_template="a"), "arms.B.server_config.chat_template": "b"},
        INVALID,
        "arms.B.server_config",
    ),
    "the baseline drafts": ("bench", "bench", {"arms.A.drafter": "/drafts/x"}, INVALID, "arms.A.drafter"),
    "one concurrency is missing": ("bench", "bench", {"arms.B.points[2].concurrency": 16}, INVALID, "arms.B.points"),
    "requests failed": ("bench", "bench", {"arms.B.points[1].failed": 1}, INVALID, "arms.B.points[1].failed"),
    "no control arm": (
        "correctness",
        "exact_match",
        {"outputs[0].control": passing.GONE},
        INVALID,
        "outputs[0].control",
    ),
    "an answer is missing": ("correctness", "exact_match", {"outputs[3].b": []}, INVALID, "outputs[3].b"),
    "an accuracy bar whose accuracy is not in the file": (
        "train",
        "regression_check",
        {"final_accuracy": passing.GONE},
        INVALID,
        "final_accuracy",
    ),
    "a loss of zero hides NaN": ("train", "regression_check", {"final_loss": 0.0}, TRAINED_BADLY, "final_loss"),
    "the last gradients are NaN": (
        "train",
        "regression_check",
        {"final_grad_norm": None},
        TRAINED_BADLY,
        "final_grad_norm",
    ),
    "the same mean again and again": (
        "train",
        "regression_check",
        {"final_loss": 6.6, **{f"{row}.loss": 6.6 for row in LOG[3:]}},
        TRAINED_BADLY,
        "log",
    ),
    "a loss near zero from the first step on": (
        "train",
        "regression_check",
        {"first_loss": 0.001, "final_loss": 0.0005} | {f"{row}.loss": 0.001 - i * 5e-5 for i, row in enumerate(LOG)},
        TRAINED_BADLY,
        "first_loss",
    ),
    "an accuracy of one: the mask is empty": (
        "train",
        "regression_check",
        {"final_accuracy": 0.9999},
        TRAINED_BADLY,
        "final_accuracy",
    ),
    "the training stopped early": ("train", "regression_check", {"global_step": 70}, INVALID, "global_step"),
    "the export is that of an earlier step": (
        "train",
        "regression_check",
        {"export_written_after_last_step": False},
        BAD_EXPORT,
        "export_written_after_last_step",
    ),
    "another vocabulary": ("export", "export_check", {"config.vocab_size": 260}, BAD_EXPORT, "config.vocab_size"),
    "a padded vocabulary": ("export", "export_check", {"config.vocab_size": 320}, BAD_EXPORT, "config.vocab_size"),
    "a layer that the target does not have": (
        "export",
        "export_check",
        {"config.dflash_config.target_layer_ids": [1, 4]},
        BAD_EXPORT,
        "config.dflash_config.target_layer_ids",
    ),
    "a rope base a hundred times off": (
        "export",
        "export_check",
        {"config.rope_theta": 1000000.0},
        BAD_EXPORT,
        "config.rope_theta",
    ),
    "a mask token outside the vocabulary": (
        "export",
        "export_check",
        {"config.dflash_config.mask_token_id": 256},
        BAD_EXPORT,
        "config.dflash_config.mask_token_id",
    ),
    "a pointer in place of weights": ("export", "export_check", {"lfs_pointer": True}, BAD_EXPORT, "lfs_pointer"),
    "weights cut off": ("export", "export_check", {"file.size": 24000}, BAD_EXPORT, "file.size"),
    "a head of its own that the target's overwrites": (
        "export",
        "export_check",
        {"tensors[0].name": "lm_head.weight"},
        BAD_EXPORT,
        "tensors",
    ),
    "the newer name without the newer tensors": (
        "export",
        "export_check",
        {"tensors[2].name": "layers.0.mlp.up_proj.weight"},
        BAD_EXPORT,
        "tensors",
    ),
    "embeddings tied to a head that is not there": (
        "export",
        "export_check",
        {"config.tie_word_embeddings": True},
        BAD_EXPORT,
        "config.tie_word_embeddings",
    ),
    "names of the training's wrapper": (
        "export",
        "export_check",
        {"tensors[0].name": "dflash_module.fc.weight"},
        BAD_EXPORT,
        "tensors",
    ),
    "an algorithm that is not served": (
        "export",
        "export_check",
        {"config.architectures": ["LlamaForCausalLMEagle3"]},
        FailureClass.MODEL_UNSUPPORTED,
        "config.architectures",
    ),
    "no access to the model": (
        "target",
        "stage_target",
        {"status": "failed", "http_status": 403},
        CONFIG,
        "http_status",
    ),
    "no valid token": ("target", "stage_target", {"status": "failed", "http_status": 401}, CONFIG, "http_status"),
    "the hub is busy": ("target", "stage_target", {"status": "failed", "http_status": 429}, TRANSIENT, "http_status"),
    "a branch is no pin": ("target", "stage_target", {"revision": "main"}, INVALID, "revision"),
    "a frozen path that leaves the folder": (
        "freeze",
        "freeze",
        {"files[0].path": "../config.json"},
        FailureClass.FREEZE_FAILED,
        "files[0].path",
    ),
    "a freeze that never ended": (
        "freeze",
        "freeze",
        {"destination": passing.DRAFTER + ".partial"},
        FailureClass.FREEZE_FAILED,
        "destination",
    ),
}


@pytest.mark.parametrize(("gate", "kind", "changes", "failure_class", "field"), OWN.values(), ids=OWN)
def test_a_result_that_looks_like_that_report_fails_with_its_class_and_field(
    gate: str, kind: str, changes: dict[str, Any], failure_class: FailureClass, field: str
) -> None:
    verdict = passing.judge(gate, {kind: passing.change(passing.FILES[gate][kind](), changes)})
    assert verdict.failure_class is failure_class, verdict.detail
    assert field in {check.field for check in passing.failing(verdict)}, verdict.detail


STAND_INS = {
    "a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "an error page": b"<html><body>503 Service Unavailable</body></html>",
    "nothing": b"",
    "half a file": json.dumps(vllm()).encode()[:200],
}


@pytest.mark.parametrize("data", STAND_INS.values(), ids=STAND_INS)
def test_what_lies_in_the_place_of_a_result_cannot_be_read(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(data)
    for gate in ("acceptance", "accuracy"):
        assert main(["gate", gate, str(file), "--model", "DeepSeek-R1-0528 MTP"]) == 2
        assert "RESULT_MISSING" in capsys.readouterr().out
    assert main(["inspect", str(file)]) == 2
    assert "result.json" in capsys.readouterr().err


@pytest.mark.parametrize(("percent", "status"), [(60.0, 0), (59.99, 1)])
def test_the_command_lets_60_per_cent_pass_six_tenths_and_59_99_not(
    percent: float, status: int, tmp_path: Path
) -> None:
    result, bars = tmp_path / "20260720010203.json", tmp_path / "bars.json"
    result.write_text(json.dumps(atom(percent, None)), encoding="utf-8")
    bars.write_bytes(catalog().data or b"")
    assert main(["gate", "acceptance", str(result), "--catalog", str(bars), "--model", MODEL]) == status


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("trainer-state", at("log_history[0].loss", 0.0), ""),
        ("vllm-bench", put(rejection_sample_method="synthetic"), "rejection_sample_method"),
        ("vllm-bench", put(total_output_tokens=10, output_throughput=0.4), "spec_decode_num_drafts"),
        ("vllm-bench", put(errors=["refused"]), "errors"),
        ("sglang-serving", put(completed=0, request_throughput=0.0), "completed"),
        ("sglang-server", put(dp_size=3), "internal_states"),
        ("specdec-acceptance", lambda made: made * 2, "2 runs"),
        ("speculation-profile", at("measurement_conditions.num_samples", 0), "num_samples"),
        ("specdec-configuration", at("runtime_params", {"synthetic_acceptance_length": 3}), "runtime_params"),
    ],
)
def test_inspect_says_what_makes_a_file_useless(
    name: str, change: Change, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = SAMPLES[name]
    file = tmp_path / "result"
    file.write_bytes(sample.data())
    assert main(["inspect", str(file)]) == 0
    spoilt = change(sample.make())
    if not field:
        spoilt["log_history"][0]["grad_norm"] = None
        field = "log_history[0].loss"
    file.write_bytes(sample.data(spoilt))
    capsys.readouterr()
    assert main(["inspect", str(file)]) == 1
    printed = capsys.readouterr().out
    assert field in printed
    assert "UNUSABLE" in printed
