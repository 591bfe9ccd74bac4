"""One cluster for the whole session, owned by one worker."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.processes import program_of
from tests.cluster.running import Cluster, find_cluster, open_cluster, why_not

PREFIX = "gonogo-cluster-"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running cluster. Skips where there can be none, and fails there when CI is true."""
    reason = why_not()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    if reason:
        pytest.skip(reason)
    remove_orphans()
    # Not pytest's own folder: that is closed to other accounts, and homes lie in this one.
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp")
    made = open_cluster(folder)
    try:
        made.up()
    except ClusterError as error:
        made.down(delete=True)
        pytest.fail(f"the test cluster did not come up: {error}", pytrace=False)
    yield made
    made.down(delete=True)


@pytest.fixture(autouse=True)
def no_job_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the jobs that a test left, so that a failure stays one failure."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").end_jobs()


def remove_orphans() -> None:
    """Remove what sessions that were killed have left: their folders name a process that is gone."""
    for folder in Path("/tmp").glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and program_of(int(owner)) is None:
            orphan = find_cluster(str(folder))
            if orphan is None:
                shutil.rmtree(folder)
            else:
                orphan.down(delete=True)
