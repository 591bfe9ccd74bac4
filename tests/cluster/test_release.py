"""A whole release over a real OpenSSH and a real Slurm: from the operator's two files to the verdict."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.commands.conducting import utc
from console.release.clusters import load_clusters
from console.release.conductor import Conductor
from console.release.confirmed import confirm
from console.release.connecting import connect
from console.release.folder import read_state
from console.release.journal import check_anchor, read_log
from console.release.opening import Opened, resume_run, start_run
from tests.cluster.processes import wait_until
from tests.cluster.running import Cluster
from tests.kills.releases import ROOT, write_recipe

pytestmark = pytest.mark.xdist_group("cluster")


WORK = "demo" if os.environ.get("GONOGO_TEST_WORK") == "whole" else "instant"
"""What the jobs of releases over other logins do: the demo's whole work (`make test-logins`), or nothing, at once."""


@dataclass(frozen=True)
class Way:
    """How a cluster is reached.

    Attributes:
        shell: The account's login shell; its start-up files print, and set variables that Slurm's commands obey.
        jump: Whether the way there is only in an SSH configuration, through a jump host.
    """

    shell: str
    jump: bool = False

    def entry(self, cluster: Cluster, folder: Path) -> dict[str, Any]:
        """The cluster's entry in clusters.yaml; writes the SSH configuration where that has the way."""
        layout, account = cluster.layout, cluster.layout.account(self.shell, noisy=True)
        made: dict[str, Any] = {
            "workspace": f"{layout.home(account)}/workspace-{folder.name}",
            "slurm": {"default_account": "research", "default_partition": "batch"},
            "gonogo": {
                "python": "/usr/bin/python3",
                "poll_seconds": 0.5,
                "watch_seconds": 0.3,
                "result_grace_seconds": 1,
            },
        }
        port, known, key = layout.ports["sshd"], str(layout.known_hosts), str(layout.key)
        if not self.jump:
            made |= {"login_node": "127.0.0.1", "user": account.name, "ssh_key": key}
            made["gonogo"] |= {"port": port, "known_hosts": known, "ssh_config": "/dev/null"}
            return made
        config = folder / "ssh_config"
        common = f"HostName 127.0.0.1\n  Port {port}\n  IdentityFile {key}\n  UserKnownHostsFile {known}\n"
        config.write_text(
            f"Host gate\n  User {layout.account().name}\n  {common}\n"
            f"Host proving-login\n  User {account.name}\n  ProxyJump gate\n  {common}"
        )
        made["login_node"] = "proving-login"
        made["gonogo"]["ssh_config"] = str(config)
        return made


def write_inputs(cluster: Cluster, way: Way, folder: Path, recipe: str = "demo") -> tuple[Path, Path]:
    """clusters.yaml and release.yaml; JSON is YAML too."""
    clusters, release = folder / "clusters.yaml", folder / "release.yaml"
    clusters.write_text(json.dumps({"clusters": {"proving": way.entry(cluster, folder)}}))
    confirm(load_clusters(clusters).commands("proving"))
    revision = hashlib.sha1(b"demo/tiny-target", usedforsecurity=False).hexdigest()
    inputs = {"target": "demo/tiny-target", "revision": revision, "algorithm": "dflash2", "budget": "dev"}
    release.write_text(json.dumps({**inputs, "recipe": recipe}))
    return clusters, release


def instant_recipe(cluster: Cluster, folder: Path) -> str:
    """A recipe whose jobs take no time, with what they run where every account can read it."""
    programs = cluster.layout.folder / "programs"
    for name in ("gates", "tests/gates/passing.py", "tests/kills/instant_job.py"):
        source, target = ROOT / name, programs / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    cluster.root("chmod", "-R", "a+rX", str(programs))
    write_recipe(folder / "recipe", programs)
    return str(folder / "recipe")


async def conduct(opened: Opened) -> int:
    release = opened.release
    try:
        return await Conductor(release, opened.writer, partial(connect, release.cluster), approve="none").run()
    finally:
        opened.lock.close()


async def released(cluster: Cluster, way: Way, folder: Path, recipe: str) -> Path:
    """Run a release to its end, check it against the cluster's own books, and give its run folder."""
    clusters, release = write_inputs(cluster, way, folder, recipe)
    run_dir = folder / f"run-{way.shell}{'-jump' if way.jump else ''}"
    opened = start_run(release, run_dir=run_dir, clusters_file=clusters, approve="none", clock=utc)
    assert await conduct(opened) == 0

    state = read_state(run_dir)
    assert state is not None
    assert state.verdict == "DRAFTER_READY"
    assert {stage.status for stage in state.stages} == {"passed"}

    # Slurm's own books: each attempt is one job, by its number and its token, and there is no other.
    def jobs() -> list[tuple[str, str, str]]:
        rows = [row.split("|") for row in books(cluster, way) if f"-{state.run_id}-" in row]
        return [(job_id, name.rpartition("-")[2], job_state) for job_id, name, job_state in rows]

    def told() -> bool:
        return len(jobs()) >= len(state.attempts) and not {"PENDING", "RUNNING"} & {job[2] for job in jobs()}

    wait_until(told, "accounting, which follows the controller by some seconds", timeout=60)
    assert jobs() == [(attempt.job_id, attempt.token[:8], "COMPLETED") for attempt in state.attempts]
    for attempt in state.attempts:
        for result in attempt.results:
            assert hashlib.sha256((run_dir / result.copy).read_bytes()).hexdigest() == result.sha256
    check_anchor(read_log(run_dir), state.entries, state.head)
    return run_dir


def books(cluster: Cluster, way: Way) -> list[str]:
    """Every job of the account, as accounting has it."""
    account = cluster.layout.account(way.shell, noisy=True).name
    columns = "JobIDRaw,JobName,State"
    return cluster.root("sacct", "-n", "-X", "-P", "-u", account, "-S", "now-1day", "-o", columns).splitlines()


@pytest.mark.timeout(400)
async def test_a_release_ends_ready_over_real_ssh_and_slurm(cluster: Cluster, tmp_path: Path) -> None:
    # A login shell that understands nothing of ours, and talks.
    way = Way("tcsh")
    run_dir = await released(cluster, way, tmp_path, "demo")
    # A finished run asks the cluster for nothing and runs nothing again.
    rows = books(cluster, way)
    assert await conduct(resume_run(run_dir, approve=None, clock=utc)) == 0
    assert books(cluster, way) == rows


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "way",
    [Way("fish"), Way("zsh"), Way("bash", jump=True), Way("tcsh", jump=True)],
    ids=lambda way: f"{way.shell}{', jump host' if way.jump else ''}",
)
async def test_a_release_ends_ready_whatever_the_login_is_like(cluster: Cluster, way: Way, tmp_path: Path) -> None:
    gate = f"Accepted publickey for {cluster.layout.account().name} "
    before = cluster.daemons.log("sshd").read_text().count(gate)
    recipe = "demo" if WORK == "demo" else instant_recipe(cluster, tmp_path)
    await released(cluster, way, tmp_path, recipe)
    passed = cluster.daemons.log("sshd").read_text().count(gate) - before
    assert passed == (1 if way.jump else 0), "one connection goes through the jump host, and only where there is one"
