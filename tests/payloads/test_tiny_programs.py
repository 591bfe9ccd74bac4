"""Staging, data, training and the checks of target and export, run as jobs run them, judged by the real gates."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate
from tests.payloads.running import MODEL, REVISION, TOKEN, Model, result, run, start, until


def train(
    model: Model, folder: Path, *more: object, algorithm: str = "dflash2"
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Train as the demo's job does: exit status, regression_check.json and export_check.json."""
    export = folder / "export"
    done = run(
        "tiny_train.py", "--target", model.target, "--data", model.data, "--algorithm", algorithm,
        "--export-path", export, "--steps", 20, "--log-every", 5, *more, cwd=folder,
    )  # fmt: skip
    run("check_export.py", export, "--target", model.target, cwd=folder)
    return done.returncode, result(folder / "regression_check.json"), result(folder / "export_check.json")


def judge_train(folder: Path, algorithm: str = "dflash2") -> Any:
    files = {name: (folder / f"{name}.json").read_bytes() for name in ("regression_check", "export_check")}
    return run_gate("train", files, {"token": TOKEN, "algorithm": algorithm, "draft_tokens": 4})


def test_staging_makes_a_target_that_passes_its_gate_and_leaves_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "hf" / "demo--tiny-target" / REVISION
    arguments = ("--target", MODEL, "--revision", REVISION, "--path", path)
    for said in ("made", "it was there already"):
        done = run("tiny_target.py", *arguments, cwd=tmp_path)
        assert (done.returncode, result(tmp_path / "stage_target.json")["detail"]) == (0, said)
        assert run("check_target.py", path, cwd=tmp_path).returncode == 0
        files = {name: (tmp_path / f"{name}.json").read_bytes() for name in ("stage_target", "target_check")}
        expected = {"token": TOKEN, "target": MODEL, "revision": REVISION, "path": str(path)}
        verdict = run_gate("target", files, expected)
        assert verdict.passed, verdict.detail
    assert len(result(tmp_path / "target_check.json")["shards"]) == 2
    assert os.listdir(path.parent) == [REVISION]


def test_a_revision_that_is_not_pinned_is_refused(tmp_path: Path) -> None:
    done = run("tiny_target.py", "--target", MODEL, "--revision", "main", "--path", tmp_path / "t", cwd=tmp_path)
    staged = result(tmp_path / "stage_target.json")
    assert (done.returncode, staged["status"]) == (1, "error")
    assert "main" in staged["error"]
    assert not (tmp_path / "t").exists()


