"""One visitor: the child process that draws a console for one page, from its start to its certain end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

LEAVE_SECONDS = 5.0
"""For so long a console may take to leave before it is killed."""

MOST_CELLS = 1000
"""No terminal is wider or higher than this, whatever a page says."""

TAKE_SECONDS = 10.0
"""A console that does not take what was typed for so long has hung, and its page is closed."""

LAST_WORDS = 4096
"""So many bytes are kept of what a console says on stderr."""


class Visitor(AppService):
    """The console of one page.

    Args:
        arguments: The child's command line.
        socket: The page's websocket.
        say: Takes what the child said on stderr: foreign text.
    """

    def __init__(self, arguments: Sequence[str], socket: web.WebSocketResponse, say: Callable[[str], None]) -> None:
        super().__init__(
            "",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._close,
            download_manager=DownloadManager(),
        )
        self._arguments = arguments
        self._socket = socket
        self._say = say
        self._child: Process | None = None
        self._tasks: tuple[asyncio.Task[None], asyncio.Task[bytes]] | None = None

    async def serve(self, width: int, height: int) -> None:
        """Start the child, and carry what the page and the child have for each other until the page is gone.

        Args:
            width: Columns of the page's terminal.
            height: Rows of it.
        """
        child = await self._open_app_process(_cells(width), _cells(height))
        self._child = child
        self._tasks = asyncio.create_task(self._show(child)), asyncio.create_task(_last_words(child))
        async for message in self._socket:
            if message.type is WSMsgType.TEXT and not await self._take(message.data):
                await self._socket.close(code=1003, message=b"this is no message of the console's page")

    async def end(self) -> None:
        """Ask the child to leave by closing its input; kill it where it does not."""
        child, tasks = self._child, self._tasks
        if child is None or tasks is None or child.stdin is None:
            return
        child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), LEAVE_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
        shown, words = tasks
        shown.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await shown
        text = (await words).decode("utf-8", "replace").strip()
        if text:
            self._say(text)

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the child without a shell, in a session of its own: ctrl-c at the server's terminal is ours."""
        child = await asyncio.create_subprocess_exec(
            *self._arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        self._process, self._stdin = child, child.stdin
        return child

    async def _close(self) -> None:
        await self._socket.close()

    async def _take(self, text: str) -> bool:
        """Carry one message of the page to the child; False where it is none."""
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                await self._carry(*json.loads(text))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, TimeoutError):
            return False
        except ConnectionError:
            pass  # the page is gone; the loop over its messages ends by itself
        return True

    async def _carry(self, kind: object, *rest: Any) -> None:
        if kind == "stdin":
            await self.send_bytes(rest[0].encode("utf-8", "replace"))
        elif kind == "resize":
            await self.set_terminal_size(_cells(rest[0]["width"]), _cells(rest[0]["height"]))
        elif kind == "ping":
            await self._socket.send_json(["pong", str(rest[0])])
        elif kind == "focus":
            await self.focus()
        elif kind == "blur":
            await self.blur()

    async def _show(self, child: Process) -> None:
        """Carry what the child draws to the page, until either is gone."""
        assert child.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await child.stdout.readuntil(b"__GANGLION__\n")
            while True:
                head = await child.stdout.readexactly(5)
                payload = await child.stdout.readexactly(int.from_bytes(head[1:], "big"))
                if head[:1] == b"D":
                    await self.on_data(payload)
        await self._socket.close()


async def _last_words(child: Process) -> bytes:
    """The end of what the child says on stderr."""
    assert child.stderr is not None
    kept = b""
    while part := await child.stderr.read(LAST_WORDS):
        kept = (kept + part)[-LAST_WORDS:]
    return kept


def _cells(number: object) -> int:
    """A width or height that can be drawn.

    Raises:
        TypeError: When it is neither a whole number nor text.
        ValueError: When the text is no whole number.
    """
    if not isinstance(number, (int, str)):
        raise TypeError("a width or height is a whole number")
    return max(1, min(int(number), MOST_CELLS))
