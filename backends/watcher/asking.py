"""Questions to the program that stays on the login node: each has a number, and its answer comes among the others."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.base import Conversation, FileStat, Host
from backends.watcher.model import Tail

ANSWER_S = 20.0
"""So long may the answer to a question to the program take."""

MOST_TAIL_BYTES = 32768
"""One answer holds no more of a file."""


class Questions:
    """The questions that are open.

    Args:
        host: Whom they are put to, for messages.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._asked: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._numbers = itertools.count(1)

    def take(self, answer: Mapping[str, Any]) -> None:
        """Give an answer to whoever asked; one that nobody waits for is passed over."""
        asked = self._asked.get(answer["ask"])
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def unanswered(self, why: str) -> None:
        """Tell everybody who still waits that there will be no answer."""
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(CouldNotAsk(self._host.name, "read a file", why))

    async def part(
        self, talk: Conversation, path: str, offset: int | None, limit: int, known: FileStat | None
    ) -> Tail | None:
        """A part of a file, its end where no offset is given; None while the file is as it was known.

        Raises:
            FileMissing: When it is not there.
            CouldNotAsk: When there was no answer.
        """
        number = next(self._numbers)
        answered: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answered
        words = None if known is None else [known.size, known.inode, known.mtime_ns, known.ctime_ns]
        try:
            async with asyncio.timeout(ANSWER_S):
                await talk.send(as_line({"ask": number, "tail": path, "from": offset, "bytes": limit, "known": words}))
                answer = await answered
        except TimeoutError:
            raise CouldNotAsk(self._host.name, f"read {path}", f"no answer within {ANSWER_S:g} s") from None
        finally:
            self._asked.pop(number, None)
        if answer.get("missing") is True:
            raise FileMissing(self._host.name, path)
        if answer.get("same") is True:
            return None
        try:
            return Tail(path, stat_of(answer["stat"]), int(answer["offset"]), base64.b64decode(answer["data"]))
        except (ValueError, KeyError, TypeError):
            said = answer.get("odd")
            raise CouldNotAsk(self._host.name, f"read {path}", said if isinstance(said, str) else "") from None


def joined(parts: Sequence[Tail | None]) -> Tail | None:
    """Answers that follow on each other as one, as far as they are of one file and leave nothing out between them."""
    first = parts[0]
    if first is None:
        return None
    data = bytearray(first.data)
    for part in parts[1:]:
        same = part is not None and part.stat.inode == first.stat.inode
        if part is None or not same or part.offset != first.offset + len(data):
            break
        data += part.data
    return replace(first, data=bytes(data))


def as_line(command: Mapping[str, Any]) -> bytes:
    """A command in the program's form."""
    return json.dumps(command).encode("ascii") + b"\n"


def stat_of(words: Any) -> FileStat:
    """What identifies a file, in the order in which the program says it.

    Raises:
        ValueError: When the words are no such thing.
        TypeError: The same.
    """
    size, inode, mtime, ctime = map(int, words)
    return FileStat(size=size, mtime_ns=mtime, inode=inode, ctime_ns=ctime)
