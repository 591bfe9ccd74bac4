"""A host over SSH: one connection, strict host keys, own deadlines, few channels.

asyncssh reports one lost link in four shapes, and an unseen exit status in none; all of it becomes CouldNotAsk
here. A refused login or a host key that is not the known one becomes NeedsOperator, and is not tried again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.base import Link, LinkState
from backends.hosts.deadlines import Deadlines, Patient
from backends.hosts.framing import COMMAND, frame, unframe
from backends.hosts.operator import Operator
from backends.hosts.shell import Pipes, ShellHost
from backends.hosts.ssh_target import SshTarget

__all__ = ["SshHost", "SshTarget"]

MAX_CHANNELS = 8
"""OpenSSH allows 10 sessions on a connection by default."""

CHANNEL_PATIENCE_S = 10.0
"""How long to ask again for a channel that the server has no room for; a script's own time limit ends it sooner."""

CHANNEL_RETRY_S = 0.2

LOGIN_FLOOR_S = 2.0
"""Never log in more often than this, however often something asks."""

MAX_BACKOFF_S = 300.0

SUSPECT_GRACE_S = 5.0
"""How long an answer to a keepalive message may take until the link counts as suspect."""


class SshHost(ShellHost):
    """One login node.

    Args:
        target: Where and how to log in.
        monotonic: Seconds that only go forward.
        uniform: Random number between two bounds, for the jitter of the back-off.
        operator: Who is asked what only a person can answer; None where nobody can be asked.
    """

    def __init__(
        self,
        target: SshTarget,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
        operator: Operator | None = None,
    ) -> None:
        self.name = target.name
        self._target = target
        self._monotonic = monotonic
        self._uniform = uniform
        self._deadlines = Deadlines()
        self._operator = Patient(operator, self._deadlines) if operator is not None else None
        self._link = Link(LinkState.DOWN, None)
        self._seen: float | None = None
        self._connection: Any = None
        self._hops: tuple[Any, ...] = ()
        self._latest: object = None
        self._host_key: str | None = None
        self._login = asyncio.Lock()
        self._channels = asyncio.Semaphore(MAX_CHANNELS)
        self._failures = 0
        self._not_before = 0.0
        self._refused: NeedsOperator | None = None

    @property
    def link(self) -> Link:
        """The connection as it stands now; up, but suspect where even a keepalive message was not answered."""
        link = self._link
        if self._deadlines.asking:
            return Link(LinkState.CONNECTING, self._seen, "waits for the operator's answer")
        if link.state is not LinkState.UP or self._seen is None:
            return Link(link.state, self._seen, link.detail)
        silent = self._monotonic() - self._seen
        interval = self._target.keepalive_s
        if silent <= interval + min(interval, SUSPECT_GRACE_S):
            return Link(LinkState.UP, self._seen, link.detail)
        return Link(LinkState.SUSPECT, self._seen, f"no sign of life for {silent:.0f} s")

    @property
    def host_key(self) -> str | None:
        """The host's accepted key as `ssh-keygen -l` writes it; None before a login."""
        return self._host_key

    @property
    def reached(self) -> bool:
        """Whether the host itself has ever sent anything."""
        return self._seen is not None

    def _within(self, seconds: float) -> AbstractAsyncContextManager[None]:
        return self._deadlines.within(seconds)

    def _set(self, state: LinkState, detail: str = "") -> None:
        self._link = Link(state, None, detail)

    def _alive(self) -> None:
        self._seen = self._monotonic()

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
        self._drop()

    def _heard_of_loss(self, login: object, reason: str) -> None:
        """A connection ended, maybe while nobody asked anything: then nothing else would tell."""
        if login is self._latest and self._link.state is LinkState.UP:
            self._lost(reason)

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
            await self._ask_before_asking()
            self._not_before = self._monotonic() + LOGIN_FLOOR_S
            self._set(LinkState.CONNECTING)
            login = await self._log_in()
            self._connection, self._hops, self._host_key = login.connection, login.hops, login.host_key
            self._failures = 0
            self._set(LinkState.UP)
            return self._connection

    async def _ask_before_asking(self) -> None:
        """A login that asked for something is begun again only when the operator says so.

        A server may send a code or count an attempt as soon as the login begins, whoever is there.
        """
        if self._operator is None or not self._operator.asked:
            return
        why = self._link.detail or "the link was lost"
        if not await self._operator.logs_in_again(self.name, why):
            advice = "`gonogo resume` logs in again, when you are ready to answer"
            self._refuse(NeedsOperator(self.name, "log in", f"no new login was wanted ({why})", advice))

    def _refuse(self, error: NeedsOperator) -> NoReturn:
        self._refused = error
        self._set(LinkState.NEEDS_OPERATOR, f"{error.said}; {error.advice}")
        raise error

    async def _log_in(self) -> Any:
        from backends.hosts.login import log_in

        self._drop()
        # What ends late must not be taken for the end of what came after it.
        self._latest = login = object()
        try:
            return await log_in(
                self._target,
                alive=self._alive,
                lost=lambda reason: self._heard_of_loss(login, reason),
                operator=self._operator,
                deadlines=self._deadlines,
            )
        except NeedsOperator as error:
            self._refuse(error)
        except CouldNotAsk as error:
            self._back_off(error.said)
            raise
        except asyncio.CancelledError:
            self._back_off("whoever asked did not wait for the login")
            raise

    def _back_off(self, said: str) -> None:
        """A login that may succeed later: not before a pause, which grows."""
        self._failures += 1
        ceiling = min(MAX_BACKOFF_S, LOGIN_FLOOR_S * 2**self._failures)
        self._not_before = self._monotonic() + max(LOGIN_FLOOR_S, self._uniform(0, ceiling))
        self._set(LinkState.DOWN, said)

    def _drop(self) -> None:
        """End the connection, then what carries it."""
        ended = [self._connection, *reversed(self._hops)] if self._connection is not None else []
        self._connection, self._hops = None, ()
        for connection in ended:
            connection.abort()

    async def noise(self, timeout: float = 30.0) -> tuple[bytes, bytes]:
        """What the login prints around the output of a script: what comes before it, and what comes after.

        Raises:
            CouldNotAsk: When there is no answer in its frame.
        """
        framed = frame(":")
        try:
            async with self._within(timeout):
                stdout, stderr = await self._exchange(framed.stdin)
        except TimeoutError:
            raise CouldNotAsk(self.name, "run a script", f"no answer within {timeout:g} s") from None
        if unframe(framed.mark, stdout, stderr) is None:
            said = (stderr + stdout).decode("utf-8", "replace").strip()[-300:]
            raise CouldNotAsk(self.name, "run a script", said or "the link was lost before the exit status arrived")
        before = stdout.partition(f"BEGIN-{framed.mark}\n".encode())[0]
        after = stdout.partition(f"\nEND-{framed.mark} 0\n".encode())[2]
        return before, after

    async def close(self) -> None:
        """Close the connection."""
        self._set(LinkState.DOWN, "closed")
        self._drop()


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
