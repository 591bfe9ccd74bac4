"""The console on a recording: the app without anything that follows, conducts or decides."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

from textual.screen import Screen

import themes
from console.app import GonogoApp
from console.replay.session import ReplaySession
from console.safe_text import safe
from console.screens.base import Area
from console.screens.replay import Replay, ReplayAreaHelp, ReplayFiles, ReplayHelp, ReplayJobs, ReplayLog

FRAMES = 40
"""So many times a second a replay that plays is drawn at most."""

PAUSE_SECONDS = 0.02
"""Between two parts of the check in the background, so that the screen stays quick."""

SWITCH_SECONDS = 0.0005
"""After so long the work in the background lets the screen go on, while there is such work."""

REST_SECONDS = 0.15
"""So long after somebody moved the work in the background waits, so that the next move has the machine to itself."""

LONGEST_REST_SECONDS = 1.0
"""However much is moved, a part of that work is done after so long."""

_AREAS: dict[str, type[Area]] = {"jobs": ReplayJobs, "files": ReplayFiles, "log": ReplayLog}


def _area(name: str) -> Screen[Any]:
    return _AREAS[name]()


class ReplayApp(GonogoApp):
    """A replay on the screen.

    Args:
        session: What is replayed.
        theme: Name of one of our themes.
    """

    BOARD = Replay
    MODES = {name: partial(_area, name) for name in _AREAS}  # noqa: RUF012

    def __init__(self, session: ReplaySession, *, theme: str = themes.DEFAULT) -> None:
        super().__init__(session, theme=theme)
        self.replay = session
        self.prepared = False
        self._moved_at = float("-inf")
        """Whether every checkpoint was made and the whole log was checked."""

    def _begin(self) -> None:
        self.add_mode(self.DEFAULT_MODE, self.BOARD)
        work = self._prepare()
        self.run_worker(work, name="prepare", group="prepare", exit_on_error=False, description="check the log")
        self.set_interval(1 / FRAMES, self._frame, name="frames")

    async def _prepare(self) -> None:
        """Make the checkpoints and check the log, in small parts."""
        # By default a thread that computes lets another one wait for 5 ms, several times in each frame.
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            await self._work()
        finally:
            sys.setswitchinterval(before)
        self.prepared = True
        self._draw()

    async def _work(self) -> None:
        recording = self.replay.recording
        problem = recording.problem
        while not await asyncio.to_thread(recording.prepare):
            if self.replay.behind:
                self._draw()
            await self._rest()
        while not await asyncio.to_thread(recording.work):
            if recording.problem != problem:
                problem = recording.problem
                self._draw()
            await asyncio.sleep(PAUSE_SECONDS)
            await self._rest()

    async def _rest(self) -> None:
        """Let the screen have the machine while somebody moves."""
        monotonic = self.replay.clock.monotonic
        end = monotonic() + LONGEST_REST_SECONDS
        while True:
            left = min(end, self._moved_at + REST_SECONDS) - monotonic()
            if left <= 0:
                return
            await asyncio.sleep(left)

    def _frame(self) -> None:
        """Draw the next moment while it plays."""
        if self.replay.player.advance(self.replay.clock.monotonic()):
            self.draw()

    def draw(self) -> None:
        """Show the moment where the player is, after it was moved."""
        self._moved_at = self.replay.clock.monotonic()
        self._draw()

    def _draw(self) -> None:
        self.replay.show()
        for screen in self.screen_stack:
            if isinstance(screen, Area):
                screen.run_changed()
        self._tick()

    def _name_terminal(self) -> None:
        name = safe(self.replay.snapshot.run.run_id or self.replay.run_dir.name)
        self.title = f"gonogo replay {name}"
        if self._driver is not None and not self.is_headless:
            self._driver.write(f"\x1b]2;{self.title}\x07")

    def do_help(self) -> None:
        """Explain the screen."""
        if isinstance(self.screen, Replay):
            self.push_screen(ReplayHelp(self.screen))
        elif isinstance(self.screen, Area):
            self.push_screen(ReplayAreaHelp(self.screen))


def show(session: ReplaySession) -> int:
    """Show a replay until the operator leaves, and close its log.

    Returns:
        The exit status.
    """
    try:
        app = ReplayApp(session)
        status = app.run()
        return status if status is not None else app.return_code or 0
    finally:
        session.close()
