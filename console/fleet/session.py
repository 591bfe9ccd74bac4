"""What the fleet's screen holds on to, also while one of the releases is open: what was read, and how it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from console.fleet.listing import Wish
from console.fleet.reading import Fleet, FleetReader
from console.fleet.release import Release
from console.session import Clock, Session
from console.snapshot import Snapshot

BREATH_SECONDS = 0.002
"""So long the reading thread rests after every few folders: a key that comes meanwhile is not kept waiting for it."""


class FleetSession(Session):
    """A look at all releases below some roots. It has no desk: nothing can be decided from here.

    Args:
        roots: Folders that hold run folders.
        read_only: Whether releases are opened to look on only.
        words: The filter to begin with.
        clock: The clocks.

    Attributes:
        fleet: The releases as they were last read.
        wish: How the list is shown.
        cursor: The row to come back to.
        read: Whether they have been read at all.
        open: Called with the release that the operator opens.
    """

    def __init__(
        self, roots: Sequence[Path], *, read_only: bool = False, words: str = "", clock: Clock | None = None
    ) -> None:
        # On purpose not the constructor of Session, whose reader expects one run folder.
        self.run_dir = roots[0]
        self.desk = None
        self.read_only_because = "the fleet only looks on"
        self.read_only = read_only
        self.clock = clock or Clock()
        self.snapshot = Snapshot()
        self.fleet = Fleet()
        self.wish = Wish(words)
        self.cursor = ""
        self.read = False
        self.open: Callable[[Release], None] = lambda release: None
        self._fleet_reader = FleetReader(roots)

    def look(self) -> Fleet:
        """Read what changed, in a thread."""
        return self._fleet_reader.poll(lambda: time.sleep(BREATH_SECONDS))
