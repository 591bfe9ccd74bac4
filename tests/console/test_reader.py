"""Reading a run folder while somebody writes it: only what changed, checked, and never more certain than it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console import reader as reader_module
from console.reader import LogReader, Reader
from console.release import deciding, folder, queue
from console.release.journal import LOG_NAME
from console.snapshot import Live, live_from_json
from tests.console import runs

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
live_keys = ("at", "pid", "link", "clock_offset_s", "doing", "waiting", "jobs", "files", "problems")


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(live_keys), json_values | st.lists(st.dictionaries(
    st.sampled_from(("id", "job_id", "elapsed_s", "gpus", "hanging", "presence", "size", "age_s")), json_values)),
))  # fmt: skip
def test_live_data_of_any_shape_is_read(data: dict[str, Any]) -> None:
    live = live_from_json(data)
    assert isinstance(live, Live)
    assert all(isinstance(job.gpus, int) and isinstance(job.state, str) for job in live.jobs)
    assert live.clock_offset_s is None or live.clock_offset_s == live.clock_offset_s


def test_live_data_as_the_conductor_writes_it(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    live = live_from_json(run.live)
    run.close()
    assert live.link.state == "up"
    assert live.job("003-train-1") is not None
    assert [file.presence for file in live.files] == ["missing", "seen"]
    assert live.age(run.time.wall) == 0.0


def test_the_log_is_read_on_from_where_it_ended(tmp_path: Path) -> None:
    run = runs.fresh(tmp_path / "run")
    log = LogReader(run.path)
    first = log.poll()
    assert len(first) == first.verified == len(run.writer.entries)
    run.stage("stage_target")
    second = log.poll()
    assert list(second) == run.writer.entries
    assert list(first) == run.writer.entries[:-1], "an older view stays as it was"
    assert second.continues(first)
    assert log.poll() == second


def test_a_long_log_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.trained(tmp_path / "run")
    run.close()
    monkeypatch.setattr(reader_module, "CHUNK_BYTES", 1500)
    log = LogReader(run.path)
    lengths = []
    view = log.poll()
    while view.more:
        lengths.append(len(view))
        view = log.poll()
    assert lengths == sorted(lengths)
    assert len(lengths) > 3
    assert list(view) == run.writer.entries
    assert view.verified == len(view)


def test_an_entry_that_is_being_written_waits(tmp_path: Path) -> None:
    run = runs.fresh(tmp_path / "run")
    path = run.path / LOG_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    log = LogReader(run.path)
    view = log.poll()
    assert view.torn
    assert len(view) == len(run.writer.entries) - 1
    path.write_bytes(whole)
    view = log.poll()
    assert not view.torn
    assert list(view) == run.writer.entries


def test_one_changed_byte_is_named_and_what_follows_is_shown_as_unverified(tmp_path: Path) -> None:
    run = runs.trained(tmp_path / "run")
    run.close()
    path = run.path / LOG_NAME
    data = path.read_bytes()
    place = (
        data.index(b"001-stage\\_target-1 approved")
        if b"001-stage\\_target-1 approved" in data
        else data.index(b"approved by operator")
    )
    path.write_bytes(data[:place] + b"X" + data[place + 1 :])
    view = LogReader(run.path).poll()
    assert "was changed" in view.problem
    assert 0 < view.verified < len(view) == len(run.writer.entries)


def test_a_break_in_what_was_added_is_found(tmp_path: Path) -> None:
    run = runs.fresh(tmp_path / "run")
    log = LogReader(run.path)
    before = len(log.poll())
    run.stage("stage_target")
    path = run.path / LOG_NAME
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Stage stage_target begins\n", b"Stage stage_target began.\n"))
    view = log.poll()
    assert view.problem
    assert view.verified == before
    assert len(view) == before + 1


def test_a_log_that_was_cut_is_reported_beside_the_state(tmp_path: Path) -> None:
    run = runs.trained(tmp_path / "run")
    run.close()
    reader = Reader(run.path)
    assert reader.poll().problems == ()
    path = run.path / LOG_NAME
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"## ")])
    snapshot = reader.poll()
    assert len(snapshot.log) == len(run.writer.entries) - 1
    assert any("ends after entry" in text for text in snapshot.problems)


def test_a_state_that_cannot_be_read_leaves_the_last_one_and_says_so(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    run.close()
    reader = Reader(run.path)
    good = reader.poll()
    (run.path / folder.STATE_NAME).write_text('{"schema_version": 1', encoding="utf-8")
    snapshot = reader.poll()
    assert snapshot.state == good.state
    assert any(folder.STATE_NAME in text for text in snapshot.problems)


def test_the_same_files_make_an_equal_snapshot(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    reader = Reader(run.path)
    assert reader.poll() == reader.poll()
    run.close()


def test_first_reads_no_log(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    first = Reader(run.path).first()
    run.close()
    assert not first.log.read
    assert first.run.run_id == runs.RUN_ID
    assert first.live.link.state == "up"


def test_what_waits_is_what_nobody_decided(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    reader = Reader(run.path)
    snapshot = reader.poll()
    assert [item.id for item in snapshot.waiting] == ["003-train-1"]
    assert snapshot.decided == frozenset()
    attempt = run.writer.state.attempt("003-train-1")
    assert attempt is not None
    decision = queue.Decision("003-train-1", attempt.digest, "approved", "bob", "", "2026-08-12T09:40:00Z", "tty2")
    deciding.decide(run.path, decision)
    snapshot = reader.poll()
    assert snapshot.waiting == ()
    assert snapshot.decided == {"003-train-1"}, "decided, though the log does not know yet"
    run.close()


def test_an_unreadable_decision_decides_nothing(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    (run.path / "submissions" / "003-train-1" / "decision.json").write_text("{", encoding="utf-8")
    snapshot = Reader(run.path).poll()
    run.close()
    assert [item.id for item in snapshot.waiting] == ["003-train-1"]
    assert "decision.json" in snapshot.waiting[0].problem


def test_a_proposal_that_the_log_does_not_know_yet_waits_too(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    job = runs.make_job(9, "bench", "bench")
    queue.propose(run.path, "009-bench-1", job, {ref.name: b"print('tiny')\n" for ref in job.uploads},
                  proposer="other", time=run.time.wall)  # fmt: skip
    snapshot = Reader(run.path).poll()
    run.close()
    assert [(item.id, item.task) for item in snapshot.waiting] == [("003-train-1", "train"), ("009-bench-1", "bench")]


def test_who_conducts_is_seen_and_when_he_is_gone(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    reader = Reader(run.path)
    holder = reader.poll().conductor
    assert holder is not None
    assert holder.pid == os.getpid()
    run.close()
    assert reader.poll().conductor is None


def test_a_feed_is_dead_when_nobody_conducts_or_nothing_new_was_said(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    reader = Reader(run.path)
    assert not reader.poll().feed_is_dead(run.time.wall)
    run.time.go(6)
    assert reader.poll().feed_is_dead(run.time.wall)
    run.say()
    assert not reader.poll().feed_is_dead(run.time.wall)
    run.close()
    assert reader.poll().feed_is_dead(run.time.wall)


def test_live_data_that_is_no_json_is_no_data(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    for text in ("", "{", "[1]", "null", json.dumps({"jobs": [1, {"id": 2}]})):
        (run.path / folder.LIVE_NAME).write_text(text, encoding="utf-8")
        assert Reader(run.path).poll().live.doing == ""
    run.close()
