"""`gonogo demo` as a newcomer runs it: real jobs, real measurements, and every way to fail ends where it must."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backends.sandbox import lifecycle
from backends.sandbox.store import read_record
from console.commands.demo import prepare_cluster, release_text
from console.release.folder import read_state
from console.release.state import RunState, Stage


def gonogo(*arguments: object) -> subprocess.CompletedProcess[str]:
    """One `gonogo` command."""
    command = [sys.executable, "-m", "console", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=110)


@contextmanager
def ended(place: Path) -> Iterator[None]:
    """End the embedded cluster of a test, however the test ends."""
    try:
        yield
    finally:
        if place.exists():
            lifecycle.end_jobs(place)
            lifecycle.stop(place)


def read(run_dir: Path) -> RunState:
    state = read_state(run_dir)
    assert state is not None
    return state


def tasks(place: Path) -> list[str]:
    """The tasks of the accepted jobs, in order, by the cluster's own record."""
    return [item["name"].rpartition("-")[0].rpartition("-")[2] for item in read_record(place / "accepted.jsonl")]


def test_a_headless_demo_is_approved_from_a_second_terminal(tmp_path: Path) -> None:
    run_dir, place = tmp_path / "demo", tmp_path / "demo.cluster"
    command = [sys.executable, "-m", "console", "demo", "--headless", "--run-dir", str(run_dir), "--wait", "60"]
    with ended(place), subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if " Proposed " in line:
                digest = line.strip().rpartition("digest ")[2]
                name = line.partition(" Proposed ")[2].partition(":")[0]
                decided = gonogo("queue", "approve", run_dir, name, "--digest", digest)
                assert decided.returncode == 0, decided.stderr
        assert demo.wait(60) == 0, "".join(said)[-3000:]
        accepted = tasks(place)
    state = read(run_dir)
    assert (state.verdict, state.interventions) == ("DRAFTER_READY", 0)
    assert {attempt.decided_by.partition(":")[0] for attempt in state.attempts} == {"operator"}
    assert accepted == ["stage_target", "data", "train", "smoke", "bench"]
    bench = next(gate for gate in state.stage("bench").gates if gate.name == "bench")
    assert bench.facts["acceptance_length_c1"] > 1.5
    assert bench.facts["speedup_c1"] > 1.0
    report = gonogo("report", run_dir, "--json")
    assert json.loads(report.stdout)["verdict"] == "DRAFTER_READY"


SMALL = {
    "export": {},
    "server": {"server_timeout": 2},
    "draft-head": {},
    "freeze": {},
    "bench": {"requests_per_point": 32, "bench_rounds": 1, "exact_prompts": 16, "server_timeout": 15},
}
"""Settings that make the wait for a failure shorter; what fails, fails as it does with those of the recipe."""


@contextmanager
def failing_release(folder: Path, fail: str) -> Iterator[tuple[int, RunState, Path]]:
    """A release on an embedded cluster in which one thing is broken for real, conducted to its end."""
    place, run_dir = folder / "cluster", folder / "run"
    with ended(place):
        clusters = prepare_cluster(place)
        overrides = "".join(f"  {name}: {value}\n" for name, value in SMALL[fail].items())
        (folder / "release.yaml").write_text(release_text("dflash2", fail) + overrides)
        places = ["--clusters", clusters, "--run-dir", run_dir]
        done = gonogo("run", folder / "release.yaml", *places, "--headless", "--approve-submissions", "none")
        yield done.returncode, read(run_dir), place


def classes(stage: Stage) -> list[tuple[str, str]]:
    return [(item.failure_class, item.step) for item in stage.triage]


def outputs(run_dir: Path, pattern: str) -> list[dict[str, Any]]:
    """The result files that the gates read, oldest attempt first."""
    return [json.loads(path.read_bytes()) for path in sorted((run_dir / "results").glob(pattern))]


def test_a_corrupt_export_is_infeasible_before_anything_is_served(tmp_path: Path) -> None:
    with failing_release(tmp_path, "export") as (status, state, place):
        assert (status, state.verdict, state.failure_class) == (1, "INFEASIBLE", "EXPORT_INVALID")
        assert classes(state.stage("train")) == [("EXPORT_INVALID", "verdict")]
        assert tasks(place) == ["stage_target", "data", "train"]