def in_index(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def harm(folder: Path) -> None:
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        change(index)
        path.write_text(json.dumps(index))

    return harm


SHARD = "model-00002-of-00002.safetensors"
HARMS: dict[str, Callable[[Path], object]] = {
    "a shard is missing": lambda folder: (folder / SHARD).unlink(),
    "a shard is cut off": lambda folder: os.truncate(folder / SHARD, 5000),
    "a shard is longer than it says": lambda folder: os.truncate(folder / SHARD, 10**6),
    "a shard is an error page": lambda folder: (folder / SHARD).write_text("<html>Sign in</html>" * 20),
    "a shard is a pointer": lambda folder: (folder / SHARD).write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
    ),
    "a shard is empty": lambda folder: (folder / SHARD).write_bytes(b""),
    "the index is cut off": lambda folder: os.truncate(folder / "model.safetensors.index.json", 100),
    "the index leads out": in_index(lambda index: index["weight_map"].update({"x": "../secret.safetensors"})),
    "the index names another shard": in_index(
        lambda index: index["weight_map"].update({"lm_head.weight": "model-00001-of-00002.safetensors"})
    ),
    "the index forgets a tensor": in_index(lambda index: index["weight_map"].pop("lm_head.weight")),
    "the index states another size": in_index(lambda index: index["metadata"].update(total_size=5)),
    "there is no configuration": lambda folder: (folder / "config.json").unlink(),
    "the configuration is no object": lambda folder: (folder / "config.json").write_text("[1, 2]"),
    "a number is not finite": lambda folder: (folder / "config.json").write_text('{"rope_theta": NaN}'),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_target_that_is_not_whole_is_no_target(model: Model, tmp_path: Path, harm: str) -> None:
    target = tmp_path / "target"
    shutil.copytree(model.target, target)
    HARMS[harm](target)
    assert run("check_target.py", target, cwd=tmp_path).returncode == 1
    checked = result(tmp_path / "target_check.json")
    assert checked["status"] == "error"
    assert checked["problems"]
    data = (tmp_path / "target_check.json").read_bytes()
    verdict = run_gate("target", {"target_check": data}, {"token": TOKEN, "path": str(target)})
    assert (verdict.passed, verdict.failure_class) == (False, "USER_CONFIG_ERROR")


def test_the_check_of_a_target_needs_nothing_beside_it(model: Model, tmp_path: Path) -> None:
    from tests.payloads.running import PAYLOADS

    shutil.copy(PAYLOADS / "check_target.py", tmp_path / "alone.py")
    import subprocess
    import sys

    command = [
        sys.executable,
        "-I",
        str(tmp_path / "alone.py"),
        str(model.target),
        "--output",
        str(tmp_path / "o.json"),
    ]
    assert subprocess.run(command, cwd="/", check=False, timeout=60).returncode == 0
    assert json.loads((tmp_path / "o.json").read_text())["token"] == os.environ.get("GONOGO_TOKEN", "")


def test_data_never_begins_like_a_held_out_prompt(model: Model) -> None:
    import tiny_data
    import tiny_target

    begun = tiny_data.training_starts(str(model.target), 0, 64)
    avoided = tiny_data.held_out(str(model.target))
    assert len(begun) == 64
    assert not {tuple(row) for row in begun.tolist()} & avoided
    # The same words drawn as held-out prompts are all left out.
    seed = int(REVISION[:8], 16)
    assert {tuple(row) for row in tiny_target.starts((1, seed), 64).tolist()} == avoided


def test_data_that_cannot_be_made_fails_its_gate(model: Model, tmp_path: Path) -> None:
    done = run("tiny_data.py", "--target", tmp_path, "--texts", 4, cwd=tmp_path)
    assert done.returncode == 1
    verdict = run_gate("data", {"data": (tmp_path / "data.json").read_bytes()}, {"token": TOKEN})
    assert (verdict.passed, verdict.failure_class) == (False, "TRAINING_REGRESSION")
    done = run("tiny_data.py", "--target", model.target, "--texts", 4, "--length", 20, cwd=tmp_path)
    assert done.returncode == 0
    assert run_gate("data", {"data": (tmp_path / "data.json").read_bytes()}, {"token": TOKEN}).passed


@pytest.mark.parametrize("algorithm", ["dflash", "dflash2"])
def test_a_training_passes_its_gate_and_learns(model: Model, tmp_path: Path, algorithm: str) -> None:
    status, trained, _ = train(model, tmp_path, algorithm=algorithm)
    assert status == 0
    verdict = judge_train(tmp_path, algorithm)
    assert verdict.passed, verdict.detail
    assert [entry["step"] for entry in trained["log"]] == [1, 5, 10, 15, 20]
    assert trained["final_loss"] < trained["first_loss"]
    assert trained["export_written_after_last_step"] is True
    progress = result(tmp_path / "progress.json")
    assert (progress["global_step"], progress["log_history"]) == (20, trained["log"])
    # The same seed is the same drafter, byte for byte.
    again = tmp_path / "again"
    again.mkdir()
    assert train(model, again, algorithm=algorithm)[1]["log"] == trained["log"]
    files = [sorted((folder / "export").iterdir()) for folder in (tmp_path, again)]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_the_loss_can_be_watched_while_it_trains(model: Model, tmp_path: Path) -> None:
    process = start(
        "tiny_train.py", "--target", model.target, "--data", model.data, "--algorithm", "dflash",
        "--export-path", tmp_path / "export", "--steps", 100000, "--log-every", 1, cwd=tmp_path,
    )  # fmt: skip
    try:
        path = tmp_path / "progress.json"
        seen: set[int] = set()

        def look() -> bool:
            if path.exists():
                progress = result(path)  # never half a document
                assert progress["log_history"][-1]["step"] == progress["global_step"]
                seen.add(progress["global_step"])
            return len(seen) >= 3

        until(look, "the progress of a training")
        assert process.poll() is None
        assert not (tmp_path / "regression_check.json").exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_a_training_that_cannot_go_on_says_so(model: Model, tmp_path: Path) -> None:
    status, trained, exported = train(model, tmp_path, "--rate", "1e9")
    assert (status, trained["status"]) == (1, "error")
    assert "step" in trained["detail"]
    assert trained["global_step"] < 20
    assert exported["status"] == "error"
    verdict = judge_train(tmp_path)
    assert (verdict.passed, verdict.failure_class) == (False, "TRAINING_REGRESSION")


@pytest.mark.parametrize(("fault", "failure"), [("export", "EXPORT_INVALID"), ("draft-head", None), ("freeze", None)])
def test_a_broken_export_shows_where_it_can(model: Model, tmp_path: Path, fault: str, failure: str | None) -> None:
    """A cut file shows at once; random weights and a link that leads out are sound files, and show later."""
    status, trained, exported = train(model, tmp_path, "--fault", fault)
    assert (status, trained["status"]) == (0, "ok")
    verdict = judge_train(tmp_path)
    assert verdict.failure_class == failure, verdict.detail
    assert (exported["status"] == "ok") is (failure is None)
    if fault == "freeze":
        assert (tmp_path / "export" / "training_log.json").resolve() == tmp_path / "progress.json"
        done = run("freeze.py", tmp_path / "export", tmp_path / "frozen", "--output", "freeze.json", cwd=tmp_path)
        assert done.returncode == 1
        assert "training_log.json" in result(tmp_path / "freeze.json")["detail"]


def weights(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def harm(folder: Path) -> None:
        import tiny_tensors

        path = str(folder / "model.safetensors")
        tensors = tiny_tensors.load(path)
        change(tensors)
        tiny_tensors.save(path, tensors)

    return harm


def put(name: str, value: float) -> Callable[[dict[str, Any]], object]:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name][...] = tensors[name]
        tensors[name].flat[-1] = value

    return change


EXPORT_HARMS: dict[str, Callable[[Path], object]] = {
    "a weight is infinite": weights(put("layers.0.mlp.up_proj.weight", float("inf"))),
    "a weight is not a number": weights(put("fc.weight", float("nan"))),
    "a matrix is one number": weights(lambda tensors: tensors["fc.weight"].fill(0.5)),
    "there are no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "the weights are a pointer": lambda folder: (folder / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
    ),
    "the header is cut off": lambda folder: os.truncate(folder / "model.safetensors", 100),
    "a file is a link to nothing": lambda folder: (folder / "tokenizer.json").symlink_to("nowhere"),
    "there is no configuration": lambda folder: (folder / "config.json").unlink(),
}


