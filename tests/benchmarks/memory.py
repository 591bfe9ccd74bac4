"""Peak memory of a headless release, beside a process that does nothing but import what conducting needs.

The peak is the kernel's own: VmHWM in /proc/PID/status, the most that was ever resident of that process alone. It only
rises, so reading it until the process ends finds it. The embedded cluster and the jobs are other processes, as they
are elsewhere, and are not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.sandbox import lifecycle
from tests.benchmarks.first_frame import ROOT

TARGET_MB = 150.0
POLL_SECONDS = 0.02
PEER = "import asyncssh, pydantic, yaml, sys; print('ready', flush=True); sys.stdin.read()"
PEER_NAME = "peer: asyncssh, pydantic and PyYAML imported"


class NotMeasured(Exception):
    """A program could not be measured. The text says why."""


@dataclass(frozen=True)
class Peak:
    """What one process came to.

    Attributes:
        megabytes: Most of it that was resident, in millions of bytes.
        seconds: How long it ran.
        looks: How often its memory was read.
        status: Its exit status.
        output: What it printed.
    """

    megabytes: float
    seconds: float
    looks: int
    status: int
    output: str


def high_water(pid: int) -> float | None:
    """The peak of a process so far, in millions of bytes; None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    # A process that has ended and was not waited for yet has no memory any more.
    found = re.search(r"^VmHWM:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else None


def peak_of(command: Sequence[str], output: Path) -> Peak:
    """Run a program to its end and find its peak.

    Args:
        command: The program and its arguments.
        output: File for what it prints.
    """
    begun, peak, looks = time.monotonic(), 0.0, 0
    with open(output, "wb") as stream:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT)
        try:
            while (now := high_water(process.pid)) is not None:
                peak, looks = max(peak, now), looks + 1
                try:
                    process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
            process.wait()
        finally:
            process.kill()
    return Peak(peak, time.monotonic() - begun, looks, process.returncode, output.read_text(errors="replace"))


def peak_of_peer() -> float:
    """The peak of the peer, in millions of bytes."""
    with subprocess.Popen(
        [sys.executable, "-c", PEER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise NotMeasured("the peer cannot import what it needs: pip install -e '.[demo,dev]'")
        found = high_water(process.pid)
        if found is None:
            raise NotMeasured("/proc/PID/status has no VmHWM: this needs Linux")
        return found


def demo(place: Path) -> list[str]:
    """A whole release of the demo, in a folder."""
    return [
        *(sys.executable, "-m", "console", "demo", "--headless", "--approve-submissions", "none"),
        *("--run-dir", str(place / "run")),
    ]


def report(place: Path, command: Sequence[str] = ()) -> bool:
    """Measure a release, by default of the demo, and print what was found.

    Args:
        place: An empty folder.
        command: What to run instead.

    Returns:
        Whether the target was met.
    """
    peer = peak_of_peer()
    try:
        peak = peak_of(command or demo(place), place / "output")
    finally:
        if not command:
            lifecycle.stop(place / "run.cluster")
    if peak.status != 0:
        raise NotMeasured(f"it ended with status {peak.status}, so this is no whole release: {peak.output[-800:]}")
    met = peak.megabytes < TARGET_MB
    print("peak resident memory of a headless release (VmHWM)")
    print(f"  {'gonogo, one process':<52} {peak.megabytes:6.1f} MB   {peak.seconds:.0f} s, read {peak.looks} times")
    print(f"  {PEER_NAME:<52} {peer:6.1f} MB")
    print(f"  ratio {peak.megabytes / peer:.2f}; target < {TARGET_MB:.0f} MB: {'met' if met else 'MISSED'}")
    return met
