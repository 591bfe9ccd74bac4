"""Every durable write of a release goes through here, in one of three shapes, each fsynced.

There is one list of places where the process can die between two effects: before and after each call of these
functions (and of `effect`, which the submission uses around what it does on a cluster). Tests arm a counter
and kill the process at the N-th of them, for every N; see `arm`.
"""

from __future__ import annotations

import os
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CRASH_AT = "GONOGO_TEST_CRASH_AT"
"""Environment variable that arms the injector: where the process kills itself.

Either the number of a crash point, or its name, with #N for the N-th point of that name ("after append gate#2").
"""

CRASH_LIST = "GONOGO_TEST_CRASH_LIST"
"""Environment variable naming a file to which the name of each crash point is appended as it is passed."""


class _Injector:
    """Counts crash points; inert unless one of the two variables is set."""

    def __init__(self) -> None:
        self.at = ""
        self.named: dict[str, int] = {}
        self.list: str | None = None
        self.passed = 0
        self.armed = False

    def arm(self, environ: dict[str, str]) -> None:
        self.at = environ.get(CRASH_AT, "")
        self.list = environ.get(CRASH_LIST)
        self.armed = bool(self.at or self.list)

    def point(self, name: str) -> None:
        if not self.armed:
            return
        self.passed += 1
        if self.list is not None:
            with open(self.list, "a", encoding="utf-8") as stream:
                stream.write(f"{self.passed} {name}\n")
        self.named[name] = self.named.get(name, 0) + 1
        reached = (str(self.passed), f"{name}#{self.named[name]}", *([name] if self.named[name] == 1 else []))
        if self.at in reached:
            os.kill(os.getpid(), signal.SIGKILL)


_injector = _Injector()


def arm(environ: dict[str, str]) -> None:
    """Read the two test variables once, at the start of a conductor."""
    _injector.arm(environ)


@contextmanager
def effect(name: str) -> Iterator[None]:
    """Mark one effect: a crash point before it and one after it.

    Args:
        name: What is done, for the list of crash points ("append job_proposed", "sbatch").
    """
    _injector.point(f"before {name}")
    yield
    _injector.point(f"after {name}")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_shared(folder: Path) -> bool:
    """Whether a folder is its group's: writable for it, and with the bit by which new files become the group's."""
    both = stat.S_ISGID | stat.S_IWGRP
    return os.stat(folder).st_mode & both == both


def share_as(path: Path, parent: Path) -> None:
    """Give a new file or folder to the group that its parent is shared with; elsewhere it stays its owner's alone.

    Two accounts can work on one release only where each can read what the other wrote; nobody can change it.
    """
    if is_shared(parent):
        os.chmod(path, 0o2770 if path.is_dir() else 0o640)


def append(path: Path, data: bytes, name: str) -> None:
    """Append bytes to a file in one write and make them durable; the file is created if it is not there.

    Where that fails (no space left), the file is cut back to what it was, so that nothing follows half an entry.
    """
    with effect(f"append {name}"):
        fresh = not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
        finally:
            os.close(descriptor)
        if fresh:
            share_as(path, path.parent)
            sync_folder(path.parent)


def replace(path: Path, data: bytes, name: str) -> None:
    """Write a whole file: temporary sibling, fsync, rename over, fsync of the folder."""
    with effect(f"replace {name}"):
        _write_sibling(path, data, lambda temporary: os.replace(temporary, path))


def create(path: Path, data: bytes, name: str) -> None:
    """Create a file whole and exactly once.

    The bytes are complete before the name appears, so a reader never sees half of them.

    Raises:
        FileExistsError: When somebody created it before; nothing is changed then.
    """

    def link(temporary: str) -> None:
        try:
            os.link(temporary, path)
        finally:
            os.unlink(temporary)

    with effect(f"create {name}"):
        _write_sibling(path, data, link)


def _write_sibling(path: Path, data: bytes, publish: Callable[[str], None]) -> None:
    """Write data beside `path`, make it durable, then publish it under its name."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        share_as(Path(temporary), path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        os.unlink(temporary)
        raise
    publish(temporary)
    sync_folder(path.parent)
