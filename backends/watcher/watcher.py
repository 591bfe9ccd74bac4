"""Watches registered result files.

One small program stays on the login node, looks at all files at each interval, and says a line for each change: one
channel and one process however many files. A small file comes along with the word that it is stable, and the end of a
file can be asked for, over the same channel. Where there is no Python 3, scripts do the same; whatever is read by a
script is read one after the other, so that no more than one channel is added.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from backends import payloads
from backends.errors import BackendError, CouldNotAsk
from backends.hosts.base import Conversation, FileStat, Host
from backends.hosts.shell import parse_stat
from backends.watcher import reading as by_script
from backends.watcher.asking import MOST_TAIL_BYTES, Questions, as_line, joined, stat_of
from backends.watcher.model import FilePresence, FileReading, Tail

SILENCE_S = 20.0
"""The program on the login node beats every five seconds; after so much silence it counts as lost."""

# The program travels as text of the command, so nothing has to be stored there; $1 is Python, $2 the interval.
_STAY = """
command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || {{
  echo 'no python'; exit 0
}}
exec "$1" -c "$(cat <<'GONOGO-PROGRAM'
{program}
GONOGO-PROGRAM
)" "$2" 2>/dev/null
"""

# Folders are listed first, since network file systems remember a "not there"; one line answers for each path. The
# system's own words decide: a folder that may not be searched is no missing file.
_LOOK = """
export LC_ALL=C
for path in "$@"; do ls -a -- "$(dirname -- "$path")" >/dev/null 2>&1; done
for path in "$@"; do
  found=$(stat -L -c '%s %i %.9Y %.9Z' -- "$path" 2>&1) && printf '%s\\n' "$found" || case "$found" in
    *': No such file or directory'|*': Not a directory') echo missing ;;
    *) echo odd ;;
  esac
