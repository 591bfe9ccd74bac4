"""One login: host key held against what is known, keys shown once, and what the server wanted instead, in its words.

Nothing here tries again. A server that wants a password or a second factor gets no answer and is quoted, so that the
operator knows what it was; a jump host is logged in to like any other host, by the same rules.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.deadlines import Deadlines
from backends.hosts.host_keys import HOST_KEY, KnownKeys, problem, take
from backends.hosts.known_hosts import fingerprint
from backends.hosts.operator import NewHostKey, Operator, UnknownHostKey
from backends.hosts.proxy import Proxy, expand
from backends.hosts.ssh_target import SshTarget

__all__ = ["HOST_KEY", "LOG_IN", "Login", "fingerprint", "log_in", "look"]

LOG_IN = "log in"
"""What a NeedsOperator error of a login was about, beside the host key."""

_LOGIN_ADVICE = "check user and ssh_key in clusters.yaml, or load the key into your agent"
_DIALOG_ADVICE = (
    "gonogo answers no prompts: use a key that the server takes by itself (an agent's, a certificate), "
    "or reach the host through a connection of your own (ssh_proxy in clusters.yaml)"
)

# Keys come first whatever order a server names, so that no prompt is begun where a key would do.
_METHODS = "gssapi-keyex,gssapi-with-mic,hostbased,publickey,keyboard-interactive,password"
_LONGEST_PROMPT = 200


@dataclass(frozen=True, slots=True)
class Login:
    """A connection that is logged in.

    Attributes:
        connection: asyncssh's own.
        hops: Connections to the jump hosts that carry it, the nearest to us first.
        host_key: The accepted host key, as `fingerprint` writes it.
    """

    connection: Any
    hops: tuple[Any, ...]
    host_key: str


class _Client(asyncssh.SSHClient):
    """Hears what happens on a connection, and says yes to nothing.

    Args:
        alive: Called whenever the host has sent something.
        lost: Called with the reason when the connection has ended.
    """

    def __init__(self, alive: Callable[[], None], lost: Callable[[str], None]) -> None:
        self._alive = alive
        self._lost = lost
        self.shown_key: Any = None
        self._connection: Any = None
        self.keys_refused = False
        self.wanted: list[str] = []
        self.banner = ""

    def connection_made(self, conn: Any) -> None:
        self._connection = conn
        # The library resets its keepalive timer at the same place, so answers to keepalives count here too.
        receive = conn.data_received

        def data_received(data: bytes, datatype: Any = None) -> None:
            self._alive()
            receive(data, datatype)

        conn.data_received = data_received

    @property
    def accepted_key(self) -> str:
        """The host key that was known and proven, empty before that."""
        key = self._connection.get_server_host_key() if self._connection is not None else None
        return "" if key is None or self.shown_key is not None else fingerprint(key)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(str(exc) if exc is not None else "the link was closed")

    def validate_host_public_key(self, host: str, addr: str, port: int, key: Any) -> bool:
        # Called for an unknown key and for a changed one alike.
        self.shown_key = key
        return False

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner = msg

    def public_key_auth_requested(self) -> Any:
        self.keys_refused = True
        return None

    def password_auth_requested(self) -> Any:
        self.wanted.append("a password")
        return None

    def kbdint_auth_requested(self) -> Any:
        if self.keys_refused:
            # It would only ask for the password instead, and count a wrong one.
            self.wanted.append("a dialog (keyboard-interactive)")
            return None
        return ""

    def kbdint_challenge_received(self, name: str, instructions: str, lang: str, prompts: Any) -> Any:
        if not prompts:
            return []
        words = " / ".join(" ".join(f"{instructions} {prompt}".split()) for prompt, _ in prompts)
        self.wanted.append(f'an answer to "{words[:_LONGEST_PROMPT]}"')
        return None


async def log_in(
    target: SshTarget,
    *,
    alive: Callable[[], None],
    lost: Callable[[str], None],
    operator: Operator | None = None,
    deadlines: Deadlines | None = None,
) -> Login:
    """Log in once, over its jump hosts where it has some.

    Args:
        target: Where and how.
        alive: Called whenever the host itself has sent something.
        lost: Called with the reason when the connection has ended.
        operator: Who may take the key of a new host; None where nobody can be asked.
        deadlines: The clocks that stand still while they are asked.

    Raises:
        NeedsOperator: When trying again will not help: host key, refused keys, a prompt, a file that cannot be read.
        CouldNotAsk: When it may succeed later.
    """
    deadlines = deadlines or Deadlines()
    async with _way(target, operator, deadlines) as hops:
        way = _Way(hops[-1] if hops else None, deadlines)
        try:
            connection = await _connect(target, way, _Client(alive, lost))
        except UnknownHostKey as unknown:
            if operator is None:
                raise
            await take(unknown, operator)
            # Once more, to that key and no other: it is the known one now.
            connection = await _connect(target, way, _Client(alive, lost))
    return Login(connection, hops, fingerprint(connection.get_server_host_key()))


async def look(target: SshTarget, *, operator: Operator | None = None) -> NewHostKey | str:
    """Ask a host for its key, and nothing else of it: no key of ours is shown and nothing is answered.

    Args:
        target: Where; its jump hosts are logged in to.
        operator: Who may take the key of a new jump host.

    Returns:
        The key of a new host; or, of a known one, the fingerprint.

    Raises:
        NeedsOperator: As `log_in`, for a changed or revoked key too.
        CouldNotAsk: When there was no answer.
    """
    deadlines = Deadlines()
    client = _Client(_ignore, _ignore_reason)
    async with _way(target, operator, deadlines) as hops:
        try:
            connection = await _connect(target, _Way(hops[-1] if hops else None, deadlines, bare=True), client)
        except UnknownHostKey as unknown:
            return unknown.key
        except NeedsOperator as error:
            if error.asked != LOG_IN or not client.accepted_key:
                raise
            return client.accepted_key
        finally:
            for hop in reversed(hops):
                hop.abort()
        connection.abort()
    return client.accepted_key


@dataclass(frozen=True, slots=True)
class _Way:
    """How a connection is made, beside what the target says.

    Attributes:
        carrier: Connection to a jump host, None for none.
        deadlines: Clocks for its time limit.
        bare: Nothing of ours is shown.
    """

    carrier: Any
    deadlines: Deadlines
    bare: bool = False


@contextlib.asynccontextmanager
async def _way(target: SshTarget, operator: Operator | None, deadlines: Deadlines) -> AsyncIterator[tuple[Any, ...]]:
    """Log in to the jump hosts of a target; what fails afterwards ends these connections."""
    hops: tuple[Any, ...] = ()
    if target.jump is not None:
        jump = target.jump
        carrier = await log_in(jump, alive=_ignore, lost=_ignore_reason, operator=operator, deadlines=deadlines)
        hops = (*carrier.hops, carrier.connection)
    try:
        yield hops
    except BaseException:
        for hop in reversed(hops):
            hop.abort()
        raise


def _ignore() -> None:
    """A jump host's sign of life says nothing of the host behind it."""


