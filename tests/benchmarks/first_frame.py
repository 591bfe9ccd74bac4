"""Time from the start of the process to the first painted frame, in a real pseudo-terminal, beside a peer.

The first frame is there when the terminal has received the bytes that paint a certain word: the title of the board's
pipeline, and of the peer's table the heading of a column. It is the same word, looked for in the same way, and in
neither app is it written before the frame that it stands in. Starts of the two alternate, so that whatever else the
machine does meets both; and both have their bytecode in one cache that a start of each has filled before.
"""

from __future__ import annotations

import fcntl
import os
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from console.release import folder, journal
from console.release.state import fold

ROOT = Path(__file__).resolve().parents[2]
MARK = "Pipeline"
"""The word by which a first frame is told."""

WHOLE = "Work log"
"""Title of the panel that completes our board, after the first frame."""

SIZES = ((80, 24), (160, 50))
LONGEST = 30.0
TARGET = 1.1
ENTRIES = 10_000
"""So many entries has the log of the run that is opened."""

BUSY = 1.25
"""Where a process needs so much longer than it runs, others had the processors."""


class NoFrame(Exception):
    """A process painted nothing that was waited for. The text says which, and the last bytes that it wrote."""


def environment(cache: Path) -> dict[str, str]:
    """The environment of both: a colour terminal, and one folder for bytecode, which may be written."""
    found = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPYCACHEPREFIX": str(cache)}
    for name in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR", "TEXTUAL", "TEXTUAL_DEBUG", "PYTHONPROFILEIMPORTTIME"):
        found.pop(name, None)
    return found


def lengthen(run_dir: Path, entries: int = ENTRIES) -> None:
    """Bring the log of a run that nobody has open to a number of entries, and its state with it."""
    log = run_dir / folder.LOG_NAME
    found = list(journal.parse(log.read_bytes()))
    with open(log, "ab") as stream:
        for number in range(len(found) + 1, entries + 1):
            last = found[-1]
            moment = datetime.fromisoformat(last.time) + timedelta(seconds=1)
            data = {"event": "remark", "about": f"look {number}"}
            entry = journal.make_entry(
                number, moment, journal.Kind.ACTION, "conductor", last.stage, f"Look {number}", data, last.hash
            )
            stream.write(journal.render(entry))
            found.append(entry)
    folder.write_state(run_dir, fold(found))


class Moment(NamedTuple):
    """How long something took.

    Attributes:
        wall: Seconds since the process was started.
        processor: Seconds that its threads have spent on a processor; this is not longer where others use it too.
    """

    wall: float
    processor: float


def open_terminal(
    command: Sequence[str], size: tuple[int, int], env: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program in a pseudo-terminal; returns it and our end of the terminal."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=env, close_fds=True)
    os.close(theirs)
    return process, ours


def time_to(marks: Sequence[str], command: Sequence[str], size: tuple[int, int], env: dict[str, str]) -> list[Moment]:
    """Start a program in a pseudo-terminal and measure how long it takes until each of some words has been painted.

    Args:
        marks: The words, in the order in which they are waited for.
        command: The program and its arguments.
        size: Columns and rows of the terminal.
        env: Its environment.

    Raises:
        NoFrame: When one of them does not come.
    """
    begun = time.perf_counter()
    process, ours = open_terminal(command, size, env)
    seen, found = b"", list[Moment]()
    try:
        for mark in marks:
            seen = _read_until(mark, seen, ours, begun + LONGEST, command)
            found.append(Moment(time.perf_counter() - begun, on_processor(process.pid)))
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return found


def _read_until(mark: str, seen: bytes, terminal: int, deadline: float, command: Sequence[str]) -> bytes:
    while mark.encode() not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.perf_counter()))
        if not ready:
            raise NoFrame(f"{' '.join(command)}: no {mark!r} within {LONGEST:.0f} s; last: {seen[-500:]!r}")
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            raise NoFrame(f"{' '.join(command)}: ended before it painted {mark!r}: {seen[-500:]!r}") from None
    return seen


def on_processor(pid: int) -> float:
    """Seconds that all threads of a process have run: the first number of /proc/PID/task/TID/schedstat, in ns."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@dataclass(frozen=True)
class Series:
    """Times of one program.

    Attributes:
        name: The program, and what was waited for.
        times: One for each start.
    """

    name: str
    times: tuple[Moment, ...]

    @property
    def wall(self) -> float:
        """The median, by the clock on the wall, in seconds."""
        return statistics.median(item.wall for item in self.times)

    @property
    def processor(self) -> float:
        """The median of time on a processor, in seconds."""
        return statistics.median(item.processor for item in self.times)

    def __str__(self) -> str:
        walls = [1000 * item.wall for item in self.times]
        low, _, high = statistics.quantiles(walls, n=4)
        spread = f"quartiles {low:.0f} to {high:.0f}, all {min(walls):.0f} to {max(walls):.0f}, n = {len(walls)}"
        return f"{self.name:<36} {1000 * self.wall:5.0f} ms {1000 * self.processor:9.0f} ms   {spread}"


def measure(run_dir: Path, cache: Path, size: tuple[int, int], rounds: int) -> tuple[Series, Series, Series]:
    """Start both apps in turn.

    Returns:
        Ours to the first frame, ours to the whole board, and the peer's to its first frame.
    """
    env = environment(cache)
    ours = [sys.executable, "-m", "console", "open", str(run_dir), "--read-only"]
    peer = [sys.executable, "-m", "tests.benchmarks.peer", MARK]
    first, whole, other = list[Moment](), list[Moment](), list[Moment]()

    def start_ours() -> None:
        frame, board = time_to([MARK, WHOLE], ours, size, env)
        first.append(frame)
        whole.append(board)

    def start_peer() -> None:
        other.extend(time_to([MARK], peer, size, env))

    start_ours(), start_peer()
    for series in (first, whole, other):
        series.clear()
    for number in range(rounds):
        # Who goes first alternates as well: what the one leaves in the machine's caches serves the other.
        for start in (start_ours, start_peer) if number % 2 else (start_peer, start_ours):
            start()
    return (
        Series("gonogo open, first frame", tuple(first)),
        Series("gonogo open, whole board", tuple(whole)),
        Series("peer: Textual app with a DataTable", tuple(other)),
    )


def report(run_dir: Path, cache: Path, rounds: int) -> bool:
    """Measure at every size and print what was found.

    Returns:
        Whether the target was met at every size.
    """
    met = True
    for size in SIZES:
        first, whole, peer = measure(run_dir, cache, size, rounds)
        ratio = first.wall / peer.wall
        met = met and ratio <= TARGET
        print(f"first frame at {size[0]}x{size[1]:<4}, log of {ENTRIES} entries   median   processor")
        for series in (first, whole, peer):
            print(f"  {series}")
        print(f"  ratio of the first frames {ratio:.2f}, target <= {TARGET}: {'met' if ratio <= TARGET else 'MISSED'}")
        pairs = statistics.median(a.wall / b.wall for a, b in zip(first.times, peer.times, strict=True))
        print(f"  the same within each round {pairs:.2f}, in processor time {first.processor / peer.processor:.2f}")
        if peer.wall > BUSY * peer.processor:
            print(f"  this machine was busy: the peer waited for {peer.wall / peer.processor:.1f} times what it ran")
    return met
