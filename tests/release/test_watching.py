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
from console.release.pace import Pace
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
        self.now = 100.0

    async def jobs(self, names: Mapping[str, str]) -> QueueReading:
        queries = self.plan[len(self.pauses)]
        if queries is None:
            raise CouldNotAsk("login", "squeue", "")
        status = JobStatus("4711", Presence.IN_QUEUE, JobState.RUNNING, "RUNNING")
        return QueueReading(dict.fromkeys(names, status), queries=queries)

    async def sleep(self, seconds: float) -> None:
        if seconds == 0:
            return
        self.now += seconds
        self.pauses.append(seconds)
        if len(self.pauses) == len(self.plan):
            raise Enough


async def pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: list[int | None]) -> list[float]:
    """How long the monitor waited after each look, by what each look cost."""
    release = make_release(tmp_path)
    writer = new_run(tmp_path / RUN_ID)
    proposal = propose(writer, "001-train-1", make_job())
    decide(writer, proposal)
    submit(writer, proposal)
    scheduler = Scheduler(plan)
    nothing: Any = None
    connection = Connection(nothing, cast(Any, scheduler), nothing, Pace(lambda: scheduler.now))
    monkeypatch.setattr(watching, "asyncio", type("", (), {**vars(asyncio), "sleep": staticmethod(scheduler.sleep)}))
    with pytest.raises(Enough):
        await watching.Monitor(release, writer, connection, Live()).run()
    assert release.cluster.poll_seconds == 20
    return scheduler.pauses


async def test_each_query_is_paid_for_with_one_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await pauses(tmp_path, monkeypatch, [1, 2, None, 1]) == [20, 40, 20, 20]


@pytest.mark.parametrize("plan", [(1, 1, 2), (1, 2), (2, 1), (2,), (1, 1, 1, 2, 2)])
async def test_no_minute_has_more_than_four_queries_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: tuple[int, ...]
) -> None:
    costs = [*plan] * 6
    begun, asked = 0.0, []
    for cost, pause in zip(costs, await pauses(tmp_path, monkeypatch, [*costs]), strict=True):
        asked += [begun] * cost
        begun += pause
    most = max(sum(since <= time < since + 60 for time in asked) for since in asked)
    assert 3 <= most <= 4


async def test_a_release_that_begins_waits_for_the_interval_of_another_on_the_same_connection() -> None:
    now = 100.0
    pace = Pace(lambda: now)
    assert pace.wait() == 0
    pace.spend(2, 20.0)
    now += 15
    assert pace.wait() == 25
    now += 25
    assert pace.wait() == 0


async def test_two_releases_on_one_connection_ask_no_more_than_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = 0.0, []
    nothing: Any = None

    class Slurm:
        async def jobs(self, names: Mapping[str, str]) -> QueueReading:
            asked.append(now)
            status = JobStatus("4711", Presence.IN_QUEUE, JobState.RUNNING, "RUNNING")
            return QueueReading(dict.fromkeys(names, status), queries=1)

    real_sleep = asyncio.sleep
    sleepers: list[tuple[float, asyncio.Event]] = []

    async def sleep(seconds: float) -> None:
        if seconds == 0:
            await real_sleep(0)
            return
        event = asyncio.Event()
        sleepers.append((now + seconds, event))
        await event.wait()

    connection = Connection(nothing, cast(Any, Slurm()), nothing, Pace(lambda: now))
    monkeypatch.setattr(watching, "asyncio", type("", (), {**vars(asyncio), "sleep": staticmethod(sleep)}))
    release = make_release(tmp_path)
    monitors = []
    for name in ("one", "two"):
        writer = new_run(tmp_path / name)
        proposal = propose(writer, "001-train-1", make_job())
        decide(writer, proposal)
        submit(writer, proposal)
        monitors.append(asyncio.create_task(watching.Monitor(release, writer, connection, Live()).run()))
    while len(asked) < 8:
        for _ in range(20):
            await real_sleep(0)
        sleepers.sort(key=lambda item: item[0])
        now, event = sleepers.pop(0)
        event.set()
    for monitor in monitors:
        monitor.cancel()
    await asyncio.gather(*monitors, return_exceptions=True)
    assert max(sum(since <= time < since + 60 for time in asked) for since in asked) == 3
