"""From an entry of clusters.yaml to a connected cluster."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from backends.errors import CouldNotAsk
from backends.hosts.ssh import SshHost, SshTarget
from backends.slurm.client import Slurm
from backends.watcher.watcher import ResultWatcher
from console.release.clusters import Cluster
from console.release.ports import Connection

WAKE_TIMEOUT_S = 60.0


async def connect(cluster: Cluster) -> Connection:
    """Make a cluster reachable and describe how to reach it; the first use logs in.

    Raises:
        CouldNotAsk: When its wake command fails.
    """
    if cluster.wake:
        await wake(cluster)
    host = SshHost(target_of(cluster))
    return Connection(
        host,
        Slurm(host, path=cluster.slurm_path or ""),
        ResultWatcher(host, interval=cluster.watch_seconds, python=cluster.python),
    )


def target_of(cluster: Cluster) -> SshTarget:
    """Where and how to log in to a cluster."""
    return SshTarget(
        host=cluster.login_node,
        port=cluster.port,
        user=cluster.user,
        known_hosts=Path(os.path.expanduser(cluster.known_hosts or "~/.ssh/known_hosts")),
        key=Path(os.path.expanduser(cluster.ssh_key)) if cluster.ssh_key else None,
        proxy_command=cluster.ssh_proxy,
        keepalive_s=cluster.keepalive_seconds,
    )


async def wake(cluster: Cluster) -> None:
    """Run the operator's own command that makes the cluster reachable.

    Raises:
        CouldNotAsk: When it fails.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *cluster.wake,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(WAKE_TIMEOUT_S):
            _, stderr = await process.communicate()
    except (OSError, TimeoutError) as error:
        raise CouldNotAsk(cluster.name, "wake", str(error) or f"not done within {WAKE_TIMEOUT_S:g} s") from None
    if process.returncode != 0:
        said = stderr.decode("utf-8", "replace").strip()[-300:]
        raise CouldNotAsk(cluster.name, "wake", said or f"exit status {process.returncode}")
