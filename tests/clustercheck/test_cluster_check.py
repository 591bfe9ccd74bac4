"""`gonogo cluster check` on an embedded cluster: all well, and every broken variant names its own fault."""

from __future__ import annotations

import json
import time
from pathlib import Path

import asyncssh
import pytest

from backends.sandbox import lifecycle
from console import cli
from console.release.cluster_check import Answer, exit_status
from tests.clustercheck.checking import checked, entry, unasked, written, wrong
from tests.sandbox.clusters import Cluster

HOUR_S = 3600.0


def files(lab: Cluster) -> set[Path]:
    return set(lab.info.home.rglob("*"))


async def test_a_cluster_that_is_ready_passes_and_nothing_stays_on_it(lab: Cluster, tmp_path: Path) -> None:
    before = files(lab)
    checks = await checked(tmp_path, entry(lab))
    assert [(check.name, check.found) for check in checks if check.answer is not Answer.OK] == []
    assert exit_status(checks) == 0
    assert files(lab) == before
    key = asyncssh.read_public_key(str(lab.place.keys / "host_ed25519.pub"))
    assert any(key.get_fingerprint() in check.found for check in checks if check.name == "host key")


async def test_noise_of_the_login_shell_is_shown_and_harms_nothing(lab: Cluster, tmp_path: Path) -> None:
    lab.knob("noise", "Welcome \x1b[1mto system 7\n")
    try:
        checks = await checked(tmp_path, entry(lab))
    finally:
        lab.knob("noise", None)
    assert exit_status(checks) == 0
    assert [check.found for check in checks if check.name == "login shell"] == [
        "its start-up files print: Welcome \x1b[1mto system 7"
    ]


async def test_a_key_that_the_cluster_does_not_know(lab: Cluster, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(stranger))
    stranger.chmod(0o600)
    checks = await checked(tmp_path, {**entry(lab), "ssh_key": str(stranger)})
    assert list(wrong(checks)) == ["login"]
    assert "ssh_key" in wrong(checks)["login"]
    assert exit_status(checks) == 1


async def test_a_key_that_others_may_read_and_one_that_is_missing(lab: Cluster, tmp_path: Path) -> None:
    open_key = tmp_path / "open"
    open_key.write_bytes(lab.info.key_path.read_bytes())
    open_key.chmod(0o640)
    checks = await checked(tmp_path, {**entry(lab), "ssh_key": str(open_key)})
    assert "chmod 600" in wrong(checks)["key file"]
    checks = await checked(tmp_path, {**entry(lab), "ssh_key": str(tmp_path / "none")})
    assert list(wrong(checks)) == ["key file"]
    assert "login" in unasked(checks)


@pytest.mark.parametrize("known", ["nothing", "another key"])
async def test_a_host_key_that_is_unknown_and_one_that_changed(lab: Cluster, tmp_path: Path, known: str) -> None:
    file = tmp_path / "known_hosts"
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    file.write_text("" if known == "nothing" else f"[127.0.0.1]:{lab.info.port} {other}")
    checks = await checked(tmp_path, entry(lab, known_hosts=str(file)))
    assert list(wrong(checks)) == ["host key"]
    said = wrong(checks)["host key"]
    shown = asyncssh.read_public_key(str(lab.place.keys / "host_ed25519.pub")).get_fingerprint()
    assert shown in said
    assert ("STOP" in said) == (known == "another key")
    assert ("is not in" in said) == (known == "nothing")
    assert {"login", "login shell", "workspace", "clock"} <= set(unasked(checks))


async def test_an_account_and_a_partition_that_are_not_there(lab: Cluster, tmp_path: Path) -> None:
    slurm = {"default_account": "teaching", "default_partition": "gpu"}
    found = wrong(await checked(tmp_path, {**entry(lab), "slurm": slurm}))
    assert list(found) == ["partition", "account"]
    assert "batch, interactive" in found["partition"]
    assert "research" in found["account"]
    found = wrong(await checked(tmp_path, {**entry(lab), "slurm": {"default_account": "research"}}))
    assert list(found) == ["partition"]


async def test_a_workspace_with_a_file_in_the_way(lab: Cluster, tmp_path: Path) -> None:
    in_the_way = lab.info.home / "taken"
    in_the_way.write_text("")
    found = wrong(await checked(tmp_path, {**entry(lab), "workspace": f"{in_the_way}/work"}))
    in_the_way.unlink()
    assert list(found) == ["workspace"]
    assert f"{in_the_way} is there, but is no folder" in found["workspace"]