def _ignore_reason(reason: str) -> None:
    """The connection that it carries ends with it."""


async def _connect(target: SshTarget, way: _Way, client: _Client) -> Any:
    known = KnownKeys(target)
    shown = {"client_keys": None, "agent_path": None} if way.bare else _keys(target)
    options: dict[str, Any] = {**shown, **dict(target.algorithms)}
    with contextlib.ExitStack() as stack:
        proxy = None
        if way.carrier is not None:
            options["tunnel"] = way.carrier
        elif target.proxy_command is not None:
            command = expand(target.proxy_command, host=target.host, port=target.port, user=target.user)
            proxy = stack.enter_context(Proxy(command))
            options["proxy_command"] = proxy.words
        try:
            async with way.deadlines.within(target.login_timeout_s):
                return await asyncssh.connect(
                    target.host,
                    target.port,
                    username=target.user,
                    known_hosts=known,
                    config=None,
                    client_factory=lambda: client,
                    preferred_auth="none" if way.bare else _METHODS,
                    keepalive_interval=target.keepalive_s,
                    keepalive_count_max=3,
                    # The library's own limit cannot stand still; ours covers the same.
                    login_timeout=0,
                    utf8_decode_errors="replace",
                    **options,
                )
        except (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed) as error:
            raise problem(target, known, client.shown_key, error) from None
        except (asyncssh.PermissionDenied, asyncssh.KeyImportError) as error:
            raise _refusal(target, client, str(error)) from None
        except (OSError, TimeoutError, asyncssh.Error) as error:
            said = str(error) or f"no login within {target.login_timeout_s:g} s"
            if proxy is not None and proxy.said():
                said = f"{said}; the proxy command said: {proxy.said()}"
            raise CouldNotAsk(target.name, LOG_IN, said) from None
        except ValueError as error:
            advice = "correct the list of algorithms in your SSH configuration, or leave it out"
            raise NeedsOperator(target.name, LOG_IN, str(error), advice) from None


