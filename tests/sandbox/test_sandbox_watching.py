"""Files on the embedded cluster are watched through one channel, and a lost link leaves nothing behind there."""

from __future__ import annotations

import asyncio
from pathlib import Path

from backends.hosts.ssh import SshHost
from backends.watcher.model import FilePresence
from backends.watcher.watcher import ResultWatcher
from tests.sandbox.clusters import Cluster


def watchers(place: Path) -> list[str]:
    """Processes that run the watching program below a cluster's home."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"SECOND_LOOK_S" in (folder / "cmdline").read_bytes() and (folder / "cwd").resolve() == place.resolve():
                found.append(folder.name)
        except OSError:
            continue
    return found


async def test_a_lost_link_is_no_missing_file_and_leaves_nothing_running(cluster: Cluster, host: SshHost) -> None:
    path = cluster.info.home / "r.json"
    path.write_text("{}")
    watcher = ResultWatcher(host, interval=0.05)
    watcher.register(str(path))
    while not watcher.snapshot()[str(path)].stable:
        await watcher.changed(1.0)
    assert len(watchers(cluster.info.home)) == 1
    host._connection.abort()
    while watcher.snapshot()[str(path)].presence is FilePresence.SEEN:
        await asyncio.sleep(0.005)
    assert watcher.snapshot()[str(path)].presence is FilePresence.COULD_NOT_ASK
    while not watcher.snapshot()[str(path)].stable or watcher.snapshot()[str(path)].presence is not FilePresence.SEEN:
        await watcher.changed(1.0)
    await watcher.close()
    await host.close()
    while watchers(cluster.info.home):
        await asyncio.sleep(0.01)
