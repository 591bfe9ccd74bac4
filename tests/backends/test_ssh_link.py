"""States of the link, signs of life, back-off, and servers that want what only a person can give."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.base import LinkState
from backends.hosts.ssh import LOGIN_FLOOR_S, MAX_BACKOFF_S, SUSPECT_GRACE_S, SshHost, SshTarget


class Clock:
    """Seconds that go forward when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Node:
    """An SSH server that takes a key, wants something else, or wants something more."""

    def __init__(self, folder: Path, **wants: Any) -> None:
        self.folder, self.wants = folder, wants
        self.logins = 0
        self.dialogs = 0
        self.passwords = 0
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.key.write_private_key(str(folder / "key"))

    async def start(self) -> SshTarget:
        node = self

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                node.logins += 1
                node.connections.append(conn)

            def begin_auth(self, username: str) -> bool:
                return True

            def public_key_auth_supported(self) -> bool:
                return bool(node.wants.get("keys", True))

            def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
                return node.wants.get("takes", True) and key == node.key.convert_to_public()

            def password_auth_supported(self) -> bool:
                return bool(node.wants.get("password"))

            def validate_password(self, username: str, password: str) -> bool:
                node.passwords += 1
                return False

            def kbdint_auth_supported(self) -> bool:
                return "prompt" in node.wants

            def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
                node.dialogs += 1
                return "Login", "Second factor.", "", [(node.wants["prompt"], False)]

            def validate_kbdint_response(self, username: str, responses: Any) -> bool:
                return False

        self.server = await asyncssh.create_server(
            Server, "127.0.0.1", 0, server_host_keys=[self.key], process_factory=_serve, encoding=None
        )
        port = self.server.get_port()
        public = self.key.export_public_key().decode()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
        return SshTarget("127.0.0.1", port, "alice", self.folder / "known_hosts", self.folder / "key")


async def _serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
    shell = await asyncio.create_subprocess_exec("/bin/sh", "-s", stdin=-1, stdout=-1, stderr=-1)
    stdout, stderr = await shell.communicate(await process.stdin.read())
    process.stdout.write(stdout)
    process.stderr.write(stderr)
    process.exit(shell.returncode or 0)


Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    nodes: list[Node] = []

    async def begin(**wants: Any) -> tuple[Node, SshTarget]:
        node = Node(tmp_path, **wants)
        nodes.append(node)
        return node, await node.start()

    yield begin
    for node in nodes:
        node.server.close()
        for connection in node.connections:
            connection.abort()
        await node.server.wait_closed()


async def reaches(host: SshHost, state: LinkState) -> None:
    """Wait for a state; the test's own time limit ends a wait that is in vain."""
    async with asyncio.timeout(20):
        while host.link.state is not state:
            await asyncio.sleep(0.01)


async def test_answers_to_keepalives_are_signs_of_life_while_nothing_is_asked(start: Start) -> None:
    _, target = await start()
    clock = Clock()
    host = SshHost(replace(target, keepalive_s=0.05), monotonic=clock)
    await host.run("true")
    assert host.link.last_seen == 1000.0
    clock.now = 2000.0
    async with asyncio.timeout(20):
        while host.link.last_seen != 2000.0:
            await asyncio.sleep(0.01)
    assert host.link.state is LinkState.UP
    await host.close()


async def test_a_link_that_answers_nothing_is_suspect_until_it_answers_again(start: Start) -> None:
    _, target = await start()
    clock = Clock()
    host = SshHost(replace(target, keepalive_s=60.0), monotonic=clock)
    await host.run("true")
    clock.now += 60.0 + SUSPECT_GRACE_S
    assert host.link.state is LinkState.UP
    clock.now += 1.0
    assert host.link.state is LinkState.SUSPECT
    assert host.link.detail == "no sign of life for 66 s"
    await host.run("true")
    assert (host.link.state, host.link.last_seen) == (LinkState.UP, clock.now)
    await host.close()


async def test_a_link_that_is_lost_while_nothing_is_asked_is_down(start: Start) -> None:
    node, target = await start()
    host = SshHost(target)
    await host.run("true")
    seen = host.link.last_seen
    node.connections[0].abort()
    await reaches(host, LinkState.DOWN)
    assert host.link.last_seen is not None
    assert seen is not None
    assert host.link.detail
    assert node.logins == 1
    await host.close()


