"""A TCP proxy on loopback that does to one connection, at one byte, what networks do to connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType

CHUNK = 65536


class Way(StrEnum):
    """Direction of bytes."""

    UP = "up"
    DOWN = "down"


class Do(StrEnum):
    """What happens once a byte has passed."""

    NOTHING = "nothing"
    RESET = "reset"
    CLOSE = "close"
    HALF = "half"
    SWALLOW = "swallow"
    HOLD = "hold"
    DELAY = "delay"
    SLICE = "slice"
    REFUSE = "refuse"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        do: RESET and CLOSE end both sides; HALF resets the client's side and leaves the server to wait; SWALLOW
            lets everything from there on vanish; HOLD keeps it back until `release`; DELAY adds `seconds` to each
            piece; SLICE sends single bytes; REFUSE resets a new connection at once; CALL calls and goes on.
        way: The direction whose bytes are counted and harmed.
        at: So many bytes pass unharmed, counted from `arm`.
        seconds: For DELAY.
    """

    do: Do
    way: Way = Way.UP
    at: int = 0
    seconds: float = 0.0


NO_FAULT = Fault(Do.NOTHING)


class _Link:
    """One connection through the proxy, from both ends."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server
        self.black: set[Way] = set()

    def harm(self, do: Do) -> None:
        """End or silence this connection, both ways."""
        match do:
            case Do.RESET:
                self.reset()
            case Do.CLOSE:
                self.close()
            case Do.HALF:
                self.black |= set(Way)
                reset(self.client)
            case _:
                self.black |= set(Way)

    def reset(self) -> None:
        for writer in (self.client, self.server):
            reset(writer)

    def close(self) -> None:
        for writer in (self.client, self.server):
            writer.close()


class FaultProxy:
    """A proxy in front of one server; use as an asynchronous context.

    A fault strikes once. What it has done to a connection stays when it is disarmed; new connections are sound.

    Args:
        host: Address of the server.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault = NO_FAULT
        self._call: Callable[[], None] = lambda: None
        self._released = asyncio.Event()
        self.struck = False
        self.passed = {Way.UP: 0, Way.DOWN: 0}
        self.port = 0

    async def __aenter__(self) -> FaultProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self.drop()

    def arm(self, fault: Fault, call: Callable[[], None] = lambda: None) -> None:
        """Let a fault strike, counting from now."""
        self._fault, self._call, self._released = fault, call, asyncio.Event()
        self.struck = False
        self.passed = {Way.UP: 0, Way.DOWN: 0}

    def harm(self, do: Do) -> bool:
        """Let a RESET, CLOSE, HALF or SWALLOW strike every connection now; returns whether there was one."""
        for link in self._links:
            link.harm(do)
        return bool(self._links)

    def disarm(self) -> None:
        """No new harm; what was held or swallowed stays so."""
        self._fault = NO_FAULT

    def release(self) -> None:
        """Let what is held go on its way."""
        self._released.set()

    async def drop(self) -> None:
        """End every connection: what was delivered stays delivered, and both ends read an end."""
        self.release()
        for link in self._links:
            link.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2)
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._fault.do is Do.REFUSE and not self.struck:
            self.struck = True
            return reset(client)
        back, server = await asyncio.open_connection(*self._address)
        link = _Link(client, server)
        for writer in (client, server):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._links.add(link)
        pumps = {
            asyncio.create_task(self._pump(link, Way.UP, reader, server)),
            asyncio.create_task(self._pump(link, Way.DOWN, back, client)),
        }
        self._tasks |= pumps
        try:
            await asyncio.wait(pumps)
        finally:
            self._tasks -= pumps
            self._links.discard(link)
            link.close()

    async def _pump(self, link: _Link, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK):
                if way not in link.black:
                    await self._forward(link, way, chunk, writer)
        # An end is swallowed too: the other side is left waiting until the link is dropped.
        if way in link.black:
            await self._released.wait()
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()

    async def _forward(self, link: _Link, way: Way, chunk: bytes, writer: asyncio.StreamWriter) -> None:
        fault = self._fault
        if fault.do is Do.NOTHING or fault.way is not way or (self.struck and fault.do not in (Do.DELAY, Do.SLICE)):
            return await self._send(way, chunk, writer)
        room = max(0, fault.at - self.passed[way])
        if len(chunk) < room:
            return await self._send(way, chunk, writer)
        await self._send(way, chunk[:room], writer)
        rest = chunk[room:]
        self.struck = True
        match fault.do:
            case Do.RESET | Do.CLOSE | Do.HALF:
                link.harm(fault.do)
            case Do.SWALLOW:
                link.black.add(way)
            case Do.HOLD:
                await self._released.wait()
                await self._send(way, rest, writer)
            case Do.DELAY:
                await asyncio.sleep(fault.seconds)
                await self._send(way, rest, writer)
            case Do.SLICE:
                for index in range(len(rest)):
                    await self._send(way, rest[index : index + 1], writer)
                    await asyncio.sleep(0)
            case _:
                self._call()
                await self._send(way, rest, writer)

    async def _send(self, way: Way, data: bytes, writer: asyncio.StreamWriter) -> None:
        if data:
            writer.write(data)
            await writer.drain()
            self.passed[way] += len(data)


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the other end sees a reset, whatever was on its way."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
