"""`gonogo log`: prints what is sound, and names the entry at which it is not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from console.cli import main
from console.release import folder, journal
from console.release.writer import RunWriter
from tests.release.making import decide, make_job, new_run, propose

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs `gonogo log` on the run; gives exit status, stdout and stderr."""

    def run(*options: str) -> tuple[int, str, str]:
        status = main(["log", str(tmp_path / "run"), *options])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    writer = new_run(tmp_path / "run")
    writer.record("stage_started", "Stage train begins\x1b[2J", stage="train")
    decide(writer, propose(writer, "001-train-1", make_job()), "rejected")
    writer.record("note", "A note\nforged: 9 ACTION", actor="operator:alice", human=True, loss=0.25, odd=["‹", None])
    return writer


def path_of(writer: RunWriter) -> Path:
    return writer.run_dir / journal.LOG_NAME


def test_a_sound_log_is_printed_one_line_for_each_entry(log: Run, writer: RunWriter) -> None:
    status, out, err = log()
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == len(writer.entries) == 5
    assert lines[1] == "   2 2026-01-02 03:04:07 ACTION conductor [train] Stage train begins‹ESC›[2J"
    assert lines[4] == "   5 2026-01-02 03:04:11 HUMAN  operator:alice A note‹LF›forged: 9 ACTION"


def test_json_has_exactly_the_documented_keys_and_all_of_the_data(log: Run, writer: RunWriter) -> None:
    status, out, err = log("--json")
    assert (status, err) == (0, "")
    assert out.isascii()
    records = [json.loads(line) for line in out.splitlines()]
    for record, entry in zip(records, writer.entries, strict=True):
        assert list(record) == ["seq", "time", "kind", "actor", "stage", "text", "data", "hash"]
        assert record == {key: value for key, value in entry.to_json().items() if key != "prev"}
        assert record["kind"] in ("ACTION", "HUMAN_INTERVENTION")
        assert record["time"].endswith("Z")


def test_interventions_are_what_people_did_beyond_approving_as_shown(log: Run, writer: RunWriter) -> None:
    status, out, _ = log("--interventions", "--json")
    assert status == 0
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [4, 5]
    assert len(log("--interventions")[1].splitlines()) == writer.state.interventions == 2


def test_a_changed_byte_anywhere_is_reported_with_its_entry(log: Run, writer: RunWriter) -> None:
    path = path_of(writer)
    data = path.read_bytes()
    starts = [len(journal.PREAMBLE)]
    for entry in writer.entries:
        starts.append(starts[-1] + len(journal.render(entry)))
    dice = random.Random(11)
    positions = sorted({*dice.sample(range(len(data)), 150), 0, *starts[:-1], *(start - 1 for start in starts)})
    for position in positions:
        path.write_bytes(data[:position] + bytes([data[position] ^ (1 << dice.randrange(8))]) + data[position + 1 :])
        status, out, err = log()
        assert status == 1, position
        assert len(err.splitlines()) == 1
        number = sum(start <= position for start in starts)
        assert (f"entry {number} " if number else "the heading was changed") in err, position
        assert len(out.splitlines()) == max(0, number - 1)
    path.write_bytes(data)
    assert log()[0] == 0


def test_a_log_cut_anywhere_is_reported(log: Run, writer: RunWriter) -> None:
    path = path_of(writer)
    data = path.read_bytes()
    for length in random.Random(5).sample(range(len(data)), 60):
        path.write_bytes(data[:length])
        status, _, err = log()
        assert status == 1, length
        assert "the state knows of 5" in err
        assert len(err.splitlines()) == 1


def test_a_removed_last_entry_is_reported_although_the_rest_is_sound(log: Run, writer: RunWriter) -> None:
    path = path_of(writer)
    path.write_bytes(path.read_bytes()[: -len(journal.render(writer.entries[-1]))])
    status, out, err = log()
    assert (status, len(out.splitlines())) == (1, 4)
    assert "it ends after entry 4, but the state knows of 5: the end was cut" in err


def test_a_whole_other_log_is_reported(log: Run, writer: RunWriter, tmp_path: Path) -> None:
    other = new_run(tmp_path / "other", target="demo/another")
    for number in range(8):
        other.record("note", f"Step {number}")
    path_of(writer).write_bytes(path_of(other).read_bytes())
    status, _, err = log()
    assert (status, "entry 5 is not the one that the state knows" in err) == (1, True)


def torn(writer: RunWriter) -> None:
    """The log as a conductor leaves it that dies while it writes an entry."""
    path = path_of(writer)
    before, state = path.read_bytes(), (writer.run_dir / folder.STATE_NAME).read_bytes()
    writer.record("note", "The last one")
    (writer.run_dir / folder.STATE_NAME).write_bytes(state)
    path.write_bytes(path.read_bytes()[: len(before) + 40])


def test_an_entry_that_was_cut_off_while_it_was_written_is_told_apart(log: Run, writer: RunWriter) -> None:
    torn(writer)
    status, out, err = log()
    assert (status, len(out.splitlines())) == (1, 5)
    assert "entry 6" in err
    assert "cut off while it was being written; `gonogo resume` sets it aside" in err


def test_while_a_conductor_works_an_entry_that_is_being_written_is_no_fault(log: Run, writer: RunWriter) -> None:
    torn(writer)
    lock = folder.Lock(writer.run_dir, "conductor")
    try:
        assert log()[::2] == (0, "")
        # But nothing that the state knows of may be missing, conductor or not.
        path = path_of(writer)
        path.write_bytes(path.read_bytes()[:-300])
        assert log()[0] == 1
    finally:
        lock.close()


def test_a_state_that_is_behind_is_no_fault(log: Run, writer: RunWriter) -> None:
    state = (writer.run_dir / folder.STATE_NAME).read_bytes()
    writer.record("note", "Logged, then killed")
    (writer.run_dir / folder.STATE_NAME).write_bytes(state)
    assert log()[::2] == (0, "")


@pytest.mark.parametrize("state", [None, b"", b"{}", b"not json"])
def test_without_a_state_nobody_can_say_where_the_log_must_end(
    log: Run, writer: RunWriter, state: bytes | None
) -> None:
    path = writer.run_dir / folder.STATE_NAME
    path.unlink()
    if state is not None:
        path.write_bytes(state)
    status, out, err = log()
    assert (status, len(out.splitlines())) == (1, 5)
    assert "nothing says where the log must end" in err
    assert len(err.splitlines()) == 1


def test_a_folder_without_a_log_is_bad_input(log: Run, tmp_path: Path) -> None:
    status, out, err = log()
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    (tmp_path / "run").mkdir()
    assert log()[0] == 2
