"""A whole release, added to the history once; and a log that was changed, added never."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox import lifecycle
from console.cli import main
from console.release import history
from console.release.history_adding import remember
from tests.kills.releases import Lab

# The release that the first test makes is used by those after it: they stay in one process.
pytestmark = pytest.mark.xdist_group("history")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab.make(tmp_path_factory.mktemp("history"))
    yield lab
    lifecycle.end_jobs(lab.folder / "cluster")
    lifecycle.stop(lab.folder / "cluster")


def test_a_finished_release_is_added_once_with_what_its_gates_measured(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.folder / "another.sqlite"
    done = lab.run("first")
    assert done.returncode == 0, done.stderr
    run_dir = lab.folder / "first"
    assert remember(run_dir, file) == f"added to the history {file}"
    assert remember(run_dir, file) == f"is in the history {file}"
    assert main(["history", "add", str(run_dir), "--file", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run_id": "first", "added": False, "file": str(file)}
    (made,) = history.read(file, "demo/tiny-target")
    assert (made.verdict, made.drafter, made.draft_tokens, made.cluster) == ("DRAFTER_READY", "dflash2", 4, "demo")
    state = json.loads((run_dir / "specdec_state.json").read_text())
    assert made.head == state["log"]["head"]
    assert made.manifest == state["freeze"]["manifest_sha256"]
    (bench,) = [gate for stage in state["stages"] for gate in stage["gates"] if gate["name"] == "bench"]
    for name in ("speedup_c1", "acceptance_rate_c1", "acceptance_length_c32"):
        measured = made.value(("bench", name))
        assert measured is not None
        assert (measured.value, measured.sha256) == (bench["facts"][name], bench["sha256"])


def test_a_log_that_was_changed_adds_nothing(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = lab.folder / "first"
    log = run_dir / "work_log.md"
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"DRAFTER_READY", b"DRAFTER_RUINS", 1))
    try:
        assert main(["history", "add", str(run_dir), "--file", str(tmp_path / "h.sqlite")]) == 2
    finally:
        log.write_bytes(whole)
    assert "work_log.md" in capsys.readouterr().err
    assert not (tmp_path / "h.sqlite").exists()
