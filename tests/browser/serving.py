"""Runs `gonogo serve` as an operator does, and is a browser without a screen to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

DEADLINE = 40.0


class Serving:
    """A server that runs, and the link that it printed.

    Attributes:
        link: The link; its token stands behind the #.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, f"no link: {line!r}"
        self.link = line.split()[-1]

    @property
    def origin(self) -> str:
        return self.link.partition("/enter")[0]

    @property
    def token(self) -> str:
        return self.link.partition("#")[2]

    def children(self) -> list[int]:
        """The consoles that the server has started and that still run."""
        return children_of(self.process.pid)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)


@contextmanager
def serving(*arguments: object, **environment: str) -> Iterator[Serving]:
    """A server for one test."""
    command = [sys.executable, "-m", "console", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        yield Serving(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE)
        assert process.stdout is not None
        process.stdout.close()


def children_of(pid: int) -> list[int]:
    """The children of a process that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(parent) == pid and state != "Z":
                found.append(int(entry.name))
    return found


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    import asyncio

    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        await asyncio.sleep(0.02)


class Browser:
    """A browser that has come in: its cookie, and where it may look."""

    def __init__(self, client: aiohttp.ClientSession, origin: str, cookie: str, place: str) -> None:
        self.client, self.origin, self.cookie, self.place = client, origin, cookie, place

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.client.get(self.origin + path, headers={"Cookie": f"gonogo={self.cookie}", **headers}) as got:
            return got.status, (await got.read()).decode("utf-8", "replace")

    async def socket(self, **headers: str) -> aiohttp.ClientWebSocketResponse:
        """The websocket of a page; raises WSServerHandshakeError where it is refused."""
        own = {"Cookie": f"gonogo={self.cookie}", "Origin": self.origin, **headers}
        return await self.client.ws_connect(f"{self.origin}{self.place}ws?width=100&height=30", headers=own)


async def come_in(client: aiohttp.ClientSession, server: Serving) -> Browser:
    """Exchange the link for the pass."""
    headers = {"Origin": server.origin}
    async with client.post(f"{server.origin}/enter", data=server.token, headers=headers) as got:
        assert got.status == 200, await got.text()
        cookie = got.cookies["gonogo"]
        place = await got.text()
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", place)
        return Browser(client, server.origin, cookie.value, place)


async def read_until(socket: aiohttp.ClientWebSocketResponse, words: str) -> str:
    """What a console draws, until it has drawn these words."""
    drawn = ""
    deadline = time.monotonic() + DEADLINE
    while words not in drawn:
        assert time.monotonic() < deadline, f"never drawn: {words!r}; but {drawn[-500:]!r}"
        message = await socket.receive(timeout=DEADLINE)
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), f"closed: {drawn[-500:]!r}"
        if message.type is aiohttp.WSMsgType.BINARY:
            drawn += message.data.decode("utf-8", "replace")
    return drawn
