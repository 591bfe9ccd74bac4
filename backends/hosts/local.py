"""This machine as a host."""

from __future__ import annotations

import asyncio
import time

from backends.errors import CouldNotAsk
from backends.hosts.base import Link, LinkState
from backends.hosts.shell import ShellHost


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
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-s",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
            )
        except OSError as error:
            raise CouldNotAsk(self.name, "/bin/sh", str(error)) from None
        return await process.communicate(stdin)

    async def close(self) -> None:
        """Nothing to close."""
