"""What tests see of an embedded cluster, and the submissions that they make."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from backends.hosts.base import RunResult
from backends.hosts.ssh import SshTarget
from backends.sandbox import lifecycle
from backends.sandbox.__main__ import turn
from backends.sandbox.place import Place
from backends.sandbox.store import Job, Store, read_record
from backends.slurm.model import SubmitRequest

Shell = Callable[[str], Awaitable[RunResult]]


@dataclass
class Cluster:
    """What a test sees of an embedded cluster."""

    place: Place
    info: lifecycle.SandboxInfo

    def knob(self, name: str, value: Any) -> None:
        turn(self.place, name, value)

    def job(self, job_id: int) -> Job:
        store = Store(self.place)
        try:
            job = store.job(job_id)
        finally:
            store.close()
        assert job is not None, f"there is no job {job_id}"
        return job

    def accepted(self) -> list[dict[str, Any]]:
        return read_record(self.place.accepted)

    def started(self) -> list[dict[str, Any]]:
        return read_record(self.place.started)

    async def until(self, job_id: int, *states: str) -> Job:
        """The job, once it is in one of these states; the test's own time limit ends a wait that is in vain."""
        while (job := self.job(job_id)).state not in states:
            await asyncio.sleep(0.02)
        return job

    def target(self) -> SshTarget:
        info = self.info
        return SshTarget(info.host, info.port, info.user, info.known_hosts_path, info.key_path)

    def request(self, script: str, *options: str, token: str = "0123456789abcdef") -> SubmitRequest:
        """A submission as the conductor makes them."""
        job_dir, claim = self.info.home / "jobs" / token, self.info.home / "claims" / token
        own = (
            "--parsable",
            "--no-requeue",
            "--export=NONE",
            f"--job-name=gonogo-{token[:8]}",
            f"--comment=gonogo:{token}",
            f"--chdir={job_dir}",
            f"--output={job_dir}/slurm-%j.out",
            "--time=00:05:00",
        )
        text = f"#!/bin/sh\n{script}\n".encode()
        return SubmitRequest(token, "0" * 64, f"gonogo-{token[:8]}", (*own, *options), text, str(job_dir), str(claim))
