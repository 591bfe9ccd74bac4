"""Drives the console in tests: opens it on a run folder, and waits for conditions instead of times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from console import app as app_module
from console.app import GonogoApp
from console.screens import approval as approval_module
from console.screens import file as file_module
from console.screens import output as output_module
from console.screens.approval import Approval
from console.screens.base import Area
from console.screens.board import Board
from console.session import Session, open_session
from console.widgets.ink import plain
from console.widgets.lines import Lines
from tests.console.runs import Run

DEADLINE = 20.0

app_module.REFRESH_SECONDS, app_module.LOOK_SECONDS = 0.01, 0.3
approval_module.RETURN_SECONDS = 0.1
output_module.POLL_SECONDS = file_module.POLL_SECONDS = 0.01


NAMED = {"space": " ", "enter": "\r", "tab": "\t", "escape": "\x1b"}


def send(pilot: Pilot[int], *keys: str) -> None:
    """Put keys into the app's queue as a terminal does: all at once, without waiting for any to be handled."""
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        pilot.app.post_message(events.Key(name, key if len(key) == 1 else NAMED.get(key)))


class Console:
    """An open console, with what tests ask of it."""

    def __init__(self, app: GonogoApp, pilot: Pilot[int], run: Run) -> None:
        self.app = app
        self.pilot = pilot
        self.run = run

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, f"in vain: {what or condition}"
            await self.pilot.pause()
            await asyncio.sleep(0.005)

    async def still(self) -> None:
        """Wait until nothing on the screen changes any more."""
        before, now = "", self.app.export_screenshot()
        while now != before:
            await self.pilot.pause()
            before, now = now, self.app.export_screenshot()

    async def press(self, *keys: str) -> None:
        for key in keys:
            send(self.pilot, key)
            await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type text into the field that has the focus."""
        send(self.pilot, *text)
        await self.pilot.pause()

    async def read_again(self) -> None:
        """Let the console notice what changed in the run folder."""
        looks = self.app._looks
        self.app._changed.set()
        # The first look from now on may have begun before the change.
        await self.until(lambda: self.app._looks >= looks + 2, "it looked again")
        await self.pilot.pause()

    def text(self, selector: str) -> str:
        """All rows of a list, as text."""
        lines = self.app.screen.query_one(selector, Lines)
        return "\n".join(plain(lines._source.line(index, lines.room)) for index in range(len(lines._source)))

    @property
    def screen_text(self) -> str:
        """Everything on the screen, as text."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips()
        rows = ["".join(segment.text for segment in strip) for strip in strips]
        # Between two screens there may be nothing drawn yet.
        return "\n".join(rows) if len(rows) == height and width else ""

    @property
    def area(self) -> Area:
        screen = self.app.screen
        assert isinstance(screen, Area)
        return screen

    @property
    def approval(self) -> Approval:
        screen = self.app.screen
        assert isinstance(screen, Approval)
        return screen

    async def open_approval(self, name: str) -> Approval:
        """Go to the queue and open a proposal, as an operator does."""
        await self.until(lambda: any(item.id == name for item in self.app.session.snapshot.waiting), "it waits")
        await self.press("w")
        board = self.app.screen
        assert isinstance(board, Board)
        queue = board.part("queue")
        await self.until(lambda: queue.has_focus, "the queue has the focus")
        queue.move_to(queue._source.find(name) or 0)
        await self.press("enter")
        await self.until(lambda: isinstance(self.app.screen, Approval), "the approval screen is open")
        approval = self.approval
        await self.until(
            lambda: approval.guard.shown_s >= 0 and approval.guard._still_since is not None, "it is painted"
        )
        return approval

    async def read_to_end(self) -> None:
        """Scroll an approval to its end, and let the moment of grace pass."""
        approval = self.approval
        await self.press("end")
        await self.until(lambda: approval.guard.seen_to_end, "its end was shown")
        self.run.time.go(1)
        approval.update_view()


@asynccontextmanager
async def console(
    run: Run,
    size: tuple[int, int] = (100, 30),
    *,
    read_only: bool = False,
    session: Session | None = None,
    start_conductor: Callable[[], Awaitable[int]] | None = None,
    theme: str = "gonogo-dark",
) -> AsyncIterator[Console]:
    """The console on a run, ready to be driven, with the run's own clock."""
    session = session or open_session(run.path, read_only=read_only, clock=run.time.clock)
    app = GonogoApp(session, start_conductor, theme=theme)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            driven = Console(app, pilot, run)
            await driven.until(lambda: session.snapshot.log.read and not session.snapshot.log.more, "the log is read")
            await driven.until(lambda: len(app.screen.query("TooSmall")) == 1, "the screen is complete")
            await pilot.pause()
            yield driven
    finally:
        session.close()
        run.close()
