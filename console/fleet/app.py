"""The fleet as a Textual app. A release is opened in an app of its own; leaving that one leads back here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from console import app as one
from console.app import GonogoApp, run_release
from console.fleet.reading import Fleet
from console.fleet.release import Kind, Release
from console.fleet.session import FleetSession
from console.screens.base import Area
from console.screens.fleet import FleetHelp, FleetScreen
from console.settings import Settings

STALE_SECONDS = 1.5
"""Where nothing was read for so long, the screen is drawn anyway."""


class FleetApp(GonogoApp):
    """All releases on the screen.

    Attributes:
        chosen: The release for which it was left; None where the operator wants to leave for good.
    """

    BOARD: ClassVar[type[Area]] = FleetScreen
    MODES = {}  # noqa: RUF012

    def __init__(self, session: FleetSession, *, theme: str = "", settings: Settings | None = None) -> None:
        super().__init__(session, theme=theme, settings=settings)
        self.fleet_session = session
        self.chosen: Release | None = None
        self._calling: frozenset[str] | None = None
        self._taken = float("-inf")
        session.open = self._open

    def _open(self, release: Release) -> None:
        if release.kind is Kind.UNREADABLE:
            self.say(f"{release.name} cannot be opened: {release.said}", severity="warning")
            return
        self.chosen = release
        self.exit(0)

    async def _follow(self) -> None:
        """Read the folders about once a second. Reading blocks, so it is done in a thread."""
        while True:
            try:
                fleet = await asyncio.to_thread(self.fleet_session.look)
            except Exception as error:  # whatever it is, the screen lives on and says that it shows old facts
                self.problem = f"reading the folders failed, what you see is old: {error or type(error).__name__}"
                self._taken = float("-inf")
                self._tick()
            else:
                self.problem = ""
                self.take_fleet(fleet)
            self._looks += 1
            await asyncio.sleep(one.LOOK_SECONDS)

    async def _notice(self) -> None:
        """Nothing: of many releases something changes every second, and looking costs a few calls of stat."""

    def take_fleet(self, fleet: Fleet) -> None:
        """Show what was read, and call the operator to what has begun to wait."""
        session = self.fleet_session
        session.fleet, session.read = fleet, True
        now = session.clock.now()
        waiting = frozenset(
            f"{item.key}\n{name}"
            for item in fleet.releases
            if item.waits_for_you(now)
            for name in ([job.id for job in item.snapshot.waiting] or [""])
        )
        fresh = frozenset() if self._calling is None else waiting - self._calling
        self._calling = waiting
        self._name_terminal()
        self._taken = session.clock.monotonic()
        if self.is_running and self.screen_stack and isinstance(self.screen, Area):
            self.screen.update_view()
        if fresh:
            names = sorted({Path(item.split("\n")[0]).name for item in fresh})
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            self.call_operator(f"{names[0]}{more} waits for you: press w")

    def _tick(self) -> None:
        """Let clocks go on where reading does not: what was just read has been drawn with the time of now."""
        if self.session.clock.monotonic() - self._taken > STALE_SECONDS:
            super()._tick()

    def _name_terminal(self) -> None:
        """Name the fleet, and how many releases wait, in the terminal's title."""
        count = len({item.split("\n")[0] for item in self._calling or ()})
        self.write_title("gonogo fleet", count)

    def do_help(self) -> None:
        """Explain the screen."""
        if isinstance(self.screen, FleetScreen):
            self.push_screen(FleetHelp(self.screen))

    async def do_back(self) -> None:
        """The fleet is where back leads to."""


def run_fleet(
    roots: Sequence[Path], *, read_only: bool = False, words: str = "", settings: Settings | None = None
) -> int:
    """Show the fleet, and every release that is opened from it, until the operator leaves.

    Args:
        roots: Folders that hold run folders.
        read_only: Open releases to look on only.
        words: The filter to begin with.
        settings: What the operator has set; None for the defaults.

    Returns:
        The exit status.
    """
    session = FleetSession(roots, read_only=read_only, words=words)
    while True:
        app = FleetApp(session, settings=settings)
        status = app.run()
        if app.chosen is None:
            return status if status is not None else app.return_code or 0
        if app.chosen.kind is Kind.FOREIGN:
            from console.replay.foreign_app import run_foreign

            left = run_foreign(app.chosen.path, leads_back=True)
        else:
            left = run_release(app.chosen.path, read_only=read_only, leads_back=True)
        if not left.back:
            return left.status
