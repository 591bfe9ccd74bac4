"""Jobs for the test cluster, made with the code that makes real ones, and hosts that reach it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from backends.hosts.operator import Operator
from backends.hosts.ssh import SshHost, SshTarget
from backends.slurm.client import Slurm
from backends.slurm.model import Accepted, JobState, JobStatus, SubmitRequest
from console.release.canonical import sha256
from console.release.job import ExactJob, UploadRef, build_script
from console.release.submission import to_request
from tests.cluster.layout import Account
from tests.cluster.running import Cluster

TOOL = b"print('the tool ran')\n"
PATIENCE_S = 30.0


def target_of(cluster: Cluster, account: Account, **changes: Any) -> SshTarget:
    """How to log in."""
    layout = cluster.layout
    known: dict[str, Any] = {"known_hosts": layout.known_hosts, "key": layout.key}
    return SshTarget("127.0.0.1", layout.ports["sshd"], account.name, **{**known, **changes})


@contextlib.asynccontextmanager
async def reached(
    cluster: Cluster, account: Account, *, operator: Operator | None = None, **changes: Any
) -> AsyncIterator[tuple[SshHost, Slurm]]:
    """A host over SSH, and Slurm on it."""
    host = SshHost(target_of(cluster, account, **changes), operator=operator)
    try:
        yield host, Slurm(host)
    finally:
        await host.close()


def make_job(cluster: Cluster, account: Account, body: str = "true\n", /, **changes: Any) -> ExactJob:
    """An exact job for the cluster. `changes` are fields of it."""
    token = secrets.token_hex(8)
    root = f"{cluster.layout.home(account)}/work"
    job_dir, claim_dir = f"{root}/train-1-{token[:8]}", f"{root}/claims/{token}"
    fields: dict[str, Any] = {
        "run_id": "proving",
        "stage": "train",
        "task": "train",
        "attempt": 1,
        "summary": "A small job",
        "cluster": "proving",
        "host": "127.0.0.1",
        "port": cluster.layout.ports["sshd"],
        "user": account.name,
        "token": token,
        "job_name": f"gonogo-proving-train-{token[:8]}",
        "partition": "batch",
        "account": account.association,
        "qos": "",
        "nodes": 1,
        "gpus_per_node": 0,
        "cpus_per_task": 0,
        "mem": "",
        "time": "00:05:00",
        "image": "",
        "job_dir": job_dir,
        "claim_dir": claim_dir,
        "environment": (("GONOGO_TOKEN", token),),
        "script": build_script(body, claim_dir=claim_dir, job_dir=job_dir, environment=()),
        "uploads": (UploadRef(name="tool.py", sha256=sha256(TOOL), size=len(TOOL)),),
        "results": (),
    }
    return ExactJob(**{**fields, **changes})


def make_request(cluster: Cluster, account: Account, body: str = "true\n", /, **changes: Any) -> SubmitRequest:
    """What is submitted of such a job."""
    return to_request(make_job(cluster, account, body, **changes), {"tool.py": TOOL})


async def accepted(slurm: Slurm, request: SubmitRequest) -> str:
    """Submit, and the id under which Slurm took it."""
    outcome = await slurm.submit(request)
    assert isinstance(outcome, Accepted), outcome
    return outcome.job_id


async def seen(slurm: Slurm, job_id: str, request: SubmitRequest, holds: Callable[[JobStatus], bool]) -> JobStatus:
    """Look at a job until something holds of it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        status = (await slurm.jobs({job_id: request.token})).jobs[job_id]
        if holds(status):
            return status
        assert time.monotonic() < end, f"after {PATIENCE_S:g} s the job is {status}"
        await asyncio.sleep(0.1)


def ended(status: JobStatus) -> bool:
    """Whether a job is over."""
    return status.state.ended


def running(status: JobStatus) -> bool:
    """Whether a job runs."""
    return status.state is JobState.RUNNING


def because(reason: str) -> Callable[[JobStatus], bool]:
    """Whether a job has this reason."""
    return lambda status: status.reason == reason


async def there(path: str) -> None:
    """Wait until a file is there; the test's own view of the disk is the cluster's."""
    await holds_in_time(Path(path).exists, path)


async def holds_in_time(holds: Callable[[], bool], what: str) -> None:
    """Ask again and again until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"after {PATIENCE_S:g} s there is no {what}"
        await asyncio.sleep(0.02)
