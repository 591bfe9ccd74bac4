"""One small target with two drafters for all tests of the programs for clusters."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from tests.payloads.running import MODEL, PAYLOADS, REVISION, Model, run

sys.path.insert(0, str(PAYLOADS))  # the programs import each other by bare name, as they do in a job's folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Model:
    """Made by the real programs, with little data and few steps; once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "model"
    folder.mkdir(exist_ok=True)
    made = Model(
        folder / "target", folder / "data.safetensors", folder / "dflash2" / "export", folder / "dflash" / "export"
    )
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make(folder, made)
            (folder / "made").touch()
    return made


def make(folder: Path, model: Model) -> None:
    def call(program: str, *arguments: object) -> None:
        done = run(program, *arguments, cwd=folder)
        assert done.returncode == 0, done.stderr

    call("tiny_target.py", "--target", MODEL, "--revision", REVISION, "--path", model.target)
    call("tiny_data.py", "--target", model.target, "--texts", 64, "--length", 64)
    for algorithm, steps, export in (("dflash2", 60, model.dflash2), ("dflash", 40, model.dflash)):
        call(
            "tiny_train.py", "--target", model.target, "--data", model.data, "--algorithm", algorithm,
            "--steps", steps, "--rate", 0.025, "--export-path", export,
        )  # fmt: skip
