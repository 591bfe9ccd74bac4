"""A film of a replay is an asciicast v2 that shows the board, and never takes another file's name."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from console.replay import cast, film
from console.replay.errors import ReplayError
from console.replay.recording import open_recording
from tests.replay import logs

_PLACE = re.compile(r"\x1b\[(\d+);1H")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _read(path: Path) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    head, *events = path.read_text(encoding="ascii").splitlines()
    return json.loads(head), [tuple(json.loads(line)) for line in events]


def _screens(head: dict[str, Any], events: list[tuple[float, str, str]]) -> list[str]:
    """What a terminal shows after each event: every row is written whole, from its first cell."""
    rows = [""] * head["height"]
    shown = []
    for _, _, text in events:
        _, *parts = _PLACE.split(text)
        for number, row in zip(parts[::2], parts[1::2], strict=True):
            rows[int(number) - 1] = _STYLE.sub("", row)
        shown.append("\n".join(rows))
    return shown


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return logs.write(tmp_path / "run", 25, watching=0.3)


def test_it_is_an_asciicast_of_the_board(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "film.cast"
    assert main(["replay", str(place), "--export", str(path), "--size", "100x30", "--speed", "1"]) == 0
    head, events = _read(path)
    assert (head["version"], head["width"], head["height"]) == (2, 100, 30)
    assert head["timestamp"] == int(logs.START.timestamp()) + 1
    assert all(kind == "o" for _, kind, _ in events)
    assert all(before <= after for (before, _, _), (after, _, _) in pairwise(events))
    screens = _screens(head, events)
    assert "Pipeline" in screens[0]
    assert "entry 1 of 25" in screens[0]
    assert "entry 25 of 25" in screens[-1]
    assert "[2J" not in "".join(text for _, _, text in events[1:])


def test_foreign_text_gives_no_order_to_the_terminal(tmp_path: Path) -> None:
    """What an entry says is in the film as text: every escape sequence in it is ours."""
    run = tmp_path / "foreign"
    run.mkdir()
    (run / "work_log.md").write_text(
        "- 2026-08-12 09:00:00 ACTION [train] \x1b]0;owned\x07 \x1b[2J [bold]x[/] \u202e odd\n"
        "- 2026-08-12 09:00:05 HUMAN_INTERVENTION [train] stop\n"
    )
    path = tmp_path / "film.cast"
    assert main(["replay", str(run), "--export", str(path), "--speed", "1"]) == 0
    head, events = _read(path)
    rest = "".join(_STYLE.sub("", _PLACE.sub("", text)) for _, _, text in events)
    rest = rest.replace("\x1b[?25l", "").replace("\x1b[?25h", "").replace("\x1b[2J", "", 1)
    assert not re.search(r"[\x00-\x1f\x7f\u202e]", rest)
    assert "[bold]x[/]" in _screens(head, events)[-1]


def test_another_file_is_never_replaced(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "film.cast"
    path.write_text("mine")
    assert main(["replay", str(place), "--export", str(path)]) != 0
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert [item.name for item in tmp_path.iterdir() if "partial" in item.name] == []
    assert main(["replay", str(place), "--export", str(path), "--force"]) == 0
    assert path.read_text().startswith('{"version": 2')


def test_a_file_that_came_while_it_was_filmed_stays(tmp_path: Path) -> None:
    partial, path = tmp_path / "partial", tmp_path / "film.cast"
    partial.write_text("film")
    path.write_text("mine")
    with pytest.raises(ReplayError, match="is there already"):
        film._name(partial, path, force=False)
    assert path.read_text() == "mine"


def test_frames_never_go_back_and_end_with_the_last_entry(tmp_path: Path) -> None:
    recording = open_recording(logs.write(tmp_path / "run", 60, gap=7.0))
    for speed in (1.0, 20.0, 1000.0):
        frames = cast.frames(recording, speed)
        assert all(one.at <= two.at and one.second <= two.second for one, two in pairwise(frames))
        assert all(one.entries <= two.entries for one, two in pairwise(frames))
        assert frames[-1].entries == 60
    recording.close()
