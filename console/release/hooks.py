"""Sends notices to the hooks that the operator set: a webhook, a command. Nothing ever waits for one.

A notice is put into a bounded queue and sent by a task of its own, each hook within its own deadline. One that fails is
not sent again: its problem is shown. What does not fit into the queue is dropped, and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from console.release.canonical import canonical
from console.settings import Notify, Webhook

DEADLINE_S = 10.0
"""So long a hook may take, from the look-up of its name to the end of its answer."""

LAST_S = 10.0
"""So long what is still unsent is sent for after the release ended."""

MOST = 100
"""So many notices wait at most."""

_ANSWER_BYTES = 65536


class HookError(Exception):
    """A hook did not do what it should. One line, without the secret parts of its address."""


class Hooks:
    """The hooks of one release.

    Args:
        notify: Which hooks there are.
        problem: Called with each new problem, a line.
        context: TLS settings of webhooks; None for the usual, which verify the server. For tests, which bring a CA.
        deadline_s: How long a hook may take, seconds.
    """

    def __init__(
        self,
        notify: Notify,
        problem: Callable[[str], None],
        *,
        context: ssl.SSLContext | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._notify = notify
        self._problem = problem
        self._context = context
        self._deadline_s = deadline_s
        self._queue: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.sent = 0
        self.failed = 0
        self.dropped = 0

    def send(self, notice: Mapping[str, Any]) -> None:
        """Put a notice into the queue, or drop it where the queue is full; never waits."""
        if self._notify.webhook is None and not self._notify.command:
            return
        if len(self._queue) >= MOST:
            self.dropped += 1
            self._problem(f"notify: {self.dropped} notices were dropped: {MOST} wait for a hook already")
            return
        self._queue.append(canonical(dict(notice)))
        self._idle.clear()
        self._more.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send for as long as this is entered, and a little longer for what is still in the queue."""
        task = asyncio.create_task(self._run(), name="hooks")
        try:
            yield
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_S):
                    await self._idle.wait()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if self._queue:
                self.dropped += len(self._queue)
                self._problem(f"notify: {self.dropped} notices were dropped: the release ended before they were sent")

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            while self._queue:
                await self._one(self._queue[0])
                self._queue.popleft()
            self._more.clear()
            self._idle.set()

    async def _one(self, data: bytes) -> None:
        webhook, command = self._notify.webhook, self._notify.command
        works = []
        if webhook is not None:
            works.append((f"webhook {webhook}", post(webhook, data, self._context)))
        if command:
            works.append((f"command {command[0]}", call(command, data)))
        for name, work in works:
            try:
                async with asyncio.timeout(self._deadline_s):
                    await work
                self.sent += 1
            except TimeoutError:
                self._fail(f"notify: {name}: not done within {self._deadline_s:g} s")
            except (HookError, OSError, ValueError, asyncio.IncompleteReadError) as error:
                # Texts of libraries may hold the address; ours do not.
                said = str(error) if isinstance(error, HookError) else _words(error)
                self._fail(f"notify: {name}: {said}")

    def _fail(self, text: str) -> None:
        self.failed += 1
        self._problem(text)


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


async def post(webhook: Webhook, data: bytes, context: ssl.SSLContext | None = None) -> None:
    """Post JSON to a webhook. Redirects are not followed: they could lead anywhere.

    Args:
        webhook: Its address.
        data: The JSON.
        context: TLS settings, None for the usual.

    Raises:
        HookError: When the answer is not one of success.
        OSError: When there is no connection; ssl.SSLError for a certificate that is not the host's.
    """
    url = urlsplit(webhook.whole)
    secure = url.scheme == "https"
    tls = (context or ssl.create_default_context()) if secure else None
    port = url.port or (443 if secure else 80)
    host = url.hostname or ""
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=_ANSWER_BYTES)
    try:
        path = f"{url.path or '/'}{'?' + url.query if url.query else ''}"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\nUser-Agent: gonogo\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode("ascii") + data)
        await writer.drain()
        words = (await reader.readline()).decode("ascii", "replace").split(None, 2)
    finally:
        writer.transport.abort()
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdecimal():
        raise HookError("its answer is not one of HTTP")
    if not 200 <= int(words[1]) < 300:
        raise HookError(f"it answered {words[1][:3]}, expected 2xx")


async def call(command: tuple[str, ...], data: bytes) -> None:
    """Run a command with the JSON on its standard input.

    Raises:
        HookError: When it does not end with exit status 0.
        OSError: When it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        await process.communicate(data)
    finally:
        if process.returncode is None:
            # Whatever it started goes with it: a hook that is over its time is over.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode != 0:
        raise HookError(f"exit status {process.returncode}")
