"""Flip thousands of single bytes all over a finished run folder, and see that each is named.

`python -m tests.verify [RUN_DIR] [--count N] [--seed S]`; without a folder, a release is made first.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

from backends.sandbox import lifecycle
from console.release.verify.facts import Word
from console.release.verify.whole import verify
from tests.kills.releases import Lab
from tests.verify.flipping import flips, positions, record_files


def main() -> int:
    """Flip and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", nargs="?", type=Path)
    parser.add_argument("--count", type=int, default=60, help="positions in each file")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="gonogo-verify-") as folder:
        run_dir = Path(shutil.copytree(args.run_dir or _make(Path(folder)), Path(folder) / "copy"))
        begin, flipped, missed = time.monotonic(), 0, []
        for path in record_files(run_dir):
            for position in positions(path, args.count, chance):
                with flips(path, position, chance):
                    flipped += 1
                    if not any(fact.word is Word.WRONG for fact in verify(run_dir)):
                        missed.append(f"{path.relative_to(run_dir)}, byte {position}")
        files = len(record_files(run_dir))
    for line in missed:
        print(f"nobody noticed: {line}")
    spent = time.monotonic() - begin
    print(f"{flipped} bytes in {files} files changed, {len(missed)} unnoticed; seed {args.seed}; {spent:.0f} s")
    return 1 if missed or not flipped else 0


def _make(folder: Path) -> Path:
    lab = Lab.make(folder)
    try:
        done = lab.run("r")
        assert done.returncode == 0, done.stderr
    finally:
        lifecycle.end_jobs(folder / "cluster")
        lifecycle.stop(folder / "cluster")
    return folder / "r"


if __name__ == "__main__":
    raise SystemExit(main())
