"""Releases that are held against a catalog: the bars decide, they are fixed at the start, and anybody can check it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.sandbox import lifecycle
from console.release.folder import read_state
from console.release.history import read
from console.release.state import ReleaseVerdict, RunState
from console.release.verify.facts import Word
from console.release.verify.whole import verify
from tests.kills.releases import Lab

MODEL = "demo/tiny-target"
RATE = 0.258544921875
"""What the instant bench measures over all its points."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab.make(tmp_path_factory.mktemp("lab"))
    yield made
    lifecycle.end_jobs(made.folder / "cluster")
    lifecycle.stop(made.folder / "cluster")


def hold_against(lab: Lab, bar: float, **more: Any) -> None:
    """Name a catalog in the release file, with one bar on the acceptance rate."""
    entry = {
        "model": MODEL,
        "drafter": "dflash2",
        "draft_tokens": 4,
        "bars": {"acceptance_rate": {"bar": bar, "source": "these tests", "date": "2026-12-01"}},
        **more,
    }
    (lab.folder / "bars.json").write_text(json.dumps({"schema_version": 1, "entries": [entry]}))
    release = json.loads((lab.folder / "release.yaml").read_text())
    release["catalog"] = {"file": "bars.json"}
    (lab.folder / "release.yaml").write_text(json.dumps(release))


def state_of(lab: Lab, name: str) -> RunState:
    state = read_state(lab.folder / name)
    assert state is not None
    return state


def wrong_facts(run_dir: Path) -> list[str]:
    return [fact.about for fact in verify(run_dir) if fact.word is Word.WRONG]


def test_at_its_bar_a_drafter_is_ready_and_the_bar_stays_with_the_run(lab: Lab) -> None:
    hold_against(lab, RATE)
    done = lab.run("at-the-bar")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "added to the history" in done.stdout
    state = state_of(lab, "at-the-bar")
    assert state.verdict is ReleaseVerdict.DRAFTER_READY
    gate = next(gate for gate in state.stage("bench").gates if gate.name == "acceptance")
    assert gate.passed
    assert gate.facts["acceptance_rate"] == RATE
    assert wrong_facts(lab.folder / "at-the-bar") == []
    (release,) = read(lab.folder / "history.sqlite")
    assert {(one.gate, one.name): one.value for one in release.measured}["acceptance", "acceptance_rate"] == RATE

    catalog = lab.folder / "at-the-bar" / "catalog.json"
    catalog.chmod(0o600)
    catalog.write_bytes(catalog.read_bytes().replace(b"0.2585", b"0.2584"))
    assert "catalog.json" in wrong_facts(lab.folder / "at-the-bar")
    refused = lab.resume("at-the-bar")
    assert refused.returncode == 2
    assert "catalog.json: the whole file: expected the inputs that this run was started with" in refused.stderr


def test_under_its_bar_a_drafter_is_infeasible_though_every_measurement_is_valid(lab: Lab) -> None:
    hold_against(lab, RATE + 0.0001)
    done = lab.run("under-the-bar")
    state = state_of(lab, "under-the-bar")
    assert (state.verdict, state.failure_class) == (ReleaseVerdict.INFEASIBLE, "ACCEPTANCE_REGRESSION"), done.stdout
    (failed,) = [gate for gate in state.stage("bench").gates if not gate.passed]
    assert failed.name == "acceptance"
    assert failed.detail.startswith("bench.json: arms.B.points: acceptance_rate is 0.258544921875")
    assert wrong_facts(lab.folder / "under-the-bar") == []


def test_two_of_three_measures_again_and_decides_over_both(lab: Lab) -> None:
    hold_against(lab, RATE, repeat={"runs": 3, "passes": 2})
    done = lab.run("twice")
    state = state_of(lab, "twice")
    assert state.verdict is ReleaseVerdict.DRAFTER_READY, done.stdout
    assert [item.task for item in state.stage("bench").attempts] == ["bench", "bench"]
    assert [gate.passed for gate in state.stage("bench").gates if gate.name == "acceptance"] == [False, True]
    assert wrong_facts(lab.folder / "twice") == []


def test_two_of_three_under_the_bar_is_decided_after_two(lab: Lab) -> None:
    hold_against(lab, 0.5, repeat={"runs": 3, "passes": 2})
    done = lab.run("twice-under")
    state = state_of(lab, "twice-under")
    assert (state.verdict, state.failure_class) == (ReleaseVerdict.INFEASIBLE, "ACCEPTANCE_REGRESSION"), done.stdout
    assert len(state.stage("bench").attempts) == 2
    assert wrong_facts(lab.folder / "twice-under") == []