@pytest.mark.parametrize(("ahead", "answer", "remark"), [(HOUR_S, "WRONG", True), (20, "OK", True), (0, "OK", False)])
async def test_a_clock_that_differs(lab: Cluster, tmp_path: Path, ahead: float, answer: str, remark: bool) -> None:
    checks = await checked(tmp_path, entry(lab), wall=lambda: time.time() + ahead)
    clock = next(check for check in checks if check.name == "clock")
    assert (clock.answer, bool(clock.advice)) == (answer, remark)
    if ahead:
        assert "behind ours" in clock.found
    assert exit_status(checks) == int(answer == "WRONG")


async def test_a_controller_that_is_down_and_accounting_that_is_down(lab: Cluster, tmp_path: Path) -> None:
    lab.knob("controller", "down")
    checks = await checked(tmp_path, entry(lab))
    lab.knob("controller", None)
    assert list(wrong(checks)) == ["controller"]
    assert "DOWN" in wrong(checks)["controller"]
    assert "Unable to contact slurm controller" in unasked(checks)["partition"]
    lab.knob("accounting", "down")
    checks = await checked(tmp_path, entry(lab))
    lab.knob("accounting", None)
    assert wrong(checks) == {}
    assert set(unasked(checks)) == {"accounting", "account"}
    assert "Connection refused" in unasked(checks)["accounting"]
    assert exit_status(checks) == 4


async def test_an_old_python_is_named(lab: Cluster, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 3.6.8\n")
    old.chmod(0o755)
    found = wrong(await checked(tmp_path, entry(lab, python=str(old))))
    assert list(found) == ["python"]
    assert found["python"].startswith("3.6.8")
    assert list(wrong(await checked(tmp_path, entry(lab, python="/no/python")))) == ["python"]


async def test_no_slurm_on_the_path_and_where_to_find_it(lab: Cluster, tmp_path: Path) -> None:
    elsewhere = lab.place.root / "opt"
    lab.place.programs.rename(elsewhere)
    try:
        checks = await checked(tmp_path, entry(lab))
        mended = await checked(tmp_path, entry(lab, slurm_path=str(elsewhere)))
    finally:
        elsewhere.rename(lab.place.programs)
    assert list(wrong(checks)) == ["Slurm commands"]
    assert "missing: sbatch" in wrong(checks)["Slurm commands"]
    assert "slurm_path" in wrong(checks)["Slurm commands"]
    assert exit_status(mended) == 0


async def test_a_host_that_is_not_there_is_no_verdict(tmp_path: Path, lab: Cluster) -> None:
    checks = await checked(tmp_path, entry(lab, port=1))
    assert wrong(checks) == {}
    assert "Connect call failed" in unasked(checks)["host key"]
    assert exit_status(checks) == 4


async def test_a_wake_command_that_fails(tmp_path: Path, lab: Cluster) -> None:
    checks = await checked(tmp_path, entry(lab, wake=["/bin/sh", "-c", "echo no tunnel >&2; exit 3"]))
    assert unasked(checks)["wake command"] == "no tunnel"
    assert exit_status(checks) == 4


async def test_an_entry_that_cannot_be_used(lab: Cluster, tmp_path: Path) -> None:
    checks = await checked(tmp_path, entry(lab, prot=22))
    assert list(wrong(checks)) == ["clusters.yaml"]
    assert "prot" in wrong(checks)["clusters.yaml"]
    assert len(unasked(checks)) > 8


def test_the_command_prints_for_people_and_for_programs(
    lab: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.knob("noise", "\x1b]0;title\x07")
    path = written(tmp_path, {**entry(lab), "slurm": {"default_account": "nobody", "default_partition": "batch"}})
    assert cli.main(["cluster", "check", "--clusters", str(path)]) == 1
    said = capsys.readouterr().out
    lab.knob("noise", None)
    assert "\x1b" not in said
    assert "WRONG          account" in said
    assert cli.main(["cluster", "check", "lab", "--clusters", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["exit_status"] == 1
    assert [check["name"] for check in found["checks"] if check["answer"] == "WRONG"] == ["account"]
    assert cli.main(["cluster", "list", "--clusters", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clusters"][0]["name"] == "lab"
    assert cli.main(["cluster", "check", "lba", "--clusters", str(path)]) == 2
    assert "did you mean lab?" in capsys.readouterr().err
    assert cli.main(["cluster", "check", "--clusters", str(tmp_path / "none.yaml")]) == 2


async def test_a_cluster_that_stopped_is_woken(lab: Cluster, tmp_path: Path) -> None:
    import sys

    lifecycle.stop(lab.place.root)
    wake = [sys.executable, "-m", "backends.sandbox", "ensure", str(lab.place.root)]
    checks = await checked(tmp_path, entry(lab, wake=wake))
    assert [check.answer for check in checks if check.name == "wake command"] == [Answer.OK]
    assert unasked(checks) == {}
