"""The entries of an indexed log as a sequence that reads one from the file when it is asked for."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from console.release.journal import Entry, Kind, entry_from_json
from console.replay.index import LogIndex

_KEPT = 2000
"""So many parsed entries are kept."""

GONE = "(this entry cannot be read: it is not in the form of one, or the log was changed after it was opened)"
"""What stands in the place of an entry that cannot be read."""


class IndexedEntries(Sequence[Entry]):
    """Entries by position.

    Args:
        index: Where they stand.
        descriptor: The log, open for reading; it stays the caller's.
    """

    def __init__(self, index: LogIndex, descriptor: int) -> None:
        self._index = index
        self._descriptor = descriptor
        self._known: OrderedDict[int, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, position: Any) -> Any:
        """An entry, or the entries of a slice."""
        if isinstance(position, slice):
            return [self[place] for place in range(*position.indices(len(self)))]
        if not -len(self) <= position < len(self):
            raise IndexError(position)
        position %= len(self)
        found = self._known.get(position)
        if found is None:
            found = self.fresh(position)
            if found is None:
                found = Entry(position + 1, "", Kind.ACTION, "", "", GONE, {}, "", "")
            if len(self._known) >= _KEPT:
                self._known.popitem(last=False)
            self._known[position] = found
        return found

    def fresh(self, position: int) -> Entry | None:
        """An entry as it stands in the file now; None where nothing of that form stands there."""
        start, length = self._index.span(position)
        return entry_of(os.pread(self._descriptor, length, start).partition(b" -->\n")[0])


def entry_of(record: bytes) -> Entry | None:
    """An entry from the JSON of its record; None where it is not one."""
    try:
        return entry_from_json(json.loads(record))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
