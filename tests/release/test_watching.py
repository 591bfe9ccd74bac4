"""The look at the queue: as often as the interval allows, whatever it had to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from backends.errors import CouldNotAsk
from backends.slurm.model import JobState, JobStatus, Presence, QueueReading
from console.release import watching
from console.release.live import Live
from console.release.ports import Connection
from tests.release.making import RUN_ID, decide, make_job, new_run, propose, submit
from tests.release.submitting import make_release


class Enough(Exception):
    """The test has seen what it wanted."""


class Scheduler:
    """Answers by plan, and notes what each pause after an answer was."""

    def __init__(self, plan: list[int | None]) -> None:
        self.plan = plan
        self.pauses: list[float] = []

    async def jobs(self, names: Mapping[str, str]) -> QueueReading:
        queries = self.plan[len(self.pauses)]
        if queries is None:
            raise CouldNotAsk("login", "squeue", "")
        status = JobStatus("4711", Presence.IN_QUEUE, JobState.RUNNING, "RUNNING")
        return QueueReading(dict.fromkeys(names, status), queries=queries)

    async def sleep(self, seconds: float) -> None:
        if seconds == 0:
            return
        self.pauses.append(seconds)
        if len(self.pauses) == len(self.plan):
            raise Enough


async def test_each_query_is_paid_for_with_one_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = make_release(tmp_path)
    writer = new_run(tmp_path / RUN_ID)
    proposal = propose(writer, "001-train-1", make_job())
    decide(writer, proposal)
    submit(writer, proposal)
    scheduler = Scheduler([1, 2, None, 1])
    nothing: Any = None
    connection = Connection(nothing, cast(Any, scheduler), nothing)
    monkeypatch.setattr(watching, "asyncio", type("", (), {**vars(asyncio), "sleep": staticmethod(scheduler.sleep)}))
    with pytest.raises(Enough):
        await watching.Monitor(release, writer, connection, Live()).run()
    assert release.cluster.poll_seconds == 15
    assert scheduler.pauses == [15, 30, 15, 15]
