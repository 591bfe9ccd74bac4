"""`make kills`: kill a release at points spread over all of it, and at random moments; nothing doubled, nothing lost.

Prints the seed with which the same kills can be made again.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backends.sandbox import lifecycle
from console.release.folder import read_state
from tests.kills.killing import begin_or_resume, kill_and_go_on, last_words, list_points, spread
from tests.kills.releases import Lab


def main() -> int:
    """Run the kills and print what they came to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=50, help="enumerated crash points, spread over a release")
    parser.add_argument("--twice", type=int, default=10, help="releases whose resumed process is killed as well")
    parser.add_argument("--moments", type=int, default=20, help="kills at random moments")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="gonogo-kills-") as folder:
        lab = Lab.make(Path(folder))
        try:
            return _run(lab, args, chance)
        finally:
            lifecycle.end_jobs(lab.folder / "cluster")
            lifecycle.stop(lab.folder / "cluster")


def _run(lab: Lab, args: argparse.Namespace, chance: random.Random) -> int:
    begin = time.monotonic()
    points = list_points(lab)
    length = time.monotonic() - begin
    print(f"a release passes {len(points)} crash points in {length:.1f} s; seed {args.seed}", flush=True)
    once = [(number,) for number in spread(args.points, len(points))]
    twice = [(chance.randint(1, len(points)), chance.randint(1, 60)) for _ in range(args.twice)]
    moments = [chance.uniform(0.3, length) for _ in range(args.moments)]
    failures: list[str] = []

    def enumerated(numbers: tuple[int, ...]) -> None:
        name = "at-" + "-".join(map(str, numbers))
        try:
            kill_and_go_on(lab, name, *numbers)
            print(f"{name}: {points[numbers[0] - 1]}: ok", flush=True)
        except AssertionError as error:
            failures.append(f"{name}: {points[numbers[0] - 1]}: {error}")
            print(failures[-1], flush=True)

    def at_moment(item: tuple[int, float]) -> None:
        name, seconds = f"moment-{item[0]}", item[1]
        try:
            _kill_after(lab, name, seconds)
            if begin_or_resume(lab, name, {}) != 0:
                raise AssertionError(last_words(lab, name))
            lab.check(name)
            print(f"{name}: after {seconds:.2f} s: ok", flush=True)
        except AssertionError as error:
            failures.append(f"{name}: {error}")
            print(failures[-1], flush=True)

    with ThreadPoolExecutor(args.workers) as pool:
        list(pool.map(enumerated, [*once, *twice]))
        list(pool.map(at_moment, enumerate(moments)))
    _summary(lab, len(once) + len(twice) + len(moments), failures, time.monotonic() - begin)
    return 1 if failures else 0


def _kill_after(lab: Lab, name: str, seconds: float) -> None:
    command = [sys.executable, "-m", "console", *lab.run_arguments(name), "--headless"]
    process = subprocess.Popen(
        command, cwd=lab.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _summary(lab: Lab, releases: int, failures: list[str], seconds: float) -> None:
    tokens: Counter[str] = Counter()
    fenced = 0
    for run_dir in sorted(path.parent for path in lab.folder.glob("*/specdec_state.json")):
        state = read_state(run_dir)
        for attempt in state.attempts if state is not None else ():
            fenced += attempt.outcome == "not submitted"
        tokens.update(item["comment"] for item in lab.accepted(run_dir.name))
    doubled = sum(1 for count in tokens.values() if count > 1)
    print(
        f"{releases} releases killed: {len(failures)} failed; {len(tokens)} jobs accepted, {doubled} of them twice; "
        f"{fenced} approved jobs proven never submitted and proposed again; {seconds:.0f} s"
    )


if __name__ == "__main__":
    raise SystemExit(main())
