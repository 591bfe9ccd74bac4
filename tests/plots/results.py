"""Result files to draw, and runs that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from console.release.canonical import sha256
from tests.console import runs
from tests.console.runs import Run


def training(steps: int = 40, every: int = 5) -> dict[str, Any]:
    log = [
        {"step": step, "loss": 4.6 / (1 + step / 40), "grad_norm": 2.0, "accuracy": 1 - 1 / (1 + step / 30)}
        for step in range(every, every * steps + 1, every)
    ]
    return {"schema_version": 1, "log_history": log}


def benchmark() -> dict[str, Any]:
    levels = (1, 8, 32)
    arm_a = [{"concurrency": level, "output_tokens_per_s": 50.0 * level} for level in levels]
    arm_b = [
        {"concurrency": level, "output_tokens_per_s": 90.0 * level, "acceptance_length": 3.38,
         "counters": {"drafts": 1000, "draft_tokens": 4000, "accepted": 2380, "per_position": [840, 650, 500, 390]}}
        for level in levels
    ]  # fmt: skip
    return {
        "arms": {"A": {"points": arm_a}, "B": {"points": arm_b}},
        "speedup": [{"concurrency": level, "value": 1.8} for level in levels],
    }


def keep(run: Run, name: str, kind: str, text: bytes) -> None:
    """Log that a result file was read, and keep its copy."""
    attempt = run.writer.state.attempt(name)
    assert attempt is not None
    copy = f"results/{name}/{kind}.json"
    (run.path / copy).parent.mkdir(parents=True, exist_ok=True)
    (run.path / copy).write_bytes(text)
    run.record("result_read", f"Read {kind} of {name}", stage=attempt.stage, id=name, kind=kind,
               path=f"{attempt.job_dir}/{kind}.json", sha256=sha256(text), size=len(text), copy=copy)  # fmt: skip


def measured(path: Path) -> Run:
    """A run that has trained and measured; a value of the training is missing and one is not finite."""
    run = runs.ready(path)
    log = training()
    log["log_history"][7]["loss"] = float("nan")
    del log["log_history"][20]["accuracy"]
    for attempt in run.writer.state.attempts:
        for result in attempt.results:
            path = run.path / result.copy
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f'{{"schema_version": 1, "kind": "{result.kind}", "token": "{attempt.token}"}}'.encode())
    attempts = {attempt.task: attempt.id for attempt in run.writer.state.attempts}
    keep(run, attempts["train"], "regression_check", json.dumps(log).encode())
    keep(run, attempts["bench"], "bench", json.dumps(benchmark()).encode())
    return run
