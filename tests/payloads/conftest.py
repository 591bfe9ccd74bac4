"""One small target with two drafters for all tests of the programs for clusters."""

from __future__ import annotations

import sys

import pytest

from tests.payloads.running import MODEL, PAYLOADS, REVISION, Model, run

sys.path.insert(0, str(PAYLOADS))  # the programs import each other by bare name, as they do in a job's folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Made by the real programs, with little data and few steps."""
    folder = tmp_path_factory.mktemp("model")
    target, data = folder / "target", folder / "data.safetensors"
    done = run("tiny_target.py", "--target", MODEL, "--revision", REVISION, "--path", target, cwd=folder)
    assert done.returncode == 0, done.stderr
    done = run("tiny_data.py", "--target", target, "--texts", 64, "--length", 64, cwd=folder)
    assert done.returncode == 0, done.stderr
    for algorithm, steps in (("dflash2", 60), ("dflash", 40)):
        (folder / algorithm).mkdir()
        done = run(
            "tiny_train.py", "--target", target, "--data", data, "--algorithm", algorithm, "--steps", steps,
            "--rate", 0.025, "--export-path", folder / algorithm / "export", cwd=folder / algorithm,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return Model(target, data, folder / "dflash2" / "export", folder / "dflash" / "export")
