"""A real OpenSSH server: its keys, its limits, its files, and what an unprivileged account may not see."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from backends.errors import CouldNotAsk, FileMissing, NeedsOperator
from backends.hosts.base import LinkState
from tests.backends.asking import Asked
from tests.cluster.accounts import known_host
from tests.cluster.configs import HOST_KEYS
from tests.cluster.jobs import holds_in_time, reached
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.mark.parametrize("kind", HOST_KEYS)
async def test_one_known_key_is_enough_whichever_it_is(cluster: Cluster, kind: str, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(known_host(cluster.layout, kind))
    async with reached(cluster, cluster.layout.account(), known_hosts=known) as (host, _):
        assert (await host.run("echo known")).stdout == b"known\n"


async def test_a_hashed_known_hosts_file_is_read(cluster: Cluster, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    shutil.copy(cluster.layout.known_hosts, known)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    assert b"127.0.0.1" not in known.read_bytes()
    async with reached(cluster, cluster.layout.account(), known_hosts=known) as (host, _):
        assert (await host.run("echo known")).stdout == b"known\n"


@pytest.mark.parametrize(
    "odd",
    [b"rubbish", b"@mark other ssh-rsa AAAA", b"caf\xe9 ssh-ed25519 AAAA", b"old 1024 35 12345", b"other ssh-new AAAA"],
)
async def test_a_line_that_is_no_known_host_hides_no_other(cluster: Cluster, odd: bytes, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_bytes(odd + b"\n" + cluster.layout.known_hosts.read_bytes())
    async with reached(cluster, cluster.layout.account(), known_hosts=known) as (host, _):
        assert (await host.run("echo known")).stdout == b"known\n"
    known.write_bytes(odd + b"\n")
    async with reached(cluster, cluster.layout.account(), known_hosts=known) as (host, _):
        with pytest.raises(NeedsOperator) as unknown:
            await host.run("true")
        assert "is not in" in unknown.value.advice


async def test_an_unknown_host_and_one_with_another_key_are_told_apart(cluster: Cluster, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("")
    async with reached(cluster, cluster.layout.account(), known_hosts=known) as (host, _):
        with pytest.raises(NeedsOperator) as unknown:
            await host.run("true")
        assert "is not in" in unknown.value.advice
    port = cluster.layout.ports["sshd"]
    other = cluster.layout.key.with_suffix(".pub").read_text().split()
    known.write_text(f"[127.0.0.1]:{port} {other[0]} {other[1]}\n")
    async with reached(cluster, cluster.layout.account(), known_hosts=known) as (host, _):
        with pytest.raises(NeedsOperator) as changed:
            await host.run("true")
        assert changed.value.advice.startswith("STOP")
        assert host.link.state is LinkState.NEEDS_OPERATOR


async def test_a_new_host_that_the_operator_takes_is_known_to_openssh_as_well(cluster: Cluster, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    operator = Asked(takes=True)
    async with reached(cluster, cluster.layout.account(), known_hosts=known, operator=operator) as (host, _):
        assert (await host.run("echo known")).stdout == b"known\n"
    (key,) = operator.keys
    name = f"[127.0.0.1]:{cluster.layout.ports['sshd']}"
    listed = subprocess.run(["ssh-keygen", "-l", "-F", name, "-f", str(known)], check=True, capture_output=True)
    assert key.fingerprint in listed.stdout.decode()
    words = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={known}")
    target = host._target
    login = ("-F", "none", "-i", str(target.key), "-p", str(target.port), f"{target.user}@{target.host}")
    assert subprocess.run(["ssh", *words, *login, "echo known"], check=True, capture_output=True).stdout == b"known\n"


@pytest.mark.parametrize(("word", "words"), [("secret", ""), ("wrong", "does not open it")])
async def test_a_key_with_a_passphrase_in_openssh_s_own_format_is_opened_by_the_operator(
    cluster: Cluster, tmp_path: Path, word: str, words: str
) -> None:
    key = tmp_path / "locked"
    shutil.copy(cluster.layout.key, key)
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(key)], check=True, capture_output=True
    )
    operator = Asked(replies=[(word,)])
    async with reached(cluster, cluster.layout.account(), key=key, agent="", operator=operator) as (host, _):
        if words:
            with pytest.raises(NeedsOperator, match=words):
                await host.run("true")
        else:
            assert (await host.run("echo known")).stdout == b"known\n"
    assert len(operator.questions) == 1


async def test_a_key_that_the_server_does_not_take_is_shown_once(cluster: Cluster, tmp_path: Path) -> None:
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, capture_output=True)
    said = cluster.daemons.log("sshd")
    before = said.read_text().count("[preauth]")
    async with reached(cluster, cluster.layout.account(), key=key) as (host, _):
        for _ in range(3):
            with pytest.raises(NeedsOperator, match="check user and ssh_key"):
                raise await error_of(host.run("true"))
    await holds_in_time(lambda: said.read_text().count("[preauth]") > before, "word of the login in the server's log")
    assert said.read_text().count("[preauth]") == before + 1


@pytest.mark.parametrize(("what", "words"), [("key", "ssh_key"), ("known_hosts", "known_hosts")])
async def test_a_file_of_ours_that_cannot_be_read_needs_the_operator(
    cluster: Cluster, what: str, words: str, tmp_path: Path
) -> None:
    logins = cluster.daemons.log("sshd").stat().st_size
    async with reached(cluster, cluster.layout.account(), **{what: tmp_path}) as (host, _):
        for _ in range(2):
            with pytest.raises(NeedsOperator, match="Is a directory") as error:
                await host.run("true")
            assert words in error.value.advice
    assert cluster.daemons.log("sshd").stat().st_size == logins


async def test_a_key_with_a_passphrase_is_taken_from_the_agent(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "locked"
    shutil.copy(cluster.layout.key, key)
    shutil.copy(cluster.layout.key.with_suffix(".pub"), tmp_path / "locked.pub")
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(key)], check=True, capture_output=True
    )
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    async with reached(cluster, cluster.layout.account(), key=key) as (host, _):
        with pytest.raises(NeedsOperator, match="assphrase") as error:
            await host.run("true")
        assert "load the key into your agent" in error.value.advice
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        await holds_in_time(socket.exists, "agent")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        async with reached(cluster, cluster.layout.account(), key=key) as (host, _):
            with pytest.raises(NeedsOperator, match="Permission denied"):
                await host.run("true")
        subprocess.run(["ssh-add", "-q", str(cluster.layout.key)], check=True)
        async with reached(cluster, cluster.layout.account(), key=key) as (host, _):
            assert (await host.run("echo opened")).stdout == b"opened\n"
    finally:
        agent.terminate()
        agent.wait()


async def test_a_proxy_command_is_run_as_openssh_runs_it(cluster: Cluster) -> None:
    layout = cluster.layout
    options = f"-F none -p {layout.ports['sshd']} -i {layout.key} -o UserKnownHostsFile={layout.known_hosts}"
    command = f"ssh {options} -W %h:%p {layout.account('fish').name}@127.0.0.1"
    async with reached(cluster, layout.account(), proxy_command=command) as (host, _):
        assert (await host.run("echo through")).stdout == b"through\n"
        assert len(await asyncio.gather(*(host.run("true") for _ in range(10)))) == 10


async def test_what_a_proxy_command_prints_does_not_reach_the_connection(cluster: Cluster) -> None:
    layout = cluster.layout
    options = f"-q -F none -p {layout.ports['sshd']} -i {layout.key} -o UserKnownHostsFile={layout.known_hosts}"
    chatter = "(for n in 1 2 3 4 5 6 7 8; do echo line >&2; sleep 0.1; done) & exec ssh"
    command = f"sh -c '{chatter} {options} -W %h:%p {layout.account().name}@127.0.0.1'"
    async with reached(cluster, layout.account(), proxy_command=command) as (host, _):
        assert (await host.run("sleep 1; echo through")).stdout == b"through\n"
        assert (await host.run("echo still")).stdout == b"still\n"


async def test_a_proxy_command_that_fails_is_quoted(cluster: Cluster) -> None:
    command = "sh -c 'echo the jump host %h:%p is closed to %r, 100%% >&2; exit 1'"
    account = cluster.layout.account()
    async with reached(cluster, account, proxy_command=command) as (host, _):
        said = f"the jump host 127.0.0.1:{cluster.layout.ports['sshd']} is closed to {account.name}, 100%"
        with pytest.raises(CouldNotAsk, match=said):
            await host.run("true")


async def test_a_server_that_accepts_and_says_nothing_is_given_up(cluster: Cluster) -> None:
    cluster.pause("sshd")
    try:
        async with reached(cluster, cluster.layout.account(), login_timeout_s=0.5) as (host, _):
            with pytest.raises(CouldNotAsk, match=r"no login within 0\.5 s"):
                await host.run("true")
    finally:
        cluster.go_on("sshd")


@pytest.mark.parametrize(
    ("shell", "said"), [("/usr/sbin/nologin", "currently not available"), ("/bin/rbash", "restricted")]
)
async def test_an_account_that_may_run_nothing_says_so(cluster: Cluster, shell: str, said: str) -> None:
    account = cluster.layout.stranger
    cluster.root("usermod", "-s", shell, account.name)
    try:
        async with reached(cluster, account) as (host, _):
            with pytest.raises(CouldNotAsk, match=said):
                await host.run("true")
            with pytest.raises(CouldNotAsk, match=said):
                await host.write("/tmp/never", b"x" * 4_000_000)
    finally:
        cluster.root("usermod", "-s", "/bin/bash", account.name)


async def error_of(asked: object) -> BaseException:
    """The error that something ends with, with its advice in its words."""
    try:
        await asked  # type: ignore[misc]
    except NeedsOperator as error:
        return NeedsOperator(error.host, error.asked, f"{error.said}; {error.advice}", error.advice)
    raise AssertionError("there was no error")


async def test_more_scripts_than_the_server_allows_sessions_all_run(cluster: Cluster) -> None:
    async with reached(cluster, cluster.layout.account()) as (host, _):
        results = await asyncio.gather(*(host.run('sleep 0.05; echo "$1"', [str(number)]) for number in range(40)))
        assert [int(result.stdout) for result in results] == list(range(40))


async def test_large_files_arrive_whole_both_ways(cluster: Cluster) -> None:
    account = cluster.layout.account()
    data = os.urandom(8_000_000)
    path = f"{cluster.layout.home(account)}/large"
    async with reached(cluster, account) as (host, _):
        await host.write(path, data, mode=0o644)
        assert Path(path).read_bytes() == data
        assert await host.read(path) == data
        assert await host.read(path, offset=7_999_990, limit=100) == data[-10:]
        assert not list(Path(path).parent.glob("large.*"))


async def test_what_is_not_there_is_missing(cluster: Cluster) -> None:
    account = cluster.layout.account()
    home = cluster.layout.home(account)
    async with reached(cluster, account) as (host, _):
        for path in (f"{home}/nothing", f"{home}/no/folder/either", "/nothing"):
            assert await host.stat(path) is None
            with pytest.raises(FileMissing):
                await host.read(path)


async def test_what_may_not_be_seen_is_neither_there_nor_missing(cluster: Cluster) -> None:
    account = cluster.layout.account()
    home = cluster.layout.home(account)
    async with reached(cluster, account) as (host, _):
        await host.run("cd && mkdir -p shut/inner && echo secret > shut/inner/file && echo secret > closed", [])
        await host.run("cd && chmod 000 closed shut; ln -s shut/inner/file into; ln -s nowhere dangling")
        for path in (f"{home}/shut/inner/file", f"{home}/shut/nothing", f"{home}/shut/no/folder", f"{home}/into"):
            with pytest.raises(CouldNotAsk, match="Permission denied"):
                await host.stat(path)
            for limit in (None, 10):
                with pytest.raises(CouldNotAsk, match="Permission denied"):
                    await host.read(path, limit=limit)
        assert await host.stat(f"{home}/dangling") is None
        assert await host.stat(f"{home}/closed") is not None
        for limit in (None, 10):
            with pytest.raises(CouldNotAsk, match="Permission denied"):
                await host.read(f"{home}/closed", limit=limit)
            with pytest.raises(CouldNotAsk, match="Is a directory"):
                await host.read(str(home), limit=limit)


async def test_what_cannot_be_written_is_said_and_leaves_nothing(cluster: Cluster) -> None:
    account = cluster.layout.account()
    home = cluster.layout.home(account)
    async with reached(cluster, account) as (host, _):
        with pytest.raises(CouldNotAsk, match="Permission denied"):
            await host.write("/etc/gonogo-test", b"x")
        with pytest.raises(CouldNotAsk, match=r"No such file|Directory nonexistent"):
            await host.write(f"{home}/no/folder/file", b"x")
        await host.run("cd && mkdir -p taken")
        with pytest.raises(CouldNotAsk, match="Is a directory"):
            await host.write(f"{home}/taken", b"x")
        assert sorted(path.name for path in home.glob("taken*")) == ["taken"]
        assert not list((home / "taken").iterdir())
