"""What watching costs a login node, by the server's own log: one connection, few channels, few questions to Slurm."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from console.release.connecting import connect
from tests.benchmarks import watch
from tests.benchmarks.login_node import login_node
from tests.benchmarks.watch_console import conducted
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")


async def test_many_jobs_and_files_take_one_connection_and_two_channels(cluster: Cluster, tmp_path: Path) -> None:
    with login_node(cluster, tmp_path, 0.0) as node:
        jobs = await watch.submit(node, 12)
        release = watch.make_release(node, tmp_path, watch_seconds=0.1)
        node.forget()
        connection = await connect(release.cluster)
        try:
            prepared = watch.prepare(node, "counted", jobs)
            async with conducted(release, connection, tmp_path / "run", prepared) as verdicts:
                await watch.rename_all(prepared, random.Random(7), 0.0)
                found = [await verdict for verdict in verdicts.values()]
        finally:
            await connection.watcher.close()
            await connection.host.close()
        assert [passed for _, passed in found] == [True] * 12
        assert node.connections() == 1
        # The watching program's, and that of the look at the queue: small results need none.
        assert 1 <= node.most_channels() <= 2
        # However many jobs there are, a look is one session with one query; the other session is the watcher's. One
        # look may have been under way when the connection was closed.
        assert 0 <= node.sessions() - 1 - len(node.queries()) <= 1
