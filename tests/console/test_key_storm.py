"""Keys that were meant for something else decide nothing, whenever they arrive."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.screen import ModalScreen

from console.release import queue
from console.screens.approval import Approval
from console.screens.approval_guard import GRACE_SECONDS
from console.screens.board import Board
from tests.console import runs
from tests.console.driving import Console, console, send

JOB = "003-train-1"
KEYS = ("enter", "space", "y", "Y", "a", "A", "1", "2", "3", "4", "o", "tab", "enter", "R", "enter", "ctrl+j", "escape")


def undecided(console: Console, name: str = JOB) -> bool:
    return queue.decision_of(queue.load(console.run.path, name)) is None


def code(console: Console, name: str = JOB) -> str:
    return queue.load(console.run.path, name).job().code


@pytest.mark.parametrize("delay", [0.0, 0.2, GRACE_SECONDS, 3.0])
async def test_a_storm_while_a_job_arrives_decides_nothing(tmp_path: Path, delay: float) -> None:
    run = runs.staged(tmp_path / "run")
    async with console(run) as driven:
        send(driven.pilot, *KEYS[:8])
        name = run.propose("train", "train")
        send(driven.pilot, *KEYS)
        await driven.read_again()
        run.time.go(delay)
        digits = code(driven, name)
        send(driven.pilot, *KEYS, *digits, "enter", "a", *digits, "enter", *KEYS)
        driven.app.post_message(events.Paste(f"a{digits}\n"))
        driven.app.post_message(events.Paste(f"{digits}\n"))
        await driven.pilot.pause()
        await driven.read_again()
        assert undecided(driven, name)


@pytest.mark.parametrize(
    ("size", "delay"),
    [((80, 24), 0.0), ((80, 24), 0.3), ((80, 24), GRACE_SECONDS - 0.001), ((140, 70), 0.0), ((140, 70), 0.499)],
)
async def test_a_storm_while_the_job_appears_decides_nothing(
    tmp_path: Path, delay: float, size: tuple[int, int]
) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run, size) as driven:
        await driven.press("w")
        digits = code(driven)
        # All of this is in the queue before the screen exists.
        send(driven.pilot, "enter", "end", *KEYS[:8], "end", "a", *digits, "enter", *digits, "enter")
        await driven.until(lambda: isinstance(driven.app.screen, Approval) or undecided(driven), "handled")
        await driven.pilot.pause()
        run.time.go(delay)
        send(driven.pilot, "end", "a", *digits, "enter", "space", "a", "enter", *digits, "enter")
        driven.app.post_message(events.Paste(f"{digits}\n"))
        await driven.pilot.pause()
        assert undecided(driven)


async def test_the_code_typed_before_the_field_is_open_counts_for_nothing(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        digits = code(driven)
        await driven.type(digits.replace("a", ""))
        run.time.go(3)
        await driven.press("enter")
        await driven.press("a")
        assert approval.field.value == ""
        run.time.go(3)
        await driven.press("enter")
        await driven.pilot.pause()
        assert undecided(driven)


async def test_no_single_key_approves_even_when_held_down_on_an_unlocked_job(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        for key in sorted({*KEYS, "c", "f", "n"} - {"2", "3", "Y"}):
            if isinstance(driven.app.screen, ModalScreen) or not isinstance(driven.app.screen, Board):
                await driven.press("escape")
            if not isinstance(driven.app.screen, Approval):
                await driven.open_approval(JOB)
            await driven.until(lambda: driven.approval.guard._still_since is not None, "it is painted")
            await driven.read_to_end()
            assert driven.approval.against("approve") == ""
            send(driven.pilot, *[key] * 4)
            run.time.go(3)
            send(driven.pilot, *[key] * 4, "enter")
            await driven.pilot.pause()
            assert undecided(driven), key
        assert undecided(driven)


async def test_a_job_that_changes_under_a_storm_is_not_approved(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        await driven.open_approval(JOB)
        await driven.read_to_end()
        digits = code(driven)
        await driven.press("a")
        await driven.type(digits)
        run.time.go(3)
        other = runs.make_job(3, "train", "train", time="23:00:00")
        (run.path / "submissions" / JOB / "job.json").write_bytes(other.to_bytes())
        send(driven.pilot, "enter", "enter", "a", *digits, "enter", "a", *other.code, "enter")
        await driven.pilot.pause()
        await driven.read_again()
        assert undecided(driven)
