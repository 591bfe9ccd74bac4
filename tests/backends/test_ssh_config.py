"""What is taken from an SSH configuration, held against OpenSSH's own reading where there is one."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from pathlib import Path

import pytest

from backends.hosts.ssh_config import SshConfigError, settings_of, target_of

CONFIG = """\
Host lab
    HostName login.example.org
    User alice
    Port 2222
    IdentityFile {folder}/id_%r
    IdentityFile {folder}/second
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known {folder}/more
    HostKeyAlias lab-alias
    ControlMaster auto
    ServerAliveInterval 30s
    KexAlgorithms curve25519-sha256
    MadeUpKeyword yes
Host inner
    HostName %h.example.org
    ProxyJump lab,bob@second.example.org:77
Host plain
    ProxyCommand nc -x %n %h %p
    ProxyJump lab
Host round
    ProxyJump round
Host *
    User everybody
    Port 4444
"""


def written(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "config"
    path.write_text(text.format(folder=folder) if text is CONFIG else text)
    return path


def test_an_alias_gives_host_user_port_keys_and_known_hosts(tmp_path: Path) -> None:
    target = target_of(written(tmp_path), "lab")
    assert (target.host, target.port, target.user) == ("login.example.org", 2222, "alice")
    assert target.keys == (tmp_path / "id_alice", tmp_path / "second")
    assert target.only_keys
    assert (target.known_hosts, target.other_known_hosts[0]) == (tmp_path / "known", tmp_path / "more")
    assert target.known_as == "lab-alias"
    assert target.algorithms == (("kex_algs", "curve25519-sha256"),)
    assert target.jump is None


def test_what_is_given_counts_for_more_than_the_configuration(tmp_path: Path) -> None:
    known, key = tmp_path / "own", tmp_path / "key"
    target = target_of(
        written(tmp_path), "inner", user="carol", port=5, known_hosts=known, key=key, proxy_command="nc a b"
    )
    assert (target.user, target.port, target.known_hosts, target.key) == ("carol", 5, known, key)
    assert target.other_known_hosts == ()
    assert (target.proxy_command, target.jump, target.keys) == ("nc a b", None, ())
    assert target.host == "inner.example.org"


def test_keywords_of_matching_blocks_without_effect_are_named(tmp_path: Path) -> None:
    said = settings_of(written(tmp_path), "lab")
    assert said.ignored == ("controlmaster", "ServerAliveInterval", "madeupkeyword")
    assert settings_of(written(tmp_path), "elsewhere").ignored == ()


def test_jump_hosts_are_hosts_of_the_configuration_too(tmp_path: Path) -> None:
    target = target_of(written(tmp_path), "inner")
    second = target.jump
    assert second is not None
    assert (second.user, second.host, second.port) == ("bob", "second.example.org", 77)
    first = second.jump
    assert first is not None
    assert (first.user, first.host, first.port, first.known_as) == ("alice", "login.example.org", 2222, "lab-alias")
    assert first.jump is None


def test_the_first_of_proxy_command_and_proxy_jump_counts(tmp_path: Path) -> None:
    target = target_of(written(tmp_path), "plain")
    assert (target.proxy_command, target.jump) == ("nc -x plain %h %p", None)


def test_a_way_in_a_circle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SshConfigError, match=r"round <- round"):
        target_of(written(tmp_path), "round")


def test_no_configuration_means_the_defaults(tmp_path: Path) -> None:
    for config in (None, tmp_path / "none", Path("/dev/null")):
        target = target_of(config, "login.example.org")
        assert (target.host, target.port, target.user) == ("login.example.org", 22, getpass.getuser())
        assert target.known_hosts == Path("~/.ssh/known_hosts").expanduser()


def test_known_hosts_none_trusts_nobody(tmp_path: Path) -> None:
    config = written(tmp_path, "Host lab\nUserKnownHostsFile none\nGlobalKnownHostsFile none\n")
    target = target_of(config, "lab")
    assert (target.known_hosts, target.other_known_hosts) == (Path("/dev/null"), ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Host lab\nPort ssh\n", "line 2"),
        ("Match version 9\nPort 2\n", "line 1"),
        ("Host lab\nIdentityFile ${NO_SUCH_VARIABLE_HERE}/key\n", "NO_SUCH_VARIABLE_HERE"),
        ("Host lab\nProxyJump a@b@c:d\n", "ProxyJump"),
    ],
)
def test_what_cannot_be_understood_is_one_line_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SshConfigError, match=words) as error:
        target_of(written(tmp_path, text), "lab")
    assert "\n" not in str(error.value)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh to ask")
@pytest.mark.parametrize("alias", ["lab", "inner", "plain", "elsewhere"])
def test_openssh_reads_the_same(tmp_path: Path, alias: str) -> None:
    config = written(tmp_path)
    config.write_text(config.read_text().replace("    MadeUpKeyword yes\n", ""))
    said = subprocess.run(["ssh", "-G", "-F", str(config), alias], check=True, capture_output=True, text=True).stdout
    theirs = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    ours = settings_of(config, alias)
    assert (ours.host, ours.user, str(ours.port)) == (theirs["hostname"], theirs["user"], theirs["port"])
    assert ours.proxy_jump == theirs.get("proxyjump")
    assert (ours.proxy_command is None) == (theirs.get("proxycommand") is None)
    assert ours.host_key_alias == theirs.get("hostkeyalias")
