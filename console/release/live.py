"""What is true this second: link, jobs, watched files, what is waited for. Written to `live.json` for the screen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backends.hosts.base import Host
from backends.slurm.model import JobStatus, Presence
from console.release import folder
from console.release.state import RunState

PUBLISH_SECONDS = 1.0
"""At most so often is the file written."""

HANGING_SECONDS = 60
"""A job that runs on for so long after its results were read is shown as hanging."""


@dataclass(slots=True)
class Live:
    """The conductor's own knowledge of this second; plain and mutable, since nothing is decided from it.

    Attributes:
        hooks: What is wrong with a hook, empty for nothing.
        watched: By path on the cluster, the attempt and the kind of a result file that is waited for.
    """

    doing: str = ""
    waiting_for: str = ""
    waiting_what: str = ""
    waiting_since: str = ""
    jobs: dict[str, JobStatus] = field(default_factory=dict)
    files: list[Mapping[str, Any]] = field(default_factory=list)
    watched: dict[str, tuple[str, str]] = field(default_factory=dict)
    clock_offset_s: float | None = None
    problems: tuple[str, ...] = ()
    hooks: str = ""

    def wait(self, whom: str, what: str, since: str) -> None:
        """Say whom and what the run waits for; the time of the first of equal calls stays."""
        if (self.waiting_for, self.waiting_what) != (whom, what):
            self.waiting_for, self.waiting_what, self.waiting_since = whom, what, since


def to_json(live: Live, state: RunState, host: Host | None, now: str, monotonic: float) -> dict[str, Any]:
    """The form of `live.json`."""
    link: dict[str, Any] = {"state": "down", "age_s": None, "detail": "not connected yet", "host": ""}
    if host is not None:
        seen = host.link.last_seen
        age = None if seen is None else round(max(0.0, monotonic - seen), 1)
        link = {"state": str(host.link.state), "age_s": age, "detail": host.link.detail, "host": host.name}
    return {
        "at": now,
        "pid": os.getpid(),
        "link": link,
        "clock_offset_s": live.clock_offset_s,
        "doing": live.doing,
        "waiting": {"for": live.waiting_for, "what": live.waiting_what, "since": live.waiting_since},
        "jobs": [_job(state, attempt_id, status) for attempt_id, status in live.jobs.items()],
        "files": list(live.files),
        "problems": [*live.problems, *([live.hooks] if live.hooks else [])],
    }


def _job(state: RunState, attempt_id: str, status: JobStatus) -> dict[str, Any]:
    attempt = state.attempt(attempt_id)
    running = status.presence is Presence.IN_QUEUE and not status.state.ended
    read = attempt is not None and attempt.outcome == "results read"
    return {
        "id": attempt_id,
        "job_id": status.job_id,
        "name": attempt.task if attempt is not None else "",
        "presence": str(status.presence),
        "state": status.state_text or str(status.state),
        "reason": status.reason,
        "node": status.node,
        "elapsed_s": status.elapsed,
        "limit_s": status.limit,
        "gpus": attempt.gpus if attempt is not None else 0,
        "hanging": running and read and (status.elapsed or 0) > HANGING_SECONDS,
    }


async def publish(run_dir: Path, snapshot: Callable[[], Mapping[str, Any]]) -> None:
    """Write the snapshot about once a second for as long as the conductor runs."""
    while True:
        folder.write_live(run_dir, snapshot())
        await asyncio.sleep(PUBLISH_SECONDS)
