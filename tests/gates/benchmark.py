"""How many result files a second the gates decide, on one core: `python -m tests.gates.benchmark`.

Compared, in the same run, with what reading the same bytes by `json.loads` alone takes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from gates.registry import run
from tests.gates import passing

SECONDS = 0.5
"""How long each rate is measured."""


def rate(work: Callable[[], object]) -> float:
    """Calls a second."""
    work()
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < SECONDS:
        work()
        count += 1
    return count / spent


def read(files: list[bytes]) -> list[object]:
    """The files by Python's own parser."""
    return [json.loads(data) for data in files]


def measure() -> dict[str, tuple[int, float, float]]:
    """For each gate: size of its files in bytes, verdicts a second, and readings a second by json.loads alone."""
    measured = {}
    for gate, makers in passing.FILES.items():
        files = {kind: passing.encode(make()) for kind, make in makers.items()}
        expected = passing.EXPECTED[gate]
        size = sum(map(len, files.values()))
        verdicts = rate(partial(run, gate, files, expected))
        readings = rate(partial(read, list(files.values())))
        measured[gate] = (size, verdicts, readings)
    return measured


def main() -> None:
    """Print the table."""
    print(f"{'gate':12} {'bytes':>8} {'verdicts/s':>12} {'json.loads/s':>14}")
    for gate, (size, verdicts, readings) in measure().items():
        print(f"{gate:12} {size:8} {verdicts:12.0f} {readings:14.0f}")


if __name__ == "__main__":
    main()
