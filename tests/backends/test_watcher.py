"""Result files are seen as they come, by the program that stays on the login node and by the script without it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.base import RunResult
from backends.hosts.local import LocalHost
from backends.watcher.model import FilePresence, FileReading
from backends.watcher.watcher import MOST_TAIL_BYTES, ResultWatcher

Holds = Callable[[FileReading], bool]


@pytest.fixture(params=["program", "script"])
async def watcher(request: pytest.FixtureRequest) -> AsyncIterator[ResultWatcher]:
    """A watcher with Python on the other side, and one without."""
    python = sys.executable if request.param == "program" else "no-such-python"
    made = ResultWatcher(LocalHost(), interval=0.05, python=python)
    yield made
    await made.close()


async def until(watcher: ResultWatcher, path: Path, holds: Holds) -> FileReading:
    """The reading, once it is so; the test's own time limit ends a wait that is in vain."""
    while not holds(reading := watcher.snapshot()[str(path)]):
        await watcher.changed(1.0)
    return reading


def is_missing(reading: FileReading) -> bool:
    return reading.presence is FilePresence.MISSING


def has(size: int) -> Holds:
    return lambda reading: reading.stable and reading.stat is not None and reading.stat.size == size


async def test_a_file_is_missing_then_seen_then_stable_then_another(watcher: ResultWatcher, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "r 'quoted'\n.json"
    watcher.register(str(path))
    await until(watcher, path, is_missing)
    path.parent.mkdir()
    (tmp_path / "folder" / "tmp").write_text("{}")
    (tmp_path / "folder" / "tmp").rename(path)
    first = await until(watcher, path, has(2))
    assert await watcher.fetch(str(path), limit=10) == b"{}"
    assert await watcher.fetch(str(path), limit=1) is None
    (tmp_path / "folder" / "tmp").write_text("[]")
    (tmp_path / "folder" / "tmp").rename(path)
    again = await until(watcher, path, lambda seen: seen.stable and seen.stat != first.stat)
    assert again.stat is not None
    path.unlink()
    await until(watcher, path, is_missing)
    with pytest.raises(FileMissing):
        await watcher.fetch(str(path), limit=10)


async def test_a_file_that_may_not_be_seen_is_not_missing(watcher: ResultWatcher, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)  # nobody can say what lies behind it, not even root
    there = tmp_path / "there"
    there.write_text("x")
    for path in (loop / "r.json", there):
        watcher.register(str(path))
    await until(watcher, there, has(1))
    await asyncio.gather(*(watcher.changed(0.1) for _ in range(1)))
    assert watcher.snapshot()[str(loop / "r.json")].presence is FilePresence.COULD_NOT_ASK


async def test_files_come_and_go_while_it_watches(watcher: ResultWatcher, tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(20)]
    for path in paths:
        path.write_text(path.name)
        watcher.register(str(path))
        await until(watcher, path, has(len(path.name)))
        watcher.unregister(str(path))
        assert watcher.snapshot() == {}


async def test_names_that_are_no_utf8_are_watched_too(watcher: ResultWatcher, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff.json"))
    path.write_bytes(b"{}")
    watcher.register(str(path))
    await until(watcher, path, has(2))


def children(name: str) -> list[int]:
    """Processes of this machine whose command line holds a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if name.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


async def test_a_program_that_dies_is_no_missing_file_and_is_started_again(tmp_path: Path) -> None:
    python = tmp_path / "python-of-this-test"
    python.symlink_to(sys.executable)
    path = tmp_path / "r.json"
    path.write_text("{}")
    watcher = ResultWatcher(LocalHost(), interval=0.05, python=str(python))
    watcher.register(str(path))
    await until(watcher, path, has(2))
    (pid,) = [pid for pid in children(str(python)) if b"-c" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(pid, signal.SIGKILL)
    seen = watcher.snapshot()[str(path)]
    while watcher.snapshot()[str(path)].presence is FilePresence.SEEN:
        await asyncio.sleep(0.005)
    assert watcher.snapshot()[str(path)].stat == seen.stat, "what was last seen stays"
    await until(watcher, path, has(2))
    await watcher.close()
    assert children(str(python)) == [], "nothing stays behind"


class CountingHost(LocalHost):
    """This machine, counting the scripts that are run beside the one that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0

    async def run(self, *args: Any, **keywords: Any) -> RunResult:
        self.scripts += 1
        return await super().run(*args, **keywords)


async def test_a_small_file_comes_along_and_a_larger_one_is_read_by_one_script(tmp_path: Path) -> None:
    host = CountingHost()
    watcher = ResultWatcher(host, interval=0.05, python=sys.executable)
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(bytes(range(256)) * 128)
    large.write_bytes(b"y" * 32769)
    for path in (small, large):
        watcher.register(str(path))
        await until(watcher, path, has(path.stat().st_size))
    assert await watcher.fetch(str(small), limit=100_000) == small.read_bytes()
    assert host.scripts == 0
    assert await watcher.fetch(str(large), limit=100_000) == large.read_bytes()
    assert await watcher.fetch(str(large), limit=32768) is None
    assert host.scripts == 2
    # What came along is worth nothing once it was taken, or where it must be what lies there now.
    assert await watcher.fetch(str(small), limit=100_000) == small.read_bytes()
    assert await watcher.fetch(str(small), limit=100_000, fresh=True) == small.read_bytes()
    assert host.scripts == 4
    await watcher.close()


async def test_what_came_along_is_not_taken_once_the_file_is_seen_as_another(tmp_path: Path) -> None:
    watcher = ResultWatcher(LocalHost(), interval=0.05, python=sys.executable)
    path = tmp_path / "r.json"
    path.write_text("one")
    watcher.register(str(path))
    await until(watcher, path, has(3))
    path.write_text("three")
    await until(watcher, path, has(5))
    assert await watcher.fetch(str(path), limit=10) == b"three"
    path.unlink()
    await until(watcher, path, is_missing)
    with pytest.raises(FileMissing):
        await watcher.fetch(str(path), limit=10)
    await watcher.close()


async def test_a_change_while_somebody_reads_is_not_slept_through(watcher: ResultWatcher, tmp_path: Path) -> None:
    path, other = tmp_path / "r", tmp_path / "other"
    for each in (path, other):
        watcher.register(str(each))
    await until(watcher, path, is_missing)
    await until(watcher, other, is_missing)
    since = watcher.changes
    path.write_text("x")
    await until(watcher, path, has(1))
    # An hour would be the test's end.
    await watcher.changed(3600, paths={str(path)}, since=since)
    waiting = asyncio.create_task(watcher.changed(3600, paths={str(other)}, since=since))
    await asyncio.sleep(0)
    assert not waiting.done(), "the other file has not changed"
    other.write_text("x")
    await waiting


async def test_whoever_waits_for_what_changed_first_goes_on_first(tmp_path: Path) -> None:
    watcher = ResultWatcher(LocalHost(), interval=0.2, python=sys.executable)
    paths = [tmp_path / name for name in "abcdef"]
    order: list[str] = []

    async def wait(path: Path) -> None:
        while not has(1)(watcher.snapshot()[str(path)]):
            await watcher.changed(1.0, paths={str(path)})
        order.append(path.name)

    for path in paths:
        watcher.register(str(path))
    for path in paths:
        await until(watcher, path, is_missing)
    waiting = [asyncio.create_task(wait(path)) for path in paths]
    await asyncio.sleep(0)
    latest = 0
    for path in reversed(paths):
        path.write_text("x")
        # A file system's clock goes on in steps.
        while path.stat().st_ctime_ns <= latest:
            path.chmod(0o600)
        latest = path.stat().st_ctime_ns
    await asyncio.gather(*waiting)
    assert order == [path.name for path in reversed(paths)]
    await watcher.close()


async def test_the_end_of_a_file_is_read_however_long_it_is(watcher: ResultWatcher, tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"step 1\rstep 2\n\xffend")
    watcher.register(str(tmp_path / "nothing"))
    await until(watcher, tmp_path / "nothing", is_missing)
    seen = await watcher.tail(str(path), limit=16)
    assert seen is not None
    assert seen.data == b"ep 1\rstep 2\n\xffend"[-16:]
    assert (seen.offset, seen.stat.size) == (path.stat().st_size - 16, path.stat().st_size)
    assert await watcher.tail(str(path), limit=16, known=seen.stat) is None
    with path.open("ab") as file:
        file.write(b"!")
    again = await watcher.tail(str(path), limit=16, known=seen.stat)
    assert again is not None
    assert again.data.endswith(b"end!")
    most = await watcher.tail(str(path), limit=10**9)
    assert most is not None
    assert len(most.data) == MOST_TAIL_BYTES
    path.write_bytes(b"")
    empty = await watcher.tail(str(path), limit=16, known=again.stat)
    assert empty is not None
    assert (empty.offset, empty.data) == (0, b"")


async def test_the_end_of_what_is_no_file_is_no_answer(watcher: ResultWatcher, tmp_path: Path) -> None:
    watcher.register(str(tmp_path / "nothing"))
    await until(watcher, tmp_path / "nothing", is_missing)
    with pytest.raises(FileMissing):
        await watcher.tail(str(tmp_path / "nothing"))
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(CouldNotAsk):
            await watcher.tail(str(odd))
        with pytest.raises(CouldNotAsk):
            await watcher.fetch(str(odd), limit=10)


async def test_a_question_to_a_program_that_dies_is_not_answered(tmp_path: Path) -> None:
    python = tmp_path / "another-python-of-this-test"
    python.symlink_to(sys.executable)
    path = tmp_path / "r.json"
    path.write_text("{}")
    watcher = ResultWatcher(LocalHost(), interval=0.05, python=str(python))
    watcher.register(str(path))
    await until(watcher, path, has(2))
    (pid,) = [pid for pid in children(str(python)) if b"-c" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(pid, signal.SIGSTOP)
    asked = asyncio.create_task(watcher.tail(str(path)))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(CouldNotAsk):
        await asked
    # It is started again; a start that is broken off would leave half a process behind.
    while watcher.snapshot()[str(path)].presence is FilePresence.SEEN:
        await asyncio.sleep(0.005)
    await until(watcher, path, lambda seen: seen.presence is FilePresence.SEEN and seen.stable)
    await watcher.close()
