"""Kill a release at one crash point, go on with it, and check what the cluster's own records say."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.kills.releases import Lab

KILLED = -signal.SIGKILL


def list_points(lab: Lab) -> list[str]:
    """The crash points that an undisturbed release passes, in order, by name."""
    file = lab.folder / "points"
    done = lab.run("undisturbed", {"GONOGO_TEST_CRASH_LIST": str(file)})
    assert done.returncode == 0, done.stdout + done.stderr
    lab.check("undisturbed")
    return [line.partition(" ")[2] for line in file.read_text().splitlines()]


def kill_and_go_on(lab: Lab, name: str, *points: int | str) -> str:
    """Start a release, kill it at a point, resume it, kill that at the next one, and so on; then let it end.

    Args:
        lab: Where.
        name: Name of the run.
        points: Where each process kills itself, by number or by name.

    Returns:
        What happened, in words.
    """
    died = 0
    for point in points:
        done = begin_or_resume(lab, name, {"GONOGO_TEST_CRASH_AT": str(point)})
        if done == 0:  # it had fewer points left than that
            break
        assert done == KILLED, f"{name}: it ended with {done} instead of being killed at {point}"
        died += 1
    if begin_or_resume(lab, name, {}) != 0:
        raise AssertionError(f"{name}: killed at {points}, it did not end well:\n{last_words(lab, name)}")
    lab.check(name)
    return f"killed {died} times, DRAFTER_READY"


def begin_or_resume(lab: Lab, name: str, environment: dict[str, str]) -> int:
    """Start a release, or go on with it where its folder is there: it appears whole or not at all."""
    there = (lab.folder / name).exists()
    done = lab.resume(name, environment) if there else lab.run(name, environment)
    (lab.folder / f"{name}.said").write_text(done.stdout + done.stderr)
    return done.returncode


def last_words(lab: Lab, name: str) -> str:
    """What the last process of a run printed."""
    return Path(lab.folder / f"{name}.said").read_text()[-3000:]


def spread(count: int, points: int) -> list[int]:
    """So many point numbers, spread evenly over all, first and last among them."""
    return sorted({1 + round(index * (points - 1) / (count - 1)) for index in range(count)})
