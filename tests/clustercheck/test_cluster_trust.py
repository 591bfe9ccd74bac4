"""`gonogo cluster trust`: a new host's key is taken only by its fingerprint, and a changed one not at all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import asyncssh
import pytest

from console import cli
from console.commands import trust as trust_module
from tests.clustercheck.checking import entry, written
from tests.sandbox.clusters import Cluster


@pytest.fixture
def known_hosts(tmp_path: Path) -> Path:
    return tmp_path / "mine" / "known_hosts"


@pytest.fixture
def trust(lab: Cluster, tmp_path: Path, known_hosts: Path):
    """Run the command on a cluster that nobody knows yet; gives its exit status."""
    path = written(tmp_path, entry(lab, known_hosts=str(known_hosts)))

    def run(*words: str, typed: str | None = None) -> int:
        with pytest.MonkeyPatch.context() as patch:
            if typed is not None:
                patch.setattr(trust_module, "interactive", lambda: True)
                patch.setattr("builtins.input", lambda prompt: typed)
            return cli.main(["cluster", "trust", "lab", "--clusters", str(path), *words])

    return run


def fingerprint(lab: Cluster) -> str:
    return asyncssh.read_public_key(str(lab.place.keys / "host_ed25519.pub")).get_fingerprint()


def test_the_fingerprint_is_shown_and_typing_it_takes_the_key(lab, trust, known_hosts, capsys) -> None:
    assert trust(typed=f" {fingerprint(lab)} ") == 0
    out = capsys.readouterr().out
    assert fingerprint(lab) in out
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in out
    assert f"appended to {known_hosts}" in out
    assert known_hosts.read_text().count("ssh-ed25519") == 1
    assert trust() == 0
    assert "known: ssh-ed25519" in capsys.readouterr().out
    assert known_hosts.read_text().count("ssh-ed25519") == 1


@pytest.mark.parametrize("typed", ["", "yes", "SHA256:", "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])
def test_anything_else_that_is_typed_refuses(trust, known_hosts, capsys, typed: str) -> None:
    assert trust(typed=typed) == 1
    assert not known_hosts.exists()


def test_a_fingerprint_that_was_given_is_compared_and_nobody_is_asked(lab, trust, known_hosts, capsys) -> None:
    assert trust("--fingerprint", "SHA256:other") == 1
    assert "REFUSED" in capsys.readouterr().out
    assert not known_hosts.exists()
    assert trust("--fingerprint", fingerprint(lab)) == 0
    assert known_hosts.exists()
    assert trust("--fingerprint", "SHA256:other") == 1
    assert "known with another key" in capsys.readouterr().out


def test_without_a_terminal_and_a_fingerprint_nothing_is_taken(lab, trust, known_hosts, capsys) -> None:
    assert trust("--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["answer"] == "refused"
    assert said["refused"] == [f"ssh-ed25519 {fingerprint(lab)}"]
    assert trust() == 1
    assert "--fingerprint" in capsys.readouterr().out
    assert not known_hosts.exists()


def test_a_changed_key_is_refused_before_anybody_is_asked(lab, trust, known_hosts, capsys) -> None:
    known_hosts.parent.mkdir()
    other = asyncssh.generate_private_key("ssh-ed25519")
    before = f"[{lab.info.host}]:{lab.info.port} {other.export_public_key().decode()}"
    known_hosts.write_text(before)
    assert trust("--fingerprint", fingerprint(lab)) == 4
    said = capsys.readouterr()
    assert "STOP" in said.err
    assert f"{other.get_fingerprint()} in {known_hosts} line 1" in said.err
    assert "ssh-keygen -R" in said.err
    assert "new host" not in said.out
    assert known_hosts.read_text() == before


def test_a_host_that_does_not_answer_is_no_new_host(lab, tmp_path, known_hosts, capsys) -> None:
    with asyncio.Runner() as runner:
        silent = runner.run(asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0))
        port = silent.sockets[0].getsockname()[1]
        silent.close()
    path = written(tmp_path, entry(lab, known_hosts=str(known_hosts), port=port))
    assert cli.main(["cluster", "trust", "--clusters", str(path), "--fingerprint", "SHA256:x"]) == 4
    assert "could not ask" in capsys.readouterr().err
    assert not known_hosts.exists()
