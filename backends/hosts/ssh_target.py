"""Where and how to log in, as one frozen record; no library of SSH is needed to make one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where and how to log in.

    Attributes:
        host: Name or address.
        port: Port.
        user: Account.
        known_hosts: Known-hosts file; its absence is "no key is known", never "any key will do".
        key: Private key file that the operator named, which alone is shown; None for what follows below.
        proxy_command: Command whose input and output reach the host, with OpenSSH's tokens (%h, %p, %r); None to
            connect directly.
        keepalive_s: Interval of keepalive messages; three unanswered ones end the connection.
        login_timeout_s: Limit for connection and login together.
        other_known_hosts: Further known-hosts files, read like the first.
        host_key_alias: Name under which the host's key is known, None for the host's own.
        keys: Private key files that an SSH configuration names; empty for SSH's default ones.
        only_keys: No key of the agent is shown but those in `keys`.
        agent: Socket of the agent; None for the one in the environment, empty for no agent.
        jump: Host through which this one is reached, None to connect directly.
        algorithms: What is negotiated, as pairs of (a parameter of asyncssh, OpenSSH's list of names).
    """

    host: str
    port: int
    user: str
    known_hosts: Path
    key: Path | None = None
    proxy_command: str | None = None
    keepalive_s: float = 15.0
    login_timeout_s: float = 30.0
    other_known_hosts: tuple[Path, ...] = ()
    host_key_alias: str | None = None
    keys: tuple[Path, ...] = ()
    only_keys: bool = False
    agent: str | None = None
    jump: SshTarget | None = None
    algorithms: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name that the operator knows."""
        return f"{self.user}@{self.host}:{self.port}"

    @property
    def known_as(self) -> str:
        """The name under which known-hosts files have the host."""
        return self.host_key_alias or self.host
