"""Processes that are killed or stopped: one that submits, and the shells of a login node."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import sys
from pathlib import Path

from backends.hosts.ssh import SshTarget
from backends.slurm.model import SubmitOutcome, SubmitRequest

ROOT = Path(__file__).resolve().parents[2]


class Child:
    """A process that has logged in and will submit once it is told to.

    Attributes:
        struck: Whether it was killed or stopped before it had ended.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stopped = asyncio.Event()
        self.struck = False

    @classmethod
    async def start(cls, target: SshTarget, request: SubmitRequest, path: str, deadline: float) -> Child:
        """Start one, and wait until it has logged in."""
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", "tests.faults.submitter"]
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickle.dumps((target, request, path, deadline)))
        assert await process.stdout.readline() == b"ready\n"
        return cls(process)

    def go(self) -> None:
        """Let it submit."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            if number is not signal.SIGCONT:
                self.struck = True
                self._stopped.set()

    async def struck_or_ended(self) -> None:
        """Wait for either."""
        waits = [asyncio.create_task(self._process.wait()), asyncio.create_task(self._stopped.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def outcome(self) -> SubmitOutcome | None:
        """Wait for its end; what it came to, None where it did not live to tell."""
        told, _ = await self._process.communicate()
        outcome: SubmitOutcome | None = pickle.loads(told) if told else None
        return outcome


def kill_shells_above(token: str) -> int:
    """Kill the shells that wait for the sbatch of a token, and not the sbatch; returns how many there were."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        if token.encode() not in _words(folder) or b"sbatch" not in _words(folder):
            continue
        parent = _parent(folder)
        while _words(parent).rstrip(b"\0").endswith(b"sh\0-s"):
            above = _parent(parent)
            with contextlib.suppress(OSError):
                os.kill(int(parent.name), signal.SIGKILL)
                killed += 1
            parent = above
    return killed


def _words(folder: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (folder / "cmdline").read_bytes()
    return b""


def _parent(folder: Path) -> Path:
    with contextlib.suppress(OSError):
        return Path("/proc") / (folder / "stat").read_text().rpartition(")")[2].split()[1]
    return Path("/proc/0")
