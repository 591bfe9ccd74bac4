"""One embedded cluster a test, and the real SSH host and Slurm client in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from backends.hosts.ssh import SshHost
from backends.sandbox import lifecycle
from backends.sandbox.place import Place
from backends.slurm.client import Slurm
from tests.sandbox.clusters import Cluster, Shell


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    state = tmp_path / "cluster"
    info = lifecycle.ensure(state)
    yield Cluster(Place(state), info)
    lifecycle.end_jobs(state)
    lifecycle.stop(state)


@pytest.fixture
async def host(cluster: Cluster) -> AsyncIterator[SshHost]:
    found = SshHost(cluster.target())
    yield found
    await found.close()


@pytest.fixture
def slurm(host: SshHost) -> Slurm:
    return Slurm(host)


@pytest.fixture
def shell(host: SshHost) -> Shell:
    """Run a script on the login node."""
    return host.run
