"""Watches registered result files: one batched look for all of them per interval."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.base import FileStat, Host
from backends.hosts.shell import parse_stat
from backends.watcher.model import FilePresence, FileReading

# Folders are listed first, since network file systems remember a "not there"; one line answers for each path.
_LOOK = """
for path in "$@"; do ls -a -- "$(dirname -- "$path")" >/dev/null 2>&1; done
for path in "$@"; do
  if [ -e "$path" ]; then stat -L -c '%s %i %.9Y %.9Z' -- "$path" 2>/dev/null || echo odd; else echo missing; fi
done
"""


class ResultWatcher:
    """Result files on one cluster.

    Args:
        host: The cluster's login node.
        interval: Seconds between two looks.
        monotonic: Seconds that only go forward.
    """

    def __init__(self, host: Host, *, interval: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._interval = interval
        self._monotonic = monotonic
        self._readings: dict[str, FileReading] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def register(self, path: str) -> None:
        """Begin to watch a file."""
        self._readings.setdefault(path, FileReading(path, FilePresence.COULD_NOT_ASK))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="result watcher")

    def unregister(self, path: str) -> None:
        """Stop watching a file."""
        self._readings.pop(path, None)

    def snapshot(self) -> Mapping[str, FileReading]:
        """Every watched file as last seen."""
        return dict(self._readings)

    async def changed(self, timeout: float) -> None:
        """Return when a file changed, at the latest after the timeout (seconds)."""
        self._changed.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def fetch(self, path: str, *, limit: int) -> bytes | None:
        """The bytes of a file, when it did not change while they were read.

        Returns:
            None when it changed meanwhile, is empty, or is larger than the limit (bytes).

        Raises:
            FileMissing: When it is not there.
            CouldNotAsk: When there was no answer.
        """
        before = await self._host.stat(path)
        if before is None:
            raise FileMissing(self._host.name, path)
        if not 0 < before.size <= limit:
            return None
        data = await self._host.read(path)
        after = await self._host.stat(path)
        return data if after == before and len(data) == before.size else None

    async def close(self) -> None:
        """End the watcher."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            if self._readings:
                await self._look(list(self._readings))
            await asyncio.sleep(self._interval)

    async def _look(self, paths: list[str]) -> None:
        try:
            result = await self._host.run(_LOOK, paths)
        except CouldNotAsk:
            # The stat stays what was last seen; only that nobody could be asked is new.
            for path in paths:
                if path in self._readings:
                    self._readings[path] = replace(self._readings[path], presence=FilePresence.COULD_NOT_ASK)
            return
        lines = result.stdout.splitlines()
        if len(lines) != len(paths):
            return
        for path, line in zip(paths, lines, strict=True):
            if path in self._readings:
                self._take(path, None if line == b"missing" else parse_stat(line), missing=line == b"missing")

    def _take(self, path: str, stat: FileStat | None, *, missing: bool) -> None:
        before = self._readings[path]
        if stat is None:
            presence = FilePresence.MISSING if missing else FilePresence.COULD_NOT_ASK
            after = FileReading(path, presence, looked_at=self._monotonic())
        else:
            stable = before.presence is FilePresence.SEEN and before.stat == stat
            after = FileReading(path, FilePresence.SEEN, stat, stable, self._monotonic())
        self._readings[path] = after
        if (before.presence, before.stat, before.stable) != (after.presence, after.stat, after.stable):
            self._changed.set()
