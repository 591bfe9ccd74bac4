"""What an SSH configuration says of a host, as far as it decides whom we reach, as whom, and which way.

Format: ssh_config(5). asyncssh's parser reads it; only the keywords below are taken over, and every other keyword in
the blocks that match is remembered by name, so that a check can say what has no effect here. Who is trusted and which
way the connection goes is decided here and not by the library, which opens jump hosts without our known hosts.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backends.hosts.ssh_target import SshTarget
from backends.quoting import quote

DEFAULT_PORT = 22
MAX_HOPS = 8

_DIRECTING = (
    "Host", "Match", "Include", "Tag", "HostName", "User", "Port", "IdentityFile", "IdentitiesOnly", "IdentityAgent",
    "ProxyJump", "ProxyCommand", "UserKnownHostsFile", "GlobalKnownHostsFile", "HostKeyAlias",
)  # fmt: skip
_ALGORITHMS = {
    "KexAlgorithms": "kex_algs",
    "Ciphers": "encryption_algs",
    "MACs": "mac_algs",
    "HostKeyAlgorithms": "server_host_key_algs",
}
_EXPANDED = frozenset({"IdentityFile", "IdentityAgent", "UserKnownHostsFile"})

_USUAL_USER_FILES = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_USUAL_GLOBAL_FILES = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


class SshConfigError(Exception):
    """A configuration cannot be used. One line: file, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What a configuration says of one host; None, or empty, where it says nothing.

    Attributes:
        alias: The name that was looked up.
        host: Name or address to connect to.
        user: Account.
        port: Port.
        keys: Private keys, in order.
        only_keys: IdentitiesOnly.
        agent: Socket of the agent, empty for none.
        proxy_jump: Hosts to go through, `user@host:port` separated by commas.
        proxy_command: Command that reaches the host, with %h, %p, %r and %% left in it.
        user_known_hosts: Known-hosts files of the user; empty where it says "none".
        global_known_hosts: Those of the machine.
        host_key_alias: Name in the known-hosts files.
        algorithms: As `SshTarget.algorithms`.
        ignored: Keywords in the blocks that match that have no effect here, as they are written, each once.
    """

    alias: str
    host: str
    user: str | None = None
    port: int | None = None
    keys: tuple[Path, ...] = ()
    only_keys: bool = False
    agent: str | None = None
    proxy_jump: str | None = None
    proxy_command: str | None = None
    user_known_hosts: tuple[Path, ...] | None = None
    global_known_hosts: tuple[Path, ...] | None = None
    host_key_alias: str | None = None
    algorithms: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()


def settings_of(config: Path | None, alias: str, *, user: str | None = None, port: int | None = None) -> HostSettings:
    """Look up a host.

    Args:
        config: The configuration; None, or a file that is not there, says nothing.
        alias: Name of the host as it is given to ssh.
        user: Account that is decided already.
        port: Port that is decided already.

    Raises:
        SshConfigError: When the file cannot be read or understood.
    """
    if config is None or not config.exists():
        return HostSettings(alias, alias, user, port)
    found, ignored = _parsed(config, alias, user, port)
    # The first of the two that is given counts, even where it says "none".
    way = next((key for key in found if key in ("ProxyJump", "ProxyCommand")), "")
    command = found.get("ProxyCommand") if way == "ProxyCommand" else None
    return HostSettings(
        alias=alias,
        host=found.get("HostName") or alias,
        user=found.get("User"),
        port=found.get("Port"),
        keys=_paths(found.get("IdentityFile", ())),
        only_keys=bool(found.get("IdentitiesOnly", False)),
        agent=_agent(found),
        proxy_jump=found.get("ProxyJump") if way == "ProxyJump" else None,
        proxy_command=None if command is None else _with_alias(command, alias),
        user_known_hosts=_paths(found["UserKnownHostsFile"]) if "UserKnownHostsFile" in found else None,
        global_known_hosts=_paths(found["GlobalKnownHostsFile"]) if "GlobalKnownHostsFile" in found else None,
        host_key_alias=found.get("HostKeyAlias"),
        algorithms=tuple((ours, found[theirs]) for theirs, ours in _ALGORITHMS.items() if found.get(theirs)),
        ignored=ignored,
    )


def _parsed(config: Path, alias: str, user: str | None, port: int | None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The keywords that we take over, in the order in which they were set, and the names of the others."""
    import asyncssh
    from asyncssh.config import SSHClientConfig

    every: Mapping[str, tuple[str, Any]] = SSHClientConfig._handlers
    ignored: dict[str, str] = {}

    class Handlers(dict[str, tuple[str, Any]]):
        def __missing__(self, word: str) -> tuple[str, Any]:
            ignored.setdefault(word, every[word][0] if word in every else word)
            raise KeyError(word)

    class Config(SSHClientConfig):
        _percent_expand = set(_EXPANDED)  # noqa: RUF012
        _handlers = Handlers({name.lower(): (name, every[name.lower()][1]) for name in (*_DIRECTING, *_ALGORITHMS)})

    # The library's own name of this one is spelt otherwise, and it reads it while it matches.
    Config._handlers["hostname"] = every["hostname"]
    try:
        parsed = Config.load(
            None, [config], False, False, False, getpass.getuser(), () if user is None else user, alias,
            () if port is None else port,
        )  # fmt: skip
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise SshConfigError(f"{config}: cannot be read ({error}); make it readable, or name another") from None
    except (asyncssh.ConfigParseError, asyncssh.Error) as error:
        advice = "correct it, or name another as gonogo.ssh_config in clusters.yaml (/dev/null for none)"
        raise SshConfigError(f"{error}; {advice}") from None
    options = dict(parsed.get_options(False))
    if "Hostname" in options:
        options["HostName"] = options.pop("Hostname")
    return options, tuple(ignored.values())


