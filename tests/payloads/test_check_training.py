"""The record of a training is read as the trainer wrote it: by step, to its end, and never from what was printed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate
from gates.verdict import Verdict
from tests.payloads.running import TOKEN, Model, result, run

STEPS = 2400


def entries(last: int, every: int = 100) -> list[dict[str, Any]]:
    return [
        {"epoch": step / last, "grad_norm": 1.5, "learning_rate": 1e-4, "loss": 8.0 - 4.0 * step / last, "step": step}
        for step in range(every, last + 1, every)
    ]


def state(step: int, log: list[dict[str, Any]] | None = None, max_steps: int = STEPS) -> dict[str, Any]:
    found = entries(step) if log is None else log
    summary = {"step": step, "train_loss": 0.5, "train_runtime": 12.0, "total_flos": 1.0, "epoch": 1.0}
    return {"global_step": step, "max_steps": max_steps, "log_history": [*found, summary]}


def write_state(folder: Path, step: int, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps({**state(step), **changes}))
    return folder


class Run:
    """A training with two checkpoints, its newest exported."""

    def __init__(self, root: Path, model: Model) -> None:
        self.root, self.model = root, model
        self.folder = root / "a-run"
        write_state(self.folder / "checkpoint-500", 500)
        self.last = write_state(self.folder / f"checkpoint-{STEPS}", STEPS)
        self.export = root / "export"
        self.export.mkdir()
        for file in model.dflash.iterdir():
            (self.export / file.name).write_bytes(file.read_bytes())

    def judge(self, *more: str, exported: Path | None = None, algorithm: str = "dflash") -> Verdict:
        run(
            "check_training.py", self.folder, "--algorithm", algorithm, "--export-path", self.export,
            "--exported-from", exported or self.last, *more, cwd=self.root,
        )  # fmt: skip
        run("check_export.py", self.export, "--target", self.model.target, cwd=self.root)
        files: dict[str, bytes | None] = {
            kind: (self.root / f"{kind}.json").read_bytes() for kind in ("regression_check", "export_check")
        }
        return run_gate("train", files, {"token": TOKEN, "algorithm": algorithm, "draft_tokens": 4})


@pytest.fixture
def trained(tmp_path: Path, model: Model) -> Run:
    return Run(tmp_path, model)


def test_a_finished_training_passes_its_gate(trained: Run) -> None:
    verdict = trained.judge("--max-final-loss", "4.5")
    assert verdict.passed, verdict.detail
    written = result(trained.root / "regression_check.json")
    assert (written["global_step"], written["exported_step"], len(written["log"])) == (STEPS, STEPS, 24)
    assert (written["first_loss"], written["final_loss"], written["thresholds"]) == (
        8.0 - 4.0 * 100 / STEPS, 4.0, {"max_final_loss": 4.5},
    )  # fmt: skip


def test_the_newest_checkpoint_is_the_one_with_the_highest_number(trained: Run) -> None:
    (trained.folder / "checkpoint-9999.tmp").mkdir()
    (trained.folder / "checkpoint-99999").write_text("no folder")
    done = run("check_training.py", trained.folder, "--newest", cwd=trained.root)
    assert (done.returncode, done.stdout.strip()) == (0, str(trained.last))


@pytest.mark.parametrize(
    ("steps", "weights", "own"), [(STEPS + 1, True, True), (STEPS, True, False), (9999, False, False)]
)
def test_a_model_beside_the_checkpoints_is_newest_only_with_more_steps(
    trained: Run, steps: int, weights: bool, own: bool
) -> None:
    write_state(trained.folder, steps)
    if weights:
        (trained.folder / "model.safetensors").touch()
    done = run("check_training.py", trained.folder, "--newest", cwd=trained.root)
    assert done.stdout.strip() == str(trained.folder if own else trained.last)


def test_no_checkpoint_is_said_and_is_a_failure(tmp_path: Path) -> None:
    done = run("check_training.py", tmp_path, "--newest", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no checkpoint-N" in done.stderr


def test_the_record_of_the_whole_run_counts_where_it_has_more_steps(trained: Run) -> None:
    write_state(trained.folder, STEPS + 100, max_steps=STEPS + 100, log_history=entries(STEPS + 100))
    verdict = trained.judge()
    # The checkpoint that was exported is not the last state any more.
    assert (verdict.passed, verdict.failure_class) == (False, "EXPORT_INVALID")
    written = result(trained.root / "regression_check.json")
    assert (written["global_step"], written["exported_step"]) == (STEPS + 100, STEPS)


def test_an_older_record_of_the_whole_run_does_not_hide_the_newest_checkpoint(trained: Run) -> None:
    write_state(trained.folder, 700)
    assert trained.judge().passed


def test_an_export_of_an_earlier_checkpoint_is_not_the_last_state(trained: Run) -> None:
    verdict = trained.judge(exported=trained.folder / "checkpoint-500")
    assert (verdict.passed, verdict.failure_class) == (False, "EXPORT_INVALID")


def test_an_export_that_is_older_than_its_checkpoint_is_left_from_before(trained: Run) -> None:
    saved = os.stat(trained.last / "trainer_state.json").st_mtime_ns
    for file in trained.export.iterdir():
        os.utime(file, ns=(saved - 1, saved - 1))
    assert trained.judge().failure_class == "EXPORT_INVALID"


@pytest.mark.parametrize(
    ("changes", "failure_class"),
    [
        ({"max_steps": STEPS + 1}, "TRAINING_REGRESSION"),
        (
            {"log_history": [{**entry, "loss": 0.0, "grad_norm": float("nan")} for entry in entries(STEPS)]},
            "TRAINING_REGRESSION",
        ),
        ({"log_history": [*entries(STEPS)[:-1], {**entries(STEPS)[-1], "loss": float("nan")}]}, "TRAINING_REGRESSION"),
        ({"log_history": [{**entry, "loss": 4.0} for entry in entries(STEPS)]}, "TRAINING_REGRESSION"),
        ({"log_history": [{"step": STEPS, "train_loss": 3.0, "train_runtime": 1.0}]}, "MEASUREMENT_INVALID"),
        ({"log_history": "gone"}, "MEASUREMENT_INVALID"),
        ({"global_step": "2400"}, "MEASUREMENT_INVALID"),
    ],
    ids=["unfinished", "masked-nan", "last-loss-nan", "stuck", "no-losses", "no-log", "step-as-text"],
)
def test_a_training_that_went_wrong_does_not_pass(trained: Run, changes: dict[str, Any], failure_class: str) -> None:
    write_state(trained.last, STEPS, **changes)
    verdict = trained.judge()
    assert not verdict.passed
    assert verdict.failure_class == failure_class


@pytest.mark.parametrize("text", ["", "[]", "{", '{"global_step": 1'])
def test_a_record_that_is_none_is_named(trained: Run, text: str) -> None:
    (trained.last / "trainer_state.json").write_text(text)
    assert trained.judge().failure_class == "MEASUREMENT_INVALID"
    assert str(trained.last) in result(trained.root / "regression_check.json")["detail"]


def test_a_bar_that_was_missed_fails(trained: Run) -> None:
    assert trained.judge("--max-final-loss", "3.9").failure_class == "TRAINING_REGRESSION"
