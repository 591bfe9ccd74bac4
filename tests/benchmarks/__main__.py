"""`make bench`: what is promised about time and memory, measured beside a peer in the same run.

Exit status 0 when every target was met, 1 when one was missed, 2 when something could not be measured.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks import first_frame, fleet, freezing, memory
from tests.console import runs


def main() -> int:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", choices=("frame", "memory", "freeze", "fleet"), help="one of the four")
    parser.add_argument("--gib", type=float, default=8.0, help="how much is frozen, in GiB (default: 8)")
    parser.add_argument("--rounds", type=int, default=15, help="starts of each app at each size (at least 11)")
    parser.add_argument("command", nargs="*", help="program whose memory is measured, after --, instead of the demo")
    args = parser.parse_args()
    if args.rounds < 11:
        parser.error("--rounds: fewer than 11 say nothing")
    print(f"Python {platform.python_version()}, Textual {version('textual')}, {platform.system()} {platform.machine()}")
    met = True
    try:
        with tempfile.TemporaryDirectory(prefix="gonogo-bench-") as folder:
            place = Path(folder)
            if args.only in (None, "frame"):
                run = runs.waiting(place / "shown")
                run.close()
                first_frame.lengthen(run.path)
                met = first_frame.report(run.path, place / "bytecode", args.rounds)
            if args.only in (None, "memory"):
                met = memory.report(place, args.command) and met
            if args.only in (None, "freeze"):
                met = freezing.report(place, args.gib) and met
            if args.only in (None, "fleet"):
                met = fleet.report(place / "fleet") and met
    except (first_frame.NoFrame, memory.NotMeasured) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 2
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
