"""A stranger checks a finished release from its folder alone: nothing in it can be changed unseen."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.sandbox import lifecycle
from console.release.verify.facts import Fact, Word
from console.release.verify.folder import PASSING
from console.release.verify.whole import verify
from tests.kills.releases import ROOT, Lab
from tests.verify.flipping import flips, positions, record_files


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that ended well, and where its drafter lies."""
    folder = tmp_path_factory.mktemp("verify")
    lab = Lab.make(folder)
    try:
        assert lab.run("r").returncode == 0
    finally:
        lifecycle.end_jobs(folder / "cluster")
        lifecycle.stop(folder / "cluster")
    return folder / "r"


@pytest.fixture
def run_dir(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "r"))


def wrong(run_dir: Path) -> list[Fact]:
    return [fact for fact in verify(run_dir) if fact.word is Word.WRONG]


def test_an_untouched_release_holds_and_says_what_it_did_not_check(run_dir: Path) -> None:
    facts = list(verify(run_dir))
    assert [fact for fact in facts if fact.word is Word.WRONG] == []
    assert {fact.about for fact in facts if fact.word is Word.NOT_CHECKED} <= set(PASSING)
    assert sum(fact.word is Word.OK for fact in facts) > 50


def test_any_changed_byte_of_the_record_is_named(run_dir: Path) -> None:
    """A few positions of every file, and more of the large ones; `python -m tests.verify` takes thousands."""
    chance = random.Random(20261201)
    for path in record_files(run_dir):
        for position in positions(path, 2, chance):
            with flips(path, position, chance):
                named = [fact.about for fact in wrong(run_dir)]
                assert named, f"{path.relative_to(run_dir)}, byte {position}: nobody noticed"


@pytest.mark.parametrize("what", ["cut", "gone", "emptied", "folder"])
def test_a_file_that_is_cut_or_gone_is_named(run_dir: Path, what: str) -> None:
    for path in record_files(run_dir):
        data = path.read_bytes()
        path.chmod(0o600)
        match what:
            case "cut":
                path.write_bytes(data[:-1])
            case "gone":
                path.unlink()
            case "emptied":
                path.write_bytes(b"")
            case "folder":
                path.unlink()
                path.mkdir()
        assert wrong(run_dir), path
        if path.is_dir():
            path.rmdir()
        path.write_bytes(data)


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "submissions/006-bench-1/job.json",
        "submissions/005-bench-1/extra",
        "results/x/y.json",
        "requests/r",
    ],
)
def test_a_file_too_many_is_named(run_dir: Path, name: str) -> None:
    (run_dir / name).parent.mkdir(exist_ok=True)
    (run_dir / name).write_text("{}")
    assert any(fact.about in name or name in fact.about for fact in wrong(run_dir)), wrong(run_dir)


def swap_results(run_dir: Path) -> None:
    first, second = run_dir / "results/004-smoke-1/smoke.json", run_dir / "results/005-bench-1/bench.json"
    for path in (first, second):
        path.chmod(0o600)
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


def borrow_a_decision(run_dir: Path) -> None:
    target = run_dir / "submissions/005-bench-1/decision.json"
    target.chmod(0o600)
    target.write_bytes((run_dir / "submissions/004-smoke-1/decision.json").read_bytes())


def drop_a_decision(run_dir: Path) -> None:
    (run_dir / "submissions/005-bench-1/decision.json").unlink()


def drop_a_proposal(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "submissions/003-train-1")


def link_a_result_elsewhere(run_dir: Path) -> None:
    path = run_dir / "results/004-smoke-1/smoke.json"
    kept = run_dir.parent / "elsewhere.json"
    kept.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(kept)


@pytest.mark.parametrize(
    "trick", [swap_results, borrow_a_decision, drop_a_decision, drop_a_proposal, link_a_result_elsewhere]
)
def test_tricks_are_named(run_dir: Path, trick: Callable[[Path], None]) -> None:
    trick(run_dir)
    assert wrong(run_dir)


def test_a_log_that_was_written_anew_with_a_sound_chain_still_has_to_fit_the_rest(run_dir: Path) -> None:
    """Whoever owns the folder can write another log; then the verdict no longer follows from what was kept."""
    from console.release.journal import Journal, read_log

    entries = read_log(run_dir)
    (run_dir / "work_log.md").unlink()
    clock = iter(entries)
    forged = Journal(run_dir, lambda: __import__("datetime").datetime.fromisoformat(next(clock).time))
    for entry in entries:
        data = dict(entry.data)
        if data["event"] == "gate" and data["gate"] == "bench":
            data["detail"] = "much faster than it was"
        forged.append(entry.kind, entry.actor, entry.stage, entry.text, data)
    assert any(fact.about == "gate bench over 005-bench-1" for fact in wrong(run_dir))


def gonogo(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "console", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)


def test_the_command_says_it_in_lines_and_json(run_dir: Path) -> None:
    good = gonogo("verify", run_dir)
    assert (good.returncode, " 0 WRONG," in good.stdout) == (0, True)
    swap_results(run_dir)
    bad = gonogo("verify", run_dir, "--wrong", "--json")
    assert bad.returncode == 1
    assert {item["word"] for item in json.loads(bad.stdout)} == {"WRONG"}
    assert any("results/004-smoke-1/smoke.json" in item["about"] for item in json.loads(bad.stdout))


def test_a_folder_that_is_no_run_is_bad_input(tmp_path: Path) -> None:
    done = gonogo("verify", tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