def test_a_server_that_never_comes_up_is_tried_once_more_with_a_longer_limit_and_a_new_ok(tmp_path: Path) -> None:
    with failing_release(tmp_path, "server") as (status, state, place):
        assert (status, state.verdict, state.failure_class) == (1, "INFEASIBLE", "CHECKPOINT_NOT_SERVABLE")
        assert tasks(place) == ["stage_target", "data", "train", "smoke", "smoke"]
        first, second = (item for item in state.attempts if item.task == "smoke")
        assert first.digest != second.digest
        assert second.decided_at > first.decided_at
        limits = [variable(tmp_path / "run", item.id, "SERVER_TIMEOUT") for item in (first, second)]
        assert limits == ["2", "4"]
        assert [item["stage"] for item in outputs(tmp_path / "run", "*smoke*/smoke.json")] == ["server_timeout"] * 2


def variable(run_dir: Path, name: str, variable: str) -> str:
    """A variable of a job that was submitted."""
    job = json.loads((run_dir / "submissions" / name / "job.json").read_bytes())
    return str(dict(job["environment"])[variable])


def test_a_broken_draft_head_loses_acceptance_and_changes_no_output(tmp_path: Path) -> None:
    with failing_release(tmp_path, "draft-head") as (status, state, place):
        assert (status, state.verdict, state.failure_class) == (1, "INFEASIBLE", "ACCEPTANCE_REGRESSION")
        assert tasks(place) == ["stage_target", "data", "train", "smoke"]
        (smoke,) = outputs(tmp_path / "run", "*smoke*/smoke.json")
        assert smoke["acceptance_length"] < 1.2
        assert smoke["counters"]["drafts"] > 0
        assert all(item["token_ids"] == item["reference_token_ids"] for item in smoke["outputs"])


def test_a_freeze_that_does_not_hold_is_anomalous_and_never_benchmarked(tmp_path: Path) -> None:
    with failing_release(tmp_path, "freeze") as (status, state, place):
        assert (status, state.verdict, state.failure_class) == (3, "ANOMALOUS", "FREEZE_FAILED")
        assert tasks(place) == ["stage_target", "data", "train", "smoke"]


def test_an_invalid_measurement_is_measured_once_more_and_then_anomalous(tmp_path: Path) -> None:
    with failing_release(tmp_path, "bench") as (status, state, place):
        assert (status, state.verdict, state.failure_class) == (3, "ANOMALOUS", "MEASUREMENT_INVALID")
        assert classes(state.stage("bench")) == [("MEASUREMENT_INVALID", "retry"), ("MEASUREMENT_INVALID", "verdict")]
        assert tasks(place) == ["stage_target", "data", "train", "smoke", "bench", "bench"]


def test_resumed_after_its_cluster_ended_too_the_demo_goes_on(tmp_path: Path) -> None:
    run_dir, place = tmp_path / "demo", tmp_path / "demo.cluster"
    with ended(place):
        stopped = gonogo("demo", "--headless", "--run-dir", run_dir, "--wait", "0")
        assert stopped.returncode == 5, stopped.stdout
        assert lifecycle.stop(place)
        again = gonogo("resume", run_dir, "--headless", "--wait", "0")
        assert again.returncode == 5, again.stdout + again.stderr
        assert [item.outcome for item in read(run_dir).attempts] == ["proposed"]
        assert read_record(place / "accepted.jsonl") == []


@pytest.mark.parametrize("options", [["--fail", "nothing"], ["--algorithm", "eagle3"]])
def test_what_the_demo_does_not_know_is_bad_input(options: list[str]) -> None:
    done = gonogo("demo", "--headless", *options)
    assert done.returncode == 2
    assert "invalid choice" in done.stderr


def test_the_commands_of_the_demo_are_found_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "console", "demo", "--headless", "--run-dir", "r", "--wait", "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        timeout=60,
    )
    with ended(tmp_path / "r.cluster"):
        assert done.returncode == 5, done.stderr
