"""This machine as a host."""

from __future__ import annotations

import asyncio
import time

from backends.errors import CouldNotAsk
from backends.hosts.base import Link, LinkState
from backends.hosts.shell import Pipes, ShellHost


class LocalHost(ShellHost):
    """Runs scripts with `/bin/sh -s` on this machine, framed like on any other.

    Args:
        environment: Environment of the scripts; None for this process's own.
    """

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.name = "localhost"
        self._environment = environment

    @property
    def link(self) -> Link:
        """Always up."""
        return Link(LinkState.UP, time.monotonic())

    async def _exchange(self, stdin: bytes) -> tuple[bytes, bytes]:
        return await (await self._start(asyncio.subprocess.PIPE)).communicate(stdin)

    async def _open(self, stdin: bytes) -> Pipes:
        pipes = _LocalPipes(await self._start(asyncio.subprocess.DEVNULL))
        pipes.write(stdin)
        await pipes.drain()
        return pipes

    async def _start(self, stderr: int) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        try:
            return await asyncio.create_subprocess_exec(
                "/bin/sh", "-s", stdin=pipe, stdout=pipe, stderr=stderr, env=self._environment
            )
        except OSError as error:
            raise CouldNotAsk(self.name, "/bin/sh", str(error)) from None

    async def close(self) -> None:
        """Nothing to close."""


class _LocalPipes:
    """The open ends of a process of this machine."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    def write(self, data: bytes) -> None:
        self._stdin.write(data)

    async def drain(self) -> None:
        await self._stdin.drain()

    async def readline(self) -> bytes:
        return await self._stdout.readline()

    async def close(self) -> None:
        self._stdin.close()
        await self._process.wait()
