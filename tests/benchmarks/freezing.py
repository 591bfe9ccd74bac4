"""How fast a drafter is frozen and verified, beside what a person would do by hand with cp and sha256sum.

By hand nothing is made durable and nothing is read back from the disk. Ours does both, so the comparison favours
the peer. Memory is the kernel's own peak of the process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.first_frame import ROOT
from tests.benchmarks.memory import NotMeasured

FILES = 4
MOST_OF_PEER = 0.6
MOST_OF_CHECK = 1.1
MOST_MB = 64 * 1.048576
_BLOCK = 1 << 20
_PROGRAM = ROOT / "backends" / "payloads" / "freeze.py"


@dataclass(frozen=True)
class Took:
    """What a command cost: seconds on the wall, seconds on processors, and its peak in millions of bytes."""

    wall: float
    processor: float
    megabytes: float


def took(command: Sequence[str], cwd: Path) -> Took:
    """Run a command to its end.

    Raises:
        NotMeasured: When it fails.
    """
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - begun
    if process.returncode:
        raise NotMeasured(f"{command[0]} ended with {process.returncode}: {said.decode(errors='replace')[-300:]}")
    return Took(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


def make_source(folder: Path, gib: float) -> None:
    """Files of random bytes."""
    folder.mkdir()
    block = os.urandom(_BLOCK)
    for number in range(FILES):
        with open(folder / f"model-{number + 1:05}-of-{FILES:05}.safetensors", "wb") as stream:
            for i in range(int(gib * 1024 / FILES)):
                stream.write(number.to_bytes(4, "big") + i.to_bytes(4, "big") + block[8:])
            stream.flush()
            os.fsync(stream.fileno())


def by_hand(place: Path) -> Took:
    """Copy, then hash source and copy."""
    script = "cp -r source copy && find source copy -type f -print0 | xargs -0 sha256sum"
    spent = took(["sh", "-c", script], place)
    shutil.rmtree(place / "copy")
    return spent


def report(place: Path, gib: float) -> bool:
    """Measure, print, and say whether every target was met."""
    make_source(place / "source", gib)
    # Once before, so that both find the source in memory as far as it fits.
    took(["sh", "-c", "cat source/* >/dev/null"], place)
    peer = by_hand(place)
    result = place / "freeze.json"
    ours = took([sys.executable, str(_PROGRAM), "source", "frozen", "--output", str(result)], place)
    manifest = json.loads(result.read_bytes())["manifest_sha256"]
    check = took(["sh", "-c", "cd frozen && sha256sum -c --quiet SHA256SUMS"], place)
    verify = took([sys.executable, str(_PROGRAM), "--verify", "frozen", "--manifest-sha256", manifest], place)
    print(f"freeze of {gib:g} GiB in {FILES} files, {os.cpu_count()} cores")
    print(f"  cp -r, then sha256sum of both   {peer.wall:7.2f} s wall  {peer.processor:7.2f} s processor")
    print(f"  gonogo freeze                   {ours.wall:7.2f} s wall  {ours.processor:7.2f} s processor")
    print(f"  sha256sum -c                    {check.wall:7.2f} s wall  {check.processor:7.2f} s processor")
    print(f"  gonogo freeze --verify          {verify.wall:7.2f} s wall  {verify.processor:7.2f} s processor")
    memory = max(ours.megabytes, verify.megabytes)
    return all(
        [
            _within("freeze, share of doing it by hand", ours.wall / peer.wall, MOST_OF_PEER),
            _within("verify, processor time beside sha256sum -c", verify.processor / check.processor, MOST_OF_CHECK),
            _within("peak memory, MB", memory, MOST_MB),
        ]
    )


def _within(what: str, found: float, most: float) -> bool:
    print(f"  {what}: {found:.2f} (at most {most:.2f}): {'met' if found <= most else 'MISSED'}")
    return found <= most
