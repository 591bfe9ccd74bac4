"""A shell script asks for every job of a release with `gonogo submit`; operators decide; the log says who did what."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from console.release.folder import account
from tests.asking.test_submit_command import gonogo, run_dir  # noqa: F401 - a fixture
from tests.kills.releases import ROOT

KINDS = {
    "stage_target": ("--target demo/tiny --revision 1 --path /models/tiny", "stage_target"),
    "data": ("", "data"),
    "train": ('--export "$PWD/export"', "regression_check"),
    "smoke": ("--export /models/export", "smoke"),
    "bench": ("--drafter /models/export --manifest f", "bench"),
}


@pytest.mark.timeout(300)
def test_the_jobs_of_a_release_are_driven_by_a_script_and_decided_by_people(run_dir: Path, tmp_path: Path) -> None:  # noqa: F811
    lines = ["#!/bin/sh", "set -e"]
    for kind, (arguments, result) in KINDS.items():
        body = f"export PYTHONPATH={ROOT}\nexec {sys.executable} -m tests.kills.instant_job {kind} {arguments}\n"
        (tmp_path / f"{kind}.sh").write_text(f"#!/bin/sh\n#SBATCH -t 5\n{body}")
        lines.append(
            f"{sys.executable} -m console submit --run {run_dir} --proposer launcher --summary {kind}"
            f" --result {result}={result}.json --wait 60 -- {tmp_path}/{kind}.sh"
        )
    (tmp_path / "launch.sh").write_text("\n".join(lines) + "\n")
    launcher = subprocess.Popen(["sh", str(tmp_path / "launch.sh")], cwd=ROOT, stdin=subprocess.DEVNULL)
    approved: list[str] = []
    while launcher.poll() is None:
        for item in json.loads(gonogo("queue", "list", run_dir, "--json").stdout):
            if item["proposer"] == "launcher" and item["state"] == "pending" and item["id"] not in approved:
                done = gonogo("queue", "approve", run_dir, item["id"], "--digest", item["digest"])
                assert done.returncode == 0, done.stderr
                approved.append(item["id"])
    assert launcher.returncode == 0
    assert len(approved) == len(KINDS)
    entries = [json.loads(line) for line in gonogo("log", run_dir, "--json").stdout.splitlines()]
    about = [entry for entry in entries if entry["data"].get("id") in approved]
    actors = {event: {entry["actor"] for entry in about if entry["data"]["event"] == event} for event in
              ("job_proposed", "job_decided", "submit_intent", "submit_outcome")}  # fmt: skip
    assert actors == {
        "job_proposed": {"proposer:launcher"},
        "job_decided": {f"operator:{account()}"},
        "submit_intent": {"conductor"},
        "submit_outcome": {"conductor"},
    }
    taken = [entry for entry in about if entry["data"]["event"] == "submit_outcome"]
    assert [entry["data"]["id"] for entry in taken] == approved, "each was submitted once, in the script's order"
