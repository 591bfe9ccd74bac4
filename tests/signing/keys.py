"""Real keys in a real SSH agent, and files of allowed signers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from console.release.signing import NAMESPACE, Signer, Signers


def make_key(folder: Path, name: str) -> Path:
    """A fresh key pair.

    Returns:
        The public key's file.
    """
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return folder / f"{name}.pub"


@contextlib.contextmanager
def agent(folder: Path, askpass: str = "exit 1") -> Iterator[dict[str, str]]:
    """An SSH agent of its own.

    Args:
        folder: Where its socket lies.
        askpass: What it asks through where a key wants to be confirmed: a line of a shell.

    Yields:
        The environment in which it is found.
    """
    program = folder / "askpass"
    program.write_text(f"#!/bin/sh\n{askpass}\n")
    program.chmod(0o700)
    sock = folder / "agent"
    environ = {**os.environ, "SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(sock)], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "it says where it listens once it does"
            yield {**os.environ, "SSH_AUTH_SOCK": str(sock)}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def add(environ: dict[str, str], key: Path, *words: str) -> None:
    """Give an agent the other half of a public key, and take the file away: only the agent has it then."""
    private = key.with_suffix("")
    subprocess.run(["ssh-add", "-q", *words, str(private)], env=environ, check=True, capture_output=True)
    private.rename(private.with_name(f"{private.name}.kept"))


def signer(environ: dict[str, str], key: Path, timeout_s: float = 30.0) -> Signer:
    return Signer(key, environ, timeout_s=timeout_s)


def allow(folder: Path, *lines: tuple[str, str, Path]) -> Signers:
    """A file of allowed signers: principal, options, public key."""
    file = folder / "allowed_signers"
    file.write_text("".join(f"{who} {options} {key.read_text()}" for who, options, key in lines))
    return Signers(file)


OURS = f'namespaces="{NAMESPACE}"'
