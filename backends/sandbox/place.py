"""Where everything of one embedded cluster lies."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

USER = "operator"
"""The one account."""

VARIABLE = "GONOGO_SANDBOX"
"""Environment variable by which the cluster's commands know their cluster."""


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one embedded cluster.

    Attributes:
        root: The folder; it may be reached through a long path, so no Unix socket lies in it.
    """

    root: Path

    @property
    def database(self) -> Path:
        """Jobs and knobs (SQLite)."""
        return self.root / "jobs.sqlite"

    @property
    def accepted(self) -> Path:
        """The independent record: one JSON line for each job that was ever accepted."""
        return self.root / "accepted.jsonl"

    @property
    def started(self) -> Path:
        """The independent record: one JSON line for each time that a script was started."""
        return self.root / "started.jsonl"

    @property
    def poke(self) -> Path:
        """Named pipe; a byte in it makes the scheduler look at once."""
        return self.root / "poke"

    @property
    def lock(self) -> Path:
        """Held by the running cluster."""
        return self.root / "running.lock"

    @property
    def starting(self) -> Path:
        """Held by whoever starts or stops the cluster."""
        return self.root / "starting.lock"

    @property
    def info(self) -> Path:
        """Port and process of the running cluster; the port is kept for the next start."""
        return self.root / "info.json"

    @property
    def log(self) -> Path:
        """What the cluster itself has to say."""
        return self.root / "sandbox.log"

    @property
    def noise(self) -> Path:
        """What the login shell prints before anything else; absent for a quiet one."""
        return self.root / "noise"

    @property
    def home(self) -> Path:
        """Home folder of the account."""
        return self.root / "home"

    @property
    def programs(self) -> Path:
        """The Slurm commands."""
        return self.root / "bin"

    @property
    def keys(self) -> Path:
        """Host key, user key, known_hosts."""
        return self.root / "keys"

    def spool(self, job_id: int) -> Path:
        """Folder in which a job's script waits."""
        return self.root / "spool" / str(job_id)


def here() -> Place:
    """The cluster that this command belongs to.

    Raises:
        SystemExit: When the variable is not set: the command was not called on the cluster.
    """
    root = os.environ.get(VARIABLE, "")
    if not root:
        raise SystemExit("this command works on the embedded cluster's login node only")
    return Place(Path(root))


def poke(place: Place) -> None:
    """Make the scheduler look now; when it does not run, it will look at its next start."""
    try:
        pipe = os.open(place.poke, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        os.write(pipe, b"!")
    except OSError:
        pass  # the pipe is full: it will look anyway
    finally:
        os.close(pipe)
