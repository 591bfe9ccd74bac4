"""Checks every byte of an indexed log against what was written, a part at a time, while it is replayed."""

from __future__ import annotations

import os
import re

from console.release import journal
from console.release.journal import Entry
from console.replay.index import LogIndex

PART_BYTES = 200_000
"""So much is checked at once: about two hundredths of a second."""


class Check:
    """How far a log is checked.

    Args:
        index: The log's index.
        descriptor: The log, open for reading.

    Attributes:
        problem: The first thing that is wrong; empty while nothing is known to be.
        sound: How many entries are not known to be other than what was written: all of them, up to a problem.
        done: Whether nothing is left to check.
    """

    def __init__(self, index: LogIndex, descriptor: int) -> None:
        self._index = index
        self._descriptor = descriptor
        self._position = 0
        self._after: Entry | None = None
        self._part = PART_BYTES
        self.problem = ""
        self.sound = len(index)
        self.done = False

    def go_on(self) -> None:
        """Check the next part."""
        if self.done:
            return
        left = self._index.size - self._position
        data = os.pread(self._descriptor, min(self._part, left), self._position)
        whole = len(data) >= left
        checked = 0 if self._after is None else self._after.seq
        try:
            for entry in journal.parse(data, self._after):
                self._after = entry
                checked = entry.seq
            self._position += len(data)
        except journal.TornLog as torn:
            self._position += torn.position
            self._part = PART_BYTES if torn.position else self._part * 2
            whole = whole or len(data) == 0
        except journal.LogError as error:
            # Lines are counted from the part's own beginning; only the first part begins where the log does.
            text = str(error)
            self.problem = text if self._position == 0 else re.sub(r" \(line \d+\)", "", text)
            self.sound = checked
            whole = True
        self.done = whole or self._position >= self._index.size
