"""Processes by number and time of birth, so that a number that was given out again is not taken for the old one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path


def born(pid: int) -> str | None:
    """When a process was born, in the system's own words; None when there is no such process, or it is a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            words = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if words[0] in ("Z", "X") else words[19]
    said = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, when = said.stdout.strip().partition(" ")
    return None if not when or state.startswith("Z") else when.strip()


def lives(pid: int | None, when: str | None) -> bool:
    """Whether the process of this number and birth is still there."""
    return pid is not None and when is not None and born(pid) == when


def end(pid: int | None, when: str | None, number: int = signal.SIGTERM) -> None:
    """Send a signal to a process, if it is the one that is meant."""
    if pid is not None and lives(pid, when):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def adopt_descendants() -> None:
    """Become the parent of every orphan below this process (Linux); elsewhere process groups have to do."""
    with contextlib.suppress(Exception):
        import ctypes

        set_child_subreaper = 36
        ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """All processes below one, by the system's own list; empty where there is no such list."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(words[1]), []).append(int(folder.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found
