"""Small valid files of each producer, made here; the numbers follow from one another as each producer computes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from gates.reading import ResultBytes
from gates.results.fields import ResultError

LENGTHS = {1: 4, 2: 3, 4: 3}
"""Steps by emitted tokens; no step emitted three."""


def specdec_acceptance() -> list[dict[str, Any]]:
    steps = sum(LENGTHS.values())
    joint, conditional, before = {}, {}, 1.0
    for length in LENGTHS:
        share = sum(count for other, count in LENGTHS.items() if other >= length) / steps
        joint[str(length)], conditional[str(length)] = share, share / before
        before = share
    return [
        {
            "Request_AL": {"0": {"0": 2.0}, "1": {"0": 2.5, "1": 1.5}},
            "Average_AL": 2.0,
            "Acceptance_Length_Histogram": {str(length): count for length, count in LENGTHS.items()},
            "Conditional_Acceptance_Rate": conditional,
            "Joint_Acceptance_Rate": joint,
        }
    ]


def statistics(least: float, largest: float) -> dict[str, Any]:
    """As specdec_bench prints them: texts with four decimals."""
    middle = (least + largest) / 2
    quantiles = {"0.25": f"{least:.4f}", "0.5": f"{middle:.4f}", "0.75": f"{largest:.4f}"}
    spread = {"min": f"{least:.4f}", "max": f"{largest:.4f}", "mean": f"{middle:.4f}", "std": "0.1000"}
    return {**spread, "quantiles": quantiles}


def specdec_timing() -> list[dict[str, Any]]:
    return [
        {
            "Output TPS": 812.5,
            "Output TPS/gpu": 203.125,
            "E2E Request Time": statistics(1.5, 4.5),
            "TTFT Time": statistics(0.04, 0.08),
            "Request Generation Step Time": statistics(0.01, 0.08),
            "Request Generation Tokens Per Second": statistics(90, 130),
            "Number of Output Tokens": statistics(200, 512),
        }
    ]


def specdec_aa_timing() -> list[dict[str, Any]]:
    return [{"AA Output TPS": 700.25, "AA Generation Tokens Per Second": statistics(90, 130)}]


def specdec_configuration() -> dict[str, Any]:
    return {
        "model_dir": "/models/Qwen3-8B",
        "tokenizer": "***REDACTED***",
        "draft_model_dir": "/drafts/qwen3-8b-dflash",
        "engine": "VLLM",
        "speculative_algorithm": "DFLASH",
        "draft_length": 3,
        "block_size": 8,
        "tp_size": 4,
        "ep_size": 2,
        "concurrency": 8,
        "output_length": 4096,
        "num_requests": 80,
        "temperature": None,
        "runtime_params": {"speculative_config": {"num_speculative_tokens": "***REDACTED***"}},
        "save_dir": "/results/b",
        "dataset": "speed",
        "dataset_path": "/data/qualitative",
        "engine_version": "0.23.0",
        "gpu": "NVIDIA H100 80GB HBM3",
        "argv": ["run.py", "--tp_size", "4"],
        "specdec_bench_version": "0.1.0",
        "specdec_bench_sha": "0123abc",
        "modelopt_version": "0.42.0",
        "modelopt_sha": None,
        "checkpoint": {"path": "/models/Qwen3-8B", "size_bytes": 16381516800, "index_sha256": "ab" * 32},
        "timestamp": "2026-08-21T09:30:00+00:00",
    }


def speculation_profile() -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "measured": True,
        "producer": "ar_validate",
        "num_speculative_tokens": 3,
        "conditional_accept_rates": [0.6, 0.5, 1.0],
        "marginal_accept_rates": [0.6, 0.3, 0.3],
        "mean_accept_length": 2.2,
        "mean_accept_length_per_request": 2.0,
        "acceptance_length_histogram": {str(length): count for length, count in LENGTHS.items()},
        "measurement_conditions": {"dataset": "mt_bench", "osl": 32, "num_samples": 80, "validation": "online"},
    }


def trainer_state() -> dict[str, Any]:
    log: list[dict[str, Any]] = [
        {"epoch": step / 60, "grad_norm": 9.0 / step, "learning_rate": 1e-4, "loss": 8.0 - step / 60, "step": step}
        for step in range(10, 70, 10)
    ]
    log.insert(3, {"epoch": 0.5, "eval_loss": 7.5, "eval_runtime": 3.5, "step": 30})
    log.append(
        {"epoch": 1.0, "step": 60, "total_flos": 1.5e18, "train_loss": 7.4, "train_runtime": 61.5}
        | {"train_samples_per_second": 31.2, "train_steps_per_second": 0.98}
    )
    control = {"args": {"should_training_stop": True, "should_log": False}, "attributes": {}}
    return {
        "best_global_step": None,
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": 1.0,
        "eval_steps": 500,
        "global_step": 60,
        "is_hyper_param_search": False,
        "is_local_process_zero": True,
        "is_world_process_zero": True,
        "log_history": log,
        "logging_steps": 10,
        "max_steps": 60,
        "num_input_tokens_seen": 0,
        "num_train_epochs": 1,
        "save_steps": 60,
        "stateful_callbacks": {"TrainerControl": control},
        "total_flos": 1.5e18,
        "train_batch_size": 8,
        "trial_name": None,
        "trial_params": None,
    }


def vllm_bench(concurrency: int = 8) -> dict[str, Any]:
    """600 steps with three draft tokens each, 450 of 1800 taken."""
    duration, prompts, output = 25.0, 80, 20000
    latencies = {
        f"{which}_{what}_ms": 10.5 for which in ("mean", "median", "std", "p99") for what in ("ttft", "tpot", "itl")
    }
    return {
        "date": "20260822-101500",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "Qwen/Qwen3-8B",
        "tokenizer_id": "Qwen/Qwen3-8B",
        "num_prompts": prompts,
        "dataset": "speed",
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": concurrency,
        "duration": duration,
        "completed": prompts,
        "failed": 0,
        "total_input_tokens": 8000,
        "total_output_tokens": output,
        "request_throughput": prompts / duration,
        "request_goodput": None,
        "output_throughput": output / duration,
        "total_token_throughput": (output + 8000) / duration,
        "max_output_tokens_per_s": 1200.0,
        "max_concurrent_requests": concurrency + 1,
        "rtfx": 0.0,
        **latencies,
        "spec_decode_acceptance_rate": 25.0,
        "spec_decode_acceptance_length": 1.75,
        "spec_decode_num_drafts": 600,
        "spec_decode_draft_tokens": 1800,
        "spec_decode_accepted_tokens": 450,
        "spec_decode_per_position_acceptance_rates": [0.5, 0.15, 0.1],
    }


def vllm_request() -> dict[str, Any]:
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1787000000,
        "model": "Qwen/Qwen3-8B",
        "choices": [{"index": 0, "text": "…", "finish_reason": "length"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 18, "total_tokens": 28},
        "metrics": {
            "speculative_decoding": {
                "mean_acceptance_length": 1.8,
                "draft_acceptance_rate": 8 / 30,
                "acceptance_histogram": [5, 3, 1, 1],
                "num_spec_steps": 10,
                "num_accepted_draft_tokens": 8,
                "num_draft_tokens": 30,
                "num_spec_tokens": 3,
                "per_step_accepted": None,
                "per_step_drafted": None,
            }
        },
    }


def vllm_metrics(factor: int = 1, *, engines: int = 2, position_1: bool = True) -> str:
    """Two engines with 300 steps each; the gauges whose names end in _created hold times."""
    lines = [
        "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.",
        "# TYPE process_start_time_seconds gauge",
        "process_start_time_seconds 1.78700000025e+09",
        'vllm:generation_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} ' + f"{2000.0 * factor}",
        'vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 800.0',
        'http_request_size_bytes{handler="a,b} \\"c\\" \\\\",le="+Inf"} NaN',
    ]
    for engine in range(engines):
        labels = f'engine="{engine}",model_name="Qwen/Qwen3-8B"'
        values = {"drafts": 300, "draft_tokens": 900, "accepted_tokens": 225}
        for name, value in values.items():
            lines.append(f"# TYPE vllm:spec_decode_num_{name}_total counter")
            lines.append(f"vllm:spec_decode_num_{name}_total{{{labels}}} {value * factor:.1f}")
            lines.append(f"vllm:spec_decode_num_{name}_created{{{labels}}} 1.787000001e+09")
        for position, value in enumerate((150, 75 if position_1 else 0, 0)):
            if value:
                name = "vllm:spec_decode_num_accepted_tokens_per_pos"
                lines.append(f'{name}_total{{{labels},position="{position}"}} {value * factor:.1f}')
                lines.append(f'{name}_created{{{labels},position="{position}"}} 1.787000001e+09')
    return "\n".join(lines) + "\n"


def sglang_server() -> dict[str, Any]:
    memory = {"weight": 16.2, "kvcache": 40.5, "token_capacity": 300000, "graph": 1.5}
    return {
        "model_path": "google/gemma-4-26b",
        "revision": None,
        "tp_size": 2,
        "dp_size": 2,
        "dtype": "bfloat16",
        "attention_backend": "triton",
        "context_length": 2048,
        "random_seed": 1,
        "speculative_algorithm": "NEXTN",
        "speculative_draft_model_path": "google/gemma-4-26b",
        "speculative_draft_model_revision": None,
        "speculative_num_steps": 5,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 6,
        "disable_cuda_graph": False,
        "launch_command": "sglang serve",
        "scheduler_info": {"max_total_num_tokens": 300000},
        "startup_time": 81.5,
        "internal_states": [
            {"last_gen_throughput": 900.5, "memory_usage": memory, "avg_spec_accept_length": 2.75},
            {"last_gen_throughput": 0.0, "memory_usage": memory, "avg_spec_accept_length": 2.5},
        ],
        "version": "0.5.23",
    }


def sglang_serving(concurrency: int = 8) -> dict[str, Any]:
    duration, completed, output = 20.0, 80, 16000
    latencies = {
        f"{which}_{what}_ms": 12.5
        for which in ("mean", "median", "std", "p90", "p99")
        for what in ("e2e_latency", "ttft", "tpot", "itl")
    }
    return {
        "tag": None,
        "backend": "sglang",
        "dataset_name": "sharegpt",
        "request_rate": float("inf"),
        "max_concurrency": concurrency,
        "sharegpt_output_len": 200,
        "random_input_len": 1024,
        "random_output_len": 1024,
        "random_range_ratio": 0.0,
        "server_info": sglang_server(),
        "duration": duration,
        "completed": completed,
        "total_input_tokens": 9000,
        "total_output_tokens": output,
        "total_output_tokens_retokenized": output - 3,
        "request_throughput": completed / duration,
        "input_throughput": 450.0,
        "output_throughput": output / duration,
        "total_throughput": 1250.0,
        **latencies,
        "concurrency": 7.9,
        "accept_length": 2.75,
        "max_output_tokens_per_s": 1000.0,
        "max_concurrent_requests": 10,
    }


def sglang_one_batch(batch: int = 4) -> dict[str, Any]:
    latency, ttft, inputs, outputs = 4.0, 0.5, 1024, 128
    return {
        "run_name": "default",
        "batch_size": batch,
        "input_len": inputs,
        "output_len": outputs,
        "latency": latency,
        "input_throughput": batch * inputs / ttft,
        "output_throughput": batch * outputs / (latency - ttft),
        "overall_throughput": batch * (inputs + outputs) / latency,
        "last_ttft": ttft,
        "last_gen_throughput": 300.5,
        "acc_length": 1.25,
        "cache_hit_rate": None,
    }


def sglang_eval() -> dict[str, Any]:
    return {"score:std": 0.4, "score": 0.785, "latency": 61.5, "output_throughput": 812.25, "chars": 410.5}


def sglang_eval_repeated() -> dict[str, Any]:
    return {"chars": 410.5, "scores": ["0.780", "0.790"], "mean_score": 0.785, "latency": 61.5}


def sgl_eval() -> dict[str, Any]:
    aggregate = {"score": 0.9, "pass@1": 0.9}
    return {"model": "m", "aggregate": aggregate, "latency_seconds": 30.5, "output_throughput_tps": 700.0}


def lm_eval() -> dict[str, Any]:
    return {
        "results": {
            "gsm8k": {
                "alias": "gsm8k",
                "exact_match,strict-match": 0.9401,
                "exact_match_stderr,strict-match": 0.0065,
                "exact_match,flexible-extract": 0.9431,
                "exact_match_stderr,flexible-extract": "N/A",
            }
        },
        "group_subtasks": {"gsm8k": []},
        "configs": {"gsm8k": {"task": "gsm8k", "num_fewshot": 3}},
        "versions": {"gsm8k": 3.0},
        "n-shot": {"gsm8k": 3},
        "higher_is_better": {"gsm8k": {"exact_match": True}},
        "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}},
        "config": {
            "model": "local-completions",
            "model_args": {"model": "/models/m", "num_concurrent": 65},
            "batch_size": 65,
            "limit": None,
            "random_seed": 0,
        },
        "git_hash": "0a1b2c3",
        "date": 1787000000.5,
        "task_hashes": {},
        "model_name": "/models/m",
        "chat_template_sha": None,
        "total_evaluation_time_seconds": "181.25",
    }


def atom(**metadata: Any) -> dict[str, Any]:
    """An accuracy result with what one of the three scripts adds to the metadata."""
    machine = {"docker_image": "rocm/atom:nightly", "gpu_name": "MI355X", "gpu_vram_gb": 288, "rocm_version": "7.1"}
    return {**lm_eval(), "atom_ci_metadata": {**machine, **metadata}}


def atom_native() -> dict[str, Any]:
    return atom(mtp_acceptance_rate=62.5, avg_tokens_per_forward=2.88)


def atom_oot() -> dict[str, Any]:
    return atom(mtp_acceptance_overall=0.25, mtp_per_pos_acceptance=[0.5, 0.15, 0.1])


def atom_sglang() -> dict[str, Any]:
    return atom(mtp_acceptance_rate=62.5, mtp_accept_length=2.875, avg_tokens_per_forward=2.88)


def atom_serving() -> dict[str, Any]:
    duration, completed, output = 20.0, 80, 16000
    latencies = {
        f"{which}_{what}_ms": 12.5
        for which in ("mean", "median", "std", "p99")
        for what in ("ttft", "tpot", "itl", "e2el")
    }
    return {
        "date": "20260822-101500",
        "backend": "vllm",
        "model_id": "deepseek-ai/DeepSeek-R1",
        "tokenizer_id": "deepseek-ai/DeepSeek-R1",
        "best_of": 1,
        "num_prompts": completed,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 8,
        "duration": duration,
        "completed": completed,
        "total_input_tokens": 80000,
        "total_output_tokens": output,
        "request_throughput": completed / duration,
        "request_goodput:": None,
        "output_throughput": output / duration,
        "total_token_throughput": (output + 80000) / duration,
        "concurrency": 7.5,
        "accept_length": 2.875,
        "acceptance_rate": 0.625,
        **latencies,
        "random_input_len": 1024,
        "random_output_len": 200,
        "benchmark_backend": "ATOM",
        "tensor_parallel_size": 8,
    }


def atom_dashboard_data() -> dict[str, Any]:
    extra = "Run: https://example.org/1 | Threshold: 0.94"
    benches = [
        {"name": "ATOM::R1 accuracy (GSM8K)", "unit": "score", "value": 0.9431, "extra": extra},
        {"name": "ATOM::R1 MTP acceptance (%)", "unit": "%", "value": 62.5, "extra": extra},
        {"name": "ATOM::R1 avg toks/fwd (tok/fwd)", "unit": "tok/fwd", "value": 2.88},
        {"name": "ATOM::R1 throughput", "unit": "tok/s", "value": 812.5},
    ]
    commit = {"id": "1aadc807ec9f978379fb3cf2828b03450e2e816c", "message": "x", "timestamp": "2026-08-22T10:00:00Z"}
    run = {"commit": commit, "date": 1787000000000, "tool": "customBiggerIsBetter", "benches": benches}
    return {
        "lastUpdate": 1787000000000,
        "repoUrl": "https://github.com/ROCm/ATOM",
        "entries": {"Accuracy": [run]},
    }


def script(document: Any, name: str = "BENCHMARK_DATA") -> str:
    return f"window.{name} = {json.dumps(document, indent=2)}"


GOLDEN = """\
# dataset: coding | temperature: 1.0 | output_len: 4096
_metadata:
  draft-model: Inferact/MiniMax-M3-EAGLE3
minimax-m3:
  thinking_on:
    1: 1.78
    3: 2.83
  thinking_off:
    3: 2.93
"""


def encode(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode()


def file(document: Any, name: str = "result.json") -> ResultBytes:
    """A file of a document, or of bytes as they are."""
    if isinstance(document, str):
        document = document.encode()
    return ResultBytes(name, document if isinstance(document, bytes) else encode(document))


Keys = tuple[str | int, ...]


def walk(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Every place in a document."""
    if keys:
        yield keys
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*keys, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from walk(item, (*keys, i))


def put(document: Any, keys: Keys, value: Any) -> Any:
    """A copy with one value put in place of another."""
    made = copy.deepcopy(document)
    box = made
    for key in keys[:-1]:
        box = box[key]
    box[keys[-1]] = value
    return made


def drop(document: Any, keys: Keys) -> Any:
    """A copy without one value."""
    made = copy.deepcopy(document)
    box = made
    for key in keys[:-1]:
        box = box[key]
    del box[keys[-1]]
    return made


def refusal(read: Callable[[ResultBytes], Any], document: Any) -> ResultError:
    """The error with which a reader refuses a document."""
    try:
        made = read(file(document))
    except ResultError as error:
        return error
    raise AssertionError(f"was read: {made}")
