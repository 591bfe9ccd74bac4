"""The work log as rows, made when they are looked at. Nothing here imports Textual."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from console.release.journal import Entry, Kind
from console.snapshot import LogView
from console.widgets.figures import digest, time_of_day
from console.widgets.ink import Column, Line, Paragraph, Span, foreign, heading, table_row
from console.widgets.words import HUMAN_SIGN

_WORDS_FROM = 130
"""From this width on the kind of an entry is written out."""

_WHOLE = 20_000
"""Characters of a text of one entry that are shown where the entry is shown in full."""

_KIND = Column("kind", 8)
_COLUMNS = (
    Column("#", 5, right=True),
    Column("time UTC", 8),
    Column("kind", 20, least=_WORDS_FROM),
    _KIND,
    Column("actor", 14, least=70),
    Column("stage", 12, least=90),
    Column("what was done, and why", 0),
)
_SHORT = (Column("time UTC", 8), Column("kind", 8), Column("what was done, and why", 0))


def _columns(width: int, short: bool) -> tuple[Column, ...]:
    if short:
        return _SHORT
    dropped = _KIND if width >= _WORDS_FROM else None
    return tuple(column for column in _COLUMNS if width >= column.least and column is not dropped)


@dataclass(frozen=True, slots=True)
class LogRows:
    """Rows over a log, or over some of its entries.

    Attributes:
        log: The log.
        chosen: Positions of the entries that are shown, in order; None shows all.
        short: Leave out what the board has no room for.
    """

    log: LogView
    chosen: Sequence[int] | None = None
    short: bool = False

    def __len__(self) -> int:
        return len(self.log) if self.chosen is None else len(self.chosen)

    def entry(self, index: int) -> Entry:
        """The entry in a row."""
        found: Entry = self.log[index if self.chosen is None else self.chosen[index]]
        return found

    def verified(self, index: int) -> bool:
        """Whether the entry in a row is what was written."""
        return (index if self.chosen is None else self.chosen[index]) < self.log.verified

    def line(self, index: int, width: int) -> Line:
        """One row."""
        entry = self.entry(index)
        return log_row(entry, width, verified=self.verified(index), short=self.short)

    def key(self, index: int) -> str:
        """The number of the entry."""
        return str(self.entry(index).seq)

    def find(self, key: str) -> int | None:
        """The row of an entry; the one after it where it is not shown."""
        if not key.isdigit() or not len(self):
            return None
        index = bisect_left(range(len(self)), int(key), key=lambda position: self.entry(position).seq)
        return min(index, len(self) - 1)


def log_heading(width: int) -> Line:
    """The headings of the rows."""
    return heading(_columns(width, False), width)


def log_row(entry: Entry, width: int, *, verified: bool, short: bool) -> Line:
    """An entry in one row. An intervention is marked by sign, word and colour."""
    human = entry.kind is Kind.HUMAN_INTERVENTION
    sign = Span(f"{HUMAN_SIGN} ", "human") if human else Span("· ", "muted")
    cells: dict[str, Span | Line] = {
        "#": Span(str(entry.seq), "muted"),
        "time UTC": foreign(time_of_day(entry.time), "muted"),
        "kind": (sign if verified else Span("? ", "unknown"), _kind(entry.kind, width if not short else 0)),
        "actor": foreign(entry.actor, "human" if human else "muted"),
        "stage": foreign(entry.stage, "muted"),
        "what was done, and why": foreign(entry.text, "text" if verified else "unknown"),
    }
    columns = _columns(width, short)
    return table_row(columns, [cells[column.title] for column in columns], width)


def _kind(kind: Kind, width: int) -> Span:
    human = kind is Kind.HUMAN_INTERVENTION
    style = "human" if human else "muted"
    return Span(str(kind) if width >= _WORDS_FROM else "HUMAN" if human else "action", style)


def entry_detail(entry: Entry, verified: bool) -> list[Paragraph]:
    """One entry in full."""
    human = entry.kind is Kind.HUMAN_INTERVENTION
    head: list[Span] = [Span(f"#{entry.seq} ", "strong"), Span(str(entry.kind), "human" if human else "muted")]
    head += [Span("  "), foreign(entry.time, "muted"), Span("  "), foreign(entry.actor), Span("  ")]
    head.append(foreign(entry.stage, "muted"))
    shown = [Paragraph(tuple(head)), Paragraph((foreign(entry.text, longest=_WHOLE),))]
    if not verified:
        shown.insert(1, Paragraph((Span("? this entry stands behind a break of the chain", "unknown"),)))
    if entry.hash:
        shown.append(Paragraph((Span("hash ", "muted"), foreign(digest(entry.hash), "muted")), ()))
    column = min(20, max(map(len, entry.data), default=0))
    for key, value in entry.data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        name = foreign(f"  {key:<{column}}  ", "muted")
        shown.append(Paragraph((foreign(text, longest=_WHOLE),), (name,), exact=True))
    return shown
