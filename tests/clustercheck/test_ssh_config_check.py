"""The SSH configuration in a check, and a release's host behind a jump host; every file lies in a temporary folder."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.openssh import differences
from backends.hosts.ssh import SshHost
from backends.hosts.ssh_config import settings_of, target_of
from console.release.cluster_check import Answer, exit_status
from tests.clustercheck.checking import checked, entry, unasked, wrong
from tests.sandbox.clusters import Cluster


def block(alias: str, cluster: Cluster, *more: str) -> str:
    info = cluster.info
    lines = [f"HostName {info.host}", f"Port {info.port}", f"User {info.user}", f"IdentityFile {info.key_path}"]
    lines.append(f"UserKnownHostsFile {info.known_hosts_path}")
    return "".join([f"Host {alias}\n", *(f"    {line}\n" for line in (*lines, *more))])


def by_alias(lab: Cluster, config: Path, alias: str) -> dict[str, Any]:
    """An entry that leaves everything about the way there to the configuration."""
    left = {"port", "known_hosts"}
    full = entry(lab, ssh_config=str(config))
    settings = {key: value for key, value in full["gonogo"].items() if key not in left}
    return {**{k: v for k, v in full.items() if k not in ("user", "ssh_key")}, "login_node": alias, "gonogo": settings}


class Gate:
    """A jump host: an SSH server that forwards connections and keeps what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[str, int]] = []
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(folder / "gate_key"))
        key.write_public_key(str(folder / "gate_key.pub"))

    async def start(self) -> str:
        gate = self

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                gate.connections.append(conn)

            def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
                gate.asked.append((dest_host, dest_port))
                return True

        self.server = await asyncssh.create_server(
            Server, "127.0.0.1", 0, server_host_keys=[self.host_key],
            authorized_client_keys=str(self.folder / "gate_key.pub"),
        )  # fmt: skip
        port = self.server.get_port()
        public = self.host_key.export_public_key().decode().strip()
        (self.folder / "gate_known").write_text(f"[127.0.0.1]:{port} {public}\n")
        return (
            f"Host gate\n    HostName 127.0.0.1\n    Port {port}\n    User doorman\n"
            f"    IdentityFile {self.folder}/gate_key\n    UserKnownHostsFile {self.folder}/gate_known\n"
        )

    async def stop(self) -> None:
        self.server.close()
        for connection in self.connections:
            connection.abort()
        await self.server.wait_closed()


@pytest.fixture
async def gate(tmp_path: Path) -> Any:
    found = Gate(tmp_path)
    yield found
    await found.stop()


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


async def test_an_alias_alone_is_enough(lab: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(block("lab-login", lab, "ControlMaster auto", "ServerAliveInterval 30s"))
    checks = await checked(tmp_path, by_alias(lab, config, "lab-login"))
    assert [check for check in checks if check.answer is not Answer.OK] == []
    said = next(check.found for check in checks if check.name == "ssh config")
    assert f"leads to operator@127.0.0.1:{lab.info.port}" in said
    assert "without effect here: controlmaster, ServerAliveInterval" in said


async def test_a_configuration_that_cannot_be_understood_is_named(lab: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host lab-login\n    Port many\n")
    checks = await checked(tmp_path, by_alias(lab, config, "lab-login"))
    assert list(wrong(checks)) == ["ssh config"]
    assert "line 2" in wrong(checks)["ssh config"]
    assert "login" in unasked(checks)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh to compare with")
async def test_a_keyword_that_ssh_refuses_is_named(lab: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(block("lab-login", lab, "MadeUpKeyword yes"))
    checks = await checked(tmp_path, by_alias(lab, config, "lab-login"))
    assert list(wrong(checks)) == ["ssh config"]
    assert "madeupkeyword" in wrong(checks)["ssh config"].lower()


def test_readings_that_lead_elsewhere_are_told(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host a\n    HostName b.example.org\n    User carol\n")
    theirs = {"hostname": ("c.example.org",), "port": ("22",), "user": ("carol",), "proxyjump": ("gate",)}
    assert differences(settings_of(config, "a"), theirs) == (
        "HostName: b.example.org here, c.example.org for ssh",
        "ProxyJump: none here, gate for ssh",
    )


async def test_a_cluster_behind_a_jump_host_is_ready(lab: Cluster, tmp_path: Path, gate: Gate) -> None:
    config = tmp_path / "config"
    config.write_text(await gate.start() + block("lab-login", lab, "ProxyJump gate"))
    checks = await checked(tmp_path, by_alias(lab, config, "lab-login"))
    assert [check for check in checks if check.answer is not Answer.OK] == []
    assert gate.asked == [("127.0.0.1", lab.info.port)]
    assert "through doorman@127.0.0.1" in next(check.found for check in checks if check.name == "ssh config")


async def test_the_key_of_a_jump_host_is_held_against_what_is_known(lab: Cluster, tmp_path: Path, gate: Gate) -> None:
    config = tmp_path / "config"
    config.write_text(await gate.start() + block("lab-login", lab, "ProxyJump gate"))
    (tmp_path / "gate_known").write_text("")
    checks = await checked(tmp_path, by_alias(lab, config, "lab-login"))
    assert list(wrong(checks)) == ["host key"]
    shown = gate.host_key.get_fingerprint()
    assert shown in wrong(checks)["host key"]
    assert next(check.asked for check in checks if check.name == "host key").startswith("doorman@")
    assert gate.asked == []
    assert exit_status(checks) == 1


async def test_a_lost_jump_host_is_no_answer_and_the_next_question_goes_through_again(
    lab: Cluster, tmp_path: Path, gate: Gate
) -> None:
    config = tmp_path / "config"
    config.write_text(await gate.start() + block("lab-login", lab, "ProxyJump gate"))
    # Its clock leaps, so that the pause between two logins is over at once.
    host = SshHost(target_of(config, "lab-login"), monotonic=itertools.count(0, 1000).__next__)
    running = tmp_path / "running"
    asked = asyncio.create_task(host.run('touch "$1"; exec sleep 30', [str(running)]))
    async with asyncio.timeout(20):
        while not running.exists():
            await asyncio.sleep(0.01)
    gate.connections[0].abort()
    with pytest.raises(CouldNotAsk):
        await asked
    assert (await host.run("echo again")).stdout == b"again\n"
    assert len(gate.connections) == 2
    await host.close()


async def test_a_jump_host_that_refuses_our_key_needs_the_operator(lab: Cluster, tmp_path: Path, gate: Gate) -> None:
    config = tmp_path / "config"
    text = await gate.start()
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "stranger"))
    config.write_text(text.replace("gate_key", "stranger", 1) + block("lab-login", lab, "ProxyJump gate"))
    host = SshHost(target_of(config, "lab-login"))
    for _ in range(2):
        with pytest.raises(NeedsOperator) as error:
            await host.run("true")
        assert error.value.host.startswith("doorman@")
    assert len(gate.connections) == 1
