"""From an entry of clusters.yaml to a connected cluster."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts import ssh_config
from backends.hosts.operator import Operator
from backends.hosts.ssh import SshHost
from backends.hosts.ssh_target import SshTarget
from backends.slurm.client import Slurm
from backends.watcher.watcher import ResultWatcher
from console.release.clusters import Cluster
from console.release.ports import Connection

WAKE_TIMEOUT_S = 60.0


async def connect(cluster: Cluster, operator: Operator | None = None) -> Connection:
    """Make a cluster reachable and describe how to reach it; the first use logs in.

    Args:
        cluster: The cluster.
        operator: Who is asked what only a person can answer; None where nobody can be asked.

    Raises:
        CouldNotAsk: When its wake command fails, or (NeedsOperator) when the SSH configuration cannot be used.
    """
    if cluster.wake:
        await wake(cluster)
    # In a thread: a configuration may run commands (`Match exec`), which must not hold up everything else.
    host = SshHost(await asyncio.to_thread(target_of, cluster), operator=operator)
    return Connection(
        host,
        Slurm(host, path=cluster.slurm_path or ""),
        ResultWatcher(host, interval=cluster.watch_seconds, python=cluster.python),
    )


def target_of(cluster: Cluster) -> SshTarget:
    """Where and how to log in to a cluster: as clusters.yaml says, else as the SSH configuration does.

    Raises:
        NeedsOperator: When the SSH configuration cannot be used.
    """
    try:
        return ssh_config.target_of(
            Path(cluster.ssh_config),
            cluster.login_node,
            user=cluster.user,
            port=cluster.port,
            known_hosts=_path(cluster.known_hosts),
            key=_path(cluster.ssh_key),
            proxy_command=cluster.ssh_proxy,
            keepalive_s=cluster.keepalive_seconds,
        )
    except ssh_config.SshConfigError as error:
        advice = f"`gonogo cluster check {cluster.name}` says more"
        raise NeedsOperator(cluster.name, "read the SSH configuration", str(error), advice) from None


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(os.path.expanduser(text))


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
