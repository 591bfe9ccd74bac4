"""A host over SSH: one connection, strict host keys, own deadlines, few channels.

asyncssh reports one lost link in four shapes, and an unseen exit status in none; all of it becomes CouldNotAsk
here. A refused login or a host key that is not the known one becomes NeedsOperator, and is not tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.base import Link, LinkState
from backends.hosts.framing import COMMAND
from backends.hosts.known_hosts import keys_of, read_known_hosts
from backends.hosts.proxy import Proxy, expand
from backends.hosts.shell import Pipes, ShellHost

MAX_CHANNELS = 8
"""OpenSSH allows 10 sessions on a connection by default."""

CHANNEL_PATIENCE_S = 10.0
"""How long to ask again for a channel that the server has no room for; a script's own time limit ends it sooner."""

CHANNEL_RETRY_S = 0.2

LOGIN_FLOOR_S = 2.0
"""Never log in more often than this, however often something asks."""

MAX_BACKOFF_S = 300.0

_LOGIN_ADVICE = "check user and ssh_key in clusters.yaml, or load the key into your agent"


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where and how to log in.

    Attributes:
        host: Name or address.
        port: Port.
        user: Account.
        known_hosts: Known-hosts file; its absence is "no key is known", never "any key will do".
        key: Private key file, None for the agent and the default keys.
        proxy_command: Command whose input and output reach the host, with OpenSSH's tokens (%h, %p, %r); None to
            connect directly.
        keepalive_s: Interval of keepalive messages; three unanswered ones end the connection.
        login_timeout_s: Limit for connection and login together.
    """

    host: str
    port: int
    user: str
    known_hosts: Path
    key: Path | None = None
    proxy_command: str | None = None
    keepalive_s: float = 15.0
    login_timeout_s: float = 30.0


class SshHost(ShellHost):
    """One login node.

    Args:
        target: Where and how to log in.
        monotonic: Seconds that only go forward.
        uniform: Random number between two bounds, for the jitter of the back-off.
    """

    def __init__(
        self,
        target: SshTarget,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.name = f"{target.user}@{target.host}:{target.port}"
        self._target = target
        self._monotonic = monotonic
        self._uniform = uniform
        self._link = Link(LinkState.DOWN, None)
        self._connection: Any = None
        self._login = asyncio.Lock()
        self._channels = asyncio.Semaphore(MAX_CHANNELS)
        self._failures = 0
        self._not_before = 0.0
        self._refused: NeedsOperator | None = None

    @property
    def link(self) -> Link:
        """The connection as it stands now."""
        return self._link

    def _set(self, state: LinkState, detail: str = "") -> None:
        seen = self._monotonic() if state is LinkState.UP else self._link.last_seen
        self._link = Link(state, seen, detail)

    async def _exchange(self, stdin: bytes) -> tuple[bytes, bytes]:
        import asyncssh

        connection = await self._connected()
        try:
            async with self._channels:
                process = await self._open_channel(connection)
                try:
                    stdout, stderr = await _all_said(process, stdin)
                finally:
                    process.close()
                # The server counts a session until it is closed on both sides.
                await process.wait_closed()
        except asyncssh.ChannelOpenError as error:
            if connection.is_closed():
                self._lost(str(error))
            raise CouldNotAsk(self.name, "open a channel", str(error)) from None
        except (OSError, asyncssh.Error) as error:
            self._lost(str(error))
            raise CouldNotAsk(self.name, "run a script", str(error)) from None
        if connection.is_closed():
            self._lost("the link was lost")
        else:
            self._set(LinkState.UP)
        return stdout or b"", stderr or b""

    async def _open(self, stdin: bytes) -> Pipes:
        import asyncssh

        connection = await self._connected()
        try:
            process = await self._open_channel(connection)
            pipes = _SshPipes(process)
            pipes.write(stdin)
            await pipes.drain()
        except (OSError, asyncssh.Error) as error:
            raise CouldNotAsk(self.name, "start a script", str(error)) from None
        self._set(LinkState.UP)
        return pipes

    async def _open_channel(self, connection: Any) -> Any:
        """Open a channel, again after a moment where the server has no room: nothing was run then.

        A server counts sessions that have ended until it has cleared them away, and others may share the limit.
        """
        import asyncssh

        until = self._monotonic() + CHANNEL_PATIENCE_S
        while True:
            try:
                return await connection.create_process(COMMAND, encoding=None, stdin=asyncssh.PIPE, request_pty=False)
            except asyncssh.ChannelOpenError:
                if connection.is_closed() or self._monotonic() >= until:
                    raise
                await asyncio.sleep(CHANNEL_RETRY_S)

    def _lost(self, detail: str) -> None:
        self._set(LinkState.DOWN, detail)
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    async def _connected(self) -> Any:
        if self._refused is not None:
            raise self._refused
        async with self._login:
            if self._connection is not None and not self._connection.is_closed():
                return self._connection
            if self._refused is not None:
                raise self._refused
            wait = self._not_before - self._monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            self._not_before = self._monotonic() + LOGIN_FLOOR_S
            self._set(LinkState.CONNECTING)
            self._connection = await self._connect()
            self._failures = 0
            self._set(LinkState.UP)
            return self._connection

    async def _connect(self) -> Any:
        import asyncssh

        target = self._target
        options = self._keys()
        known = self._known_hosts()
        with contextlib.ExitStack() as stack:
            proxy = None
            if target.proxy_command is not None:
                command = expand(target.proxy_command, host=target.host, port=target.port, user=target.user)
                proxy = stack.enter_context(Proxy(command))
                options["proxy_command"] = proxy.words
            try:
                async with asyncio.timeout(target.login_timeout_s):
                    return await asyncssh.connect(
                        target.host,
                        target.port,
                        username=target.user,
                        known_hosts=functools.partial(keys_of, known),
                        config=None,
                        keepalive_interval=target.keepalive_s,
                        keepalive_count_max=3,
                        login_timeout=target.login_timeout_s,
                        utf8_decode_errors="replace",
                        **options,
                    )
            except asyncssh.HostKeyNotVerifiable as error:
                raise self._needs_operator("host key", str(error), self._key_advice(known)) from None
            except (asyncssh.PermissionDenied, asyncssh.KeyImportError) as error:
                raise self._needs_operator("log in", str(error), _LOGIN_ADVICE) from None
            except (OSError, TimeoutError, asyncssh.Error) as error:
                said = str(error) or f"no login within {target.login_timeout_s:g} s"
                if proxy is not None and proxy.said():
                    said = f"{said}; the proxy command said: {proxy.said()}"
                raise self._failed(said) from None

    def _failed(self, said: str) -> CouldNotAsk:
        """A login that may succeed later: not before a pause, which grows."""
        self._failures += 1
        ceiling = min(MAX_BACKOFF_S, LOGIN_FLOOR_S * 2**self._failures)
        self._not_before = self._monotonic() + max(LOGIN_FLOOR_S, self._uniform(0, ceiling))
        self._set(LinkState.DOWN, said)
        return CouldNotAsk(self.name, "log in", said)

    def _keys(self) -> dict[str, Any]:
        """Which keys are offered: the one that is named, or the agent's and the default ones."""
        import asyncssh

        key = self._target.key
        if key is None:
            return {}
        try:
            asyncssh.read_private_key(str(key))
        except OSError as error:
            raise self._needs_operator("read the key", str(error), _LOGIN_ADVICE) from None
        except asyncssh.KeyImportError as error:
            if "assphrase" not in str(error) or not os.environ.get("SSH_AUTH_SOCK"):
                raise self._needs_operator("log in", f"{key}: {error}", _LOGIN_ADVICE) from None
            # We ask for no passphrases; the agent may have this key, opened.
            public = key.with_name(f"{key.name}.pub")
            return {"agent_identities": [str(public)] if public.exists() else None}
        return {"client_keys": [str(key)]}

    def _needs_operator(self, asked: str, said: str, advice: str) -> NeedsOperator:
        self._refused = NeedsOperator(self.name, asked, said, advice)
        self._set(LinkState.NEEDS_OPERATOR, said)
        return self._refused

    def _known_hosts(self) -> Any:
        path = self._target.known_hosts
        try:
            return read_known_hosts(path)
        except OSError as error:
            advice = f"make {path} readable, or name another file as known_hosts in clusters.yaml"
            raise self._needs_operator("read the known hosts", str(error), advice) from None

    def _key_advice(self, known: Any) -> str:
        """Whether the host is unknown or shows another key: asyncssh reports both alike."""
        place = f"{self._target.host} port {self._target.port}"
        if any(keys_of(known, self._target.host, "", self._target.port)[:2]):
            return f"STOP: {place} shows another key than {self._target.known_hosts} has; ask its administrators"
        return f"{place} is not in {self._target.known_hosts}; compare its fingerprint, then add it with ssh"

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
        self._set(LinkState.DOWN, "closed")


async def _all_said(process: Any, stdin: bytes) -> tuple[bytes | None, bytes | None]:
    """Send a command its input and wait for its end; one that ends without taking it (nologin) is still heard."""
    try:
        process.stdin.write(stdin)
        process.stdin.write_eof()
    except OSError:
        pass  # the channel is closed already, or the link is lost: waiting for the end tells which
    said: tuple[bytes | None, bytes | None] = await process.communicate()
    return said


class _SshPipes:
    """The open ends of a command on a channel. A conversation is a channel for as long as it lasts."""

    def __init__(self, process: Any) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        self._process.stdin.write(data)

    async def drain(self) -> None:
        import asyncssh

        try:
            await self._process.stdin.drain()
        except asyncssh.Error as error:
            raise OSError(str(error)) from None

    async def readline(self) -> bytes:
        import asyncssh

        try:
            return bytes(await self._process.stdout.readline())
        except asyncssh.Error as error:
            raise OSError(str(error)) from None

    async def close(self) -> None:
        self._process.close()
