"""Host keys: a new one is the operator's to take, a known one is silent, a changed or revoked one stops everything."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from backends.errors import NeedsOperator
from backends.hosts.base import LinkState
from backends.hosts.known_hosts import append_entry, entry_of
from backends.hosts.login import look
from backends.hosts.operator import NewHostKey
from backends.hosts.ssh import SshHost
from tests.backends.asking import Asked, Server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path)
    yield made
    await made.stop()


def other_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


async def refused(host: SshHost) -> NeedsOperator:
    with pytest.raises(NeedsOperator) as error:
        await host.run("true")
    assert host.link.state is LinkState.NEEDS_OPERATOR
    return error.value


async def test_a_new_host_is_shown_whole_and_taken_once(server: Server) -> None:
    target = await server.start(known=False)
    operator = Asked(takes=True)
    host = SshHost(target, operator=operator)
    assert (await host.run("echo in")).stdout == b"in\n"
    await host.close()
    (key,) = operator.keys
    assert (key.host, key.known_as, key.port) == (target.name, "127.0.0.1", server.port)
    assert (key.algorithm, key.fingerprint) == ("ssh-ed25519", server.host_key.get_fingerprint())
    assert key.file == server.known_hosts
    assert server.known_hosts.read_text() == key.entry + "\n"
    assert server.known_hosts.stat().st_mode & 0o777 == 0o600
    again = SshHost(target, operator=operator)
    assert (await again.run("echo in")).stdout == b"in\n"
    await again.close()
    assert len(operator.keys) == 1


async def test_a_new_host_that_is_refused_leaves_no_trace_and_is_not_asked_about_again(server: Server) -> None:
    target = await server.start(known=False)
    operator = Asked(takes=False)
    host = SshHost(target, operator=operator)
    for _ in range(3):
        error = await refused(host)
    assert "was not accepted" in error.said
    assert server.host_key.get_fingerprint() in error.said
    assert not server.known_hosts.exists()
    assert (len(operator.keys), server.logins) == (1, 1)


async def test_without_an_operator_a_new_host_is_an_error_that_says_how_to_take_it(server: Server) -> None:
    error = await refused(SshHost(await server.start(known=False)))
    assert server.host_key.get_fingerprint() in error.advice
    assert "gonogo cluster trust" in error.advice
    assert not server.known_hosts.exists()


async def test_a_changed_key_is_a_stop_that_nobody_is_asked_about(server: Server) -> None:
    target = await server.start()
    old = other_key()
    server.know(old)
    text = "# a comment\n\n" + server.known_hosts.read_text()
    server.known_hosts.write_text(text)
    operator = Asked(takes=True)
    error = await refused(SshHost(target, operator=operator))
    assert operator.keys == []
    assert error.advice.startswith("STOP")
    assert server.host_key.get_fingerprint() in error.advice
    assert f"{old.get_fingerprint()} in {server.known_hosts} line 3" in error.advice
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}' -f {server.known_hosts}" in error.advice
    assert server.known_hosts.read_text() == text


async def test_a_key_that_changes_between_the_question_and_the_answer_is_not_taken(server: Server) -> None:
    """What the operator saw is what they took: the second connection must show that key."""
    target = await server.start(known=False)
    seen = server.host_key

    async def swap() -> None:
        server.host_key = other_key()
        port = server.port
        await server.stop()
        server.server = await asyncssh.create_server(
            asyncssh.SSHServer, "127.0.0.1", port, server_host_keys=[server.host_key]
        )

    error = await refused(SshHost(target, operator=Asked(takes=True, before=swap)))
    assert error.advice.startswith("STOP")
    assert seen.export_public_key().decode().split()[1] in server.known_hosts.read_text()
    assert server.host_key.export_public_key().decode().split()[1] not in server.known_hosts.read_text()


async def test_a_known_key_of_another_kind_makes_the_shown_one_a_changed_one(server: Server) -> None:
    target = await server.start()
    server.know(asyncssh.generate_private_key("ssh-rsa", key_size=2048))
    operator = Asked(takes=True)
    error = await refused(SshHost(target, operator=operator))
    assert error.advice.startswith("STOP")
    assert operator.keys == []


async def test_a_key_that_is_known_for_the_address_only_is_no_new_host(server: Server) -> None:
    target = await server.start()
    server.know(other_key())
    operator = Asked(takes=True)
    error = await refused(SshHost(replace(target, host="localhost"), operator=operator))
    assert error.advice.startswith("STOP")
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in error.advice
    assert operator.keys == []


async def test_a_key_that_is_known_without_the_port_is_no_new_host_and_may_be_another_server(server: Server) -> None:
    target = await server.start()
    server.know(other_key(), name="127.0.0.1")
    operator = Asked(takes=True)
    error = await refused(SshHost(target, operator=operator))
    assert error.advice.startswith("STOP")
    assert "ssh-keygen -R 127.0.0.1 -f" in error.advice
    assert "HostKeyAlias" in error.advice
    assert operator.keys == []


@pytest.mark.parametrize("listed_too", [False, True])
async def test_a_revoked_key_is_a_stop_that_nobody_is_asked_about(server: Server, listed_too: bool) -> None:
    target = await server.start()
    listed = server.known_hosts.read_text() if listed_too else ""
    server.know(server.host_key, marker="@revoked", name="*")
    server.known_hosts.write_text(listed + server.known_hosts.read_text())
    operator = Asked(takes=True)
    error = await refused(SshHost(target, operator=operator))
    assert error.advice.startswith("STOP")
    assert "revoked" in error.advice
    assert operator.keys == []


async def test_names_that_are_hashed_are_known_and_a_changed_key_among_them_is_found(server: Server) -> None:
    target = await server.start()
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, f"[127.0.0.1]:{server.port}".encode(), hashlib.sha1).digest()
    hashed = f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
    server.know(server.host_key, name=hashed)
    host = SshHost(target)
    assert (await host.run("echo in")).stdout == b"in\n"
    await host.close()
    server.know(other_key(), name=hashed)
    operator = Asked(takes=True)
    error = await refused(SshHost(target, operator=operator))
    assert f"in {server.known_hosts} line 1" in error.advice
    assert operator.keys == []


async def test_a_jump_host_is_taken_by_the_same_rules(server: Server, tmp_path: Path) -> None:
    (tmp_path / "jump").mkdir()
    jump = Server(tmp_path / "jump")
    target = replace(await server.start(), jump=await jump.start(known=False))
    operator = Asked(takes=False)
    error = await refused(SshHost(target, operator=operator))
    assert [key.port for key in operator.keys] == [jump.port]
    assert error.host.endswith(f":{jump.port}")
    assert server.logins == 0
    await jump.stop()


async def test_looking_at_a_key_shows_nothing_of_ours(server: Server) -> None:
    target = await server.start(known=False)
    found = await look(target)
    assert isinstance(found, NewHostKey)
    append_entry(found.file, found.entry)
    assert await look(target) == f"ssh-ed25519 {server.host_key.get_fingerprint()}"
    server.know(other_key())
    with pytest.raises(NeedsOperator, match="not trusted"):
        await look(target)


async def test_no_file_to_keep_a_key_in_means_that_none_is_taken(server: Server) -> None:
    target = replace(await server.start(), known_hosts=Path("/dev/null"))
    operator = Asked(takes=True)
    error = await refused(SshHost(target, operator=operator))
    assert "name one as known_hosts" in error.advice
    assert operator.keys == []


async def test_a_file_that_cannot_be_written_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = replace(await server.start(), known_hosts=tmp_path / "missing" / "known_hosts")
    (tmp_path / "missing").symlink_to(tmp_path / "nowhere")
    error = await refused(SshHost(target, operator=Asked(takes=True)))
    assert "known_hosts" in error.advice
    assert server.logins == 1


@pytest.mark.parametrize("before", ["", "other ssh-ed25519 AAAA\n", "an unfinished line"])
def test_an_entry_gets_a_line_of_its_own_and_what_stands_there_stays(tmp_path: Path, before: str) -> None:
    path = tmp_path / "new" / "known_hosts"
    if before:
        path.parent.mkdir()
        path.write_text(before)
    append_entry(path, "host ssh-ed25519 AAAA")
    append_entry(path, "else ssh-ed25519 AAAA")
    assert path.read_text() == f"{before.rstrip()}\nhost ssh-ed25519 AAAA\nelse ssh-ed25519 AAAA\n".lstrip()


def test_a_link_to_a_file_of_known_hosts_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / "known_hosts").symlink_to("real")
    append_entry(tmp_path / "known_hosts", "host ssh-ed25519 AAAA")
    assert os.readlink(tmp_path / "known_hosts") == "real"
    assert (tmp_path / "real").read_text() == "host ssh-ed25519 AAAA\n"


@pytest.mark.parametrize("name", ["", "*", "a,b", "a b", "a\nb", "!a", "@revoked", "|1|x|y", "#a", "[a", "ä"])
def test_a_name_that_would_stand_for_more_than_one_host_is_never_written(name: str) -> None:
    with pytest.raises(ValueError, match="name of one host"):
        entry_of(name, 22, other_key())
