"""The smoke test over a real vLLM that is not what was asked for, or dies: its result file and its gate name the fault.

The same faults, and more, are made by a scripted server in tests/payloads/test_engine_faults.py. These here keep that
script honest.
"""

from __future__ import annotations

import os
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.engine.recipe import tiny_qwen
from tests.engine.smoking import PATIENCE_S, SEED, begin, end, served
from tests.payloads.running import processes_in, until

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("engine")]


def test_a_drafter_of_another_size_is_healthy_and_dies_on_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tiny_qwen, "HIDDEN", 96)
        tiny_qwen.make("random-dflash", str(tmp_path / "drafter"), SEED)
    done, verdict = end(tmp_path, begin(tmp_path, served(tmp_path, True), "--num-prompts", 4, "--max-tokens", 16))
    assert (done["stage"], done["prompts_passed"]) == ("server_died", 0), done["detail"]
    assert done["server"]["started_in_s"] > 0
    assert "HTTP 500" in done["outputs"][0]["error"]
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "server_died" in verdict.detail


def test_an_engine_whose_worker_is_killed_amid_the_requests_died(tmp_path: Path) -> None:
    tiny_qwen.make("dflash", str(tmp_path / "drafter"), SEED)
    port = free_port()
    more = ("--num-prompts", 64, "--max-tokens", 900, "--concurrency", 4, "--port", port)
    process = begin(tmp_path, served(tmp_path, True), *more)
    until(lambda: generated(port) or process.poll() is not None, "the engine writes", PATIENCE_S)
    assert process.poll() is None, process.communicate()[0]
    os.kill(worker(tmp_path), signal.SIGKILL)
    done, verdict = end(tmp_path, process)
    assert done["stage"] == "server_died", done["detail"]
    assert done["prompts_passed"] < 64
    assert any("EngineCore" in (output["error"] or "") for output in done["outputs"])
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "server_died" in verdict.detail


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def generated(port: int) -> bool:
    """Whether a server on a port has written tokens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return False
    return any(line.startswith("vllm:generation_tokens_total") and float(line.split()[-1]) > 0 for line in lines)


def worker(folder: Path) -> int:
    """The process that computes: vLLM names it, and keeps it in the folder that it was started in."""
    names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in processes_in(folder)}
    return next(pid for pid, name in names.items() if name.startswith("VLLM::EngineCor"))


def test_a_server_without_drafter_is_named_before_anything_is_asked_of_it(tmp_path: Path) -> None:
    tiny_qwen.make("dflash", str(tmp_path / "drafter"), SEED)
    done, verdict = end(tmp_path, begin(tmp_path, served(tmp_path, False), "--num-prompts", 4, "--max-tokens", 16))
    assert (done["stage"], done["outputs"]) == ("drafter_inactive", [])
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "no counters of speculative decoding" in verdict.detail