@pytest.mark.parametrize("harm", EXPORT_HARMS)
def test_an_export_that_is_not_sound_fails_its_gate(model: Model, tmp_path: Path, harm: str) -> None:
    export = tmp_path / "export"
    shutil.copytree(model.dflash2, export)
    EXPORT_HARMS[harm](export)
    run("check_export.py", export, "--target", model.target, cwd=tmp_path)
    expected = {"token": TOKEN, "algorithm": "dflash2", "draft_tokens": 4, "export_path": str(export)}
    verdict = run_gate("export", {"export_check": (tmp_path / "export_check.json").read_bytes()}, expected)
    assert (verdict.passed, verdict.failure_class) == (False, "EXPORT_INVALID"), harm


def test_what_the_check_sees_is_what_the_gate_itself_sees_in_the_folder(model: Model, tmp_path: Path) -> None:
    from gates.export_folder import inspect

    run("check_export.py", model.dflash, "--target", model.target, cwd=tmp_path)
    checked = result(tmp_path / "export_check.json")
    seen = inspect(model.dflash, json.loads((model.target / "config.json").read_text()))
    for key in ("config", "target_config", "tensors", "file", "lfs_pointer", "files"):
        by_name = {"tensors": "name", "files": "path"}.get(key)
        one, other = checked[key], seen[key]
        if by_name is not None:
            one, other = (sorted(rows, key=lambda row: str(row[by_name])) for rows in (one, other))
        assert one == other, key
