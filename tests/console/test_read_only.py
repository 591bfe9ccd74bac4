"""A read-only console changes nothing, whatever is pressed, clicked or chosen in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from console.screens.approval import Approval
from console.screens.base import Area
from console.session import open_session
from console.verbs import VERBS
from tests.console import runs
from tests.console.driving import Console, console


def fingerprint(path: Path) -> dict[str, str]:
    """Every file of the run folder, by the digest of its bytes."""
    files = (item for item in sorted(path.rglob("*")) if item.is_file())
    return {str(item.relative_to(path)): hashlib.sha256(item.read_bytes()).hexdigest() for item in files}


ALL_KEYS = sorted({key for item in VERBS for key in item.keys.split(",")} - {"q", "ctrl+q", "colon", "ctrl+p"})


async def every_key(driven: Console) -> None:
    for key in ALL_KEYS:
        driven.run.time.go(2)
        await driven.press(key)
        if not isinstance(driven.app.screen, Area):
            await driven.press("escape")


async def every_verb(driven: Console) -> None:
    for item in VERBS:
        area = driven.app.screen
        if isinstance(area, Area) and item.id != "quit":
            await area.run_verb(item.id)
            await driven.pilot.pause()


@pytest.mark.parametrize("area", ["1", "2", "3", "4"])
async def test_every_key_and_every_verb_of_every_area(tmp_path: Path, area: str) -> None:
    run = runs.failed(tmp_path / "run")
    before = fingerprint(run.path)
    async with console(run, read_only=True) as driven:
        assert "READ-ONLY" in driven.screen_text
        assert "opened to look on" in driven.screen_text
        await driven.press(area)
        await every_key(driven)
        if area == "1":
            await every_verb(driven)
    assert fingerprint(run.path) == before


async def test_a_job_can_be_read_but_not_decided(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    before = fingerprint(run.path)
    async with console(run, read_only=True) as driven:
        approval = await driven.open_approval("005-smoke-2")
        await driven.read_to_end()
        await driven.press("a", "r")
        assert not approval.field.has_focus
        assert "read-only" in driven.screen_text
        for act in ("approve", "reject"):
            await approval.run_verb(act)
        assert not approval.field.has_focus
        await every_key(driven)
    assert fingerprint(run.path) == before


async def test_the_palette_offers_nothing_that_writes(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    before = fingerprint(run.path)
    async with console(run, read_only=True) as driven:
        for words in ("note", "cancel"):
            await driven.press("1")
            await driven.press("colon")
            await driven.until(lambda: not isinstance(driven.app.screen, Area), "the palette is open")
            await driven.type(words)
            await driven.pilot.pause()
            await driven.press("enter")
            await driven.until(lambda: isinstance(driven.app.screen, Area), "the palette is closed")
            await driven.pilot.pause()
            assert isinstance(driven.app.screen, Area), "no dialog was opened"
    assert fingerprint(run.path) == before


async def test_of_two_consoles_one_decides_and_both_see_it(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    first = open_session(run.path, clock=run.time.clock)
    second = open_session(run.path, clock=run.time.clock)
    assert first.desk is not None
    assert second.desk is None
    async with console(run, session=second) as looking:
        await looking.open_approval("003-train-1")
        digest = looking.approval._shown.digest if looking.approval._shown else ""
        first.desk.approve("003-train-1", digest, shown_s=5)
        await looking.until(lambda: "APPROVED by" in looking.screen_text, "the second one sees it")
        assert isinstance(looking.app.screen, Approval)
    first.close()
