"""The fleet under load: 200 releases whose 500 jobs change every second, in a real pseudo-terminal.

Measured is the time from a key that moves the cursor to the last byte of what it paints (nothing more for 8 ms; that
wait is not counted), and the memory of the process at the beginning and at the end. The writers are another process.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.first_frame import NoFrame, environment, open_terminal
from tests.console import runs

RELEASES, JOBS, KEYS = 200, 500, 400
TARGET_MS = 25.0
QUIET = 0.008
LONGEST = 30.0


def resident(pid: int) -> float:
    """What of a process is resident, in millions of bytes."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def drain(terminal: int, seconds: float) -> bytes:
    """Everything that is written within a time."""
    seen, end = b"", time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            seen += os.read(terminal, 1 << 20)
    return seen


def press(terminal: int, key: bytes) -> float:
    """Seconds from a key to the last byte of what it paints.

    Raises:
        NoFrame: When nothing is painted.
    """
    begun = time.perf_counter()
    os.write(terminal, key)
    if not select.select([terminal], [], [], LONGEST)[0]:
        raise NoFrame(f"nothing was painted within {LONGEST:.0f} s of a key")
    while True:
        os.read(terminal, 1 << 20)
        last = time.perf_counter()
        if not select.select([terminal], [], [], QUIET)[0]:
            return last - begun


def make(place: Path) -> None:
    """The releases."""
    place.mkdir()
    run = runs.running(place / "model")
    run.close()
    root = place / "runs"
    root.mkdir()
    for number in range(RELEASES):
        shutil.copytree(run.path, root / f"run-{number:03d}")


def report(place: Path, keys: int = KEYS) -> bool:
    """Measure and print.

    Args:
        place: An empty folder.
        keys: How many keys are pressed.

    Returns:
        Whether the target was met.
    """
    make(place)
    root = place / "runs"
    command = [sys.executable, "-m", "console", "fleet", "--read-only", str(root)]
    writer = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.fleet_writer", str(root), str(JOBS)])
    process, terminal = open_terminal(command, (120, 36), environment(place / "bytecode"))
    try:
        seen, end = b"", time.monotonic() + LONGEST
        while f"{RELEASES} releases".encode() not in seen:
            seen += drain(terminal, 0.2)
            if time.monotonic() > end:
                raise NoFrame(f"the fleet was not shown within {LONGEST:.0f} s: {seen[-500:]!r}")
        os.write(terminal, b"j")
        drain(terminal, 5.0)
        first, took = resident(process.pid), list[float]()
        for number in range(keys):
            # Down through the rows and up again: at the edge of the window every key scrolls.
            took.append(1000 * press(terminal, b"\x1b[B" if number % 200 < 120 else b"\x1b[A"))
            drain(terminal, 0.05)
        last = resident(process.pid)
    finally:
        for item in (process, writer):
            item.send_signal(signal.SIGKILL)
            item.wait()
        os.close(terminal)
    cuts = statistics.quantiles(took, n=100)
    met = cuts[98] <= TARGET_MS
    print(f"fleet of {RELEASES} releases, {JOBS} jobs changing every second, 120x36, {keys} keys")
    print(f"  key to paint: median {cuts[49]:.1f} ms, p95 {cuts[94]:.1f}, p99 {cuts[98]:.1f}, most {max(took):.1f}")
    print(f"  resident: {first:.1f} MB at the beginning, {last:.1f} MB at the end ({last - first:+.1f})")
    print(f"  load of the machine {' '.join(f'{item:.2f}' for item in os.getloadavg())} on {os.cpu_count()} cores")
    print(f"  target p99 <= {TARGET_MS:.0f} ms: {'met' if met else 'MISSED'}")
    return met
