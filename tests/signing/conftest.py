from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from console.release.signing import Signer, Signers
from tests.signing.keys import OURS, add, agent, allow, make_key, signer

if not all(map(shutil.which, ("ssh-agent", "ssh-keygen", "ssh-add"))):
    pytest.skip("needs OpenSSH's agent and keys", allow_module_level=True)


@dataclass
class People:
    """Alice and Mallory with a key each, both in the agent; only Alice is allowed to sign.

    Attributes:
        environ: The environment in which their agent is found.
        alice: Alice's public key; `mallory` is Mallory's.
        signers: Whose signatures count.
    """

    environ: dict[str, str]
    folder: Path
    alice: Path
    mallory: Path
    signers: Signers

    def signer(self, key: Path | None = None) -> Signer:
        return signer(self.environ, key or self.alice)

    def revoke(self, key: Path) -> Signers:
        """Alice is allowed, and a key is on a revocation list."""
        file = self.folder / "revoked"
        subprocess.run(["ssh-keygen", "-q", "-k", "-f", str(file), str(key)], check=True)
        return Signers(self.signers.allowed, file)


@pytest.fixture
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    # A socket's path must be short.
    folder = tmp_path_factory.mktemp("k")
    with agent(folder) as environ:
        alice, mallory = make_key(folder, "alice"), make_key(folder, "mallory")
        add(environ, alice)
        add(environ, mallory)
        yield People(environ, folder, alice, mallory, allow(folder, ("alice", OURS, alice)))


@pytest.fixture
def set_up(people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of Alice, whose account has another name here: the signer's file names that one."""
    from console.release import folder

    allow(people.folder, (folder.account(), OURS, people.alice))
    config = tmp_path / "settings.toml"
    config.write_text(f'[signing]\nkey = "{people.alice}"\nallowed_signers = "{people.signers.allowed}"\n')
    monkeypatch.setenv("GONOGO_CONFIG", str(config))
    monkeypatch.setenv("SSH_AUTH_SOCK", people.environ["SSH_AUTH_SOCK"])
    assert os.path.exists(people.environ["SSH_AUTH_SOCK"])
    return config
