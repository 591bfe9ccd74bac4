"""Clusters that are submitted to: how to log in, what to submit, and their own record of what they accepted."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from backends.hosts.ssh import SshTarget
from backends.sandbox import lifecycle
from backends.sandbox.place import Place
from backends.slurm.model import SubmitRequest, Upload
from tests.sandbox.clusters import Cluster

QUIET_S = 30.0
"""How long whatever was started over a connection may take to end, once all connections are gone."""

SMALL = b"print('a small file')\n"
BIG = hashlib.shake_256(b"a file that fills several packets").digest(90_000)


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """One job that a cluster accepted, by its own record.

    Attributes:
        job_id: Its number.
        token: The token that it carries.
        at: When, seconds since the epoch.
    """

    job_id: str
    token: str
    at: float


class Site(Protocol):
    """What lanes see of a cluster."""

    programs: Path
    """Folder with an sbatch that can be made to hang; it stands first on the search path."""

    def target(self) -> SshTarget:
        """How to log in, without a proxy."""
        ...

    def request(self, token: str, *, big: bool) -> SubmitRequest:
        """A submission."""
        ...

    def knob(self, name: str, value: Any) -> None:
        """Make trouble; None takes it back."""
        ...

    def accepted(self) -> list[Taken]:
        """Every job that was ever accepted."""
        ...

    def started(self) -> list[str]:
        """The job ids of every start of a job's script."""
        ...

    async def quiet(self) -> None:
        """Wait until nothing that was started over a connection is left."""
        ...


def make_hanging_sbatch(folder: Path, real: str) -> None:
    """An sbatch that waits for as long as `hang/TOKEN` is there, where TOKEN is in its arguments."""
    for name in ("hang", "hung"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    here = shlex.quote(str(folder))
    script = f"""#!/bin/sh
for file in {here}/hang/*; do
  token=${{file##*/}}
  case "$*" in *"$token"*) : > {here}/hung/"$token"; while [ -e "$file" ]; do sleep 0.05; done ;; esac
done
exec {real} "$@"
"""
    (folder / "sbatch").write_text(script)
    (folder / "sbatch").chmod(0o755)


def make_request(home: Path, token: str, body: str, *, big: bool) -> SubmitRequest:
    """A submission as a release makes them, with a file that travels along."""
    job_dir, name, data = home / "jobs" / token, f"gonogo-{token[:8]}", BIG if big else SMALL
    options = (
        "--parsable",
        "--no-requeue",
        "--export=NONE",
        f"--job-name={name}",
        f"--comment=gonogo:{token}",
        f"--chdir={job_dir}",
        f"--output={job_dir}/slurm-%j.out",
        "--time=00:05:00",
    )
    upload = Upload("tool.py", data, hashlib.sha256(data).hexdigest())
    script = f"#!/bin/sh\n{body}\n".encode()
    claim_dir = str(home / "claims" / token)
    return SubmitRequest(token, "0" * 64, name, options, script, str(job_dir), claim_dir, (upload,))


class SandboxSite:
    """An embedded cluster.

    Args:
        folder: Its own folder.
    """

    def __init__(self, folder: Path) -> None:
        self._cluster = Cluster(Place(folder), lifecycle.ensure(folder))
        self.programs = folder / "hanging"
        make_hanging_sbatch(self.programs, shlex.quote(str(self._cluster.place.programs / "sbatch")))

    def target(self) -> SshTarget:
        return self._cluster.target()

    def request(self, token: str, *, big: bool) -> SubmitRequest:
        return make_request(self._cluster.info.home, token, "exit 0", big=big)

    def knob(self, name: str, value: Any) -> None:
        self._cluster.knob(name, value)

    def accepted(self) -> list[Taken]:
        found = self._cluster.accepted()
        return [Taken(str(item["job_id"]), item["comment"].partition(":")[2], item["at"]) for item in found]

    def started(self) -> list[str]:
        return [str(item["job_id"]) for item in self._cluster.started()]

    async def quiet(self) -> None:
        await await_quiet(self._cluster.info.home)

    def end(self) -> None:
        """End the cluster."""
        lifecycle.end_jobs(self._cluster.place.root)
        lifecycle.stop(self._cluster.place.root)


@contextlib.contextmanager
def sandbox_site(folder: Path) -> Iterator[SandboxSite]:
    """An embedded cluster, for a while."""
    site = SandboxSite(folder)
    try:
        yield site
    finally:
        site.end()


async def await_quiet(home: Path) -> None:
    """Wait until no process is left that belongs to a login with this home folder.

    Raises:
        TimeoutError: When one stays; says which.
    """
    end = time.monotonic() + QUIET_S
    while left := _with_environment(f"HOME={home}".encode()):
        if time.monotonic() > end:
            raise TimeoutError(f"left on the login node after {QUIET_S:g} s: {'; '.join(left)}")
        await asyncio.sleep(0.1)


def _with_environment(marked: bytes) -> list[str]:
    """Command lines of the living processes that were started with this variable."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marked in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ")
                found.append(f"{folder.name} {words}")
    return found