async def test_the_pause_between_logins_grows_with_jitter_and_has_a_floor_and_a_ceiling() -> None:
    clock, ceilings = Clock(), []

    def uniform(low: float, high: float) -> float:
        ceilings.append(high)
        return 0.0

    target = SshTarget("127.0.0.1", 1, "alice", Path("/dev/null"))
    host = SshHost(target, monotonic=clock, uniform=uniform)
    for _ in range(10):
        with pytest.raises(CouldNotAsk):
            await host.run("true")
        assert host._not_before - clock.now == LOGIN_FLOOR_S
        clock.now += LOGIN_FLOOR_S
    assert ceilings == [min(MAX_BACKOFF_S, LOGIN_FLOOR_S * 2**number) for number in range(1, 11)]
    assert host.link.state is LinkState.DOWN


async def refused(host: SshHost) -> NeedsOperator:
    """The error of every further question, and that the link says the same."""
    for _ in range(3):
        with pytest.raises(NeedsOperator) as error:
            await host.run("true")
    assert host.link.state is LinkState.NEEDS_OPERATOR
    assert error.value.advice in host.link.detail
    return error.value


async def test_a_second_factor_is_quoted_and_never_asked_for_again(start: Start) -> None:
    node, target = await start(keys=False, prompt="Verification code: ")
    error = await refused(SshHost(target))
    assert 'an answer to "Second factor. Verification code:"' in error.said
    assert "nobody can be asked here" in error.advice
    assert (node.logins, node.dialogs) == (1, 1)


async def test_a_password_is_not_tried_and_said_to_be_wanted(start: Start) -> None:
    node, target = await start(keys=False, password=True)
    error = await refused(SshHost(target))
    assert "the server asked for a password" in error.said
    assert (node.logins, node.passwords) == (1, 0)


async def test_a_refused_key_begins_no_dialog_that_would_count_as_a_wrong_password(start: Start) -> None:
    node, target = await start(takes=False, prompt="Password: ", password=True)
    error = await refused(SshHost(target))
    assert "keyboard-interactive" in error.said
    assert "check user and ssh_key" in error.advice
    assert (node.logins, node.dialogs, node.passwords) == (1, 0, 0)


async def test_a_key_with_a_passphrase_and_no_agent_does_not_even_connect(start: Start, tmp_path: Path) -> None:
    node, target = await start()
    node.key.write_private_key(str(tmp_path / "locked"), "pkcs8-pem", passphrase="secret")
    for changes in ({"key": tmp_path / "locked"}, {"key": None, "keys": (tmp_path / "locked",)}):
        error = await refused(SshHost(replace(target, **changes)))
        assert "assphrase" in error.said
        assert "agent" in error.advice
    assert node.logins == 0


async def test_keys_of_a_configuration_are_tried_and_missing_ones_passed_over(start: Start, tmp_path: Path) -> None:
    _, target = await start()
    keys = (tmp_path / "missing", tmp_path / "key")
    host = SshHost(replace(target, key=None, keys=keys, only_keys=True))
    assert (await host.run("echo in")).stdout == b"in\n"
    assert host.host_key is not None
    assert host.host_key.startswith("ssh-ed25519 SHA256:")
    await host.close()


async def test_an_alias_of_the_host_key_counts_for_the_known_hosts(start: Start, tmp_path: Path) -> None:
    node, target = await start()
    (tmp_path / "aliased").write_text(f"lab {node.key.export_public_key().decode()}")
    known = replace(target, known_hosts=tmp_path / "none", other_known_hosts=(tmp_path / "aliased",))
    host = SshHost(replace(known, host_key_alias="lab"))
    assert (await host.run("echo in")).stdout == b"in\n"
    await host.close()
    error = await refused(SshHost(known))
    assert error.asked == "host key"


async def test_a_login_that_is_not_waited_for_leaves_no_link_that_seems_to_connect(tmp_path: Path) -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    host = SshHost(SshTarget("127.0.0.1", port, "alice", tmp_path / "none"))
    asked = asyncio.create_task(host.run("true"))
    await reaches(host, LinkState.CONNECTING)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert host.link.state is LinkState.DOWN
    silent.close()
