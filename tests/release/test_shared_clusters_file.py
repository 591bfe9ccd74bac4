"""A clusters.yaml that was written for other tools works as it is: a whole release, and GPU recipes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from backends.sandbox import lifecycle
from backends.sandbox.store import read_record
from console.release import proposing
from console.release.folder import read_state
from console.release.job import ExactJob
from console.release.opening import check_inputs
from console.release.state import Attempt, Outcome, RunState
from tests.kills.releases import ROOT, write_recipe
from tests.release.making import new_run

FILE = """\
# Shared by several tools; not a key of it is ours.
default_cluster: gpu-east

clusters:
  gpu-east:
    login_node: {login_node}
    user: {user}
    ssh_key: {key}
    workspace: {workspace}
    gpu_type: H100
    container_image: registry.example.org/team/modelopt:2026-08
    env_type: slurm
    slurm:
      default_account: research
      default_partition: batch
    notes_of_another_tool: {{retries: 3}}
"""


def write_shared(home: Path, **given: object) -> Path:
    """Write the file where every tool looks for it."""
    file = home / ".config" / "modelopt" / "clusters.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(FILE.format(**given))
    return file


def test_a_whole_release_runs_through_a_file_without_a_key_of_ours(tmp_path: Path) -> None:
    place, home, run_dir = tmp_path / "cluster", tmp_path / "home", tmp_path / "run"
    try:
        info = lifecycle.ensure(place)
        (home / ".ssh").mkdir(parents=True)
        # Port and known hosts are where they belong without us: in the operator's SSH configuration.
        (home / ".ssh" / "config").write_text(
            f"Host east-login\n  HostName {info.host}\n  Port {info.port}\n"
            f"  UserKnownHostsFile {info.known_hosts_path}\n"
        )
        write_shared(
            home, login_node="east-login", user=info.user, key=info.key_path, workspace=info.home / "workspace"
        )
        write_recipe(tmp_path / "recipe", ROOT)
        release = {"target": "demo/tiny", "revision": "a" * 40, "algorithm": "dflash2", "budget": "dev"}
        (tmp_path / "release.yaml").write_text(yaml.safe_dump({**release, "recipe": str(tmp_path / "recipe")}))
        command = [sys.executable, "-m", "console", "run", str(tmp_path / "release.yaml"), "--headless"]
        done = subprocess.run(
            [*command, "--run-dir", str(run_dir), "--approve-submissions", "none"],
            env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, timeout=110, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        state = read_state(run_dir)
        assert state is not None
        assert (state.verdict, state.inputs["cluster"], state.inputs["partition"]) == (
            "DRAFTER_READY", "gpu-east", "batch",
        )  # fmt: skip
        assert len(read_record(place / "accepted.jsonl")) == 5
    finally:
        lifecycle.end_jobs(place)
        lifecycle.stop(place)


OVERRIDES = {
    "modelopt_path": "/projects/Model-Optimizer", "data_path": "/data/train.jsonl", "mask_token_id": 151669,
}  # fmt: skip


def jobs(folder: Path, algorithm: str, gpus: int | None, **overrides: Any) -> dict[str, ExactJob]:
    """Every job of a release over the shared file, as it would be shown to the operator."""
    key = folder / "key"
    key.write_text("a key")
    clusters = write_shared(folder, login_node="login.example.org", user="ann", key=key, workspace="/lustre/ann")
    release = {"target": "Qwen/Qwen3-8B", "revision": "b" * 40, "algorithm": algorithm, "budget": "dev"}
    file = folder / "release.yaml"
    file.write_text(yaml.safe_dump({**release, "overrides": {**OVERRIDES, **overrides}}))
    made, _ = check_inputs(file, folder / "run", "run-1", clusters)
    writer = new_run(folder / "run")
    writer.record("setup_done", "The cluster answers", stage="setup", facts={"gpus_per_node": gpus})
    frozen = {"destination": "/lustre/ann/drafts/d", "manifest_sha256": "f" * 64}
    writer.record("freeze_known", "Frozen", stage="freeze", freeze=frozen)
    made_jobs = {}
    for number, planned in enumerate(proposing.make_plan(made).tasks):
        job, uploads = proposing.build_job(made, writer.state, planned, 1, f"{number:016x}")
        assert {ref.name for ref in job.uploads} == set(uploads)
        made_jobs[planned.task] = job
    return made_jobs


@pytest.fixture
def what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the results of the jobs before each one."""

    def through(state: RunState, stage: str, task: str) -> Attempt:
        return Attempt(1, "sbatch", f"{task}-1", "d" * 64, "t" * 16, stage, task, job_dir=f"/lustre/ann/{task}-1",
                       outcome=Outcome.RESULTS_READ)  # fmt: skip

    monkeypatch.setattr(proposing, "_through", through)


@pytest.mark.usefixtures("what_came_before")
@pytest.mark.parametrize("algorithm", ["dflash", "dflash2"])
def test_the_recipes_for_gpu_clusters_take_everything_from_the_shared_file(tmp_path: Path, algorithm: str) -> None:
    made = jobs(tmp_path, algorithm, 8)
    assert list(made) == ["stage_target", "data", "train", "smoke", "freeze", "bench"]
    for name, job in made.items():
        assert (job.cluster, job.partition, job.account) == ("gpu-east", "batch", "research")
        inside = name in ("train", "smoke", "bench")
        assert job.image == ("registry.example.org/team/modelopt:2026-08" if inside else "")
        assert (job.image in job.script) is True
    train = made["train"]
    assert (train.nodes, train.gpus_per_node) == (1, 8)
    assert "training.gradient_accumulation_steps=1 " in train.script


@pytest.mark.usefixtures("what_came_before")
@pytest.mark.parametrize(("gpus", "steps"), [(4, 2), (2, 4), (1, 8)])
def test_a_training_is_fitted_to_smaller_nodes_with_its_global_batch(tmp_path: Path, gpus: int, steps: int) -> None:
    train = jobs(tmp_path, "dflash2", gpus)["train"]
    assert train.gpus_per_node == gpus
    assert f"training.gradient_accumulation_steps={steps} " in train.script
    assert f"export DATA_DIR=/lustre/ann/data-1 NODES=1 GPUS_PER_NODE={gpus} " in train.script
    assert "keeps the global batch of 8" in train.summary
