"""A release line by line: the same facts, a line whenever a person is waited for, and no harm from its reader."""

from __future__ import annotations

import io
import os
import pty
from pathlib import Path

import pytest
from hypothesis import given

from console.plain import PlainPrinter, coloured, entry_line, waiting_line
from console.release.journal import GENESIS, Entry, Kind, make_entry
from console.release.writer import RunWriter
from tests.release.foreign import anything, visible
from tests.release.making import Clock, decide, make_job, new_run, propose


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return new_run(tmp_path / "a run")


def entry(text: str, kind: Kind = Kind.ACTION, actor: str = "conductor", stage: str = "train") -> Entry:
    return make_entry(1, Clock()(), kind, actor, stage, text, {}, GENESIS)


def test_an_entry_is_one_line_with_time_kind_who_stage_and_what() -> None:
    assert entry_line(entry("Stage train begins")) == "03:04:06 ACTION conductor [train] Stage train begins"
    human = entry("Cancelled", Kind.HUMAN_INTERVENTION, "operator:alice", "")
    assert entry_line(human) == "03:04:06 HUMAN  operator:alice Cancelled"


@given(anything, anything, anything)
def test_foreign_text_stays_on_its_line(text: str, actor: str, stage: str) -> None:
    assert visible(entry_line(entry(text, actor=actor, stage=stage)))


def test_a_waiting_job_is_named_with_its_cost_and_the_command_that_answers(writer: RunWriter) -> None:
    assert waiting_line(writer.state, writer.run_dir) == ""
    proposal = propose(writer, "001-train-1", make_job())
    line = waiting_line(writer.state, writer.run_dir)
    assert line == (
        "waiting for the operator: approve 001-train-1 (Train the drafter; 8 GPUs, at most 1:30:00, 12.00 GPU hours) "
        f"with `gonogo queue approve '{writer.run_dir}' 001-train-1`"
    )
    decide(writer, proposal, "rejected")
    assert waiting_line(writer.state, writer.run_dir) == (
        "waiting for the operator: 001-train-1 is rejected: not today"
    )
    writer.record("retry_requested", "again", human=True, id="001-train-1")
    assert waiting_line(writer.state, writer.run_dir) == ""


def test_a_failure_that_a_person_must_mend_is_waited_for(writer: RunWriter) -> None:
    asked = {"failure_class": "USER_CONFIG_ERROR", "step": "ask the operator", "detail": "accept the licence"}
    propose(writer, "001-train-1", make_job())
    writer.record("results_complete", "x", stage="train", id="001-train-1")
    writer.record("triaged", "x", stage="train", id="001-train-1", values={}, **asked)
    wanted = "waiting for the operator: 001-train-1 failed (USER_CONFIG_ERROR): accept the licence"
    assert waiting_line(writer.state, writer.run_dir) == wanted
    propose(writer, "002-train-2", make_job(attempt=2, token="f" * 16))
    assert "approve 002-train-2" in waiting_line(writer.state, writer.run_dir)
    writer.record("job_decided", "x", stage="train", id="002-train-2", decision="approved", by="policy")
    assert waiting_line(writer.state, writer.run_dir) == ""


def test_a_closed_release_waits_for_nobody(writer: RunWriter) -> None:
    propose(writer, "001-train-1", make_job())
    writer.record("verdict", "x", stage="closeout", verdict="INFEASIBLE", detail="", failure_class="UNKNOWN")
    assert waiting_line(writer.state, writer.run_dir) == ""


def test_the_printer_says_each_waiting_once_and_each_entry(writer: RunWriter, tmp_path: Path) -> None:
    stream = io.StringIO()
    printer = PlainPrinter(stream)
    printer.entry(writer.entries[0])
    printer.begin(writer.state, writer.run_dir)
    seen = len(writer.entries)
    proposal = propose(writer, "001-train-1", make_job())
    writer.record("note", "Meanwhile")
    decide(writer, proposal)
    for made in writer.entries[seen:]:
        printer.entry(made)
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("operator:alice Release of a dflash2 drafter")
    assert lines[1] == f"Run folder: {writer.run_dir} (times are UTC)"
    assert [line.split(":")[0] == "waiting for the operator" for line in lines] == [False] * 3 + [True] + [False] * 2
    assert "\x1b" not in stream.getvalue()


def test_a_run_that_waits_already_says_so_at_once(writer: RunWriter) -> None:
    propose(writer, "001-train-1", make_job())
    stream = io.StringIO()
    PlainPrinter(stream).begin(writer.state, writer.run_dir)
    assert "approve 001-train-1" in stream.getvalue()


@pytest.mark.parametrize("event", ["run_started", "run_resumed"])
def test_under_a_policy_nobody_is_asked_for(tmp_path: Path, event: str) -> None:
    writer = new_run(tmp_path / "run", approve_submissions="none" if event == "run_started" else "each")
    if event == "run_resumed":
        writer.record("run_resumed", "Resumed", approve_submissions="none")
    stream = io.StringIO()
    printer = PlainPrinter(stream)
    for made in writer.entries:
        printer.entry(made)
    printer.begin(writer.state, writer.run_dir)
    propose(writer, "001-train-1", make_job())
    printer.entry(writer.entries[-1])
    assert "waiting" not in stream.getvalue()


def test_a_reader_that_goes_away_does_not_disturb_the_release() -> None:
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream:
        printer = PlainPrinter(stream)
        printer.entry(entry("read"))
        assert os.read(reading, 1000).endswith(b"read\n")
        os.close(reading)
        for number in range(3):
            printer.entry(entry(f"unread {number}"))
        # What could not be written is still in the stream's buffer; its end must not raise in the test either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)


def test_a_closed_stream_does_not_disturb_the_release() -> None:
    stream = io.StringIO()
    printer = PlainPrinter(stream)
    stream.close()
    printer.entry(entry("unread"))


def test_colour_only_on_a_terminal_that_wants_it() -> None:
    main, child = pty.openpty()
    with open(child, "w", encoding="utf-8") as terminal, open(main, "rb", buffering=0) as screen:
        assert coloured(terminal, {"TERM": "xterm"})
        assert not coloured(terminal, {"TERM": "dumb"})
        assert not coloured(terminal, {"TERM": "xterm", "NO_COLOR": "1"})
        assert not coloured(io.StringIO(), {"TERM": "xterm"})
        printer = PlainPrinter(terminal, colour=True)
        printer.entry(entry("Cancelled", Kind.HUMAN_INTERVENTION))
        assert screen.read(200).strip() == b"\x1b[33m03:04:06 HUMAN  conductor [train] Cancelled\x1b[0m"
