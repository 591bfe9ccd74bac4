"""How OpenSSH itself reads an SSH configuration, where it is installed: `ssh -G`, which connects to nothing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from backends.hosts.ssh_config import HostSettings

TIMEOUT_S = 10.0


class OpensshError(Exception):
    """OpenSSH cannot use the configuration, or gave no answer. Its own words, one line."""


async def reading(config: Path, said: HostSettings) -> Mapping[str, tuple[str, ...]] | None:
    """OpenSSH's reading of the same host, values by keyword in small letters; None where there is no ssh.

    Args:
        config: The configuration.
        said: Our reading; user and port are left to the configuration.

    Raises:
        OpensshError: When ssh refuses the file, or does not answer.
    """
    program = shutil.which("ssh")
    if program is None:
        return None
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "-G",
            "-F",
            str(config),
            "--",
            said.alias,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise OpensshError(f"{program}: {error}") from None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            stdout, stderr = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise OpensshError(f"ssh -G gave no answer within {TIMEOUT_S:g} s") from None
    if process.returncode != 0:
        words = " ".join(stderr.decode("utf-8", "replace").split())
        raise OpensshError(words[:300] or f"ssh -G ended with {process.returncode}")
    found: dict[str, tuple[str, ...]] = {}
    for line in stdout.decode("utf-8", "replace").splitlines():
        word, _, value = line.partition(" ")
        found[word] = (*found.get(word, ()), value)
    return found


def differences(ours: HostSettings, theirs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Where the two readings lead elsewhere: one line each, empty where they agree.

    Args:
        ours: Our reading, with nothing decided beforehand.
        theirs: OpenSSH's.
    """
    pairs = [
        ("HostName", ours.host, _one(theirs, "hostname")),
        ("ProxyJump", ours.proxy_jump or "none", _one(theirs, "proxyjump")),
        ("ProxyCommand", "set" if ours.proxy_command else "none", _set(theirs, "proxycommand")),
        ("HostKeyAlias", ours.host_key_alias or "none", _one(theirs, "hostkeyalias")),
    ]
    if ours.user is not None:
        pairs.append(("User", ours.user, _one(theirs, "user")))
    pairs.append(("Port", str(ours.port or 22), _one(theirs, "port")))
    files = theirs.get("identityfile", ())
    # ssh -G leaves tokens as they stand.
    if ours.keys and "%" not in "".join(files):
        pairs.append(("IdentityFile", _paths(map(str, ours.keys)), _paths(files)))
    if ours.user_known_hosts:
        known = _one(theirs, "userknownhostsfile")
        if "%" not in known:
            pairs.append(("UserKnownHostsFile", _paths(map(str, ours.user_known_hosts)), _paths(known.split())))
    # Host names are compared as names: OpenSSH writes them in small letters.
    return tuple(f"{word}: {a} here, {b} for ssh" for word, a, b in pairs if a.lower() != b.lower())


def _one(found: Mapping[str, tuple[str, ...]], word: str) -> str:
    return found.get(word, ("none",))[0]


def _set(found: Mapping[str, tuple[str, ...]], word: str) -> str:
    return "none" if _one(found, word) == "none" else "set"


def _paths(words: Iterable[str]) -> str:
    return " ".join(str(Path(word).expanduser()) for word in words)
