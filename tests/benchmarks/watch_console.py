"""The console's side of the watch benchmark: a run folder whose jobs are watched, read and judged as in a release."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from console.release import live, steps
from console.release.conductor import Conductor
from console.release.ports import Connection
from console.release.proposing import Release
from console.release.watching import Monitor, watch_attempt
from console.release.writer import RunWriter
from tests.release.making import decide, make_job, new_run, propose, submit

if TYPE_CHECKING:
    from tests.benchmarks.watch import Job

Verdicts = dict[str, "asyncio.Task[tuple[float, bool]]"]
"""By token: when the verdict was on disk, monotonic seconds, and whether it was GO."""


def make_run(path: Path, jobs: Sequence[Job]) -> RunWriter:
    """A run whose jobs have been submitted."""
    writer = new_run(path)
    for number, job in enumerate(jobs):
        made = make_job("data", number + 1, job.token, job_dir=str(job.result.parent), results=(("data", "data.json"),))
        proposal = propose(writer, f"{number + 1:03d}-data-{number + 1}", made)
        decide(writer, proposal)
        submit(writer, proposal, job.job_id)
    return writer


async def _verdict(conductor: Conductor, name: str) -> tuple[float, bool]:
    """Watch one job to its verdict."""
    await watch_attempt(conductor.release, conductor.writer, conductor.connection, conductor.live, name)
    steps.judge(conductor, name, ("data",))
    moment = time.monotonic()
    gate = conductor.writer.state.stage("train").gate("data", name)
    return moment, gate is not None and gate.passed


@asynccontextmanager
async def conducted(
    release: Release, connection: Connection, path: Path, jobs: Sequence[Job]
) -> AsyncIterator[Verdicts]:
    """A run that is conducted: its jobs watched by one monitor, its files by one watcher, both shown once a second."""
    writer = make_run(path, jobs)

    async def connected() -> Connection:
        return connection

    conductor = Conductor(replace(release, run_dir=path), writer, connected)
    conductor._connection = await connected()
    others = [str(path) for job in jobs for path in job.others]
    for other in others:
        connection.watcher.register(other)
    verdicts = {
        job.token: asyncio.create_task(_verdict(conductor, f"{number + 1:03d}-data-{number + 1}"))
        for number, job in enumerate(jobs)
    }
    helpers = [
        asyncio.create_task(Monitor(conductor.release, writer, connection, conductor.live).run()),
        asyncio.create_task(live.publish(path, conductor._snapshot)),
    ]
    try:
        await _all_known(connection, others)
        yield verdicts
    finally:
        for task in (*helpers, *verdicts.values()):
            task.cancel()
        await asyncio.gather(*helpers, *verdicts.values(), return_exceptions=True)
        for other in others:
            connection.watcher.unregister(other)


async def _all_known(connection: Connection, paths: Sequence[str]) -> None:
    """Wait until every file was looked at: what is measured begins then."""
    async with asyncio.timeout(30):
        while any(connection.watcher.snapshot()[path].looked_at is None for path in paths):
            await connection.watcher.changed(1.0)
