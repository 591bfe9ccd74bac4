"""The A|B benchmark against real servers, at a tiny scale."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate
from tests.payloads.running import (
    MODEL,
    TOKEN,
    K,
    Model,
    odd_command,
    processes_in,
    result,
    run,
    server_command,
    start,
    until,
)

MANIFEST = "ab" * 32


def arguments(made: Model, /, **changes: Any) -> list[object]:
    standard = {
        "server_a": server_command(made), "server_b": server_command(made, drafter=made.dflash2), "model": MODEL,
        "drafter": made.dflash2, "draft_tokens": K, "manifest_sha256": MANIFEST, "prompts": made.prompts,
        "concurrency": "1,3", "requests_per_point": 8, "warmup_requests": 2, "max_tokens": 12, "exact_prompts": 16,
        "exact_concurrency": 3, "server_timeout": 30,
    }  # fmt: skip
    given = {**standard, **changes}
    return [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]


def bench(made: Model, folder: Path, /, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the benchmark; gives both results, and makes sure that no server is left."""
    done = run("bench.py", *arguments(made, **changes), cwd=folder)
    measured, exact = result(folder / "bench.json"), result(folder / "exact_match.json")
    assert done.returncode == (0 if measured["stage"] == "done" else 1), done.stdout + done.stderr
    assert exact["stage"] == measured["stage"]
    assert not processes_in(folder)
    return measured, exact


def judge(folder: Path, model: Model) -> tuple[Any, Any]:
    expected = {"token": TOKEN, "drafter": str(model.dflash2), "manifest_sha256": MANIFEST, "draft_tokens": K}
    return (
        # How much faster so few requests are says nothing: only that everything fits together is looked at.
        run_gate(
            "bench",
            {"bench": (folder / "bench.json").read_bytes()},
            {**expected, "concurrency": (1, 3), "speedup_slack": 0.99},
        ),
        run_gate("correctness", {"exact_match": (folder / "exact_match.json").read_bytes()}, expected),
    )


def test_a_measurement_in_two_rounds_passes_both_gates(model: Model, tmp_path: Path) -> None:
    measured, exact = bench(model, tmp_path, rounds=2)
    for verdict in judge(tmp_path, model):
        assert verdict.passed, verdict.detail
    assert measured["arms"]["A"]["server_config"] == measured["arms"]["B"]["server_config"]
    assert measured["arms"]["A"]["server_config"]["OPENBLAS_NUM_THREADS"] == "1"
    for arm in "AB":
        assert len(measured["arms"][arm]["starts"]) == 2
        for point in measured["arms"][arm]["points"]:
            assert (point["requested"], point["output_tokens"]) == (16, 16 * 12)
            assert point["duration_s"] == pytest.approx(sum(point["round_durations_s"]))
    lengths = [point["acceptance_length"] for point in measured["arms"]["B"]["points"]]
    # The same prompts at each concurrency are drafted the same; what came before the clock started is not in it.
    assert lengths[0] == pytest.approx(lengths[1], rel=0.02)
    assert exact["exact_match"] >= 15 / 16
    assert {len(row[arm]) for row in exact["outputs"] for arm in ("a", "b", "control")} == {12}


def test_requests_that_fail_are_counted_and_invalidate_the_measurement(model: Model, tmp_path: Path) -> None:
    measured, exact = bench(
        model,
        tmp_path,
        server_a=server_command(model, fault="draft-batch"),
        server_b=server_command(model, drafter=model.dflash2, fault="draft-batch"),
        requests_per_point=16,
    )
    assert measured["stage"] == "done"
    alone, drafting = (measured["arms"][arm]["points"] for arm in "AB")
    assert [point["failed"] for point in alone] == [0, 0]
    assert (drafting[0]["failed"], drafting[1]["failed"] > 0) == (0, True)
    assert "mixed up" in drafting[1]["first_error"]
    assert measured["arms"]["A"]["server_config"] == measured["arms"]["B"]["server_config"]
    assert any("b: HTTP 500" in (row["error"] or "") for row in exact["outputs"])
    assert [verdict.failure_class for verdict in judge(tmp_path, model)] == ["MEASUREMENT_INVALID"] * 2


@pytest.mark.parametrize(
    ("changes", "stage", "arm"),
    [
        (lambda model: {"server_b": server_command(model)}, "drafter_inactive", "B"),
        (lambda model: {"server_a": server_command(model, drafter=model.dflash2)}, "model_mismatch", "A"),
        (lambda model: {"server_b": server_command(model, drafter=model.dflash)}, "model_mismatch", "B"),
        (lambda model: {"server_b": "echo broken; exit 4"}, "server_died", "B"),
        (
            lambda model: {"server_a": server_command(model, fault="never-healthy"), "server_timeout": 1},
            "server_timeout",
            "A",
        ),
        (lambda model: {"server_a": odd_command("--oddity page"), "model": "m"}, "metrics_unreadable", "A"),
    ],
)
def test_an_arm_that_cannot_be_measured_is_named_with_its_stage(
    model: Model, tmp_path: Path, changes: Any, stage: str, arm: str
) -> None:
    measured, exact = bench(model, tmp_path, **changes(model))
    assert measured["stage"] == stage
    assert measured["detail"].startswith(f"arm {arm}: ")
    assert exact["outputs"] == []
    assert all(not verdict.passed for verdict in judge(tmp_path, model))
    assert len(measured["arms"]["A"]["points"]) == (0 if arm == "A" else 2)


def test_a_server_that_dies_in_the_middle_died(model: Model, tmp_path: Path) -> None:
    """Killed while it is measured: no number of the point counts, and both files say so."""
    process = start("bench.py", *arguments(model, requests_per_point=5000, concurrency="2"), cwd=tmp_path)
    log = tmp_path / "server-a-1.log"
    until(lambda: log.exists() and "serving" in log.read_text(), "arm A is up")
    (server,) = set(processes_in(tmp_path)) - {process.pid}
    os.kill(server, signal.SIGKILL)
    process.communicate(timeout=60)
    measured = result(tmp_path / "bench.json")
    assert (measured["stage"], result(tmp_path / "exact_match.json")["stage"]) == ("server_died", "server_died")
    assert measured["arms"]["A"]["starts"][0]["exit_status"] == -9


def test_told_to_end_it_ends_its_server_and_writes_both_results(model: Model, tmp_path: Path) -> None:
    process = start("bench.py", *arguments(model, requests_per_point=5000), cwd=tmp_path)
    log = tmp_path / "server-a-1.log"
    until(lambda: log.exists() and "serving" in log.read_text(), "arm A is up")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    for name in ("bench.json", "exact_match.json"):
        assert (result(tmp_path / name)["stage"], "signal 15" in result(tmp_path / name)["detail"]) == (
            "unexpected",
            True,
        )
    assert not processes_in(tmp_path)


def test_prompts_that_cannot_be_read_end_it_before_a_server_is_started(model: Model, tmp_path: Path) -> None:
    measured, _ = bench(model, tmp_path, prompts=tmp_path / "none", server_a="touch started")
    assert measured["stage"] == "unexpected"
    assert not (tmp_path / "started").exists()
    assert json.loads((tmp_path / "bench.json").read_text())["prompts_sha256"] is None
