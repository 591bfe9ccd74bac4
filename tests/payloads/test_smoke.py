"""The smoke test against real servers: what it measures, and a word for everything that may go wrong."""

from __future__ import annotations

import json
import shutil
import signal
import socket
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


def smoke(model: Model, folder: Path, command: str, *more: object, **variables: str) -> dict[str, Any]:
    """Run the smoke test; gives its result, and makes sure that no server is left."""
    standard = {
        "--server-command": command, "--model": MODEL, "--drafter": model.dflash2, "--draft-tokens": K,
        "--prompts": model.prompts, "--num-prompts": 4, "--max-tokens": 24, "--server-timeout": 30,
    }  # fmt: skip
    given = dict(zip(more[::2], more[1::2], strict=True))
    arguments = [
        part for option, value in {**standard, **given}.items() if value is not None for part in (option, value)
    ]
    done = run("smoke.py", *arguments, cwd=folder, **variables)
    document = result(folder / "smoke.json")
    assert done.returncode == (0 if document["stage"] == "done" else 1), done.stdout + done.stderr
    assert not processes_in(folder)
    return document


def judge(folder: Path, model: Model) -> Any:
    expected = {"token": TOKEN, "drafter": str(model.dflash2), "draft_tokens": K, "model": MODEL, "min_drafts": 8}
    return run_gate("smoke", {"smoke": (folder / "smoke.json").read_bytes()}, expected)


def test_a_good_drafter_passes_its_gate_beside_its_reference(model: Model, tmp_path: Path) -> None:
    reference = server_command(model)
    command = server_command(model, drafter=model.dflash2)
    done = smoke(model, tmp_path, command, "--reference-command", reference)
    verdict = judge(tmp_path, model)
    assert verdict.passed, verdict.detail
    assert (done["prompts_passed"], done["reference_identical"]) == (4, 4)
    assert done["acceptance_length"] == pytest.approx(
        1 + done["counters"]["accepted_tokens"] / done["counters"]["drafts"]
    )
    assert done["server"]["exit_status"] == 0
    assert "serving" in done["server"]["log_tail"]


