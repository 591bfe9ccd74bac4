"""Runs of other programs: logs of many shapes are read, what is no entry is listed, and foreign text does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.cli import main
from console.release.journal import Kind
from console.replay import foreign, foreign_state
from console.replay.foreign_session import ForeignSession, is_foreign
from console.replay.recording import FOREIGN, open_recording

SHAPES = {
    "list": "# Log\n- 2026-08-12 09:00:00 ACTION [train] submitted job 17\n"
            "- 2026-08-12 09:05:00 HUMAN_INTERVENTION [train] raised the time limit\n",
    "headings": "## 2026-08-12T09:00:00Z ACTION stage: train\n\nsubmitted job 17\n\n"
                "## 2026-08-12T09:05:00Z HUMAN_INTERVENTION stage: train\n\nraised the time limit\n",
    "table": "| time | kind | stage | what |\n|---|---|---|---|\n"
             "| 2026-08-12 09:00 | ACTION | train | submitted job 17 |\n"
             "| 2026-08-12 09:05 | HUMAN_INTERVENTION | train | raised the time limit |\n",
    "plain lines": "2026-08-12 09:00:00 ACTION: train: submitted job 17\r\n"
                   "2026-08-12 09:05:00 HUMAN_INTERVENTION: train: raised the time limit\r\n",
    "bold, under a dated heading": "## 2026-08-12\n### train\n- **ACTION** 09:00 submitted job 17\n"
                                   "- **HUMAN INTERVENTION** 09:05 raised the time limit\n",
    "newest first": "- 2026-08-12 09:05:00 HUMAN_INTERVENTION [train] raised the time limit\n"
                    "- 2026-08-12 09:00:00 ACTION [train] submitted job 17\n",
    "check list with offsets": "1. [x] `ACTION` 2026-08-12T11:00:00+02:00 (train) submitted job 17\n"
                               "2. [x] `HUMAN_INTERVENTION` 2026-08-12T11:05:00+02:00 (train) raised the time limit\n",
}  # fmt: skip

HOSTILE = (
    "\x1b]0;owned\x07", "\x1b[2J", "%s", "\ud7ff",
    "\u202eevil", "a\u200bb", "[/", "[bold]x[/bold]", "[@click=app.quit]x[/]", "wide 漢字",
    "combining e\u0301\u0301\u0301", "x" * 100_000, "\x00\x85\u2028", "|||", "<!--", "```", "- - -", "{{",
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    """The same two entries, whatever the shape: kind, stage, time and words."""
    log = foreign.parse(SHAPES[shape].encode())
    first, second = log.entries
    assert (first.kind, second.kind) == (Kind.ACTION, Kind.HUMAN_INTERVENTION)
    assert (first.stage, second.stage) == ("train", "train")
    assert (first.time[:16], second.time[:16]) == ("2026-08-12T09:00", "2026-08-12T09:05")
    assert first.text == "submitted job 17"
    assert second.text == "raised the time limit"
    assert log.unplaced == []


def test_what_is_no_entry_is_listed_with_its_line() -> None:
    text = (
        "# Log of a run\nwritten by hand\n- ACTION submit\n\n- looked at the queue\n- 2026-08-12 10:00 note: waiting\n"
    )
    log = foreign.parse(text.encode())
    assert len(log.entries) == 1
    assert [(item.line, item.text) for item in log.unplaced] == [
        (2, "written by hand"),
        (5, "- looked at the queue"),
        (6, "- 2026-08-12 10:00 note: waiting"),
    ]
    assert any("have no time" in note for note in log.notes)


def test_a_block_that_never_ends_hides_nothing() -> None:
    log = foreign.parse(b"- ACTION one\n```\n- ACTION in a block\n```\n<!-- oh\n- ACTION two\n```\n- ACTION three\n")
    assert [entry.text.split()[0] for entry in log.entries] == ["one", "two", "three"]
    assert any("line 5 begins a code block or comment that never ends" in note for note in log.notes)


LINES = st.one_of(
    st.sampled_from([*HOSTILE, *(line for text in SHAPES.values() for line in text.split("\n"))]),
    st.text(max_size=60),
    st.builds("- 2026-08-12 09:00 ACTION {}".format, st.text(max_size=30)),
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES, max_size=25))
def test_no_text_is_lost_or_breaks_the_reader(lines: list[str]) -> None:
    """Whatever stands around it: a line of plain words is part of an entry, or is listed."""
    lines = [*lines[: len(lines) // 2], "plain words of somebody", *lines[len(lines) // 2 :]]
    log = foreign.parse("\n".join(lines).encode("utf-8", "surrogatepass"))
    assert len(log.times) == len(log.entries) == len(log.lines)
    shown = "\n".join([*(entry.text for entry in log.entries), *(item.text for item in log.unplaced)])
    assert "plain words of somebody" in shown


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300))
def test_bytes_that_are_no_text_are_read_all_the_same(data: bytes) -> None:
    log = foreign.parse(b"- 2026-08-12 09:00 ACTION [train] " + data.replace(b"\n", b" ") + b"\n- ACTION next\n")
    assert [entry.kind for entry in log.entries][:1] == [Kind.ACTION]


def _folder(place: Path, log: str, state: object = None) -> Path:
    place.mkdir()
    (place / "work_log.md").write_text(log)
    if state is not None:
        (place / "specdec_state.json").write_text(state if isinstance(state, str) else json.dumps(state))
    return place


def test_a_foreign_run_is_shown_as_it_is_said(tmp_path: Path) -> None:
    state = {"run_id": "theirs", "stages": [{"name": "train", "status": "half done", "jobs": [17]}, 5], "verdict": None}
    place = _folder(tmp_path / "run", SHAPES["list"], state)
    assert is_foreign(place)
    snapshot = ForeignSession(place).poll()
    assert snapshot.run.run_id == "theirs"
    assert snapshot.unrecorded["train"] == "half done"
    assert snapshot.unrecorded["bench"] == ""
    assert snapshot.run.interventions == 1
    assert any("1 thing could not be placed" in problem for problem in snapshot.problems)
    assert "stages[1]: no name: 5" in foreign_state.read(place).unplaced[0]


@pytest.mark.parametrize(
    "state", ["", "{", "[1]", '{"stages": "x"}', '{"stages": {"train": {"status": NaN}}}', "[" * 9999]
)
def test_no_state_file_breaks_it(tmp_path: Path, state: str) -> None:
    """A state that cannot be read is named, or shown as it stands; the log is shown all the same."""
    place = _folder(tmp_path / "run", SHAPES["list"], state)
    snapshot = ForeignSession(place).poll()
    assert len(snapshot.log) == 2
    assert snapshot.problems or "NaN" in snapshot.run.stage("train").detail


def test_it_follows_the_files(tmp_path: Path) -> None:
    place = _folder(tmp_path / "run", SHAPES["list"])
    session = ForeignSession(place)
    with open(place / "work_log.md", "a") as stream:
        stream.write("- 2026-08-12 09:09:00 ACTION [bench] began\n")
    assert len(session.poll().log) == 3


def test_its_replay_says_what_is_not_recorded(tmp_path: Path) -> None:
    place = _folder(tmp_path / "run", SHAPES["list"], {"run_id": "theirs", "stages": {"train": "done"}})
    recording = open_recording(place)
    assert recording.form == FOREIGN
    assert "its status is not recorded" in recording.state(1).stage("train").detail
    assert "not named in the log so far" in recording.state(1).stage("bench").detail
    assert recording.state(1).interventions == 0
    assert recording.state(2).interventions == 1
    recording.close()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_does_nothing_in_plain_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    place = _folder(tmp_path / "run", f"{text}\n- 2026-08-12 09:00:00 ACTION [train] {text} end\n")
    main(["replay", "--plain", str(place)])
    out, err = capsys.readouterr()
    for shown in (out + err).split("\n"):
        assert not any(ord(sign) < 32 or ord(sign) in (0x7F, 0x85, 0x200B, 0x202E, 0x2028) for sign in shown)
    assert "ACTION" in out or "not placed" in err
