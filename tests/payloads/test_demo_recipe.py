"""The demo's recipe: its scripts run as they are rendered, in folders with awkward names, judged by the real gates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.release.recipe import Recipe, load_recipe, render_task, resolve_values
from gates.registry import run as run_gate
from tests.payloads.running import MODEL, REVISION, TOKEN, Model, processes_in

SMALL: dict[str, Any] = {
    "texts": 64, "text_length": 64, "train_steps": 50, "concurrency": "1,2", "requests_per_point": 8,
    "bench_rounds": 1, "bench_max_tokens": 12, "smoke_prompts": 4, "exact_prompts": 16,
}  # fmt: skip


class Cluster:
    """Runs the recipe's jobs one after the other, each in its own folder, with the facts that a conductor knows."""

    def __init__(self, root: Path, fail: str = "", **values: Any) -> None:
        self.root = root
        self.recipe: Recipe = load_recipe("demo")
        self.values = resolve_values(self.recipe, "dev", {**SMALL, "fail": fail, **values})
        self.drafts = root / "drafts"
        self.facts = {
            "TARGET": MODEL, "REVISION": REVISION, "ALGORITHM": "dflash2", "BUDGET": "dev", "RUN_ID": "run 1",
            "TARGET_PATH": str(root / "hf" / "tiny target" / REVISION), "WORKSPACE": str(root),
            "HF_LOCAL": str(root / "hf"), "PYTHON": sys.executable, "ATTEMPT": "1", "GPUS_PER_NODE": "0", "NODES": "1",
            "FAIL": fail, "DRAFTER_PATH": str(self.drafts / "run 1"),
        }  # fmt: skip

    def job(self, stage: str, name: str) -> tuple[Path, dict[str, bytes | None]]:
        """Run a job; gives its folder and its result files."""
        folder = self.root / stage / name
        folder.mkdir(parents=True)
        self.facts["EXPORT_PATH"] = str(folder / "export")
        task = render_task(self.recipe, self.recipe.task(stage, name), self.values, self.facts)
        for upload, data in task.uploads:
            (folder / upload).write_bytes(data)
        environment = {**os.environ, **dict(task.environment), "GONOGO_TOKEN": TOKEN}
        subprocess.run(["bash", "-c", task.script_body], cwd=folder, env=environment, check=False, timeout=100)
        assert not processes_in(folder)
        return folder, {kind: (folder / path).read_bytes() for kind, path in task.results.items()}

    def train(self) -> dict[str, bytes | None]:
        """Everything up to the export."""
        self.job("stage_target", "stage_target")
        folder, data = self.job("train", "data")
        assert run_gate("data", data, {"token": TOKEN}).passed
        self.facts["DATA_DIR"] = str(folder)
        folder, files = self.job("train", "train")
        self.facts["EXPORT_DIR"] = str(folder / "export")
        return files


@pytest.fixture
def awkward(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a $HOME of `one's` own"
    folder.mkdir()
    return folder


def test_every_job_of_the_demo_passes_its_gate(awkward: Path) -> None:
    cluster = Cluster(awkward)
    verdict = run_gate("train", cluster.train(), {"token": TOKEN, "algorithm": "dflash2", "draft_tokens": 4})
    assert verdict.passed, verdict.detail
    export = cluster.facts["EXPORT_DIR"]
    _, files = cluster.job("train", "smoke")
    verdict = run_gate("smoke", files, {"token": TOKEN, "drafter": export, "draft_tokens": 4})
    assert verdict.passed, verdict.detail
    _, files = cluster.job("freeze", "freeze")
    destination = cluster.facts["DRAFTER_PATH"]
    verdict = run_gate("freeze", files, {"token": TOKEN, "source": export, "destination": destination})
    assert verdict.passed, verdict.detail
    manifest = json.loads(files["freeze"] or b"")["manifest_sha256"]
    cluster.facts["MANIFEST_SHA256"] = manifest
    _, files = cluster.job("bench", "bench")
    expected = {"token": TOKEN, "drafter": destination, "manifest_sha256": manifest, "draft_tokens": 4}
    verdict = run_gate("bench", {"bench": files["bench"]}, {**expected, "concurrency": (1, 2), "speedup_slack": 0.99})
    assert verdict.passed, verdict.detail
    verdict = run_gate("correctness", {"exact_match": files["exact_match"]}, expected)
    assert verdict.passed, verdict.detail
    # A drafter that exists already is checked instead of trained.
    cluster.facts["EXPORT_DIR"] = destination
    subprocess.run(["chmod", "-R", "u+w", destination], check=True)
    (Path(destination) / "SHA256SUMS").unlink()
    _, files = cluster.job("train", "export_check")
    verdict = run_gate("export", files, {"token": TOKEN, "algorithm": "dflash2", "draft_tokens": 4})
    assert verdict.passed, verdict.detail


def test_only_one_of_the_two_ways_to_an_export_is_part_of_a_release() -> None:
    ways = {
        task.task: (task.skip_with_existing_drafter, task.only_existing_drafter) for task in load_recipe("demo").tasks
    }
    assert ways == {
        "stage_target": (False, False),
        "data": (True, False),
        "train": (True, False),
        "export_check": (False, True),
        "smoke": (False, False),
        "freeze": (False, False),
        "bench": (False, False),
    }


def test_an_export_that_is_to_fail_fails_in_its_own_job(model: Model, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, "export", train_steps=10)
    cluster.facts.update(TARGET_PATH=str(model.target), DATA_DIR=str(model.data.parent))
    _, files = cluster.job("train", "train")
    verdict = run_gate("train", files, {"token": TOKEN, "algorithm": "dflash2", "draft_tokens": 4})
    assert verdict.failure_class == "EXPORT_INVALID"


def test_a_server_that_is_to_fail_still_fails_with_a_longer_time_limit(model: Model, tmp_path: Path) -> None:
    for limit in (1, 2):
        cluster = Cluster(tmp_path / str(limit), "server", server_timeout=limit)
        cluster.facts.update(TARGET_PATH=str(model.target), EXPORT_DIR=str(model.dflash2))
        _, files = cluster.job("train", "smoke")
        verdict = run_gate("smoke", files, {"token": TOKEN, "draft_tokens": 4})
        assert (verdict.failure_class, verdict.to_json()["facts"]["stage"]) == (
            "CHECKPOINT_NOT_SERVABLE",
            "server_timeout",
        )
        assert verdict.to_json()["facts"]["server_timeout_s"] == limit