done
"""


class _NoPython(Exception):
    """There is no Python 3 on the login node."""


@cache
def _program() -> str:
    return (Path(payloads.__file__).parent / "look_at_files.py").read_text(encoding="utf-8")


class ResultWatcher:
    """Result files on one cluster.

    Args:
        host: The cluster's login node.
        interval: Seconds between two looks.
        python: Python 3 on the login node.
        monotonic: Seconds that only go forward.
    """

    def __init__(
        self,
        host: Host,
        *,
        interval: float,
        python: str = "python3",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._interval = interval
        self._python = python
        self._monotonic = monotonic
        self._readings: dict[str, FileReading] = {}
        self._small: dict[str, tuple[FileStat, bytes]] = {}
        self._waiting: dict[asyncio.Future[None], Collection[str] | None] = {}
        self._changes = 0
        self._changed_at: dict[str, int] = {}
        self._talk: Conversation | None = None
        self._questions = Questions(host)
        self._reading = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    def register(self, path: str) -> None:
        """Begin to watch a file."""
        self._readings.setdefault(path, FileReading(path, FilePresence.COULD_NOT_ASK))
        self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="result watcher")

    def unregister(self, path: str) -> None:
        """Stop watching a file."""
        self._readings.pop(path, None)
        self._small.pop(path, None)
        self._changed_at.pop(path, None)
        self._news.set()

    def snapshot(self) -> Mapping[str, FileReading]:
        """Every watched file as last seen."""
        return dict(self._readings)

    @property
    def changes(self) -> int:
        """How often anything changed so far."""
        return self._changes

    async def changed(self, timeout: float, *, paths: Collection[str] | None = None, since: int | None = None) -> None:
        """Return when a file changed, at the latest after the timeout (seconds).

        Whoever waits for what changed first goes on first.

        Args:
            timeout: Seconds.
            paths: Files that are waited for, None for all.
            since: What `changes` was before the caller looked: a change since then, maybe while it read a file,
                returns at once.
        """
        if since is not None and any(
            number > since and (paths is None or path in paths) for path, number in self._changed_at.items()
        ):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = paths
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(waiter, None)

    async def fetch(self, path: str, *, limit: int, fresh: bool = False) -> bytes | None:
        """The bytes of a file, when it did not change while they were read.

        Args:
            path: The file.
            limit: Most bytes.
            fresh: Read it now, whatever came along with the word that it is stable.

        Returns:
            None when it changed meanwhile, is empty, or is larger than the limit (bytes).

        Raises:
            FileMissing: When it is not there.
            CouldNotAsk: When there was no answer.
        """
        stat, data = self._small.pop(path, (None, b""))
        reading = self._readings.get(path)
        seen = reading is not None and reading.presence is FilePresence.SEEN and reading.stable
        if not fresh and seen and reading is not None and reading.stat == stat and len(data) <= limit:
            return data
        async with self._reading:
            return await by_script.whole(self._host, path, limit)

    async def tail(self, path: str, *, limit: int = MOST_TAIL_BYTES, known: FileStat | None = None) -> Tail | None:
        """The end of a file, however long it is.

        Args:
            path: The file; it need not be registered.
            limit: Most bytes; no more than MOST_TAIL_BYTES.
            known: The file as it was at the last look.

        Returns:
            None when it is still as it was then.

        Raises:
            FileMissing: When it is not there.
            CouldNotAsk: When there was no answer.
        """
        limit = min(limit, MOST_TAIL_BYTES)
        if self._talk is not None:
            return await self._questions.part(self._talk, path, None, limit, known)
        async with self._reading:
            found = await by_script.tail(self._host, path, limit)
        return None if found.stat == known else found

    async def part(self, path: str, *, offset: int, limit: int, known: FileStat | None = None) -> Tail | None:
        """A part of a file, however long the file is; less of it where it changed meanwhile.

        Args:
            path: The file; it need not be registered.
            offset: Where to begin.
            limit: Most bytes. What does not fit into one answer is asked for at once, not answer by answer.
            known: The file as it was at the last look.

        Returns:
            None when it is still as it was then.

        Raises:
            FileMissing: When it is not there.
            CouldNotAsk: When there was no answer.
        """
        talk = self._talk
        if talk is not None:
            starts = range(offset, offset + max(1, limit), MOST_TAIL_BYTES)
            ends = [min(start + MOST_TAIL_BYTES, offset + limit) for start in starts]
            asked = [
                self._questions.part(talk, path, start, end - start, known)
                for start, end in zip(starts, ends, strict=True)
            ]
            return joined(await asyncio.gather(*asked))
        async with self._reading:
            found = await by_script.part(self._host, path, offset, limit)
        return None if found.stat == known else found

    async def close(self) -> None:
        """End the watcher, and what it left on the login node."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        look = self._listen
        while True:
            try:
                await look()
            except _NoPython:
                look = self._look_by_script
                continue
            except BackendError:
                self._nobody_could_be_asked()
            await asyncio.sleep(self._interval)

    def _nobody_could_be_asked(self) -> None:
        """The stat stays what was last seen; only that nobody could be asked is new."""
        for path, reading in self._readings.items():
            self._readings[path] = replace(reading, presence=FilePresence.COULD_NOT_ASK)

    async def _listen(self) -> None:
        """Start the program that stays, and listen to it until it or the link is lost."""
        script = _STAY.format(program=_program())
        talk = await self._host.converse(script, [self._python, f"{self._interval:g}"])
        telling: asyncio.Task[None] | None = None
        try:
            first = await talk.line(SILENCE_S)
            if first == b"no python":
                raise _NoPython
            told: set[str] = set()
            self._news.set()
            self._talk = talk
            telling = asyncio.create_task(self._tell(talk, told), name="tell the watcher")
            while True:
                self._hear(await talk.line(SILENCE_S + self._interval))
                if telling.done():
                    telling.result()
        finally:
            self._talk = None
            self._questions.unanswered("the watching program ended")
            if telling is not None:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)
            await talk.close()

    async def _tell(self, talk: Conversation, told: set[str]) -> None:
        """Keep the program's list of files the same as ours."""
        while True:
            await self._news.wait()
            self._news.clear()
            wanted = set(self._readings)
            command = {"add": sorted(wanted - told), "drop": sorted(told - wanted)}
            if command["add"] or command["drop"]:
                await talk.send(as_line(command))
            told.clear()
            told.update(wanted)

    def _hear(self, line: bytes) -> None:
        """Take one answer; a line that is none is passed over, and changes nothing."""
        try:
            answer: Any = json.loads(line)
            if "beat" in answer:
                now = self._monotonic()
                for path, reading in self._readings.items():
                    if reading.presence is not FilePresence.COULD_NOT_ASK:
                        self._readings[path] = replace(reading, looked_at=now)
                return
            if "ask" in answer:
                self._questions.take(answer)
                return
            path = answer["path"]
            if path not in self._readings:
                return
            self._small.pop(path, None)
            if "stat" in answer:
                stat = stat_of(answer["stat"])
                seen = FileReading(path, FilePresence.SEEN, stat, answer["stable"] is True, self._monotonic())
                if seen.stable and "data" in answer:
                    self._take_small(path, stat, base64.b64decode(answer["data"], validate=True))
            else:
                presence = FilePresence.MISSING if answer.get("missing") is True else FilePresence.COULD_NOT_ASK
                seen = FileReading(path, presence, looked_at=self._monotonic())
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        self._put(path, seen)

    def _take_small(self, path: str, stat: FileStat, data: bytes) -> None:
        if len(data) == stat.size:
            self._small[path] = stat, data

    def _put(self, path: str, after: FileReading) -> None:
        before = self._readings[path]
        self._readings[path] = after
        if (before.presence, before.stat, before.stable) != (after.presence, after.stat, after.stable):
            self._changes += 1
            self._changed_at[path] = self._changes
            for waiter in [waiter for waiter, paths in self._waiting.items() if paths is None or path in paths]:
                del self._waiting[waiter]
                if not waiter.done():
                    waiter.set_result(None)

    async def _look_by_script(self) -> None:
        """One look by a script, where there is no Python 3."""
        paths = list(self._readings)
        if not paths:
            return
        result = await self._host.run(_LOOK, paths)
        lines = result.stdout.splitlines()
        if len(lines) != len(paths):
            raise CouldNotAsk(self._host.name, "look at files", "an answer of another length")
        for path, line in zip(paths, lines, strict=True):
            if path in self._readings:
                self._take(path, parse_stat(line), missing=line == b"missing")

    def _take(self, path: str, stat: FileStat | None, *, missing: bool) -> None:
        before = self._readings[path]
        if stat is None:
            presence = FilePresence.MISSING if missing else FilePresence.COULD_NOT_ASK
            self._put(path, FileReading(path, presence, looked_at=self._monotonic()))
        else:
            stable = before.presence is FilePresence.SEEN and before.stat == stat
            self._put(path, FileReading(path, FilePresence.SEEN, stat, stable, self._monotonic()))
