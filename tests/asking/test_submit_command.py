"""A shell script asks, an operator decides from another terminal, over a real SSH server with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.sandbox import lifecycle
from console.release.folder import account, read_state
from tests.kills.releases import ROOT, Lab


def gonogo(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "console", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, **options)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release that waits for its first OK while other programs ask for jobs."""
    folder = tmp_path_factory.mktemp("asking")
    lab = Lab.make(folder)
    command = [sys.executable, "-m", "console", *lab.run_arguments("r"), "--headless", "--approve-submissions", "each"]
    conductor = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert conductor.stdout is not None
    for line in conductor.stdout:
        if " Proposed " in line:
            break
    try:
        yield folder / "r"
    finally:
        conductor.terminate()
        conductor.stdout.close()
        conductor.wait(30)
        lifecycle.end_jobs(folder / "cluster")
        lifecycle.stop(folder / "cluster")


def waiting(run_dir: Path, name: str) -> dict[str, Any]:
    """A proposal as the queue shows it."""
    listed = json.loads(gonogo("queue", "list", run_dir, "--json").stdout)
    return next(item for item in listed if item["id"] == name)


def test_submit_asks_waits_and_says_what_became_of_it(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "tool.txt").write_text("carried along\n")
    script = "#!/bin/sh\n#SBATCH -t 5\ncat tool.txt\nprintf '{\"answer\": 42}' > answer.json\n"
    options = ["--run", run_dir, "--json", "--proposer", "robot", "--upload", tmp_path / "tool.txt"]
    asked = gonogo("submit", *options, "--result", "answer=answer.json", "--no-wait", "--", "-c", "2", input=script)
    assert asked.returncode == 5, asked.stderr
    name = json.loads(asked.stdout)["id"]
    digest = waiting(run_dir, name)["digest"]
    assert waiting(run_dir, name)["proposer"] == "robot"

    assert gonogo("queue", "approve", run_dir, name, "--digest", digest).returncode == 0
    done = gonogo("submit", "--run", run_dir, "--status", name, "--wait", "30", "--json")
    assert done.returncode == 0, done.stdout
    assert int(json.loads(done.stdout)["job_id"]) > 100
    # The flow's own proposal still waits: nothing of this concerns it.
    state = read_state(run_dir)
    assert state is not None
    assert [item.outcome for item in state.attempts if item.stage != "asked"] == ["proposed"]
    while not (run_dir / "results" / name / "answer.json").exists():
        assert (state := read_state(run_dir)) is not None
        assert state.attempt(name) is not None
        assert state.attempt(name).outcome != "result missing"
    assert json.loads((run_dir / "results" / name / "answer.json").read_bytes()) == {"answer": 42}


def test_the_look_alike_prints_what_sbatch_would_print(run_dir: Path, tmp_path: Path) -> None:
    assert gonogo("sbatch", "--install", tmp_path / "bin").returncode == 0
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/bash\n#SBATCH --time=3\necho "$@" > said\n')
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "GONOGO_RUN": str(run_dir)}
    command = ["sbatch", "--job-name=tool", str(script), "one", "two words"]
    program = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert program.stderr is not None
    name = program.stderr.readline().split()[2]
    assert gonogo("queue", "approve", run_dir, name, "--digest", waiting(run_dir, name)["digest"]).returncode == 0
    out, _ = program.communicate(timeout=30)
    assert program.returncode == 0
    assert out.startswith("Submitted batch job ")

    refused = subprocess.run(
        ["sbatch", "--wait", str(script)], env=environment, capture_output=True, text=True, cwd=ROOT
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--wait" in refused.stderr


def test_the_reason_of_a_rejection_reaches_the_program(run_dir: Path) -> None:
    asked = gonogo("submit", "--run", run_dir, "--no-wait", "--json", "--", "--wrap", "true", input="")
    name = json.loads(asked.stdout)["id"]
    assert gonogo("queue", "reject", run_dir, name, "--reason", "too early").returncode == 0
    done = gonogo("submit", "--run", run_dir, "--status", name, "--wait", "30")
    assert (done.returncode, done.stdout.strip()) == (
        1,
        f"{name}: rejected by {account()}: too early",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "--nosuch", "x"], "--nosuch"),
        (["--", "no-such-script.sh"], "no-such-script.sh"),
        (["--upload", "nothing-here", "--", "--wrap", "true"], "nothing-here"),
        (["--result", "x", "--", "--wrap", "true"], "KIND=PATH"),
        (["--status", "ask-none"], "no such proposal"),
    ],
)
def test_bad_input_is_one_line(run_dir: Path, arguments: list[str], words: str) -> None:
    done = gonogo("submit", "--run", run_dir, *arguments, input="")
    said = done.stderr + done.stdout
    assert done.returncode in (2, 6), said
    assert words in said
    assert len(said.strip().splitlines()) == 1


def test_which_run_must_be_said(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GONOGO_RUN"}
    done = gonogo("submit", "--", "--wrap", "true", env=environment)
    assert (done.returncode, "which run?" in done.stderr) == (2, True)
