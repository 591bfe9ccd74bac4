"""What the conductor needs of a cluster: a host, Slurm on it, and a watcher of result files.

The conductor never knows what kind of cluster stands behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from backends.hosts.base import FileStat, Host
from backends.slurm.model import ClusterFacts, QueueReading, SubmitOutcome, SubmitRequest
from backends.watcher.model import FileReading, Tail
from console.release.pace import Pace


class Scheduler(Protocol):
    """Slurm as the conductor uses it; `backends.slurm.client.Slurm` is one."""

    async def submit(self, request: SubmitRequest) -> SubmitOutcome:
        """Submit once; never raises for a lost answer, which is Unknown."""
        ...

    async def reconcile(
        self, request: SubmitRequest, *, submitted_at: float | None, settle_seconds: float
    ) -> SubmitOutcome:
        """Find out what became of a submission."""
        ...

    async def jobs(self, names: Mapping[str, str]) -> QueueReading:
        """Look at jobs, given as job name by job id."""
        ...

    async def cancel(self, job_id: str, expect_name: str) -> str:
        """Cancel a job that still carries our name; returns what was seen, in words."""
        ...

    async def facts(self, partition: str, account: str) -> ClusterFacts:
        """Describe the cluster."""
        ...


class Watcher(Protocol):
    """Result files as the conductor watches them; `backends.watcher.ResultWatcher` is one."""

    def register(self, path: str) -> None:
        """Begin to watch a file."""
        ...

    def unregister(self, path: str) -> None:
        """Stop watching it."""
        ...

    def snapshot(self) -> Mapping[str, FileReading]:
        """Every watched file as last seen."""
        ...

    @property
    def changes(self) -> int:
        """How often anything changed so far."""
        ...

    async def changed(self, timeout: float, *, paths: Collection[str] | None = None, since: int | None = None) -> None:
        """Return when one of some files changed since `changes` was that, at the latest after the timeout (seconds)."""
        ...

    async def fetch(self, path: str, *, limit: int, fresh: bool = False) -> bytes | None:
        """The file's bytes, None while it changes; raises FileMissing and CouldNotAsk."""
        ...

    async def tail(self, path: str, *, limit: int = ..., known: FileStat | None = None) -> Tail | None:
        """The end of a file, None while it is as known; raises FileMissing and CouldNotAsk."""
        ...

    async def part(self, path: str, *, offset: int, limit: int, known: FileStat | None = None) -> Tail | None:
        """A part of a file, None while it is as known; raises FileMissing and CouldNotAsk."""
        ...

    async def close(self) -> None:
        """End the watcher; never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Connection:
    """One connected cluster."""

    host: Host
    slurm: Scheduler
    watcher: Watcher
    pace: Pace = field(default_factory=Pace)
