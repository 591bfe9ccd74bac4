"""Result files that pass, one builder for each kind; tests change one thing in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gates.freeze import manifest_line
from gates.registry import run
from gates.verdict import Check, FailureClass, Verdict

TOKEN = "0123456789abcdef"
DRAFTER = "/cluster/drafts/tiny/dflash2/run-1"
EXPORT = "/cluster/work/gonogo/run-1/train/train-1-01234567/export"
TARGET = "/cluster/hf/demo--tiny-target"
MODEL = "demo/tiny-target"
K = 4


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def head() -> dict[str, Any]:
    return {"schema_version": 1, "producer": "test", "token": TOKEN}


def ids(seed: int, count: int = 24) -> list[int]:
    """Token ids that differ from seed to seed and within themselves."""
    return [(seed * 131 + i * i + 7) % 997 for i in range(count)]


def counters(drafts: int = 100, positions: tuple[int, ...] = (60, 30, 12, 4), k: int = K) -> dict[str, Any]:
    return {
        "drafts": drafts,
        "draft_tokens": drafts * k,
        "accepted_tokens": sum(positions),
        "per_position": list(positions),
    }


def length(counted: Mapping[str, Any]) -> float:
    return 1 + counted["accepted_tokens"] / counted["drafts"]


def smoke() -> dict[str, Any]:
    counted = counters()
    return {
        **head(),
        "stage": "done",
        "detail": "",
        "server": {
            "base_url": "http://127.0.0.1:8000",
            "model": MODEL,
            "drafter": EXPORT,
            "num_draft_tokens": K,
            "version": "tiny 1",
            "command": "serve",
            "exit_status": 0,
            "log_tail": "",
            "started_in_s": 1.5,
            "timeout_s": 30,
        },
        "requested": {"model": MODEL, "drafter": EXPORT, "num_draft_tokens": K},
        "prompts_expected": 8,
        "prompts_passed": 8,
        "outputs": [
            {
                "id": f"p{i}",
                "token_ids": ids(i),
                "reference_token_ids": ids(i),
                "finish_reason": "length",
                "error": None,
            }
            for i in range(8)
        ],
        "counters": counted,
        "acceptance_length": length(counted),
        "acceptance_rate": counted["accepted_tokens"] / counted["draft_tokens"],
        "per_position_rates": [count / counted["drafts"] for count in counted["per_position"]],
        "reference_identical": 8,
    }


def point(concurrency: int, *, drafted: bool) -> dict[str, Any]:
    requests = max(16, concurrency)
    tokens = requests * 32
    duration = round((4.0 if drafted else 5.6) * requests / concurrency**0.5 / 16, 3)
    drafts = tokens // 2
    counted = counters(drafts, (drafts * 6 // 10, drafts * 3 // 10, drafts // 10, drafts // 25)) if drafted else None
    return {
        "concurrency": concurrency,
        "requested": requests,
        "completed": requests,
        "failed": 0,
        "duration_s": duration,
        "output_tokens": tokens,
        "output_tokens_per_s": tokens / duration,
        "mean_output_tokens": 32.0,
        "mean_ttft_s": 0.05,
        "counters": counted,
        "acceptance_length": length(counted) if counted else None,
    }


def bench() -> dict[str, Any]:
    config = {"model": MODEL, "max_num_seqs": 32, "dtype": "float32", "threads": 2, "version": "tiny 1"}
    arms = {
        "A": {
            "model": MODEL,
            "drafter": None,
            "drafter_manifest_sha256": None,
            "num_draft_tokens": None,
            "server_config": dict(config),
            "points": [point(c, drafted=False) for c in (1, 8, 32)],
        },
        "B": {
            "model": MODEL,
            "drafter": DRAFTER,
            "drafter_manifest_sha256": digest("manifest"),
            "num_draft_tokens": K,
            "server_config": dict(config),
            "points": [point(c, drafted=True) for c in (1, 8, 32)],
        },
    }
    speedup = [
        {"concurrency": a["concurrency"], "value": b["output_tokens_per_s"] / a["output_tokens_per_s"]}
        for a, b in zip(arms["A"]["points"], arms["B"]["points"], strict=True)
    ]
    return {
        **head(),
        "stage": "done",
        "detail": "",
        "prompts_sha256": digest("prompts"),
        "sampling": {"temperature": 0.0, "max_tokens": 32, "seed": 0, "ignore_eos": True},
        "warmup_requests": 2,
        "arms": arms,
        "speedup": speedup,
    }


def exact_match(prompts: int = 24, *, differ: int = 1, control_differs: int = 1) -> dict[str, Any]:
    """`differ` prompts of B and `control_differs` of the control part from A at their last token."""

    def output(i: int, changed: bool) -> list[int]:
        made = ids(i)
        return [*made[:-1], made[-1] + 1] if changed else made

    return {
        **head(),
        "stage": "done",
        "detail": "",
        "compared": "token_ids",
        "prompts": prompts,
        "max_tokens": 32,
        "outputs": [
            {
                "id": f"p{i}",
                "prompt_sha256": digest(f"prompt {i}"),
                "a": output(i, False),
                "control": output(i, i < control_differs),
                "b": output(i, i < differ),
            }
            for i in range(prompts)
        ],
        "exact_match": (prompts - differ) / prompts if prompts else 0,
        "control_exact_match": (prompts - control_differs) / prompts if prompts else 0,
    }


def config(algorithm: str = "dflash2") -> dict[str, Any]:
    inner: dict[str, Any] = {"mask_token_id": 250, "target_layer_ids": [1, 3], "block_size": 8}
    if algorithm == "dflash2":
        inner |= {
            "projector_type": "dflash2",
            "conv_kernel_size": 2,
            "conv_group_size": 16,
            "selector_rank": 32,
            "selector_top_k": 16,
        }
    return {
        "architectures": ["DFlash2DraftModel" if algorithm == "dflash2" else "DFlashDraftModel"],
        "model_type": "qwen3",
        "block_size": 8,
        "dflash_config": inner,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "vocab_size": 256,
        "num_target_layers": 4,
        "rope_theta": 10000.0,
    }


def target_config() -> dict[str, Any]:
    return {
        "architectures": ["TinyForCausalLM"],
        "hidden_size": 64,
        "vocab_size": 256,
        "num_hidden_layers": 4,
        "rope_theta": 10000.0,
    }


def export_check(algorithm: str = "dflash2") -> dict[str, Any]:
    names = ("fc.weight", "layers.0.self_attn.q_proj.weight", "candidate_selector.predecessor_codebook")
    tensors = [
        {"name": name, "dtype": "BF16", "shape": [64, 64], "sampled": 4096, "non_finite": 0, "constant": False}
        for name in (names if algorithm == "dflash2" else names[:2])
    ]
    tensors.append(
        {"name": "norm.weight", "dtype": "BF16", "shape": [64], "sampled": 64, "non_finite": 0, "constant": True}
    )
    return {
        **head(),
        "status": "ok",
        "problems": [],
        "export_path": EXPORT,
        "config": config(algorithm),
        "target_config": target_config(),
        "tensors": tensors,
        "file": {"name": "model.safetensors", "size": 25000, "expected_size": 25000, "header_ok": True},
        "lfs_pointer": False,
        "files": [
            {"path": "config.json", "size": 600, "sha256": digest("config")},
            {"path": "model.safetensors", "size": 25000, "sha256": digest("weights")},
        ],
    }


def regression_check() -> dict[str, Any]:
    losses = [6.9, 6.8, 6.75, 6.7, 6.6, 6.55, 6.5, 6.45]
    return {
        **head(),
        "algorithm": "dflash2",
        "status": "ok",
        "detail": "",
        "global_step": 80,
        "max_steps": 80,
        "first_loss": losses[0],
        "final_loss": losses[-1],
        "final_grad_norm": 0.8,
        "final_accuracy": 0.17,
        "log": [
            {"step": 10 * (i + 1), "loss": loss, "grad_norm": 1.0 - i / 100, "accuracy": 0.1 + i / 100}
            for i, loss in enumerate(losses)
        ],
        "thresholds": {"max_final_loss": 7.0, "min_final_accuracy": 0.1},
        "export_path": EXPORT,
        "export_written_after_last_step": True,
    }


def data() -> dict[str, Any]:
    return {
        **head(),
        "status": "ok",
        "problems": [],
        "sequences": 200,
        "tokens": 12000,
        "path": "/cluster/data/train.jsonl",
        "sha256": digest("data"),
    }


def freeze(status: str = "frozen") -> dict[str, Any]:
    files = [("config.json", 600, digest("config")), ("model.safetensors", 25000, digest("weights"))]
    manifest = b"".join(manifest_line(path, sha) for path, _, sha in files)
    return {
        **head(),
        "status": status,
        "failure": "",
        "detail": "",
        "source": EXPORT,
        "destination": DRAFTER,
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "files": [{"path": path, "size": size, "sha256": sha} for path, size, sha in files],
        "bytes": sum(size for _, size, _ in files),
    }


def stage_target() -> dict[str, Any]:
    return {
        **head(),
        "status": "ok",
        "http_status": 200,
        "error": "",
        "target": MODEL,
        "revision": "a" * 40,
        "path": TARGET,
        "files": [{"path": f"model-0000{i}-of-00002.safetensors", "size": 1000 * i} for i in (1, 2)],
    }


def target_check() -> dict[str, Any]:
    return {
        **head(),
        "status": "ok",
        "problems": [],
        "path": TARGET,
        "config": target_config(),
        "index_file": "model.safetensors.index.json",
        "shards": [
            {"path": f"model-0000{i}-of-00002.safetensors", "size": 1000 * i, "expected_size": 1000 * i, "ok": True}
            for i in (1, 2)
        ],
        "total_size": 2800,
    }


CATALOGUED = "DeepSeek-R1-0528-FP4 MTP"
"""A model of the shipped catalog, with three draft tokens."""


def accuracy() -> dict[str, Any]:
    counted = counters(4000, (3200, 2480, 1800), 3)
    served = {"model": CATALOGUED, "drafter": DRAFTER, "num_draft_tokens": 3}
    return {
        **head(),
        "stage": "done",
        "detail": "",
        "task": "gsm8k",
        "samples": 200,
        "shots": 5,
        "seed": 0,
        "answered": 200,
        "correct_strict": 190,
        "correct_flexible": 191,
        "output_tokens": 11600,
        "requested": dict(served),
        "server": {**served, "version": "tiny 1"},
        "counters": counted,
        "acceptance_length": length(counted),
    }


FILES: dict[str, dict[str, Any]] = {
    "target": {"stage_target": stage_target, "target_check": target_check},
    "data": {"data": data},
    "train": {"regression_check": regression_check, "export_check": export_check},
    "export": {"export_check": export_check},
    "smoke": {"smoke": smoke},
    "freeze": {"freeze": freeze},
    "bench": {"bench": bench},
    "correctness": {"exact_match": exact_match},
    "acceptance": {"acceptance": accuracy},
    "accuracy": {"accuracy": accuracy},
}
"""For each gate its files: kind and builder."""

EXPECTED: dict[str, dict[str, Any]] = {
    "target": {"token": TOKEN, "path": TARGET, "revision": "a" * 40, "target": MODEL},
    "data": {"token": TOKEN},
    "train": {"token": TOKEN, "algorithm": "dflash2", "draft_tokens": K},
    "export": {"token": TOKEN, "algorithm": "dflash2", "draft_tokens": K, "export_path": EXPORT},
    "smoke": {"token": TOKEN, "drafter": EXPORT, "draft_tokens": K, "model": MODEL, "prompts": 8},
    "freeze": {"token": TOKEN, "source": EXPORT, "destination": DRAFTER},
    "bench": {"token": TOKEN, "drafter": DRAFTER, "manifest_sha256": digest("manifest"), "draft_tokens": K},
    "correctness": {"token": TOKEN, "drafter": DRAFTER, "manifest_sha256": digest("manifest"), "draft_tokens": K},
    "acceptance": {"token": TOKEN, "model": CATALOGUED, "drafter": "mtp", "draft_tokens": 3},
    "accuracy": {"token": TOKEN, "model": CATALOGUED, "drafter": "mtp", "draft_tokens": 3},
}
"""For each gate what a release expects of these files."""


def encode(document: Any) -> bytes:
    return json.dumps(document).encode()


def judge(gate: str, changed: Mapping[str, Any] | None = None, expected: Mapping[str, Any] | None = None) -> Verdict:
    """Run a gate over passing files, with some of them replaced, and with more expectations."""
    files = {kind: encode(make()) for kind, make in FILES[gate].items()}
    for kind, document in (changed or {}).items():
        files[kind] = document if document is None or isinstance(document, bytes) else encode(document)
    return run(gate, files, {**EXPECTED[gate], **(expected or {})})


def failing(verdict: Verdict) -> list[Check]:
    return [check for check in verdict.checks if not check.ok]


def names(verdict: Verdict) -> set[str]:
    """Names of the failing checks."""
    return {check.name for check in failing(verdict)}


def the(verdict: Verdict, name: str) -> Check:
    """The one failing check of a name."""
    (found,) = [check for check in failing(verdict) if check.name == name]
    return found


def assert_fails(verdict: Verdict, failure_class: FailureClass, *wanted: str) -> None:
    """The verdict fails with a class, and exactly these checks fail; each says where, what and against what."""
    assert not verdict.passed
    assert names(verdict) == set(wanted), verdict.detail
    assert verdict.failure_class is failure_class, verdict.detail
    for check in failing(verdict):
        assert check.file
        assert check.limit
        assert check.failure_class is not None
        assert check.name in verdict.detail or "more" in verdict.detail


GONE = object()
"""As the value of a change: the field is taken out."""


def keys_of(path: str) -> list[str | int]:
    """`arms.B.points[0].failed` as the keys that lead there."""
    return [int(part) if part.isdigit() else part for part in path.replace("]", "").replace("[", ".").split(".")]


def change(document: Any, changes: Mapping[str, Any]) -> Any:
    """The document with some of its fields replaced, by path; a function gets the old value."""
    for path, value in changes.items():
        *way, last = keys_of(path)
        place = document
        for key in way:
            place = place[key]
        if value is GONE:
            del place[last]
        else:
            place[last] = value(place[last]) if callable(value) else value
    return document
