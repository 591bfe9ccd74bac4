"""A real OpenSSH and Slurm, as `python -m tests.cluster up DIR` brings them up, to submit to under faults."""

from __future__ import annotations

import dataclasses
import shlex
import time
from pathlib import Path
from typing import Any

from backends.hosts.ssh import SshTarget
from backends.slurm.model import SubmitRequest
from tests.cluster import packages
from tests.cluster.errors import ClusterError
from tests.cluster.jobs import target_of
from tests.cluster.running import find_cluster
from tests.faults.sites import Taken, await_quiet, make_hanging_sbatch, make_request


class RealSite:
    """A test cluster that runs.

    Args:
        folder: Its folder.

    Raises:
        ClusterError: When there is none.
    """

    def __init__(self, folder: str) -> None:
        found = find_cluster(folder)
        if found is None or found.daemons.pid("slurmctld") is None:
            raise ClusterError(f"no test cluster runs in {folder}; `python -m tests.cluster up {folder}` starts one")
        self._cluster = found
        self._account = found.layout.account()
        self._home = found.layout.home(self._account)
        self._began = time.strftime("%Y-%m-%dT%H:%M:%S")
        self.programs = found.layout.folder / "hanging"
        make_hanging_sbatch(self.programs, shlex.quote(str(packages.find("sbatch"))))
        for name in ("hang", "hung"):
            (self.programs / name).chmod(0o777)

    def target(self) -> SshTarget:
        return target_of(self._cluster, self._account)

    def request(self, token: str, *, big: bool) -> SubmitRequest:
        body = f'echo "$SLURM_JOB_ID" >> {shlex.quote(str(self._starts))}'
        request = make_request(self._home, token, body, big=big)
        charged = ("--partition=batch", f"--account={self._account.association}")
        return dataclasses.replace(request, options=(*request.options, *charged))

    def knob(self, name: str, value: Any) -> None:
        raise NotImplementedError("a real Slurm has no knobs")

    def accepted(self) -> list[Taken]:
        """As its accounting tells the administrator, and its controller of jobs that it still knows."""
        words = ("-a", "-X", "-D", "-n", "-P", "-S", self._began, "-o", "JobIDRaw,JobName,Submit")
        rows = [line.split("|") for line in self._cluster.root("sacct", *words).splitlines()]
        queue = self._cluster.root("squeue", "-h", "-a", "-t", "all", "-o", "%A|%j|%V")
        rows += [line.split("|") for line in queue.splitlines()]
        tokens = {path.name[:8]: path.name for path in (self._home / "claims").iterdir()}
        found = {
            (job_id, name): time.mktime(time.strptime(submitted, "%Y-%m-%dT%H:%M:%S"))
            for job_id, name, submitted in rows
            if name.startswith("gonogo-") and name[-8:] in tokens
        }
        return [Taken(job_id, tokens[name[-8:]], at) for (job_id, name), at in found.items()]

    def started(self) -> list[str]:
        return self._starts.read_text().split() if self._starts.exists() else []

    @property
    def _starts(self) -> Path:
        return self._home / "starts"

    async def quiet(self) -> None:
        await await_quiet(self._home)
        self._cluster.end_jobs()
