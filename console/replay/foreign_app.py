"""The console on the run folder of another program: it follows the folder, and offers nothing that writes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from textual.screen import Screen

from console.app import GonogoApp, Left
from console.screens.base import Area
from console.screens.foreign import ForeignBoard, ForeignBoardHelp, ForeignFiles, ForeignHelp, ForeignJobs, ForeignLog

_AREAS: dict[str, type[Area]] = {"jobs": ForeignJobs, "files": ForeignFiles, "log": ForeignLog}


def _area(name: str) -> Screen[Any]:
    return _AREAS[name]()


class ForeignApp(GonogoApp):
    """A run of another program on the screen; its session is a `console.replay.foreign_session.ForeignSession`."""

    BOARD = ForeignBoard
    MODES = {name: partial(_area, name) for name in _AREAS}  # noqa: RUF012

    wants_replay = False
    """Whether it was left to replay the log."""

    def do_replay(self) -> None:
        """Leave for the replay."""
        self.wants_replay = True
        self.exit(0)

    def do_help(self) -> None:
        """Explain the screen."""
        if isinstance(self.screen, ForeignBoard):
            self.push_screen(ForeignBoardHelp(self.screen))
        elif isinstance(self.screen, Area):
            self.push_screen(ForeignHelp(self.screen))


def run_foreign(run_dir: Path, *, leads_back: bool = False) -> Left:
    """Show a run of another program, and its replay as often as that is asked for.

    Args:
        run_dir: Its folder.
        leads_back: Whether it is opened from the fleet.
    """
    from console.replay.app import show
    from console.replay.foreign_session import ForeignSession
    from console.replay.recording import open_recording
    from console.replay.session import ReplaySession

    while True:
        app = ForeignApp(ForeignSession(run_dir))
        app.leads_back = leads_back
        status = app.run()
        if not app.wants_replay:
            return Left(status if status is not None else app.return_code or 0, app.wants_fleet)
        show(ReplaySession(open_recording(run_dir)))
