"""A whole release over a real OpenSSH and a real Slurm: from the operator's two files to the verdict."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest

from console.commands.conducting import utc
from console.release.conductor import Conductor
from console.release.connecting import connect
from console.release.folder import read_state
from console.release.journal import check_anchor, read_log
from console.release.opening import Opened, resume_run, start_run
from tests.cluster.layout import Account
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")


def write_inputs(cluster: Cluster, account: Account, folder: Path) -> tuple[Path, Path]:
    layout = cluster.layout
    clusters, release = folder / "clusters.yaml", folder / "release.yaml"
    clusters.write_text(
        f"""
clusters:
  proving:
    login_node: 127.0.0.1
    user: {account.name}
    ssh_key: {layout.key}
    workspace: {layout.home(account)}/workspace
    slurm: {{default_account: research, default_partition: batch}}
    gonogo:
      port: {layout.ports["sshd"]}
      known_hosts: {layout.known_hosts}
      python: /usr/bin/python3
      poll_seconds: 0.5
      watch_seconds: 0.3
      result_grace_seconds: 1
"""
    )
    revision = hashlib.sha1(b"demo/tiny-target", usedforsecurity=False).hexdigest()
    release.write_text(
        f'target: demo/tiny-target\nrevision: "{revision}"\nalgorithm: dflash2\nbudget: dev\nrecipe: demo\n'
    )
    return clusters, release


async def conduct(opened: Opened) -> int:
    release = opened.release
    try:
        return await Conductor(release, opened.writer, partial(connect, release.cluster), approve="none").run()
    finally:
        opened.lock.close()


@pytest.mark.timeout(400)
async def test_a_release_ends_ready_over_real_ssh_and_slurm(cluster: Cluster, tmp_path: Path) -> None:
    # A login shell that understands nothing of ours, and talks.
    account = cluster.layout.account("tcsh", noisy=True)
    clusters, release = write_inputs(cluster, account, tmp_path)
    run_dir = tmp_path / "run"
    opened = start_run(release, run_dir=run_dir, clusters_file=clusters, approve="none", clock=utc)
    assert await conduct(opened) == 0

    state = read_state(run_dir)
    assert state is not None
    assert state.verdict == "DRAFTER_READY"
    assert {stage.status for stage in state.stages} == {"passed"}
    # Slurm's own books: each attempt is one job, by its number and its token, and there is no other.
    rows = cluster.root("sacct", "-n", "-X", "-P", "-u", account.name, "-S", "now-1day", "-o", "JobIDRaw,JobName,State")
    jobs = [row.split("|") for row in rows.splitlines() if state.run_id in row]
    assert [(job_id, name.rpartition("-")[2]) for job_id, name, _ in jobs] == [
        (attempt.job_id, attempt.token[:8]) for attempt in state.attempts
    ]
    assert {job_state for _, _, job_state in jobs} == {"COMPLETED"}
    for attempt in state.attempts:
        for result in attempt.results:
            assert hashlib.sha256((run_dir / result.copy).read_bytes()).hexdigest() == result.sha256
    check_anchor(read_log(run_dir), state.entries, state.head)

    # A finished run asks the cluster for nothing and runs nothing again.
    assert await conduct(resume_run(run_dir, approve=None, clock=utc)) == 0
    again = cluster.root(
        "sacct", "-n", "-X", "-P", "-u", account.name, "-S", "now-1day", "-o", "JobIDRaw,JobName,State"
    )
    assert again == rows
