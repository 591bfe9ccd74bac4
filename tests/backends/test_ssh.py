"""A host over SSH, against a real SSH server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.base import LinkState
from backends.hosts.ssh import MAX_CHANNELS, SshHost, SshTarget

NOISE = b"Welcome to \x1b[1msystem 7\x1b[0m\nBEGIN-\n"


class Node:
    """A login node: an SSH server whose shell is this machine's, behind a noisy start-up file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.user_key = asyncssh.generate_private_key("ssh-ed25519")
        self.logins = self.most_channels = self.channels = 0
        self.commands: set[str | None] = set()
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.user_key.write_private_key(str(folder / "key"))
        self.user_key.write_public_key(str(folder / "key.pub"))

    async def start(self) -> SshTarget:
        node = self

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                node.logins += 1
                node.connections.append(conn)

        self.server = await asyncssh.create_server(
            Server,
            "127.0.0.1",
            0,
            server_host_keys=[self.host_key],
            authorized_client_keys=str(self.folder / "key.pub"),
            process_factory=self._serve,
            encoding=None,
        )
        self.port = self.server.get_port()
        self.trust(self.host_key)
        known_hosts = self.folder / "known_hosts"
        return SshTarget("127.0.0.1", self.port, "alice", known_hosts, self.folder / "key", login_timeout_s=10)

    def trust(self, key: asyncssh.SSHKey) -> None:
        public = key.export_public_key().decode().strip()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}\n")

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self.commands.add(process.command)
        self.channels += 1
        self.most_channels = max(self.most_channels, self.channels)
        process.stdout.write(NOISE)
        shell = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", process.command or "exit 1", stdin=-1, stdout=-1, stderr=-1
        )
        await process.redirect(shell.stdin, shell.stdout, shell.stderr)
        status = await shell.wait()
        await process.stdout.drain()
        self.channels -= 1
        process.exit(status)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[tuple[Node, SshTarget]]:
    node = Node(tmp_path)
    target = await node.start()
    yield node, target
    node.server.close()
    for connection in node.connections:
        connection.abort()
    await node.server.wait_closed()


async def test_output_is_told_from_noise_and_bytes_stay_bytes(node: tuple[Node, SshTarget]) -> None:
    server, target = node
    host = SshHost(target)
    result = await host.run("cat; printf '\\377'; echo odd >&2; exit 7", data=b"\x00\xfein")
    assert (result.stdout, result.stderr, result.exit_status) == (b"\x00\xfein\xff", b"odd\n", 7)
    assert host.link.state is LinkState.UP
    assert server.commands == {"exec /bin/sh -s"}
    await host.close()


async def test_many_scripts_share_one_connection_and_few_channels(node: tuple[Node, SshTarget]) -> None:
    server, target = node
    host = SshHost(target)
    results = await asyncio.gather(*(host.run('echo "$1"', [str(number)]) for number in range(30)))
    assert [int(result.stdout) for result in results] == list(range(30))
    assert server.logins == 1
    assert server.most_channels <= MAX_CHANNELS
    await host.close()


async def test_a_link_that_is_cut_is_no_answer_and_the_next_question_logs_in_again(
    node: tuple[Node, SshTarget], tmp_path: Path
) -> None:
    server, target = node
    host = SshHost(target)
    asked = asyncio.create_task(host.run('touch "$1"; exec sleep 20', [str(tmp_path / "running")]))
    async with asyncio.timeout(10):
        while not (tmp_path / "running").exists():
            await asyncio.sleep(0.01)
    server.connections[0].abort()
    with pytest.raises(CouldNotAsk):
        await asked
    assert (await host.run("echo back")).stdout == b"back\n"
    assert server.logins == 2
    await host.close()


async def test_an_unknown_key_and_a_changed_key_need_the_operator_in_different_words(
    node: tuple[Node, SshTarget], tmp_path: Path
) -> None:
    server, target = node
    unknown = SshHost(replace(target, known_hosts=tmp_path / "no such file"))
    with pytest.raises(NeedsOperator) as first:
        await unknown.run("echo")
    assert "is not in" in first.value.advice
    server.trust(asyncssh.generate_private_key("ssh-ed25519"))
    changed = SshHost(target)
    with pytest.raises(NeedsOperator) as second:
        await changed.run("echo")
    assert second.value.advice.startswith("STOP")
    logins = server.logins
    with pytest.raises(NeedsOperator):
        await changed.run("echo")
    assert server.logins == logins
    assert changed.link.state is LinkState.NEEDS_OPERATOR


async def test_a_refused_key_is_never_tried_twice(node: tuple[Node, SshTarget], tmp_path: Path) -> None:
    server, target = node
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "other"))
    host = SshHost(replace(target, key=tmp_path / "other"))
    for _ in range(2):
        with pytest.raises(NeedsOperator, match="could not ask"):
            await host.run("echo")
    assert server.logins == 1


async def test_a_port_that_nobody_serves_could_not_be_asked(node: tuple[Node, SshTarget]) -> None:
    _, target = node
    host = SshHost(replace(target, port=1))
    with pytest.raises(CouldNotAsk) as error:
        await host.run("echo")
    assert not isinstance(error.value, NeedsOperator)
    assert host.link.state is LinkState.DOWN
