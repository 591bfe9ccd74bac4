"""Pictures of the screens: what a change does to the look of one shows in the diff of its picture."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from console.app import GonogoApp
from console.session import open_session
from tests.console import runs
from tests.console.driving import Console
from tests.console.outputs import Output
from tests.console.runs import Run

SIZES = [(80, 24), (160, 50)]
THEMES = ["gonogo-dark", "gonogo-light"]


async def nothing(driven: Console) -> None:
    """The board as it opens."""


async def open_job(driven: Console) -> None:
    await driven.open_approval("005-smoke-2")
    driven.run.time.go(1)
    driven.approval.update_view()


async def ready_to_type(driven: Console) -> None:
    await driven.open_approval("005-smoke-2")
    await driven.read_to_end()
    await driven.press("a")


def key(name: str) -> Callable[[Console], Awaitable[None]]:
    async def press(driven: Console) -> None:
        await driven.press(name)

    return press


async def interventions(driven: Console) -> None:
    await driven.press("4", "i")


def writing(path: Path) -> Run:
    """A job runs, and has written."""
    run = runs.running(path)
    output = Output(run)
    output.write(b"loading 512 sequences\n")
    output.write(b"".join(b"\rstep %d/200  loss %.4f" % (step, 5 - step / 64) for step in range(1, 201)) + b"\n")
    output.write(
        b"\x1b[33mwarning:\x1b[0m the learning rate ends at zero\n" + b"tensor " * 1000 + b"\nstep 200: eval loss "
    )
    output.write(b"1.8732\n")
    return run


async def open_output(driven: Console) -> None:
    await driven.press("2", "o")
    await driven.until(lambda: "eval loss 1.8732" in driven.screen_text, "the output is read")
    await driven.until(lambda: "stdout and stderr" in driven.screen_text, "it is known which streams there are")
    await driven.press("slash")
    await driven.type("loss")
    await driven.press("enter")
    driven.area.update_view()


async def open_file(driven: Console) -> None:
    output = Output(driven.run, "result-export_check")
    checks = (
        b'{"tensors": 12, "bytes": 40960, "config": {"hidden_size": 64, "rope_scaling": null}, "sha256": ["3f", "a0"]}'
    )
    output.write(checks)
    await driven.press("3", "down", "enter")
    await driven.until(lambda: "config.hidden_size" in driven.screen_text, "the file is read")


PICTURES: dict[str, tuple[Callable[[Path], Run], Callable[[Console], Awaitable[None]]]] = {
    "board-waiting": (runs.waiting, nothing),
    "board-failed-gate": (runs.failed, nothing),
    "board-ready": (runs.ready, nothing),
    "approval": (runs.failed, open_job),
    "approval-field": (runs.failed, ready_to_type),
    "log": (runs.rejected, key("4")),
    "jobs": (runs.running, key("2")),
    "output": (writing, open_output),
    "file": (runs.running, open_file),
    "files": (runs.running, key("3")),
    "help": (runs.waiting, key("question_mark")),
    "note": (runs.running, key("n")),
}

LIGHT = ("board-waiting", "board-failed-gate", "approval", "log")
"""Screens of which there is a picture in the light theme too; the others are made of the same styles."""

EVERYWHERE = ("board-waiting", "approval")
"""Screens of which there is a picture in every size and theme that the console is made for."""

EVERY_SIZE = [(80, 24), (120, 36), (200, 60)]
MONOCHROME = "NO_COLOR"

CASES = [
    pytest.param(name, size, theme, id=f"{name}-{size[0]}x{size[1]}-{theme}")
    for name in PICTURES
    for size in SIZES
    for theme in (THEMES if name in LIGHT and (size == SIZES[0] or name == "board-waiting") else THEMES[:1])
]
CASES += [
    pytest.param(name, size, theme, id=f"{name}-{size[0]}x{size[1]}-{theme}")
    for name in EVERYWHERE
    for size in EVERY_SIZE
    for theme in (*THEMES, MONOCHROME)
    if not (size in SIZES and theme in THEMES)
]


@pytest.mark.parametrize(("name", "size", "theme"), CASES)
def test_picture(
    tmp_path: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch, name: str, size: tuple[int, int], theme: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if theme == MONOCHROME:
        monkeypatch.setenv(MONOCHROME, "1")
    build, act = PICTURES[name]
    run = build(tmp_path / "run")
    session = open_session(run.path, clock=run.time.clock)
    app = GonogoApp(session, theme="" if theme == MONOCHROME else theme)
    app.animation_level = "none"

    async def settle(pilot: Pilot[int]) -> None:
        driven = Console(app, pilot, run)
        await driven.until(lambda: session.snapshot.log.read, "the log is read")
        await driven.until(lambda: len(app.screen.query("TooSmall")) == 1, "the screen is complete")
        await act(driven)
        app.clear_notifications()
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await driven.still()

    try:
        assert snap_compare(app, terminal_size=size, run_before=settle)
    finally:
        session.close()
        run.close()
