"""Films a replay: the real screens, drawn without a terminal, written as an asciicast."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.color import ColorSystem
from textual.pilot import Pilot
from textual.strip import Strip

from console.replay import cast
from console.replay.app import ReplayApp
from console.replay.cast import Frame
from console.replay.errors import ReplayError
from console.replay.session import ReplaySession
from console.safe_text import safe

SMALLEST, LARGEST = (60, 18), (400, 200)
"""Columns and rows that a film may have."""

LAST_SECONDS = 2.0
"""For so long the last picture stays."""

_TAKEN = "{}: is there already; name another file, or replace it with --force"


def film(session: ReplaySession, path: Path, *, size: tuple[int, int], frames: Sequence[Frame], force: bool) -> None:
    """Write a film of a replay; the file is there whole or not at all.

    Args:
        session: What is filmed.
        path: The file.
        size: Columns and rows.
        frames: Its pictures.
        force: Replace a file that is there.

    Raises:
        ReplayError: When the file is there and may not be replaced.
        OSError: When it cannot be written.
    """
    if path.exists() and not force:
        raise ReplayError(_TAKEN.format(path))
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with open(partial, "x", encoding="ascii") as stream:
            asyncio.run(_Film(session, stream, size, frames).write())
        _name(partial, path, force)
    finally:
        partial.unlink(missing_ok=True)


def _name(partial: Path, path: Path, force: bool) -> None:
    """Give the finished film its name; one that was taken meanwhile stays as it is.

    Raises:
        ReplayError: When the name is taken.
    """
    if not force:
        try:
            return os.link(partial, path)
        except FileExistsError:
            raise ReplayError(_TAKEN.format(path)) from None
        except OSError:
            # A file system without hard links: then looking once more is the best there is.
            if path.exists():
                raise ReplayError(_TAKEN.format(path)) from None
    os.replace(partial, path)


class _Film:
    def __init__(self, session: ReplaySession, stream: TextIO, size: tuple[int, int], frames: Sequence[Frame]) -> None:
        self._session = session
        self._stream = stream
        self._size = size
        self._frames = frames
        self._screen = cast.Screen()
        self._error: BaseException | None = None

    async def write(self) -> None:
        """Run the app without a terminal, and take a picture of each moment."""
        recording = self._session.recording
        run = self._session.snapshot.run.run_id or recording.path.parent.name
        title = safe(f"gonogo replay {run}")
        head = cast.header(*self._size, timestamp=int(max(0.0, recording.begin)), title=title)
        print(head, file=self._stream)
        self._app = ReplayApp(self._session)
        self._app.animation_level = "none"
        await self._app.run_async(headless=True, size=self._size, auto_pilot=self._shoot)
        if self._error is not None:
            raise self._error

    async def _shoot(self, pilot: Pilot[object]) -> None:
        try:
            await self._complete(pilot)
            for frame in self._frames:
                self._session.player.seek(frame.second, frame.entries)
                self._app.draw()
                await pilot.pause()
                self._take(frame.at)
            last = self._frames[-1].at if self._frames else 0.0
            print(cast.event(last + LAST_SECONDS, "\x1b[?25h"), file=self._stream)
        except BaseException as error:
            # It must not end in the app's own report of errors, which goes to the terminal.
            self._error = error
        finally:
            self._app.exit(0)

    async def _complete(self, pilot: Pilot[object]) -> None:
        """Wait until the screen has all of its parts."""
        while not self._app.screen.query("TooSmall"):
            await pilot.pause()

    def _take(self, at: float) -> None:
        # Textual gives what is on the screen in no other form that keeps its colours; its version is pinned.
        rows = [_ansi(strip) for strip in self._app.screen._compositor.render_strips()]
        output = self._screen.output(rows)
        if output:
            print(cast.event(at, output), file=self._stream)


def _ansi(strip: Strip) -> str:
    """A row as a terminal takes it."""
    return "".join(
        segment.text
        if segment.style is None
        else segment.style.render(segment.text, color_system=ColorSystem.TRUECOLOR)
        for segment in strip
        if not segment.control
    )
