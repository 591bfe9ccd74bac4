"""One login: host key held against what is known, keys shown once, and what the server wanted instead, in its words.

Nothing here tries again. A server that wants a password or a second factor is answered by the operator, once, where
one can be asked; else it gets no answer and is quoted. A jump host is logged in to like any other, by the same rules.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import asyncssh

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.deadlines import Deadlines
from backends.hosts.host_keys import HOST_KEY, KnownKeys, problem, take
from backends.hosts.known_hosts import fingerprint
from backends.hosts.login_client import LONGEST_PROMPT, Client
from backends.hosts.operator import NewHostKey, Operator, UnknownHostKey
from backends.hosts.private_keys import LOG_IN, LOGIN_ADVICE, shown_keys
from backends.hosts.proxy import Proxy, expand
from backends.hosts.ssh_target import SshTarget

__all__ = ["HOST_KEY", "LOG_IN", "Login", "fingerprint", "log_in", "look"]

_DIALOG_ADVICE = (
    "nobody can be asked here: take the run up in the console (`gonogo resume` without --headless), use a key that the "
    "server takes by itself (an agent's, a certificate), or reach the host through a connection of your own (ssh_proxy "
    "in clusters.yaml)"
)
_AGAIN_ADVICE = "nothing is answered twice: `gonogo resume` logs in once more, when you are ready to answer"

# Keys come first whatever order a server names, so that no prompt is begun where a key would do.
_METHODS = "gssapi-keyex,gssapi-with-mic,hostbased,publickey,keyboard-interactive,password"


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
        way = _Way(hops[-1] if hops else None, deadlines, operator)
        client = Client(target, alive, lost, operator)
        try:
            connection = await _connect(target, way, client)
        except UnknownHostKey as unknown:
            if operator is None:
                raise
            await take(unknown, operator)
            # Once more, to that key and no other: it is the known one now.
            client = Client(target, alive, lost, operator)
            connection = await _connect(target, way, client)
    return Login(connection, hops, client.accepted_key)


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
    client = Client(target, _ignore, _ignore_reason)
    async with _way(target, operator, deadlines) as hops:
        try:
            connection = await _connect(target, _Way(hops[-1] if hops else None, deadlines, None, bare=True), client)
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
        operator: Who is asked; None where nobody can be.
        bare: Nothing of ours is shown.
    """

    carrier: Any
    deadlines: Deadlines
    operator: Operator | None
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


async def _connect(target: SshTarget, way: _Way, client: Client) -> Any:
    known = KnownKeys(target)
    shown = {"client_keys": None, "agent_path": None} if way.bare else await shown_keys(target, way.operator)
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
            raise _refusal(target, client, _words_of(error, client)) from None
        except (OSError, TimeoutError, asyncssh.Error) as error:
            said = _words_of(error, client) or f"no login within {target.login_timeout_s:g} s"
            if proxy is not None and proxy.said():
                said = f"{said}; the proxy command said: {proxy.said()}"
            raise CouldNotAsk(target.name, LOG_IN, said) from None
        except ValueError as error:
            advice = "correct the list of algorithms in your SSH configuration, or leave it out"
            raise NeedsOperator(target.name, LOG_IN, str(error), advice) from None


def _words_of(error: Exception, client: Client) -> str:
    """The words of an error. A server's parting words could quote what somebody has typed: those are left out."""
    if client.answered and isinstance(error, asyncssh.DisconnectError):
        return f"the login ended after an answer was given ({type(error).__name__})"
    return str(error)


def _refusal(target: SshTarget, client: Client, said: str) -> NeedsOperator:
    """Refused: whether it was our keys, or an answer that only a person can give."""
    wanted = " or ".join(dict.fromkeys(client.wanted))
    if wanted:
        said = f"{said}; the server asked for {wanted}"
    banner = " ".join(client.banner.split())[:LONGEST_PROMPT]
    if banner:
        said = f"{said}; its banner: {banner}"
    if client.gave_up:
        return NeedsOperator(target.name, LOG_IN, f"{said}; {client.gave_up}", _AGAIN_ADVICE)
    only_dialog = wanted and not client.keys_refused
    return NeedsOperator(target.name, LOG_IN, said, _DIALOG_ADVICE if only_dialog else LOGIN_ADVICE)
