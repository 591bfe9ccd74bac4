"""Result files are seen as they come, by the program that stays on the login node and by the script without it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from backends.errors import FileMissing
from backends.hosts.local import LocalHost
from backends.watcher.model import FilePresence, FileReading
from backends.watcher.watcher import ResultWatcher

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
