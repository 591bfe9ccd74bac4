"""`gonogo cluster check` on a real OpenSSH and a real Slurm: all well, and every broken variant names its own fault."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from console import cli
from console.release.cluster_check import Answer, exit_status
from tests.cluster.running import Cluster
from tests.clustercheck.checking import checked, plain_path, unasked, written, wrong

pytestmark = pytest.mark.xdist_group("cluster")

HOUR_S = 3600.0


def entry(cluster: Cluster, **settings: Any) -> dict[str, Any]:
    """The entry of the test cluster, complete and right."""
    layout, account = cluster.layout, cluster.layout.account()
    known = {"port": layout.ports["sshd"], "known_hosts": str(layout.known_hosts), "ssh_config": "/dev/null"}
    return {
        "login_node": "127.0.0.1",
        "user": account.name,
        "ssh_key": str(layout.key),
        "workspace": f"{layout.home(account)}/checked",
        "slurm": {"default_account": "research", "default_partition": "batch"},
        "gonogo": {**known, "python": "/usr/bin/python3", **settings},
    }


async def test_a_cluster_that_is_ready_is_all_ok(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = await checked(tmp_path, entry(cluster))
    assert [(check.name, check.found) for check in checks if check.answer is not Answer.OK] == []
    assert exit_status(checks) == 0
    controller = next(check for check in checks if check.name == "controller")
    assert "is UP" in controller.found
    workspace = next(check for check in checks if check.name == "workspace")
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", cluster.layout.home(cluster.layout.account())],
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"file system {kind.stdout.strip()}" in workspace.found


def test_the_command_says_so(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, entry(cluster))
    assert cli.main(["cluster", "check", "lab", "--clusters", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.count("OK") >= 15
    assert "WRONG" not in said


async def test_a_wrong_key(cluster: Cluster, tmp_path: Path) -> None:
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, capture_output=True)
    checks = await checked(tmp_path, {**entry(cluster), "ssh_key": str(key)})
    assert list(wrong(checks)) == ["login"]
    assert "ssh_key" in wrong(checks)["login"]


async def test_a_host_key_that_changed(cluster: Cluster, tmp_path: Path) -> None:
    other = cluster.layout.key.with_suffix(".pub").read_text().split()
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{cluster.layout.ports['sshd']} {other[0]} {other[1]}\n")
    checks = await checked(tmp_path, entry(cluster, known_hosts=str(known)))
    assert list(wrong(checks)) == ["host key"]
    assert "STOP" in wrong(checks)["host key"]
    assert {"login", "controller", "workspace"} <= set(unasked(checks))


@contextmanager
def path_at_login(cluster: Cluster, path: str) -> Iterator[None]:
    """Let the account's start-up file set the PATH to something else."""
    file = cluster.layout.home(cluster.layout.account()) / ".bashrc"
    before = file.read_bytes() if file.exists() else None
    file.write_text(f"export PATH={path}\n")
    file.chmod(0o644)
    try:
        yield
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)


async def test_no_slurm_on_the_path(cluster: Cluster, tmp_path: Path) -> None:
    folder = cluster.layout.folder / "plain-path"
    with path_at_login(cluster, plain_path(folder)):
        found = wrong(await checked(tmp_path, entry(cluster)))
    assert "Slurm commands" in found
    assert "missing: sbatch" in found["Slurm commands"]
    assert "gonogo.slurm_path" in found["Slurm commands"]
    assert "login" not in found


async def test_an_account_that_is_not_this_users(cluster: Cluster, tmp_path: Path) -> None:
    slurm = {"default_account": "teaching", "default_partition": "batch"}
    found = wrong(await checked(tmp_path, {**entry(cluster), "slurm": slurm}))
    assert list(found) == ["account"]
    assert "yours are" in found["account"]


async def test_a_workspace_that_takes_no_files(cluster: Cluster, tmp_path: Path) -> None:
    place = cluster.layout.folder / "read-only"
    place.mkdir()
    place.chmod(0o555)
    found = wrong(await checked(tmp_path, {**entry(cluster), "workspace": f"{place}/work"}))
    assert list(found) == ["workspace"]
    assert "Permission denied" in found["workspace"]


async def test_a_clock_that_is_an_hour_off(cluster: Cluster, tmp_path: Path) -> None:
    found = wrong(await checked(tmp_path, entry(cluster), wall=lambda: time.time() + HOUR_S))
    assert list(found) == ["clock"]
    assert found["clock"].startswith("3600.")
    assert "behind ours" in found["clock"]


async def test_a_controller_that_is_down(cluster: Cluster, tmp_path: Path) -> None:
    cluster.end("slurmctld")
    try:
        checks = await checked(tmp_path, entry(cluster))
    finally:
        cluster.start("slurmctld")
        cluster.wait_for_nodes()
    assert list(wrong(checks)) == ["controller"]
    assert "is DOWN" in wrong(checks)["controller"]
    assert "partition" in unasked(checks)