def test_a_broken_draft_head_shows_in_acceptance_and_nowhere_else(model: Model, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    done = run(
        "tiny_train.py", "--target", model.target, "--data", model.data, "--algorithm", "dflash2", "--steps", 10,
        "--export-path", broken, "--fault", "draft-head", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0
    command = server_command(model, drafter=broken)
    measured = smoke(
        model, tmp_path, command, "--drafter", broken, "--reference-command", server_command(model), "--num-prompts", 8
    )
    assert (measured["stage"], measured["prompts_passed"], measured["reference_identical"]) == ("done", 8, 8)
    assert measured["acceptance_length"] < 1.05
    verdict = run_gate("smoke", {"smoke": (tmp_path / "smoke.json").read_bytes()}, {"token": TOKEN, "draft_tokens": K})
    assert verdict.failure_class == "ACCEPTANCE_REGRESSION"


def test_a_server_that_runs_already_is_used_and_left_running(model: Model, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    port = unused_port()
    holder = start(
        "tiny_server.py", "--model", model.target, "--served-model-name", MODEL, "--port", port,
        "--drafter", model.dflash2, "--draft-tokens", K, cwd=elsewhere,
    )  # fmt: skip
    try:
        done = smoke(model, tmp_path, "", "--server-command", None, "--base-url", f"http://127.0.0.1:{port}")
        assert done["stage"] == "done"
        assert judge(tmp_path, model).passed
        assert holder.poll() is None
    finally:
        holder.terminate()
        holder.communicate(timeout=60)


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_port_that_is_taken_is_not_blamed_on_the_drafter(model: Model, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        command = server_command(model, drafter=model.dflash2)
        done = smoke(model, tmp_path, command, "--port", holder.getsockname()[1])
        assert done["stage"] == "port_in_use"
        # And when the server finds out for itself: it was told another port than ours.
        taken = command.replace("{port}", str(holder.getsockname()[1]))
        assert smoke(model, tmp_path, taken)["stage"] == "server_died"
    assert judge(tmp_path, model).failure_class == "CHECKPOINT_NOT_SERVABLE"


def test_a_server_that_never_gets_healthy_is_a_timeout_and_the_environment_sets_it(
    model: Model, tmp_path: Path
) -> None:
    command = server_command(model, drafter=model.dflash2, fault="never-healthy")
    done = smoke(model, tmp_path, command, SERVER_TIMEOUT="1.5")
    assert (done["stage"], done["server"]["timeout_s"], done["server"]["exit_status"]) == ("server_timeout", 1.5, 0)
    verdict = judge(tmp_path, model)
    assert (verdict.failure_class, verdict.to_json()["facts"]["stage"]) == ("CHECKPOINT_NOT_SERVABLE", "server_timeout")


def test_a_server_that_accepts_and_says_nothing_is_a_timeout_too(model: Model, tmp_path: Path) -> None:
    assert smoke(model, tmp_path, odd_command("--oddity silent"), SERVER_TIMEOUT="1")["stage"] == "server_timeout"


@pytest.mark.parametrize("variable", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_none_is_said_to_be_none(model: Model, tmp_path: Path, variable: str) -> None:
    done = smoke(model, tmp_path, "true", SERVER_TIMEOUT=variable)
    assert (done["stage"], variable in done["detail"]) == ("unexpected", True)


def test_a_server_that_ends_by_itself_died(model: Model, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(model.dflash2, cut)
    with open(cut / "model.safetensors", "r+b") as stream:
        stream.truncate(100_000)
    done = smoke(model, tmp_path, server_command(model, drafter=cut), "--drafter", cut)
    assert (done["stage"], done["server"]["exit_status"]) == ("server_died", 1)
    assert "cut off" in done["detail"]


def test_a_server_that_dies_on_the_first_request_died(model: Model, tmp_path: Path) -> None:
    done = smoke(model, tmp_path, odd_command("--oddity dies", f"--drafter '{model.dflash2}'"), "--model", "m")
    assert (done["stage"], done["server"]["exit_status"], done["prompts_passed"]) == ("server_died", 9, 0)
    assert "out of memory" in done["detail"]


def test_a_server_that_leaves_its_starter_is_not_taken_for_one_that_was_started(model: Model, tmp_path: Path) -> None:
    """Nobody could tell whose it is; and it is ended all the same."""
    command = server_command(model, drafter=model.dflash2).replace("exec ", "", 1)
    done = smoke(model, tmp_path, f"{command} & exit 0")
    assert done["stage"] in ("server_died", "port_in_use")


def test_a_model_that_the_engine_does_not_know_is_unsupported(model: Model, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(model.dflash2, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "architectures": ["NoSuchDraftModel"]}))
    done = smoke(model, tmp_path, server_command(model, drafter=other), "--drafter", other)
    assert done["stage"] == "architecture_unsupported"
    verdict = run_gate("smoke", {"smoke": (tmp_path / "smoke.json").read_bytes()}, {"token": TOKEN})
    assert verdict.failure_class == "MODEL_UNSUPPORTED"


def test_a_server_without_drafter_is_inactive(model: Model, tmp_path: Path) -> None:
    assert smoke(model, tmp_path, server_command(model))["stage"] == "drafter_inactive"
    assert judge(tmp_path, model).failure_class == "CHECKPOINT_NOT_SERVABLE"


def test_a_server_with_drafter_whose_counters_stand_still_is_inactive(model: Model, tmp_path: Path) -> None:
    done = smoke(model, tmp_path, odd_command(f"--drafter '{model.dflash2}'"), "--model", "m")
    assert (done["stage"], done["prompts_passed"]) == ("drafter_inactive", 4)


@pytest.mark.parametrize("other", ["model", "drafter", "draft tokens", "drafter that nobody can tell"])
def test_another_server_than_asked_for_is_a_mismatch(model: Model, tmp_path: Path, other: str) -> None:
    command = {
        "model": server_command(model, drafter=model.dflash2, name="other/model"),
        "drafter": server_command(model, drafter=model.dflash),
        "draft tokens": server_command(model, drafter=model.dflash2, k=2),
        "drafter that nobody can tell": odd_command(),
    }[other]
    more = ("--model", "m") if other.endswith("tell") else ()
    done = smoke(model, tmp_path, command, *more)
    assert done["stage"] == "model_mismatch", done["detail"]
    assert judge(tmp_path, model).failure_class == "MEASUREMENT_INVALID"


@pytest.mark.parametrize("oddity", ["error", "text-only"])
def test_prompts_that_are_not_answered_as_they_must_be_failed(model: Model, tmp_path: Path, oddity: str) -> None:
    command = odd_command(f"--oddity {oddity}", f"--drafter '{model.dflash2}'")
    done = smoke(model, tmp_path, command, "--model", "m")
    assert (done["stage"], done["prompts_passed"], len(done["outputs"])) == ("generation_failed", 0, 4)
    assert all(output["error"] for output in done["outputs"])


@pytest.mark.parametrize("oddity", ["page", "no-metrics"])
def test_counters_that_cannot_be_read_are_said_to_be_unreadable(model: Model, tmp_path: Path, oddity: str) -> None:
    done = smoke(model, tmp_path, odd_command(f"--oddity {oddity}"), "--model", "m")
    assert done["stage"] == "metrics_unreadable"


def test_a_reference_that_cannot_be_made_is_a_problem_of_the_test(model: Model, tmp_path: Path) -> None:
    command = server_command(model, drafter=model.dflash2)
    done = smoke(model, tmp_path, command, "--reference-command", "echo no; exit 3")
    assert (done["stage"], done["reference_identical"]) == ("done", None)
    assert "server_died" in done["problems"][0]
    assert not judge(tmp_path, model).passed


@pytest.mark.parametrize(
    "text", ["", "{}\n", '{"prompt": ["a"]}\n', '{"prompt": [1], "id": 1}\n{"prompt": [2], "id": 1}\n']
)
def test_prompts_that_are_none_are_refused_before_a_server_is_started(model: Model, tmp_path: Path, text: str) -> None:
    (tmp_path / "prompts").write_text(text)
    done = smoke(model, tmp_path, "touch started; sleep 60", "--prompts", tmp_path / "prompts")
    assert (done["stage"], "prompts" in done["detail"]) == ("unexpected", True)
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_ends_its_server_and_writes_its_result(model: Model, tmp_path: Path, number: int) -> None:
    # A server with children that do not listen: a session is ended as a whole.
    command = f"trap '' TERM; ({server_command(model, drafter=model.dflash2, fault='never-healthy')}) & wait; wait"
    process = start(
        "smoke.py", "--server-command", command, "--model", MODEL, "--drafter", model.dflash2, "--draft-tokens", K,
        "--prompts", model.prompts, "--max-tokens", 8, cwd=tmp_path,
    )  # fmt: skip
    log = tmp_path / "server.log"
    until(lambda: log.exists() and "serving" in log.read_text(), "a server that is up")
    process.send_signal(number)
    process.communicate(timeout=60)
    done = result(tmp_path / "smoke.json")
    assert (done["stage"], str(int(number)) in done["detail"]) == ("unexpected", True)
    assert not processes_in(tmp_path)


def test_killed_outright_it_leaves_no_server(model: Model, tmp_path: Path) -> None:
    process = start(
        "smoke.py", "--server-command", server_command(model, drafter=model.dflash2, fault="never-healthy"),
        "--model", MODEL, "--drafter", model.dflash2, "--draft-tokens", K, "--prompts", model.prompts,
        "--max-tokens", 8, cwd=tmp_path,
    )  # fmt: skip
    log = tmp_path / "server.log"
    until(lambda: log.exists() and "serving" in log.read_text(), "a server that is up")
    assert len(processes_in(tmp_path)) == 2
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not processes_in(tmp_path), "the server ends with its parent")
