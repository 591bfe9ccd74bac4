"""A growing file is followed by its new bytes only, whatever is done to it, and each of the three answers is told."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backends.errors import CouldNotAsk
from backends.hosts.base import FileStat
from backends.hosts.local import LocalHost
from backends.watcher.following import FileFollower, Follows, Look
from backends.watcher.model import FilePresence, Tail
from backends.watcher.watcher import ResultWatcher


class Counting:
    """Reads through a watcher, counting what is asked for and what comes."""

    def __init__(self, watcher: ResultWatcher) -> None:
        self._watcher = watcher
        self.bytes = 0
        self.calls = 0

    async def part(self, path: str, *, offset: int, limit: int, known: FileStat | None = None) -> Tail | None:
        found = await self._watcher.part(path, offset=offset, limit=limit, known=known)
        self.calls += 1
        self.bytes += 0 if found is None else len(found.data)
        return found


@pytest.fixture(params=["program", "script"])
async def parts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Counting]:
    """Parts of files, read by the program that stays, and by scripts."""
    python = sys.executable if request.param == "program" else "no-such-python"
    watcher = ResultWatcher(LocalHost(), interval=0.05, python=python)
    watcher.register(str(tmp_path / "nothing"))
    while watcher.snapshot()[str(tmp_path / "nothing")].presence is not FilePresence.MISSING:
        await watcher.changed(1.0)
    assert (watcher._talk is not None) == (request.param == "program")
    yield Counting(watcher)
    await watcher.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def told(look: Look) -> tuple[str, int, bytes, int]:
    assert look.presence is FilePresence.SEEN
    return look.follows.value, look.offset, look.data, look.skipped


async def test_new_bytes_only_from_before_there_is_a_file_to_its_end(parts: Counting, tmp_path: Path) -> None:
    path = tmp_path / "slurm 'out'.out"
    follower = FileFollower(parts, str(path))
    assert (await follower.look()).presence is FilePresence.MISSING
    path.write_bytes(b"")
    assert told(await follower.look()) == ("first look", 0, b"", 0)
    append(path, b"one\n\xff")
    assert told(await follower.look()) == ("follows on", 0, b"one\n\xff", 0)
    before = parts.calls
    look = await follower.look()
    assert (told(look), look.caught_up) == (("follows on", 5, b"", 0), True)
    assert parts.calls == before + 1
    append(path, b"two\n" * 50_000)
    assert told(await follower.look()) == ("follows on", 5, b"two\n" * 50_000, 0)
    path.unlink()
    assert (await follower.look()).presence is FilePresence.MISSING
    path.write_bytes(b"anew\n")
    assert told(await follower.look()) == ("replaced", 0, b"anew\n", 0)


async def test_a_file_of_gigabytes_costs_its_end(parts: Counting, tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
    append(path, b"end\n")
    size = path.stat().st_size
    follower = FileFollower(parts, str(path), first=1000)
    look = await follower.look()
    assert told(look) == ("first look", size - 1000, b"\0" * 996 + b"end\n", size - 1000)
    append(path, b"more\n")
    assert told(await follower.look()) == ("follows on", size, b"more\n", 0)
    assert parts.bytes < 2200


async def test_a_file_that_grew_too_fast_goes_on_near_its_end_with_a_count(parts: Counting, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x")
    follower = FileFollower(parts, str(path), most=100_000)
    await follower.look()
    append(path, b"y" * 200_000)
    look = await follower.look()
    assert look.follows is Follows.ON
    assert not look.caught_up, "what is left is read by the next look"
    rest = await follower.look()
    assert look.data + rest.data == b"y" * 200_000
    append(path, b"z" * 1_000_000)
    assert told(await follower.look()) == ("grew too fast", 1_100_001, b"z" * 100_000, 900_000)


@pytest.mark.parametrize("new", [b"", b"short\n", b"x" * 300, b"first line that is lo" + b"y" * 500])
async def test_a_file_that_was_cut_or_written_anew_in_place_is_told_from_one_that_grew(
    parts: Counting, tmp_path: Path, new: bytes
) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"first line that is long enough to be known again, and more of it\n" * 2)
    follower = FileFollower(parts, str(path))
    await follower.look()
    inode = path.stat().st_ino
    path.write_bytes(new)
    os.utime(path, ns=(1, 1))
    assert path.stat().st_ino == inode
    assert told(await follower.look()) == ("replaced", 0, new, 0)


async def test_a_file_that_another_was_renamed_over_is_another(parts: Counting, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old\n")
    follower = FileFollower(parts, str(path))
    await follower.look()
    (tmp_path / "new").write_bytes(b"old\nnew\n")
    os.replace(tmp_path / "new", path)
    assert told(await follower.look()) == ("replaced", 0, b"old\nnew\n", 0)


async def test_what_cannot_be_read_is_no_missing_file(parts: Counting, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for odd in (tmp_path, loop / "out"):
        look = await FileFollower(parts, str(odd)).look()
        assert look.presence is FilePresence.COULD_NOT_ASK
        assert look.said


class Silent:
    """Nobody answers, until somebody does."""

    def __init__(self, parts: Counting) -> None:
        self.parts: Counting | None = None
        self.later = parts

    async def part(self, path: str, *, offset: int, limit: int, known: FileStat | None = None) -> Tail | None:
        if self.parts is None:
            raise CouldNotAsk("login", "read", "the link was lost")
        return await self.parts.part(path, offset=offset, limit=limit, known=known)


async def test_after_a_time_without_answers_it_goes_on_where_it_was(parts: Counting, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"one\n")
    silent = Silent(parts)
    silent.parts = parts
    follower = FileFollower(silent, str(path))
    await follower.look()
    silent.parts = None
    look = await follower.look()
    assert (look.presence, look.said) == (FilePresence.COULD_NOT_ASK, "login: could not ask (read): the link was lost")
    append(path, b"two\n")
    silent.parts = parts
    assert told(await follower.look()) == ("follows on", 4, b"two\n", 0)
