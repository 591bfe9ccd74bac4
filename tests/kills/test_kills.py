"""Killed where it hurts most, a release goes on as if nothing had happened. `make kills` does it everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backends.sandbox import lifecycle
from tests.kills.killing import kill_and_go_on, spread
from tests.kills.releases import Lab

WORST = (
    "after publish run folder",
    "after create decision 001-stage_target-1",
    "after append submit_intent",
    "after create use 002-data-1",
    "after submit 003-train-1",
    "after append gate#3",  # of the export: what the freeze needs to know is learned with it
    "after append freeze_started",
    "after append gate#5",  # of the freeze: what the benchmark needs to know is learned with it
    "after replace results/005-bench-1/bench.json",
    "after append stage_passed#6",
    "after append verdict",
)
"""Between an effect and the log entry that tells of it, where a process that dies leaves the most open."""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab.make(tmp_path)
    yield made
    lifecycle.end_jobs(tmp_path / "cluster")
    lifecycle.stop(tmp_path / "cluster")


@pytest.mark.timeout(400)  # ten releases; on a busy machine they take their time
def test_killed_between_an_effect_and_its_log_entry_nothing_is_doubled_or_lost(lab: Lab) -> None:
    with ThreadPoolExecutor(2) as pool:
        for said in pool.map(lambda at: kill_and_go_on(lab, f"at-{WORST.index(at)}", at), WORST):
            assert said == "killed 1 times, DRAFTER_READY"


def test_the_spread_of_points_has_both_ends() -> None:
    assert spread(50, 352)[0] == 1
    assert spread(50, 352)[-1] == 352
    assert len(spread(50, 352)) == 50
