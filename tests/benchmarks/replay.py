"""A log of a million entries in `gonogo replay`, in a real pseudo-terminal: opening, jumps, and playing at x1000.

What is timed ends when the terminal has received the bytes that paint the entry's number in the time line. Jumps are
clicks on the time line at places drawn by lot, and keys; they are timed three times: right after the first frame, while
checkpoints are still made; then with them, while every byte of the log is being checked; so nothing here waits for the
check. Frames are counted as different moments that were painted.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import select
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from tests.benchmarks.first_frame import NoFrame, environment, on_processor, open_terminal
from tests.benchmarks.memory import high_water
from tests.replay import logs

SIZE = (120, 36)
OPEN_SECONDS, MEMORY_MB, JUMP_MS, FRAMES = 5.0, 400.0, 50.0, 30.0
SETTLED_SECONDS = 15.0
"""For so long after the first frame the first jumps are over, and the checkpoints are waited for."""

PLAYED_SECONDS = 10.0
_ENTRY = re.compile(rb"entry (\d+) of \d+")


class Watched:
    """`gonogo replay` in a terminal.

    Args:
        place: Folder of the log.
        cache: Folder for bytecode.
    """

    def __init__(self, place: Path, cache: Path) -> None:
        self.begun = time.perf_counter()
        command = [sys.executable, "-m", "console", "replay", str(place)]
        self.process, self._terminal = open_terminal(command, SIZE, environment(cache))
        self._seen = b""

    def read(self, seconds: float) -> bytes:
        """What was painted within some time, as soon as there is something."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self._terminal, 1 << 20)
        except OSError:
            raise NoFrame(f"gonogo replay ended: {self._seen[-500:]!r}") from None

    def next_entry(self, seconds: float = 30.0) -> int:
        """Wait until the number of an entry is painted.

        Raises:
            NoFrame: When none is.
        """
        deadline = time.perf_counter() + seconds
        self._seen = b""
        while time.perf_counter() < deadline:
            self._seen += self.read(deadline - time.perf_counter())
            if found := _ENTRY.findall(self._seen):
                return int(found[-1])
        raise NoFrame(f"gonogo replay: no entry was painted within {seconds:.0f} s; last: {self._seen[-500:]!r}")

    def jump(self, keys: bytes) -> float:
        """Press keys, and return after how many milliseconds an entry was painted."""
        while self.read(0.05):
            pass
        begun = time.perf_counter()
        os.write(self._terminal, keys)
        self.next_entry()
        return 1000 * (time.perf_counter() - begun)

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._terminal, keys)

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


def click(column: int) -> bytes:
    """A click on the time line, as a terminal reports it (SGR 1006)."""
    row = SIZE[1] - 2
    return f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m".encode()


def _jumps(watched: Watched, count: int, dice: random.Random) -> list[float]:
    columns = [dice.randrange(3, SIZE[0] - 2) for _ in range(count)]
    return [watched.jump(click(column)) for column in columns]


def _frames(watched: Watched) -> tuple[float, float]:
    """Play at x1000; frames a second, and the longest time between two, in milliseconds."""
    watched.jump(b"[")
    watched.press(b"9 ")
    painted, last = list[float](), 0
    end = time.perf_counter() + PLAYED_SECONDS
    while (now := time.perf_counter()) < end:
        found = _ENTRY.findall(watched.read(end - now))
        if found and int(found[-1]) != last:
            last = int(found[-1])
            painted.append(time.perf_counter())
    watched.press(b" ")
    gaps = [1000 * (after - before) for before, after in pairwise(painted)]
    return len(painted) / PLAYED_SECONDS, max(gaps, default=float("inf"))


def _line(name: str, times: Sequence[float]) -> bool:
    met = max(times) < JUMP_MS
    ranked = sorted(times)
    high = ranked[min(len(ranked) - 1, round(0.99 * len(ranked)))]
    print(f"  {name:<44} median {statistics.median(times):5.1f} ms   99 % {high:5.1f} ms   longest {max(times):5.1f} ms"
          f"   n = {len(times)}; target < {JUMP_MS:.0f} ms: {'met' if met else 'MISSED'}")  # fmt: skip
    return met


def report(place: Path, cache: Path, entries: int, count: int) -> bool:
    """Measure a log and print what was found; returns whether every target was met."""
    dice = random.Random(7)
    watched = Watched(place, cache)
    try:
        watched.next_entry()
        opened, ran = time.perf_counter() - watched.begun, on_processor(watched.process.pid)
        print(f"gonogo replay over {entries} entries ({(place / 'work_log.md').stat().st_size / 1e6:.0f} MB)")
        met = opened < OPEN_SECONDS
        verdict = "met" if met else "MISSED"
        print(
            f"  first frame after {opened:.2f} s, {ran:.2f} s on a processor; target < {OPEN_SECONDS:.0f} s: {verdict}"
        )
        met = _line("jumps right after it (the board follows)", _jumps(watched, 10, dice)) and met
        while time.perf_counter() - watched.begun - opened < SETTLED_SECONDS:
            watched.read(0.5)
        met = _line("jumps while the log is checked", _jumps(watched, count, dice)) and met
        keys = [b"]", b"[", *(key.encode() for key in "ngif" * 5 + "NGIF"), b".", b","]
        met = _line("jumps by key", [watched.jump(key) for key in keys]) and met
        frames, gap = _frames(watched)
        met = frames >= FRAMES and met
        print(f"  playing at x1000: {frames:.1f} frames a second, at most {gap:.0f} ms between two; "
              f"target >= {FRAMES:.0f}: {'met' if frames >= FRAMES else 'MISSED'}")  # fmt: skip
        peak = high_water(watched.process.pid) or float("inf")
        met = peak < MEMORY_MB and met
        print(f"  peak resident memory {peak:.0f} MB (VmHWM); target < {MEMORY_MB:.0f} MB: "
              f"{'met' if peak < MEMORY_MB else 'MISSED'}")  # fmt: skip
    finally:
        watched.close()
    return met


def main() -> int:
    """Write a log, or take one, and measure its replay."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.replay", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="length of the log (default: 1000000)")
    parser.add_argument("--jumps", type=int, default=200, help="how many clicks on the time line (default: 200)")
    parser.add_argument("--log", type=Path, help="folder with a log that was written for this before")
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, Textual {version('textual')}, {platform.system()} {platform.machine()}"
          f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")  # fmt: skip
    try:
        with tempfile.TemporaryDirectory(prefix="gonogo-bench-") as folder:
            place = args.log or logs.write(Path(folder) / "run", args.entries)
            return 0 if report(place, Path(folder) / "bytecode", args.entries, args.jumps) else 1
    except NoFrame as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
