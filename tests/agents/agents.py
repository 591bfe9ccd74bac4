"""An agent's tools at the run of a desk whose cluster is the oracle, and what must never be in that run's folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from console.agents import tools
from console.agents.agent import Agent
from console.reader import LogReader
from console.release import folder
from tests.asking.desks import NOW, Desk

SCRIPT = "#!/bin/sh\n#SBATCH -t 10\ntrue\n"


def agent_at(desk: Desk, **limits: int) -> Agent:
    """An agent at the run that this desk serves; the state on disk is the desk's."""
    folder.write_state(desk.run_dir, desk.process.writer.state)
    return Agent(desk.run_dir, "robot", LogReader(desk.run_dir), now=lambda: NOW, **limits)


def proposed(agent: Agent, **changes: Any) -> dict[str, Any]:
    """A job that the agent asked for."""
    return tools.call(agent, "propose_job", {"script": SCRIPT, "summary": "Look around", **changes})


def files_of(run_dir: Path) -> dict[str, bytes]:
    """Every file of a run folder, links not followed."""
    found = {}
    for place, _, names in os.walk(run_dir):
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(run_dir).as_posix()] = path.read_bytes()
    return found


def left_by_agents(before: dict[str, bytes], run_dir: Path) -> list[str]:
    """Names of the files that are new.

    Raises:
        AssertionError: When a file was changed or removed, or a new one is none that an agent may leave.
    """
    after = files_of(run_dir)
    assert {name: after.get(name) for name in before} == before, "a file that was there is not what it was"
    new = sorted(set(after) - set(before))
    for name in new:
        parts = name.split("/")
        if parts[0] == "requests":
            assert json.loads(after[name])["verb"] == "remark", "an agent asked for something"
        else:
            own = parts[2:] in (["job.json"], ["proposal.json"]) or (len(parts) == 4 and parts[2] == "uploads")
            assert parts[0] == "submissions", name
            assert parts[1].startswith("ask-"), name
            assert own, f"{name}: a proposer leaves a job and its uploads, nothing else"
    return new
