"""What goes wrong with real engines ends in a result file, and the gate over that file names the fault."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backends.payloads.endpoint import told_error
from gates.registry import run as run_gate
from tests.payloads.running import TOKEN, K, processes_in, result, run

SERVER = Path(__file__).parent / "dying_server.py"
PROMPTS = "".join(json.dumps({"prompt": [i, i + 1]}) + "\n" for i in range(1, 13))


def command(folder: Path, *options: object) -> str:
    """A shell command that starts the server of these tests."""
    written = " ".join(map(str, options))
    return f"exec '{sys.executable}' '{SERVER}' --port {{port}} --drafter '{folder}/draft' {written}"


def probe(program: str, folder: Path, *more: object) -> dict[str, Any]:
    """Run a probe; gives its result file, and makes sure that it left no server."""
    (folder / "prompts.jsonl").write_text(PROMPTS)
    standard = ["--model", "m", "--drafter", folder / "draft", "--draft-tokens", K, "--server-timeout", 30]
    done = run(program, *standard, *more, cwd=folder)
    document = result(folder / program.replace(".py", ".json"))
    assert done.returncode == (0 if document["stage"] == "done" else 1), done.stdout + done.stderr
    assert not processes_in(folder)
    return document


def smoke(folder: Path, *options: object, more: tuple[object, ...] = ()) -> dict[str, Any]:
    prompts = ("--prompts", folder / "prompts.jsonl", "--max-tokens", 20)
    return probe("smoke.py", folder, "--server-command", command(folder, *options), *prompts, *more)


def judge(gate: str, folder: Path, **expected: Any) -> Any:
    files = {gate: (folder / f"{gate}.json").read_bytes()}
    return run_gate(gate, files, {"token": TOKEN, "drafter": str(folder / "draft"), "draft_tokens": K, **expected})


def test_the_server_of_these_tests_passes_as_long_as_it_lives(tmp_path: Path) -> None:
    assert smoke(tmp_path)["stage"] == "done"
    verdict = judge("smoke", tmp_path)
    assert verdict.passed, verdict.detail


@pytest.mark.parametrize(
    ("option", "stage", "cls", "words"),
    [
        ("--serves other", "model_mismatch", "MEASUREMENT_INVALID", "served is other, not m"),
        ("--drafter /elsewhere", "model_mismatch", "MEASUREMENT_INVALID", "its drafter is /elsewhere, not"),
        ("--alone", "drafter_inactive", "CHECKPOINT_NOT_SERVABLE", "no counters of speculative decoding"),
    ],
    ids=["another target", "another drafter", "no drafter"],
)
def test_another_server_than_was_asked_for_is_named_before_anything_is_asked_of_it(
    tmp_path: Path, option: str, stage: str, cls: str, words: str
) -> None:
    done = smoke(tmp_path, option)
    assert (done["stage"], done["prompts_passed"], done["outputs"]) == (stage, 0, [])
    verdict = judge("smoke", tmp_path)
    assert verdict.failure_class == cls
    assert words in verdict.detail


def test_a_server_that_is_healthy_and_dies_on_the_first_request_died(tmp_path: Path) -> None:
    done = smoke(tmp_path, "--dies first-request")
    assert (done["stage"], done["prompts_passed"], done["server"]["exit_status"]) == ("server_died", 0, 1)
    assert done["server"]["started_in_s"] is not None
    assert "HTTP 500" in done["outputs"][0]["error"]
    verdict = judge("smoke", tmp_path)
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "server_died" in verdict.detail
    assert "Engine core died" in verdict.detail


@pytest.mark.parametrize("way", ["mid-answer", "mid-stream"])
def test_a_worker_that_dies_amid_the_requests_is_a_server_that_died(tmp_path: Path, way: str) -> None:
    """A stream that breaks off says HTTP 200 all the same, and ends as if it were whole."""
    done = smoke(tmp_path, "--dies", way, "--after", 5)
    assert (done["stage"], done["prompts_passed"]) == ("server_died", 5)
    errors = [output["error"] for output in done["outputs"] if output["error"]]
    assert "EngineCore encountered an issue" in errors[0]
    assert ("HTTP 200" in errors[0]) == (way == "mid-stream")
    verdict = judge("smoke", tmp_path)
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "server_died" in verdict.detail


def test_a_stream_that_breaks_off_on_a_server_that_lives_on_is_no_answer(tmp_path: Path) -> None:
    """The server was found running, so its end is not ours to see; the broken answer is."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    other = tmp_path / "elsewhere"
    other.mkdir()
    written = command(tmp_path, "--dies mid-stream --after 3").replace("{port}", str(port))
    with subprocess.Popen(["/bin/sh", "-c", written], cwd=other, stdout=subprocess.DEVNULL) as server:
        prompts = ("--prompts", tmp_path / "prompts.jsonl", "--max-tokens", 20)
        done = probe("smoke.py", tmp_path, "--base-url", f"http://127.0.0.1:{port}", *prompts)
        server.kill()
    assert (done["stage"], done["prompts_passed"]) == ("generation_failed", 3)
    verdict = judge("smoke", tmp_path)
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "EngineCore encountered an issue" in verdict.detail


