"""Releases on an embedded cluster that a test starts, kills and resumes as an operator's commands do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.sandbox.store import read_record
from console.commands.demo import prepare_cluster
from console.release.folder import read_state
from console.release.journal import check_anchor, read_log
from console.release.state import Outcome

ROOT = Path(__file__).resolve().parents[2]

_TASKS = {
    "stage_target": ("stage_target", "--target @TARGET@ --revision @REVISION@ --path @TARGET_PATH@"),
    "data": ("train", ""),
    "train": ("train", "--export @EXPORT_PATH@"),
    "smoke": ("train", "--export @EXPORT_DIR@"),
    "bench": ("bench", "--drafter @DRAFTER_PATH@ --manifest @MANIFEST_SHA256@"),
}
_RESULTS = {
    "stage_target": {"stage_target": "stage_target.json", "target_check": "target_check.json"},
    "data": {"data": "data.json"},
    "train": {"regression_check": "regression_check.json", "export_check": "export_check.json"},
    "smoke": {"smoke": "smoke.json"},
    "bench": {"bench": "bench.json", "exact_match": "exact_match.json"},
}


def write_recipe(folder: Path, root: Path = ROOT) -> None:
    """A recipe whose jobs take no time.

    Args:
        folder: Where it is written.
        root: Where the jobs find `tests.kills.instant_job`, on the cluster.
    """
    folder.mkdir(parents=True)
    tasks = []
    for name, (stage, arguments) in _TASKS.items():
        script = f"export PYTHONPATH={root}\nexec @PYTHON@ -m tests.kills.instant_job {name} {arguments}\n"
        (folder / f"{name}.sh").write_text(script)
        tasks.append(
            {
                "stage": stage,
                "task": name,
                "summary": f"Write what {name} writes",
                "script": f"{name}.sh",
                "results": _RESULTS[name],
                "time": "00:05:00",
            }
        )
    recipe = {
        "name": "instant",
        "about": "Jobs that take no time",
        "algorithms": ["dflash2"],
        "values": {"draft_tokens": 4},
        "budgets": {"dev": {}, "full": {}},
        "drafts_root": "@WORKSPACE@/drafts",
        "freeze_job_above_bytes": 1_000_000,
        "tasks": tasks,
    }
    (folder / "recipe.yaml").write_text(json.dumps(recipe))


def _is_of(job_name: str, run_id: str) -> bool:
    return re.fullmatch(f"gonogo-{re.escape(run_id)}-({'|'.join(_TASKS)})-[0-9a-f]{{8}}", job_name) is not None


@dataclass(frozen=True)
class Lab:
    """An embedded cluster, with inputs for releases on it."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Lab:
        lab = cls(folder)
        write_recipe(folder / "recipe")
        prepare_cluster(folder / "cluster")
        clusters = json.loads(lab.clusters.read_text())
        fast = {"poll_seconds": 0.1, "watch_seconds": 0.1, "settle_seconds": 0.5, "result_grace_seconds": 0.5}
        clusters["clusters"]["demo"]["gonogo"] |= fast
        lab.clusters.write_text(json.dumps(clusters))
        release = {
            "target": "demo/tiny-target",
            "revision": "a" * 40,
            "algorithm": "dflash2",
            "budget": "dev",
            "recipe": str(folder / "recipe"),
            "approve_submissions": "none",
        }
        (folder / "release.yaml").write_text(json.dumps(release))
        return lab

    @property
    def root(self) -> Path:
        """Folder from which the commands are run."""
        return ROOT

    @property
    def clusters(self) -> Path:
        return self.folder / "cluster" / "clusters.yaml"

    def run(self, name: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """`gonogo run` headless, to its end or to its death."""
        return self._gonogo(self.run_arguments(name), environment)

    def run_arguments(self, name: str) -> list[str]:
        """Arguments of `gonogo` that start a release."""
        places = ["--run-dir", str(self.folder / name), "--clusters", str(self.clusters)]
        return ["run", str(self.folder / "release.yaml"), *places]

    def resume(self, name: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """`gonogo resume` headless."""
        return self._gonogo(["resume", str(self.folder / name)], environment)

    def _gonogo(self, arguments: list[str], environment: Mapping[str, str] | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "console", *arguments, "--headless"],
            env={**os.environ, "GONOGO_HISTORY": str(self.folder / "history.sqlite"), **(environment or {})},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def accepted(self, run_id: str) -> list[dict[str, Any]]:
        """The cluster's own record of what this run submitted."""
        every = read_record(self.folder / "cluster" / "accepted.jsonl")
        return [item for item in every if _is_of(item["name"], run_id)]

    def started(self, run_id: str) -> list[dict[str, Any]]:
        """The cluster's own record of what of this run was started."""
        every = read_record(self.folder / "cluster" / "started.jsonl")
        return [item for item in every if _is_of(item["name"], run_id)]

    def check(self, name: str) -> None:
        """What must hold of a release that ended well, however often it was killed on the way."""
        run_dir = self.folder / name
        state = read_state(run_dir)
        assert state is not None
        assert state.verdict == "DRAFTER_READY", state.verdict
        entries = read_log(run_dir)
        check_anchor(entries, state.entries, state.head)
        passed_stages = Counter(entry.stage for entry in entries if entry.data["event"] == "stage_passed")
        assert passed_stages
        assert max(passed_stages.values()) == 1, f"a stage passed twice: {passed_stages}"
        by_token = Counter(item["comment"].split(":")[1] for item in self.accepted(name))
        assert max(by_token.values()) == 1, f"a job was accepted twice: {by_token}"
        starts = Counter(item["name"] for item in self.started(name))
        assert max(starts.values()) == 1, f"a job was started twice: {starts}"
        tokens = {attempt.token: attempt for attempt in state.attempts}
        assert set(by_token) <= set(tokens), "the cluster has a job that the log does not know"
        for attempt in state.attempts:
            known = attempt.token in by_token
            # Fenced off before sbatch was called: proven absent, and its successor has an OK of its own.
            assert known == (attempt.outcome is not Outcome.NOT_SUBMITTED), (
                f"{attempt.id}: {attempt.outcome}, accepted: {known}"
            )
        passed = Counter(attempt.task for attempt in state.attempts if attempt.token in by_token)
        assert passed == Counter(list(_TASKS)), f"a stage that passed ran twice: {passed}"
