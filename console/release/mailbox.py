"""Notices when something new lies in `submissions/` or `requests/`."""

from __future__ import annotations

import asyncio
from pathlib import Path

LOOK_SECONDS = 2.0
"""So often we look even when the file system told us nothing (network file systems never do)."""


class Mailbox:
    """Wakes whoever waits when a decision or a request may have arrived.

    Args:
        run_dir: The run folder.
    """

    def __init__(self, run_dir: Path) -> None:
        self._folders = [run_dir / "submissions", run_dir / "requests"]
        self._arrived = asyncio.Event()

    async def run(self) -> None:
        """Watch the folders until cancelled."""
        from watchfiles import awatch

        for folder in self._folders:
            folder.mkdir(exist_ok=True)
        async for _ in awatch(*self._folders, step=50, debounce=50, rust_timeout=1000, recursive=True):
            self._arrived.set()

    async def wait(self, timeout: float = LOOK_SECONDS) -> None:
        """Return when something may have arrived, at the latest after the timeout (seconds)."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            pass