@pytest.mark.parametrize("way", ["mid-answer", "mid-stream"])
def test_a_worker_that_dies_amid_the_accuracy_run_leaves_no_accuracy(tmp_path: Path, way: str) -> None:
    done = accuracy(tmp_path, "--dies", way, "--after", 3)
    assert (done["stage"], done["answered"]) == ("server_died", 3)
    assert any("EngineCore encountered an issue" in row["error"] for row in done["outputs"])
    verdict = judge_accuracy(tmp_path, {})
    assert not verdict.passed
    assert "server_died" in verdict.detail


def accuracy(folder: Path, *options: object) -> dict[str, Any]:
    lines = [{"question": f"What is 7 in row {i}?", "answer": "#### 7"} for i in range(12)]
    (folder / "gsm8k.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ("--questions", folder / "gsm8k.jsonl", "--samples", 8, "--shots", 2, "--concurrency", 1)
    return probe("accuracy.py", folder, "--server-command", command(folder, *options), *asked)


def judge_accuracy(folder: Path, server: dict[str, Any]) -> Any:
    written = {"source": "these tests", "date": "2026-12-04"}
    bars = {
        "acceptance_length": {"bar": 1.8, **written},
        "accuracy": {"bar": 0.9, "task": "gsm8k", "samples": 8, "shots": 2, **written},
    }
    entry = {"model": "m", "drafter": "d", "draft_tokens": K, "server": server, "bars": bars}
    catalog = json.dumps({"schema_version": 1, "entries": [entry]}).encode()
    files = {"accuracy": (folder / "accuracy.json").read_bytes(), "catalog": catalog}
    return run_gate("accuracy", files, {"token": TOKEN, "model": "m"})


@pytest.mark.parametrize("eager", [False, True])
def test_graphs_that_are_off_though_required_invalidate_the_run_and_are_named(tmp_path: Path, eager: bool) -> None:
    done = accuracy(tmp_path, *(["--eager"] if eager else []))
    assert (done["stage"], done["server"]["enforce_eager"]) == ("done", eager)
    verdict = judge_accuracy(tmp_path, {"enforce_eager": False})
    assert verdict.passed != eager, verdict.detail
    if eager:
        assert verdict.failure_class == "MEASUREMENT_INVALID"
        (failed,) = (check for check in verdict.checks if not check.ok)
        assert (failed.field, failed.measured) == ("enforce_eager", True)


@pytest.mark.parametrize("eager", [False, True])
def test_graphs_that_are_off_stop_a_smoke_test_that_requires_them(tmp_path: Path, eager: bool) -> None:
    options = ["--eager"] if eager else []
    done = smoke(tmp_path, *options, more=("--require", "enforce_eager=false", "--require", "method=dflash"))
    assert done["stage"] == ("model_mismatch" if eager else "done"), done["detail"]
    verdict = judge("smoke", tmp_path)
    assert verdict.passed != eager
    if eager:
        assert verdict.failure_class == "MEASUREMENT_INVALID"
        assert "enforce_eager = True, not False" in verdict.detail


def test_a_busy_port_is_a_matter_of_the_machine(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        done = smoke(tmp_path, more=("--port", holder.getsockname()[1]))
    assert done["stage"] == "port_in_use"
    verdict = judge("smoke", tmp_path)
    assert verdict.failure_class == "INFRA_TRANSIENT"
    assert "port_in_use" in verdict.detail


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ('{"error": {"message": "Loading model", "code": 503}}', "Loading model"),
        ('data: {"choices": []}\r\n\r\ndata: {"error": "gone"}\r\n\r\ndata: [DONE]\r\n', "gone"),
        ('{"choices": [], "error": null}', ""),
        ('{"choices": [{"text": "\u2028{\\"error\\": 1}\u2028"}]}', ""),
        ('{"choices": [{"text": "\u2028{"error": 1}\u2028"}]}', ""),
        ("[" * 100_000, ""),
        ("", ""),
    ],
)
def test_an_error_is_read_where_the_server_says_it_and_not_out_of_a_text(answer: str, error: str) -> None:
    told = told_error(answer.encode())
    assert told.endswith(error)
    assert bool(told) == bool(error)
