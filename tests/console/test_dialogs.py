"""What operators ask of the conductor: their words, a confirmation, and always the same target."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from console.release import requests
from console.screens.base import Area
from console.screens.dialogs import Request
from tests.console import runs
from tests.console.driving import Console, console, send


def asked(run: runs.Run) -> list[tuple[str, str, str]]:
    waiting, odd = requests.pending(run.path)
    assert odd == []
    return [(item.verb, item.id, item.text) for item in waiting]


async def fill(driven: Console, words: str, confirmation: str) -> None:
    await driven.type(words)
    await driven.press("enter")
    await driven.type(confirmation)
    driven.run.time.go(3)
    await driven.press("enter")
    await driven.pilot.pause()


@pytest.mark.parametrize(
    ("key", "verb", "confirmation", "target"),
    [("n", "note", "note", ""), ("A", "abort", "abort", ""), ("c", "cancel", "1003", "003-train-1")],
)
async def test_words_and_a_confirmation_file_the_request(
    tmp_path: Path, key: str, verb: str, confirmation: str, target: str
) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run) as driven:
        await driven.press(key)
        assert isinstance(driven.app.screen, Request)
        assert "HUMAN_INTERVENTION" in driven.screen_text
        await fill(driven, "because of that", confirmation)
        await driven.until(lambda: isinstance(driven.app.screen, Area), "the dialog is closed")
        assert asked(run) == [(verb, target, "because of that")]


async def test_cancel_names_the_job_and_takes_only_its_id(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run) as driven:
        await driven.press("c")
        assert "job 1003, 003-train-1: Train and export" in driven.screen_text
        await fill(driven, "wrong queue", "cancel")
        assert asked(run) == []
        assert "type 1003 to confirm" in driven.screen_text


async def test_the_target_is_fixed_when_the_dialog_opens(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run) as driven:
        await driven.press("2", "c")
        run.propose("train", "smoke")
        await driven.read_again()
        await fill(driven, "wrong queue", "1003")
        assert asked(run) == [("cancel", "003-train-1", "wrong queue")]


async def test_retry_is_offered_on_what_failed_only(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    async with console(run) as driven:
        await driven.press("2")
        await driven.press("home", "r")
        assert not isinstance(driven.app.screen, Request)
        assert "retry: put the cursor on" in driven.screen_text
        await driven.press("down", "r")
        await fill(driven, "disk was full, is not any more", "retry")
        assert asked(run) == [("retry", "004-smoke-1", "disk was full, is not any more")]


async def test_an_unknown_submission_can_be_ruled_on_in_the_words_that_count(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    run.decide("003-train-1")
    run.submit("003-train-1", "", outcome="unknown", said="the answer was lost")
    async with console(run) as driven:
        assert "unknown" in driven.text("#pipeline")
        await driven.press("2", "s")
        assert isinstance(driven.app.screen, Request)
        await fill(driven, "it is there", "settle")
        assert asked(run) == []
        await driven.press("escape")
        await driven.press("s")
        await fill(driven, "submitted 1003", "settle")
        assert asked(run) == [("settle", "003-train-1", "submitted 1003")]


@pytest.mark.parametrize("keys", [("enter",) * 12, ("n", "enter", "n", "enter", "y", "enter"), ("space", "enter") * 4])
async def test_keys_in_a_hurry_ask_for_nothing(tmp_path: Path, keys: tuple[str, ...]) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run) as driven:
        for key in ("n", "A", "c"):
            await driven.press(key)
            send(driven.pilot, *keys)
            driven.app.post_message(events.Paste("cancel\n1003\n"))
            send(driven.pilot, "enter")
            await driven.press("escape")
        assert asked(run) == []


async def test_a_confirmation_that_comes_too_fast_is_not_one(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run) as driven:
        await driven.press("A")
        await driven.type("stop this")
        await driven.press("enter")
        await driven.type("abort")
        await driven.press("enter")
        await driven.pilot.pause()
        assert asked(run) == []
        assert "too fast" in driven.screen_text


async def test_without_a_conductor_it_says_when_it_will_be_done(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    run.close()
    async with console(run) as driven:
        await driven.press("n")
        assert "No conductor is running" in driven.screen_text
