"""A whole release within bounds, with signatures: the operator signs the policy and the one job that is outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.sandbox import lifecycle
from console.cli import main
from console.release import folder
from tests.kills.releases import ROOT, Lab
from tests.signing.keys import OURS, add, agent, allow, make_key

BOUNDS = {
    "stages": ["stage_target", "train", "bench"], "partition": "batch", "jobs": 4, "gpu_hours": 0, "days": 1,
}  # fmt: skip


def test_an_operator_signs_twice_and_the_policy_approves_the_rest(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    config, place = tmp_path / "config.toml", tmp_path_factory.mktemp("k")
    monkeypatch.setenv("GONOGO_CONFIG", str(config))
    lab = Lab.make(tmp_path)
    inputs = json.loads((tmp_path / "release.yaml").read_text())
    (tmp_path / "release.yaml").write_text(json.dumps({**inputs, "bounds": BOUNDS, "signed_decisions": True}))
    with agent(place) as environ:
        key = make_key(place, "operator")
        add(environ, key)
        signers = allow(place, (folder.account(), OURS, key))
        config.write_text(f'[signing]\nkey = "{key}"\nallowed_signers = "{signers.allowed}"\n')
        monkeypatch.setenv("SSH_AUTH_SOCK", environ["SSH_AUTH_SOCK"])
        command = [sys.executable, "-m", "console", *lab.run_arguments("r"), "--headless", "--wait", "60"]
        said = []
        try:
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                env={**os.environ, "GONOGO_HISTORY": str(tmp_path / "history.sqlite")},
            ) as release:  # fmt: skip
                assert release.stdout is not None
                for line in release.stdout:
                    said.append(line)
                    if " Proposed 001-policy-1" in line:
                        assert (
                            main(["queue", "approve", str(tmp_path / "r"), "001-policy-1", "--digest", tail(line)]) == 0
                        )
                    elif " Proposed 006-bench-1" in line:
                        digest = tail(line)
                    elif "is outside the policy" in line:
                        assert approve(tmp_path / "r", "006-bench-1", digest) == 0
        finally:
            lifecycle.end_jobs(tmp_path / "cluster")
            lifecycle.stop(tmp_path / "cluster")
    assert release.returncode == 0, "".join(said)
    outside = [line for line in said if "is outside the policy" in line]
    assert len(outside) == 1
    assert "it would be job 5 of at most 4" in outside[0]
    state = folder.read_state(tmp_path / "r")
    assert state is not None
    by = {attempt.task: attempt.decided_by for attempt in state.attempts}
    me = f"operator:{folder.account()}"
    assert by == {
        "policy": me, "stage_target": "policy", "data": "policy", "train": "policy", "smoke": "policy", "bench": me,
    }  # fmt: skip
    assert len(lab.accepted(state.run_id)) == 5, "the policy itself is never submitted"
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "r")]) == 0
    out = capsys.readouterr().out
    assert out.count("signed with ED25519 key SHA256:") == 2
    assert out.count("approved within policy 001-policy-1") == 4
    assert main(["open", str(tmp_path / "r"), "--plain"]) == 0
    assert "Policy 001-policy-1: used 4 of 4 jobs, 0.00 of 0.00 GPU hours" in capsys.readouterr().out


def approve(run_dir: Path, name: str, digest: str) -> int:
    return main(["queue", "approve", str(run_dir), name, "--digest", digest])


def tail(line: str) -> str:
    """The digest at the end of a line about a proposal."""
    return line.strip().rpartition("digest ")[2]