def _paths(words: Any) -> tuple[Path, ...]:
    return tuple(Path(word).expanduser() for word in words if word.lower() != "none")


def _agent(found: Mapping[str, Any]) -> str | None:
    if "IdentityAgent" not in found:
        return None
    agent = found["IdentityAgent"]
    if agent == "SSH_AUTH_SOCK":
        return None
    return "" if agent is None else str(Path(agent).expanduser())


def _with_alias(command: str, alias: str) -> str:
    """Fill in %n, the name as it was given; the other tokens are filled in where the command is run."""
    return re.sub(r"%(.)", lambda found: quote(alias) if found[1] == "n" else found[0], command)


def target_of(
    config: Path | None,
    alias: str,
    *,
    user: str | None = None,
    port: int | None = None,
    known_hosts: Path | None = None,
    key: Path | None = None,
    proxy_command: str | None = None,
    keepalive_s: float = 15.0,
) -> SshTarget:
    """Where and how to log in: what is given here, else what the configuration says, else SSH's defaults.

    Args:
        config: The configuration, None for none.
        alias: The host, as it is given to ssh.
        user: Account; without one anywhere, that of this process.
        port: Port.
        known_hosts: The only known-hosts file, for jump hosts as well.
        key: The only private key.
        proxy_command: Command that reaches the host; no jump host then.
        keepalive_s: Interval of keepalive messages.

    Raises:
        SshConfigError: When the configuration cannot be used, or goes through too many hosts.
    """
    return _target(config, alias, user, port, known_hosts, key, proxy_command, keepalive_s, ())


def _target(
    config: Path | None,
    alias: str,
    user: str | None,
    port: int | None,
    known_hosts: Path | None,
    key: Path | None,
    proxy_command: str | None,
    keepalive_s: float,
    before: tuple[str, ...],
) -> SshTarget:
    if alias in before or len(before) >= MAX_HOPS:
        way = " <- ".join((*before, alias))
        raise SshConfigError(f"{config}: ProxyJump goes through too many hosts ({way}); correct it")
    said = settings_of(config, alias, user=user, port=port)
    files = (known_hosts,) if known_hosts is not None else _known_hosts(said)
    jump = None
    if proxy_command is None and said.proxy_jump:
        jump = _jump(config, said.proxy_jump, known_hosts, keepalive_s, (*before, alias))
    return SshTarget(
        host=said.host,
        port=said.port or DEFAULT_PORT,
        user=said.user or getpass.getuser(),
        known_hosts=files[0],
        other_known_hosts=files[1:],
        key=key,
        proxy_command=proxy_command if proxy_command is not None else said.proxy_command,
        keepalive_s=keepalive_s,
        host_key_alias=said.host_key_alias,
        keys=() if key is not None else said.keys,
        only_keys=said.only_keys,
        agent=said.agent,
        jump=jump,
        algorithms=said.algorithms,
    )


def _jump(
    config: Path | None, hops: str, known_hosts: Path | None, keepalive_s: float, before: tuple[str, ...]
) -> SshTarget:
    """The last of the hosts to go through, reached through those before it; the first may have its own way."""
    first, *others = hops.split(",")
    carrier = _hop(config, first, known_hosts, keepalive_s, before)
    for hop in others:
        target = _hop(config, hop, known_hosts, keepalive_s, before)
        carrier = replace(target, jump=carrier, proxy_command=None)
    return carrier


def _hop(
    config: Path | None, hop: str, known_hosts: Path | None, keepalive_s: float, before: tuple[str, ...]
) -> SshTarget:
    user, host, port = _place(hop.strip())
    return _target(config, host, user, port, known_hosts, None, None, keepalive_s, before)


_PLACE = re.compile(r"(?:ssh://)?(?:([^@/]+)@)?(?:\[([^\]]+)\]|([^:@/\[\]]+))(?::(\d{1,5}))?/?", re.ASCII)


def _place(hop: str) -> tuple[str | None, str, int | None]:
    """User, host and port of `[user@]host[:port]`, the host of an IPv6 address in brackets."""
    found = _PLACE.fullmatch(hop)
    if found is None:
        raise SshConfigError(f"ProxyJump: expected [user@]host[:port], found {hop!r}; correct the SSH configuration")
    user, bracketed, plain, port = found.groups()
    return user, bracketed or plain, None if port is None else int(port)


def _known_hosts(said: HostSettings) -> tuple[Path, ...]:
    user, machine = said.user_known_hosts, said.global_known_hosts
    files = (
        *(_paths(_USUAL_USER_FILES) if user is None else user),
        *(_paths(_USUAL_GLOBAL_FILES) if machine is None else machine),
    )
    # "none" everywhere knows no host, and must never come to mean that any will do.
    return files or (Path("/dev/null"),)
