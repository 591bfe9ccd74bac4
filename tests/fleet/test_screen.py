"""The fleet on the screen: what waits is seen at once, rows keep their cursor, and nothing is written by looking."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input

from console.fleet.app import FleetApp
from console.fleet.reading import Fleet
from console.fleet.release import Kind
from console.fleet.session import FleetSession
from console.fleet.verbs import VERBS
from console.screens.fleet import FleetScreen
from console.widgets.lines import Lines
from tests.console import runs
from tests.console.driving import Console
from tests.console.runs import Run, Time
from tests.console.test_read_only import fingerprint
from tests.fleet import folders


@asynccontextmanager
async def fleet(
    place: Path, size: tuple[int, int] = (120, 36), *, theme: str = "gonogo-dark", session: FleetSession | None = None
) -> AsyncIterator[Console]:
    session = session or FleetSession([place], read_only=True, clock=Time(folders.NOW).clock)
    app = FleetApp(session, theme=theme)
    async with app.run_test(size=size, notifications=True) as pilot:
        driven = Console(app, pilot, None)  # type: ignore[arg-type]
        await driven.until(lambda: session.read, "the folders are read")
        await driven.until(lambda: len(app.screen.query("TooSmall")) == 1, "the screen is complete")
        await pilot.pause()
        yield driven


@pytest.fixture
def made(tmp_path: Path) -> Any:
    found = folders.root(tmp_path / "runs")
    yield found
    folders.close(found)


def under_cursor(driven: Console) -> str:
    return Path(driven.app.screen.query_one("#rows", Lines).key).name


async def test_one_look_says_which_release_waits_for_you_and_since_when(tmp_path: Path, made: dict[str, Run]) -> None:
    async with fleet(tmp_path / "runs") as driven:
        assert "1 WAITS FOR YOU" in driven.screen_text
        assert "approve or reject 003-train-1" in driven.screen_text
        assert "FOREIGN" in driven.screen_text
        assert "UNREADABLE" in driven.screen_text
        assert driven.app.title == "(1) gonogo fleet"


async def test_typing_filters_at_once_and_escape_shows_all_again(tmp_path: Path, made: dict[str, Run]) -> None:
    async with fleet(tmp_path / "runs") as driven:
        await driven.press("slash")
        await driven.type("drafter_ready")
        assert "1 of 6 have drafter_ready" in driven.screen_text
        assert under_cursor(driven) == "ready"
        await driven.press("enter")
        assert not driven.app.screen.query_one("#filter", Input).has_focus
        await driven.press("escape")
        assert len(driven.app.screen.query_one("#rows", Lines)._source) == 6


async def test_the_cursor_stays_on_its_release_while_others_come_and_the_order_changes(
    tmp_path: Path, made: dict[str, Run]
) -> None:
    async with fleet(tmp_path / "runs") as driven:
        lines = driven.app.screen.query_one("#rows", Lines)
        lines.move_to(lines._source.find(str(tmp_path / "runs" / "running")) or 0)
        for key in ("s", "o", "f", "s", "f", "S", "f", "j"):
            await driven.press(key)
            assert under_cursor(driven) == "running"
        runs.fresh(tmp_path / "runs" / "aaa")
        await driven.until(lambda: len(driven.app.session.fleet.releases) == 7, "it is there")  # type: ignore[attr-defined]
        assert under_cursor(driven) == "running"


async def test_enter_on_a_heading_folds_it_and_on_a_release_opens_it(tmp_path: Path, made: dict[str, Run]) -> None:
    async with fleet(tmp_path / "runs") as driven:
        await driven.press("f", "home")
        before = len(driven.app.screen.query_one("#rows", Lines)._source)
        await driven.press("enter")
        assert len(driven.app.screen.query_one("#rows", Lines)._source) < before
        await driven.press("enter")
        await driven.press("w")
        assert under_cursor(driven) == "waiting"
        await driven.press("enter")
        await driven.until(lambda: driven.app.return_value == 0, "it was left for the release")
        chosen = driven.app.chosen  # type: ignore[attr-defined]
        assert (chosen.path.name, chosen.kind) == ("waiting", Kind.OURS)


async def test_coming_back_finds_filter_order_and_cursor_as_they_were(tmp_path: Path, made: dict[str, Run]) -> None:
    session = FleetSession([tmp_path / "runs"], clock=Time(folders.NOW).clock)
    async with fleet(tmp_path / "runs", session=session) as driven:
        await driven.press("s", "o", "w", "enter")
    async with fleet(tmp_path / "runs", session=session) as driven:
        assert under_cursor(driven) == "waiting"
        assert "sorted by release, turned round" in driven.screen_text


async def test_an_unreadable_release_is_not_opened_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "work_log.md").symlink_to("work_log.md")
    async with fleet(tmp_path) as driven:
        await driven.press("enter")
        assert "cannot be opened" in driven.screen_text
        assert driven.app.chosen is None  # type: ignore[attr-defined]


async def test_a_release_that_begins_to_wait_calls_once(
    tmp_path: Path, made: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    async with fleet(tmp_path / "runs") as driven:
        monkeypatch.setattr(driven.app, "call_operator", calls.append)
        assert calls == []
        made["running"].propose("train", "smoke")
        await driven.until(lambda: calls, "it called")
        await driven.until(lambda: driven.app._looks >= 6, "it looked again")
    assert calls == ["running waits for you: press w"]


async def test_every_key_and_every_verb_of_the_fleet_writes_nothing(tmp_path: Path, made: dict[str, Run]) -> None:
    before = fingerprint(tmp_path / "runs")
    async with fleet(tmp_path / "runs") as driven:
        keys = {key for item in driven.area.verbs() for key in item.keys.split(",")}
        for key in sorted(keys - {"q", "ctrl+q", "colon", "ctrl+p", "enter"} | {"a", "r", "c", "n", "A", "1", "2"}):
            await driven.press(key)
            await driven.press("escape")
        for item in VERBS:
            if isinstance(driven.app.screen, FleetScreen):
                await driven.app.screen.run_verb(item.id)
                await driven.pilot.pause()
    assert fingerprint(tmp_path / "runs") == before


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
@pytest.mark.parametrize("text", runs.HOSTILE, ids=range(len(runs.HOSTILE)))
async def test_hostile_text_acts_on_nothing(tmp_path: Path, text: str, size: tuple[int, int]) -> None:
    run = runs.hostile(tmp_path / "runs" / "run", text.encode("utf-8", "replace").decode())
    state = json.loads((run.path / "specdec_state.json").read_bytes())
    state["inputs"].update(cluster=text.encode("utf-8", "replace").decode(), target="[/] [b +")
    (run.path / "specdec_state.json").write_text(json.dumps(state))
    try:
        async with fleet(tmp_path / "runs", size) as driven:
            for key in ("j", "f", "f"):
                await driven.press(key)
                for row in driven.screen_text.split("\n"):
                    assert row.isprintable(), repr(row)
                    assert cell_len(row) == size[0]
    finally:
        run.close()


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", ["gonogo-dark", "gonogo-light", "NO_COLOR"])
def test_picture(
    tmp_path: Path,
    made: dict[str, Run],
    snap_compare: Callable[..., bool],
    size: tuple[int, int],
    theme: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)
    if theme == "NO_COLOR":
        monkeypatch.setenv(theme, "1")
    session = FleetSession([tmp_path / "runs"], read_only=True, clock=Time(folders.NOW).clock)
    app = FleetApp(session, theme="gonogo-dark" if theme == "NO_COLOR" else theme)
    app.animation_level = "none"
    moved = _elsewhere(session.look(), tmp_path)
    session.look = lambda: moved  # type: ignore[method-assign]

    async def settle(pilot: Pilot[int]) -> None:
        driven = Console(app, pilot, None)  # type: ignore[arg-type]
        await driven.until(lambda: session.read, "the folders are read")
        await driven.press("f", "j")
        await driven.still()

    assert snap_compare(app, terminal_size=size, run_before=settle)


def _elsewhere(fleet: Fleet, place: Path) -> Fleet:
    """The fleet as it would be in a folder of one name on every machine."""
    found = []
    for item in fleet.releases:
        problems = tuple(text.replace(str(place), "/srv") for text in item.snapshot.problems)
        moved = Path("/srv") / item.path.relative_to(place)
        said = item.said.replace(str(place), "/srv")
        found.append(item._replace(path=moved, said=said, snapshot=item.snapshot._replace(problems=problems)))
    return fleet._replace(releases=tuple(found))
