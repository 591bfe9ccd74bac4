"""From a submitted job to its result files, and the one periodic look at the queue for all jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from backends.errors import CouldNotAsk, FileMissing
from backends.slurm.model import JobStatus, Presence, QueueReading
from console.release import judging
from console.release.live import Live
from console.release.ports import Connection
from console.release.proposing import Release
from console.release.state import Attempt, Outcome
from console.release.writer import RunWriter

LOOKS_AFTER_END = 2
"""After a job ended, its missing result must be seen missing in so many looks, `result_grace_seconds` apart."""

_TAIL_BYTES = 2000


class Monitor:
    """Looks at all jobs of the run at once, and logs each change of state once.

    Each of Slurm's commands is paid for with one interval: a look that had to ask accounting too is followed by a pause
    of two, so that the controller gets no more queries than the interval allows, whatever has become of the jobs and
    however many releases are conducted over the connection.
    """

    def __init__(self, release: Release, writer: RunWriter, connection: Connection, live: Live) -> None:
        self._release = release
        self._writer = writer
        self._connection = connection
        self._live = live

    async def run(self) -> None:
        """Look until cancelled; a look that got no answer changes nothing and is shown."""
        pace, interval = self._connection.pace, self._release.cluster.poll_seconds
        while True:
            if wait := pace.wait():
                await asyncio.sleep(wait)
                continue  # another release may have taken its turn meanwhile
            open_jobs = [item for item in self._writer.state.attempts if item.job_id and not item.ended_at]
            if not open_jobs:
                await asyncio.sleep(interval)
                continue
            pace.spend(1, interval)
            try:
                reading = await self._look(open_jobs)
                pace.spend(reading.queries, interval)
                await self._take(open_jobs, reading)
            except CouldNotAsk as error:
                pace.spend(1, interval)
                self._live.problems = (str(error),)

    async def _look(self, attempts: list[Attempt]) -> QueueReading:
        names = {item.job_id or "": item.token for item in attempts}
        return await self._connection.slurm.jobs(names)

    async def _take(self, attempts: list[Attempt], reading: QueueReading) -> None:
        self._live.problems = reading.problems
        for attempt in attempts:
            status = reading.jobs.get(attempt.job_id or "")
            if status is None:
                continue
            self._live.jobs[attempt.id] = status
            if status.presence is Presence.COULD_NOT_ASK:
                continue
            ended = status.presence is Presence.GONE or status.state.ended
            state = "GONE" if status.presence is Presence.GONE else status.state_text
            seen = (state, status.reason, status.node)
            if seen != (attempt.job_state, attempt.job_reason, attempt.node) or ended:
                self._record(attempt, status, state, ended)
                # Many jobs may start at once; whatever else is due need not wait for all of their entries.
                await asyncio.sleep(0)

    def _record(self, attempt: Attempt, status: JobStatus, state: str, ended: bool) -> None:
        why = f" ({status.reason})" if status.reason not in ("", "None") else ""
        code = f", exit code {status.exit_code}" if status.exit_code and ended else ""
        self._writer.record(
            "job_seen",
            f"Job {attempt.job_id} ({attempt.id}) is {state}{why}{code}",
            stage=attempt.stage,
            id=attempt.id,
            job_id=attempt.job_id,
            state=state,
            reason=status.reason,
            node=status.node,
            exit_code=status.exit_code,
            ended=ended,
        )


async def watch_attempt(release: Release, writer: RunWriter, connection: Connection, live: Live, name: str) -> None:
    """Wait until all result files of an attempt were read, or until its job ended without them.

    A job state never decides anything here but when to stop waiting.
    """
    attempt = writer.state.attempt(name)
    assert attempt is not None, "only logged attempts are watched"
    from console.release import queue

    job = queue.load(writer.run_dir, name).job()
    paths = {kind: f"{job.job_dir}/{path}" for kind, path in job.results}
    for kind, path in paths.items():
        live.watched[path] = (name, kind)
        connection.watcher.register(path)
    try:
        missing = await _collect(release, writer, connection, name, paths)
    finally:
        for path in paths.values():
            connection.watcher.unregister(path)
            live.watched.pop(path, None)
    attempt = writer.state.attempt(name)
    assert attempt is not None
    if attempt.outcome is not Outcome.SUBMITTED:
        return
    if attempt.results:
        lacking = f"; missing: {', '.join(sorted(missing))}" if missing else ""
        text = f"Read {len(attempt.results)} result files of {name}{lacking}"
        writer.record("results_complete", text, stage=attempt.stage, id=name, missing=sorted(missing))
        return
    detail = f"job {attempt.job_id} is {attempt.job_state} and wrote none of {', '.join(sorted(paths.values()))}"
    tail = await _tail(connection, job.job_dir, attempt.job_id)
    text = f"{name}: {detail}"
    writer.record("result_missing", text, stage=attempt.stage, id=name, detail=detail, output_tail=tail)


async def _collect(
    release: Release,
    writer: RunWriter,
    connection: Connection,
    name: str,
    paths: Mapping[str, str],
) -> set[str]:
    """Read result files as they become complete; returns the kinds that never came."""
    looks = 0
    while True:
        since = connection.watcher.changes
        attempt = writer.state.attempt(name)
        assert attempt is not None
        open_kinds = set(paths) - {result.kind for result in attempt.results}
        if not open_kinds or attempt.outcome is not Outcome.SUBMITTED:
            return open_kinds
        final = bool(attempt.ended_at) and looks >= LOOKS_AFTER_END
        for kind in sorted(open_kinds):
            data = await _read_complete(connection, paths[kind], final)
            if data is not None:
                judging.keep(writer, attempt, kind, paths[kind], data)
                open_kinds.discard(kind)
        if not open_kinds or final:
            return open_kinds
        if attempt.ended_at:
            looks += 1
            await asyncio.sleep(release.cluster.result_grace_seconds)
        else:
            wanted = {paths[kind] for kind in open_kinds}
            await connection.watcher.changed(release.cluster.poll_seconds, paths=wanted, since=since)


async def _read_complete(connection: Connection, path: str, final: bool) -> bytes | None:
    """The bytes of a result file once they are complete and did not change while they were read.

    Args:
        connection: The cluster.
        path: The file.
        final: The job is over and nobody writes any more: also take bytes that are not a whole document, so
            that the gate says what is wrong with them.
    """
    reading = connection.watcher.snapshot().get(path)
    if not final and (reading is None or not reading.stable):
        return None
    try:
        data = await connection.watcher.fetch(path, limit=judging.MAX_RESULT_BYTES, fresh=final)
    except FileMissing:
        return None
    if data is None:
        return None
    return data if final or _closes(data) else None


def _closes(data: bytes) -> bool:
    """Whether the bytes are one whole JSON document; strictness is the gate's business."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


async def _tail(connection: Connection, job_dir: str, job_id: str | None) -> str:
    """The end of a job's output, for the person who must find out what happened; empty when there is none."""
    path = f"{job_dir}/slurm-{job_id}.out"
    try:
        stat = await connection.host.stat(path)
        if stat is None:
            return ""
        data = await connection.host.read(path, offset=max(0, stat.size - _TAIL_BYTES), limit=_TAIL_BYTES)
    except (CouldNotAsk, FileMissing):
        return ""
    return data.decode("utf-8", "replace")
