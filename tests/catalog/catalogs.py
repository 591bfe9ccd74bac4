"""Small catalogs and result files for the tests of the catalog and its gates."""

from __future__ import annotations

import json
from typing import Any

from gates.catalog.model import Catalog, read_catalog
from gates.reading import ResultBytes
from gates.registry import run
from gates.verdict import Check, Verdict

DAY = "2026-07-20"
MODEL = "tiny MTP"


def bar(value: Any, **more: Any) -> dict[str, Any]:
    return {"bar": value, "source": "a test", "date": DAY, **more}


def entry(**more: Any) -> dict[str, Any]:
    made = {"model": MODEL, "drafter": "mtp", "draft_tokens": 3, "bars": {"acceptance_rate": bar(0.6)}, **more}
    return {key: value for key, value in made.items() if value is not ...}


def catalog(*entries: dict[str, Any]) -> ResultBytes:
    return ResultBytes(
        "catalog.json", json.dumps({"schema_version": 1, "entries": list(entries) or [entry()]}).encode()
    )


def read(*entries: dict[str, Any]) -> Catalog:
    return read_catalog(catalog(*entries))


def atom(rate: float | None = 62.5, length: float | None = ..., accuracy: float = 0.955, **more: Any) -> dict[str, Any]:  # type: ignore[assignment]
    """An accuracy result of ATOM's native CI at three draft tokens, its rate in per cent."""
    metadata: dict[str, Any] = {"docker_image": "image", "gpu_name": "gpu", "gpu_vram_gb": 288, "rocm_version": "7"}
    if rate is not None:
        metadata["mtp_acceptance_rate"] = rate
        metadata["avg_tokens_per_forward"] = round(1 + 3 * rate / 100, 2) if length is ... else length
    return {
        "results": {
            "gsm8k": {
                "alias": "gsm8k",
                "exact_match,strict-match": accuracy - 0.004,
                "exact_match_stderr,strict-match": 0.006,
                "exact_match,flexible-extract": accuracy,
                "exact_match_stderr,flexible-extract": 0.006,
            }
        },
        "n-shot": {"gsm8k": 3},
        "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}},
        "versions": {"gsm8k": 3},
        "higher_is_better": {"gsm8k": {"exact_match": True}},
        "atom_ci_metadata": {**metadata, **more},
    }


def vllm(rate_percent: float = 62.5, k: int = 3, drafts: int = 4000) -> dict[str, Any]:
    """A result of `vllm bench serve`: overall rate in per cent, rates by position as fractions."""
    accepted = round(rate_percent / 100 * drafts * k)
    first = min(drafts, round(accepted * 0.45))
    second = round((accepted - first) * 0.6)
    shares = [first, second, accepted - first - second]
    assert k == 3
    assert shares == sorted(shares, reverse=True)
    return {
        "date": "20260720-010203",
        "endpoint_type": "openai",
        "backend": "openai",
        "model_id": "tiny",
        "tokenizer_id": "tiny",
        "num_prompts": 64,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 8,
        "duration": 10.0,
        "completed": 64,
        "failed": 0,
        "total_input_tokens": 6400,
        "total_output_tokens": 16000,
        "request_throughput": 6.4,
        "output_throughput": 1600.0,
        "total_token_throughput": 2240.0,
        "spec_decode_acceptance_rate": accepted / (drafts * k) * 100,
        "spec_decode_acceptance_length": 1 + accepted / drafts,
        "spec_decode_num_drafts": drafts,
        "spec_decode_draft_tokens": drafts * k,
        "spec_decode_accepted_tokens": accepted,
        "spec_decode_per_position_acceptance_rates": [share / drafts for share in shares],
    }


def score(value: float = 0.7) -> dict[str, Any]:
    """A score of SGLang's run_eval."""
    return {"score": value, "score:std": 0.45, "latency": 60.0, "output_throughput": 900.0}


def server_info(topk: int = 1, length: float | None = 2.5, **more: Any) -> dict[str, Any]:
    """SGLang's account of itself, with two data-parallel ranks."""
    states: list[dict[str, Any]] = [{"last_gen_throughput": 100.0}, {"last_gen_throughput": 100.0}]
    if length is not None:
        states = [{**state, "avg_spec_accept_length": length + i / 100} for i, state in enumerate(states)]
    made = {
        "model_path": "google/gemma",
        "tp_size": 1,
        "dp_size": 2,
        "speculative_algorithm": "NEXTN",
        "speculative_draft_model_path": "google/gemma-assistant",
        "speculative_num_steps": 5,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": {1: 6, 3: 12}[topk],
        "disable_cuda_graph": False,
        "internal_states": states,
        "version": "0.5",
        **more,
    }
    return {key: value for key, value in made.items() if value is not ...}


def encode(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def judge(gate: str, *measured: Any, using: ResultBytes | None = None, server: Any = None, **expected: Any) -> Verdict:
    """Run a gate over measurements of its kind, and what the first one's server said."""
    kinds = [gate, *(f"{gate}_{number}" for number in range(2, 6))]
    files: dict[str, ResultBytes] = {}
    for kind, value in zip(kinds, measured, strict=False):
        files[kind] = ResultBytes(f"{kind}.json", None if value is None else encode(value))
    if server is not None:
        files["server_info"] = ResultBytes("server_info.json", encode(server))
    if using is not None:
        files["catalog"] = using
    return run(gate, files, expected)


def failing(verdict: Verdict) -> dict[str, Check]:
    """The failing checks by name; each says where and what was wanted."""
    failed = [check for check in verdict.checks if not check.ok]
    for check in failed:
        assert check.limit
        assert check.file
        assert check.failure_class is not None
    return {check.name: check for check in failed}
