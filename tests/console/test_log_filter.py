"""The log shows only the entries that have all that was typed, live and in a replay, however long it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.log_filter import LogFilter, parse
from console.release import journal
from console.release.journal import GENESIS, Kind, make_entry
from console.replay.app import ReplayApp
from console.replay.recording import open_recording
from console.replay.session import ReplaySession
from console.screens import log as log_module
from console.screens.log import Log
from tests.console import runs
from tests.console.driving import Console, console
from tests.replay import logs

ENTRY = make_entry(1, logs.START, Kind.ACTION, "operator:Alice", "train", "Job 17 submitted", {"node": "n3"}, GENESIS)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("", True), ("submitted", True), ("SUBMITTED alice", True), ("n3", True), ("bench", False),
        ("stage:train", True), ("stage:bench", False), ("stage:", True), ("actor:alice", True), ("actor:bob", False),
        ("kind:action", True), ("kind:human", False), ("stage:train 17", True), ("odd:word", False),
    ],
)  # fmt: skip
def test_what_is_typed(typed: str, shown: bool) -> None:
    assert parse(typed).shows(ENTRY) is shown


@given(typed=st.text(max_size=40))
def test_whatever_is_typed_is_a_filter(typed: str) -> None:
    parse(typed).shows(ENTRY)


def test_only_people() -> None:
    assert not LogFilter(human=True).shows(ENTRY)


def _numbers(driven: Console) -> list[int]:
    area = driven.area
    assert isinstance(area, Log)
    source = area.entries._source
    return [int(source.key(index)) for index in range(len(source))]


async def test_the_live_log_is_filtered_and_shown_again(tmp_path: Path) -> None:
    run = runs.rejected(tmp_path / "run")
    entries = journal.read_log(run.path)
    wanted = [entry.seq for entry in entries if entry.stage == "train" and parse("approved").shows(entry)]
    async with console(run) as driven:
        await driven.press("4", "slash")
        await driven.type("stage:train approved")
        await driven.press("enter")
        await driven.until(lambda: _numbers(driven) == wanted, "the entries are chosen")
        await driven.press("escape")
        await driven.until(lambda: len(_numbers(driven)) == len(entries), "all entries are shown again")
    run.close()


async def test_a_long_log_is_gone_through_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "PART", 7)
    recording = open_recording(logs.write(tmp_path / "run", 90))
    wanted = [entry.seq for entry in recording.entries if "node03" in str(entry.data)]
    session = ReplaySession(recording)
    session.player.to_end()
    session.show()
    app = ReplayApp(session)
    async with app.run_test(size=(100, 30)) as pilot:
        driven = Console(app, pilot, None)  # type: ignore[arg-type]
        await driven.until(lambda: app.prepared, "the log is checked")
        await driven.press("4", "slash")
        await driven.type("node03")
        await driven.until(lambda: _numbers(driven) == wanted, "every part was looked through")
        session.player.to(40)
        app.draw()
        await driven.until(lambda: _numbers(driven) == [n for n in wanted if n <= 41], "the moment before")
    recording.close()
