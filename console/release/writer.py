"""The one writer of a run: every step goes through `record`, which logs it before anything else happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from console.release import folder
from console.release.events import apply
from console.release.journal import Entry, Journal, Kind
from console.release.state import RunState, fold

CONDUCTOR = "conductor"


class RunWriter:
    """Log and state of one run folder, in the hands of its conductor.

    Args:
        run_dir: The run folder.
        clock: Gives the time of entries, UTC.
        on_entry: Called after each entry with it; for the plain output.

    Raises:
        console.release.journal.LogError: When the log was changed or cut.
        console.release.folder.FolderError: When the state file is not one.
    """

    def __init__(
        self, run_dir: Path, clock: Callable[[], datetime], on_entry: Callable[[Entry], None] | None = None
    ) -> None:
        self.run_dir = run_dir
        self.clock = clock
        self._on_entry = on_entry
        self._listeners: list[Callable[[Entry], None]] = []
        known = folder.read_state(run_dir)
        anchor = (known.entries, known.head) if known is not None else (0, "0" * 64)
        self._journal = Journal(run_dir, clock, anchor)
        self.state: RunState = fold(self._journal.entries)
        if known != self.state:
            # A process that died between an entry and the state left a state that is one entry behind; a release
            # that is closed records nothing any more, so nothing else would ever mend it.
            folder.write_state(run_dir, self.state)
        self._changed = asyncio.Event()

    @property
    def entries(self) -> list[Entry]:
        """All entries so far."""
        return self._journal.entries

    def record(
        self, event: str, text: str, *, stage: str = "", actor: str = CONDUCTOR, human: bool = False, **data: Any
    ) -> Entry:
        """Log one step and fold it into the state; both are on disk when this returns.

        Args:
            event: Name of the event; `console.release.events` says what it does to the state.
            text: What was done and why, for people.
            stage: Stage that it belongs to.
            actor: Who did it.
            human: True for a HUMAN_INTERVENTION.
            data: The event's keys.
        """
        kind = Kind.HUMAN_INTERVENTION if human else Kind.ACTION
        entry = self._journal.append(kind, actor, stage, text, {"event": event, **data})
        self.state = apply(self.state, entry)
        folder.write_state(self.run_dir, self.state)
        self._changed.set()
        if self._on_entry is not None:
            self._on_entry(entry)
        for listener in self._listeners:
            listener(entry)
        return entry

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Have something called with each entry from now on; it must not wait, and not raise."""
        self._listeners.append(listener)

    async def changed(self, timeout: float | None = None) -> None:
        """Wait until something is recorded, or until the timeout (seconds) passes."""
        self._changed.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass
