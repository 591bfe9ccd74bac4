"""A conductor inside the console: started after the first frame, shown while it runs, stopped only after asking."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from console import app as app_module
from console.app import GonogoApp, run_console
from console.screens.board import Board
from console.screens.dialogs import Leave
from console.session import Session, open_session
from tests.console import runs
from tests.console.driving import console


class Conductor:
    """Stands for one: holds the lock, can be cancelled, ends when told."""

    def __init__(self, run: runs.Run) -> None:
        self.run = run
        self.started = False
        self.cancelled = False
        self.end: asyncio.Event = asyncio.Event()
        self.status = 0
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.started = True
        self.run.close()
        self.run.conduct()
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        finally:
            self.run.close()
        if self.error is not None:
            raise self.error
        return self.status


async def test_it_runs_and_its_end_is_shown(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    conductor = Conductor(run)
    async with console(run, (120, 36), start_conductor=conductor) as driven:
        await driven.until(lambda: conductor.started, "it was started")
        await driven.until(lambda: "conductor here" in driven.screen_text, "it says so")
        conductor.status = 3
        conductor.end.set()
        await driven.until(lambda: "ended with status 3" in driven.screen_text, "its end is shown")
        await driven.press("q")
        await driven.until(lambda: driven.app._exit, "it closes without asking")
    assert driven.app.return_value == 3


async def test_its_error_is_shown_as_text_and_told_again_at_the_end(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    conductor = Conductor(run)
    conductor.error = ValueError("clusters.yaml: [/red] unknown \x1b[31mkey")
    async with console(run, (120, 36), start_conductor=conductor) as driven:
        conductor.end.set()
        await driven.until(lambda: "the conductor stopped" in driven.screen_text, "it says so")
        assert "clusters.yaml: [/red] unknown ‹ESC›[31mkey" in driven.screen_text
        await driven.press("q")
        await driven.until(lambda: driven.app._exit, "it closes without asking")
    assert driven.app.error is conductor.error


@pytest.mark.parametrize(("builder", "status"), [(runs.running, 130), (runs.waiting, 5)])
async def test_leaving_asks_and_then_stops_it_cleanly(tmp_path: Path, builder, status: int) -> None:
    run = builder(tmp_path / "run")
    conductor = Conductor(run)
    async with console(run, start_conductor=conductor) as driven:
        await driven.until(lambda: conductor.started, "it was started")
        await driven.press("q")
        assert isinstance(driven.app.screen, Leave)
        await driven.press("escape")
        assert isinstance(driven.app.screen, Board)
        await driven.press("q", "y", "enter")
        assert isinstance(driven.app.screen, Board), "a word that is not the one stays"
        assert not conductor.cancelled
        await driven.press("q")
        await driven.type("stop")
        await driven.press("enter")
        await driven.until(lambda: driven.app._exit, "it closes")
        assert conductor.cancelled
    assert driven.app.return_value == status


async def test_keys_in_a_hurry_do_not_leave(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    conductor = Conductor(run)
    async with console(run, start_conductor=conductor) as driven:
        await driven.until(lambda: conductor.started, "it was started")
        await driven.press("q", "enter", "q", "y", "enter", "space", "enter", "q", "q", "enter")
        assert not driven.app._exit
        assert not conductor.cancelled


async def test_a_conductor_that_does_not_stop_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "STOP_SECONDS", 0.1)
    run = runs.running(tmp_path / "run")
    release = asyncio.Event()

    async def slow_to_stop() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
        return 0

    async with console(run, start_conductor=slow_to_stop) as driven:
        await driven.until(lambda: driven.app._conductor is not None, "it was started")
        await driven.press("q")
        await driven.type("stop")
        await driven.press("enter")
        await driven.until(lambda: driven.app._exit, "it closes")
        assert driven.app._conductor is not None
        assert not driven.app._conductor.done()
        release.set()


async def test_without_a_conductor_it_just_closes(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        await driven.press("q")
        await driven.until(lambda: driven.app._exit, "it closes")
    assert driven.app.return_value == 0


async def test_reading_that_fails_is_told_for_as_long_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.staged(tmp_path / "run")

    def broken(self: Session) -> None:
        raise RuntimeError("[/] disk on fire")

    async with console(run) as driven:
        with monkeypatch.context() as patch:
            patch.setattr(Session, "poll", broken)
            await driven.until(lambda: "what you see is old: [/] disk on fire" in driven.screen_text, "it says so")
        run.propose("train", "data")
        await driven.until(lambda: "disk on fire" not in driven.screen_text, "it reads again")
        await driven.until(lambda: driven.app.session.snapshot.waiting, "and sees what is new")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_end_stops_the_conductor_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    run = runs.running(tmp_path / "run")
    conductor = Conductor(run)
    async with console(run, start_conductor=conductor) as driven:
        await driven.until(lambda: conductor.started, "it was started")
        os.kill(os.getpid(), number)
        await driven.until(lambda: driven.app._exit, "it closes")
    assert conductor.cancelled
    assert driven.app.return_value == 130


async def test_where_changes_cannot_be_noticed_it_looks_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def blind(self: GonogoApp) -> None:
        raise OSError("no inotify here")

    monkeypatch.setattr(GonogoApp, "_notice", blind)
    run = runs.staged(tmp_path / "run")
    async with console(run) as driven:
        run.propose("train", "data")
        await driven.until(lambda: driven.app.session.snapshot.waiting, "it looked")


def test_run_console_gives_the_status_and_the_lock_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.waiting(tmp_path / "run")
    seen: list[Session] = []

    def fake_run(self: GonogoApp) -> int:
        seen.append(self.session)
        return 7

    monkeypatch.setattr(GonogoApp, "run", fake_run)
    assert run_console(run.path) == 7
    assert seen[0].desk is not None
    again = open_session(run.path)
    assert again.desk is not None, "the lock was given back"
    again.close()
    assert run_console(run.path, read_only=True) == 7
    assert seen[1].desk is None
    run.close()


def test_run_console_raises_what_ended_the_conductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.waiting(tmp_path / "run")

    def fake_run(self: GonogoApp) -> None:
        self.error = ValueError("bad input")

    monkeypatch.setattr(GonogoApp, "run", fake_run)
    with pytest.raises(ValueError, match="bad input"):
        run_console(run.path)
    run.close()
