"""One release of a fleet, as far as its state and its live data say. Nothing here imports Textual or reads a file."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from console.release.state import Attempt
from console.snapshot import Snapshot
from console.widgets.job_rows import elapsed_seconds
from console.widgets.status import Status, status


class Kind(IntEnum):
    """Whose run a folder holds."""

    OURS = 0
    FOREIGN = 1
    UNREADABLE = 2


class Release(NamedTuple):
    """A run folder.

    Attributes:
        path: The folder.
        kind: Whose run it holds.
        snapshot: The run, without its log; empty where it is not ours.
        said: Of a foreign run its verdict in its own words; of an unreadable one the reason.
    """

    path: Path
    kind: Kind = Kind.OURS
    snapshot: Snapshot = Snapshot()
    said: str = ""

    @property
    def key(self) -> str:
        """What tells it from every other."""
        return str(self.path)

    @property
    def name(self) -> str:
        """Name of the run; of the folder where the run says none."""
        return self.snapshot.run.run_id or self.path.name

    @property
    def cluster(self) -> str:
        """Name of the cluster, empty while it is not known."""
        value = self.snapshot.run.inputs.get("cluster")
        return value if isinstance(value, str) else ""

    @property
    def account(self) -> str:
        """The account that jobs are charged to, empty while it is not known."""
        value = self.snapshot.run.setup.get("account")
        return value if isinstance(value, str) else ""

    @property
    def attempt(self) -> Attempt | None:
        """The newest attempt of the current stage; else of the whole run."""
        run = self.snapshot.run
        attempts = run.current.attempts or run.attempts
        return attempts[-1] if attempts else None

    @property
    def waits(self) -> int:
        """How many jobs wait for the operator."""
        return 0 if self.snapshot.run.verdict is not None else len(self.snapshot.waiting)

    def status(self, now: datetime) -> Status:
        """Where it is: a verdict, or what it waits for and since when."""
        if self.kind is Kind.FOREIGN:
            return Status("? FOREIGN", "chip-unknown", self.said or "kept by another program")
        if self.kind is Kind.UNREADABLE:
            return Status("✗ UNREADABLE", "chip-failed", self.said)
        if self.snapshot.state is None and self.snapshot.problems:
            return Status("✗ UNREADABLE", "chip-failed", self.snapshot.problems[0])
        return status(self.snapshot, now)

    def waits_for_you(self, now: datetime) -> bool:
        """Whether nothing goes on before the operator acts."""
        return is_for_you(self.status(now))

    def cluster_seconds(self, now: datetime) -> float:
        """Seconds of its jobs on the cluster: in Slurm's words where it has some, else from submission on."""
        live = self.snapshot.live
        found = (elapsed_seconds(item, live.job(item.id), now) for item in self.snapshot.run.attempts)
        return sum(max(0.0, seconds) for seconds in found if seconds is not None)

    def gpu_hours(self, now: datetime) -> float:
        """The same times the GPUs of each job, in hours."""
        live, total = self.snapshot.live, 0.0
        for item in self.snapshot.run.attempts:
            seconds = elapsed_seconds(item, live.job(item.id), now) if item.gpus else None
            total += item.gpus * max(0.0, seconds or 0.0) / 3600
        return total


_ORDER = (
    "WAITS FOR YOU", "UNREADABLE", "STOPPED", "NO SIGN OF LIFE", "NOT CONDUCTED", "AT WORK", "WAITS FOR THE CLUSTER",
    "FOREIGN", "ANOMALOUS", "INFEASIBLE", "DRAFTER_READY",
)  # fmt: skip


def word(found: Status) -> str:
    """The words of a status without the sign before them."""
    return found.word.partition(" ")[2]


def sign(found: Status) -> str:
    """The sign of a status."""
    return found.word[:1]


def is_for_you(found: Status) -> bool:
    """Whether a status calls for the operator."""
    return word(found) == _ORDER[0]


def urgency(state: str) -> int:
    """The place of a state in the order of urgency, the most pressing first."""
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