def _refusal(target: SshTarget, client: _Client, said: str) -> NeedsOperator:
    """Refused: whether it was our keys, or an answer that only a person can give."""
    wanted = " or ".join(dict.fromkeys(client.wanted))
    if wanted:
        said = f"{said}; the server asked for {wanted}"
    banner = " ".join(client.banner.split())[:_LONGEST_PROMPT]
    if banner:
        said = f"{said}; its banner: {banner}"
    only_dialog = wanted and not client.keys_refused
    return NeedsOperator(target.name, LOG_IN, said, _DIALOG_ADVICE if only_dialog else _LOGIN_ADVICE)


def _keys(target: SshTarget) -> Mapping[str, Any]:
    """Which keys are shown: the one that is named, those of the configuration, or the agent's and the default ones."""
    agent = os.environ.get("SSH_AUTH_SOCK", "") if target.agent is None else target.agent
    options: dict[str, Any] = {"agent_path": agent or None}
    if target.key is not None:
        return _named_key(target, target.key, options)
    if not target.keys:
        return options
    opened, locked = [], []
    for path in target.keys:
        try:
            asyncssh.read_private_key(str(path))
        except OSError:
            continue
        except asyncssh.KeyImportError:
            locked.append(path)
        else:
            opened.append(str(path))
    if not opened and not agent:
        names = ", ".join(map(str, target.keys))
        said = f"no key that can be used: {names}{' (with a passphrase)' if locked else ''}"
        raise NeedsOperator(target.name, LOG_IN, said, _LOGIN_ADVICE)
    options["client_keys"] = opened or None
    if target.only_keys:
        options["agent_identities"] = [str(public) for path in target.keys if (public := _public(path)).exists()]
        if not options["agent_identities"]:
            options.update(agent_path=None, agent_identities=None)
    return options


def _public(private: Path) -> Path:
    return private.with_name(f"{private.name}.pub")


def _named_key(target: SshTarget, key: Path, options: dict[str, Any]) -> Mapping[str, Any]:
    try:
        asyncssh.read_private_key(str(key))
    except OSError as error:
        raise NeedsOperator(target.name, "read the key", str(error), _LOGIN_ADVICE) from None
    except asyncssh.KeyImportError as error:
        if "assphrase" not in str(error) or not options["agent_path"]:
            raise NeedsOperator(target.name, LOG_IN, f"{key}: {error}", _LOGIN_ADVICE) from None
        # We ask for no passphrases; the agent may have this key, opened.
        return {**options, "agent_identities": [str(_public(key))] if _public(key).exists() else None}
    return {"client_keys": [str(key)], "agent_path": None}
