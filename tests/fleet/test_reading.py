"""Reading a fleet: every kind of folder is there with its reason, and what did not change is not read again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli import main
from console.fleet import listing
from console.fleet.listing import Wish
from console.fleet.reading import FleetReader
from console.fleet.release import Kind, Release, word
from console.release import folder
from tests.console import runs
from tests.console.runs import Run
from tests.fleet import folders


@pytest.fixture
def made(tmp_path: Path) -> Iterator[dict[str, Run]]:
    found = folders.root(tmp_path / "runs")
    yield found
    folders.close(found)


def by_folder(place: Path) -> dict[str, Release]:
    return {item.path.name: item for item in FleetReader([place]).poll().releases}


def test_every_folder_says_what_it_is(tmp_path: Path, made: dict[str, Run]) -> None:
    found = by_folder(tmp_path / "runs")
    assert sorted(found) == ["broken", "fresh", "ready", "running", "theirs", "waiting"]
    states = {name: word(item.status(folders.NOW)) for name, item in found.items()}
    assert states["waiting"] == "WAITS FOR YOU"
    assert states["ready"] == "DRAFTER_READY"
    assert states["fresh"] == "NOT CONDUCTED"
    assert states["theirs"] == "FOREIGN"
    assert states["broken"] == "UNREADABLE"
    assert found["theirs"].status(folders.NOW).text == "its verdict: fine so far"
    assert folder.STATE_NAME in found["broken"].status(folders.NOW).text
    assert found["waiting"].status(folders.NOW).text.startswith("approve or reject 003-train-1")
    assert (found["waiting"].cluster, found["waiting"].account) == ("sandbox", "research")


def test_a_decided_job_waits_for_nobody_and_a_new_one_waits_before_the_log_knows_it(
    tmp_path: Path, made: dict[str, Run]
) -> None:
    place = tmp_path / "runs" / "waiting" / "submissions"
    (place / "003-train-1" / "decision.json").write_text("{}")
    item = by_folder(tmp_path / "runs")["waiting"]
    assert item.waits == 0
    assert item.snapshot.decided == {"003-train-1"}
    (place / "004-ask-1").mkdir()
    (place / "004-ask-1" / "job.json").write_text("{}")
    assert [job.id for job in by_folder(tmp_path / "runs")["waiting"].snapshot.waiting] == ["004-ask-1"]


def test_what_did_not_change_is_not_read_again(
    tmp_path: Path, made: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = FleetReader([tmp_path / "runs"])
    reader.poll()
    read: list[str] = []
    real_state, real_live = folder.read_state, folder.read_live

    def read_state(path: Path):
        read.append(f"state of {path.name}")
        return real_state(path)

    def read_live(path: Path):
        read.append(f"live of {path.name}")
        return real_live(path)

    monkeypatch.setattr(folder, "read_state", read_state)
    monkeypatch.setattr(folder, "read_live", read_live)
    (tmp_path / "runs" / "broken" / folder.STATE_NAME).unlink()
    made["fresh"].say(doing="something")
    reader.poll()
    read.clear()
    reader.poll()
    assert [item for item in read if "broken" not in item] == []
    made["running"].say(doing="something else")
    reader.poll()
    assert [item for item in read if "broken" not in item] == ["live of running"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_is_listed_with_the_reason(tmp_path: Path, made: dict[str, Run]) -> None:
    (tmp_path / "runs" / "fresh").chmod(0)
    try:
        item = by_folder(tmp_path / "runs")["fresh"]
    finally:
        (tmp_path / "runs" / "fresh").chmod(0o755)
    assert item.kind is Kind.UNREADABLE
    assert "Permission denied" in item.said


def test_a_folder_that_cannot_be_asked_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "work_log.md").symlink_to("work_log.md")
    items = by_folder(tmp_path)
    assert items["x"].kind is Kind.UNREADABLE
    assert "symbolic links" in items["x"].said


def test_a_root_that_is_not_there_is_a_problem_and_no_empty_fleet(tmp_path: Path) -> None:
    fleet = FleetReader([tmp_path / "nowhere"]).poll()
    assert fleet.releases == ()
    assert "no such folder" in fleet.problems[0]


def test_a_filter_looks_into_what_is_shown_and_every_word_counts(tmp_path: Path, made: dict[str, Run]) -> None:
    releases = FleetReader([tmp_path / "runs"]).poll().releases

    def names(words: str) -> list[str]:
        shown = listing.rows(releases, Wish(words), folders.NOW)
        return [row.release.path.name for row in shown if row.release is not None]

    assert names("TRAIN waits") == ["waiting"]
    assert names("drafter_ready") == ["ready"]
    assert names("nothing has this") == []
    assert len(names("")) == len(releases)


@pytest.mark.parametrize("column", listing.COLUMNS)
def test_every_column_sorts_and_turning_round_keeps_every_release(
    tmp_path: Path, made: dict[str, Run], column: str
) -> None:
    releases = FleetReader([tmp_path / "runs"]).poll().releases
    for reverse in (False, True):
        shown = listing.rows(releases, Wish(column=column, reverse=reverse), folders.NOW)
        assert {row.key for row in shown} == {item.key for item in releases}


def test_what_waits_for_the_operator_comes_first_and_verdicts_last(tmp_path: Path, made: dict[str, Run]) -> None:
    releases = FleetReader([tmp_path / "runs"]).poll().releases
    shown = [word(row.status) for row in listing.rows(releases, Wish(), folders.NOW) if row.status]
    assert shown[0] == "WAITS FOR YOU"
    assert shown[-1] == "DRAFTER_READY"


def test_folding_leaves_the_heading_with_its_counts(tmp_path: Path, made: dict[str, Run]) -> None:
    releases = FleetReader([tmp_path / "runs"]).poll().releases
    unfolded = listing.rows(releases, Wish(grouping="cluster"), folders.NOW)
    heading = next(row for row in unfolded if row.group == "sandbox")
    assert (heading.size, heading.waiting) == (4, 1)
    folded = listing.rows(releases, Wish(grouping="cluster", folded=frozenset({"sandbox"})), folders.NOW)
    assert len(unfolded) - len(folded) == 4


def test_jobs_are_shown_below_their_release(tmp_path: Path, made: dict[str, Run]) -> None:
    releases = FleetReader([tmp_path / "runs"]).poll().releases
    jobs = [row for row in listing.rows(releases, Wish(jobs=True), folders.NOW) if row.job is not None]
    assert [row.job.job_id for row in jobs if row.job] == ["1003"]
    assert jobs[0].key.split("\n")[0] == str(tmp_path / "runs" / "running")


def test_the_command_prints_lines_and_json_for_pipes(
    tmp_path: Path, made: dict[str, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["fleet", str(tmp_path / "runs"), "--plain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert any("account research" in line and "cluster time" in line for line in lines)
    monkeypatch.setenv("GONOGO_RUNS", str(tmp_path / "runs"))
    assert main(["fleet", "--json", "--filter", "003-train-1 waits"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["waiting"] for item in found["releases"]] == [["003-train-1"]]
    assert found["releases"][0]["waits_for_you"] is True
    assert main(["open", "--plain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert main(["fleet", "--plain", str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("text", runs.HOSTILE, ids=range(len(runs.HOSTILE)))
def test_hostile_text_comes_out_of_the_lines_as_text(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.hostile(tmp_path / "runs" / "run", text.encode("utf-8", "replace").decode())
    assert main(["fleet", "--plain", str(tmp_path / "runs")]) == 0
    run.close()
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1
    assert out.rstrip("\n").isprintable()
