"""A whole release on an embedded cluster whose jobs serve with a real engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from backends.sandbox import lifecycle
from console.commands.demo import prepare_cluster
from console.release.folder import read_state
from console.release.state import RunState
from tests.engine.install import engine_python
from tests.engine.recipe import tiny_qwen

RECIPE = Path(__file__).with_name("recipe")
TARGET = "test/tiny-qwen3"
REVISION = "0000001ca1ab1e0000000000000000000000c0de"
RELEASE_TIMEOUT_S = 1500


class Released(NamedTuple):
    """A release that came to its end.

    Attributes:
        status: How the command that conducted it ended.
        state: Where it stands.
        run_dir: Its folder.
        said: What the command said.
    """

    status: int
    state: RunState
    run_dir: Path
    said: str

    def result(self, name: str) -> dict:
        """The latest copy of a result file that a gate read."""
        found = sorted((self.run_dir / "results").glob(f"*/{name}"))
        return json.loads(found[-1].read_bytes())


@contextmanager
def released(folder: Path, kind: str, noise: float = 0.0) -> Iterator[Released]:
    """Release a drafter of a kind, conducted headless, each job approved by its digest; the cluster is ended."""
    place, run_dir, drafter = folder / "cluster", folder / "run", folder / "drafter"
    tiny_qwen.make(kind, str(drafter), tiny_qwen.seed_of(REVISION), noise)
    try:
        clusters = prepare_cluster(place)
        inputs = {
            "target": TARGET,
            "revision": REVISION,
            "algorithm": "dflash",
            "cluster": "demo",
            "budget": "dev",
            "recipe": str(RECIPE),
            "existing_drafter": str(drafter),
            "overrides": {"engine_python": str(engine_python())},
        }
        release = folder / "release.yaml"
        release.write_text(json.dumps(inputs))
        command = [sys.executable, "-m", "console", "run", str(release), "--clusters", str(clusters)]
        command += ["--run-dir", str(run_dir), "--headless", "--wait", "60"]
        status, said = _approve_all(command, run_dir)
        state = read_state(run_dir)
        assert state is not None, said
        yield Released(status, state, run_dir, said)
    finally:
        if place.exists():
            lifecycle.end_jobs(place)
            lifecycle.stop(place)


def _approve_all(command: list[str], run_dir: Path) -> tuple[int, str]:
    """Conduct a release, and approve each job that it proposes as an operator in a second terminal would."""
    said = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
    ) as conducted:
        assert conducted.stdout is not None
        for line in conducted.stdout:
            said.append(line)
            if " Proposed " in line:
                digest = line.strip().rpartition("digest ")[2]
                name = line.partition(" Proposed ")[2].partition(":")[0]
                approve = [sys.executable, "-m", "console", "queue", "approve", str(run_dir), name, "--digest", digest]
                decided = subprocess.run(approve, capture_output=True, text=True, timeout=60, check=False)
                assert decided.returncode == 0, decided.stderr
        status = conducted.wait(RELEASE_TIMEOUT_S)
    return status, "".join(said)
