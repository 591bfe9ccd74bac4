"""Lines of a job's output as rows, found and marked where somebody searches. Nothing here imports Textual."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from backends.watcher.folding import Fold, OutputLine
from console.safe_text import decode, safe
from console.widgets.figures import size
from console.widgets.ink import Line, Paragraph, Span, cells, lay_out

# Colours and movements of the cursor, which say nothing in a list of lines. Nothing else is left out, and `as bytes`
# leaves out nothing.
_CONTROL = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")

TAB = 8


def shown(line: OutputLine, exact: bool) -> str:
    """The text of a line, safe for the screen.

    Args:
        line: The line.
        exact: Whether every byte is shown, those that only colour text or move the cursor too.
    """
    text = decode(line.data)
    if not exact:
        text = _CONTROL.sub("", text) if "\x1b" in text else text
        text = text.expandtabs(TAB) if "\t" in text else text
    return safe(text)


def hidden(line: OutputLine) -> int:
    """How many control sequences of a line `shown` leaves out."""
    return len(_CONTROL.findall(decode(line.data)))


class Search:
    """What is searched for: plain text, small letters for both cases.

    Args:
        words: The text.
        exact: As in `shown`.

    Attributes:
        numbers: The lines that have it, in order.
    """

    def __init__(self, words: str, exact: bool) -> None:
        self.words = words
        self._exact = exact
        self._plain = words == words.lower()
        self._next = 0
        self.numbers: list[int] = []

    def extend(self, fold: Fold) -> None:
        """Look at lines that came, and forget those that were dropped."""
        del self.numbers[: bisect_left(self.numbers, fold.first)]
        number = max(self._next, fold.first)
        while number < fold.end:
            line = fold.line(number)
            if line.open:
                break
            if self.spans(shown(line, self._exact)):
                self.numbers.append(number)
            number += 1
        self._next = number

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it stands in a text."""
        if not self.words:
            return []
        where = text.lower() if self._plain else text
        if len(where) != len(text):
            return [(0, len(text))] if self.words in where else []
        found: list[tuple[int, int]] = []
        start = where.find(self.words)
        while start >= 0 and len(found) < 100:
            found.append((start, start + len(self.words)))
            start = where.find(self.words, start + len(self.words))
        return found

    def step(self, here: int, way: int) -> int | None:
        """The next line that has it, from a line on; from the other end where there is none on that way."""
        if not self.numbers:
            return None
        if way > 0:
            return self.numbers[bisect_right(self.numbers, here) % len(self.numbers)]
        return self.numbers[bisect_left(self.numbers, here) - 1]

    def place(self, here: int) -> int:
        """Which of those that have it a line is, from 1 on; 0 for none."""
        index = bisect_left(self.numbers, here)
        return index + 1 if index < len(self.numbers) and self.numbers[index] == here else 0


class Wrapped:
    """How many rows each line takes at a width. Lines are only measured once.

    Args:
        width: Cells.
        exact: As in `shown`.
    """

    def __init__(self, width: int, exact: bool) -> None:
        self.width, self.exact = width, exact
        self.first = 0
        self._before = 0
        self._ends: list[int] = []
        self._open = False

    def update(self, fold: Fold) -> None:
        """Measure lines that came, and forget those that were dropped."""
        if self._open:
            self._ends.pop()
        gone = fold.first - self.first
        if gone > 0:
            self._before = self._ends[gone - 1] if gone <= len(self._ends) else self._total
            del self._ends[:gone]
            self.first = fold.first
        for number in range(self.first + len(self._ends), fold.end):
            self._ends.append(self._total + self._height(fold.line(number)))
        self._open = fold.end > fold.first and fold.line(fold.end - 1).open

    @property
    def _total(self) -> int:
        return self._ends[-1] if self._ends else self._before

    def _height(self, line: OutputLine) -> int:
        text = shown(line, self.exact)
        if not line.gap and text.isascii() and len(text) + 12 < self.width and not line.cut:
            return 1
        return len(row_lines(line, self.width, self.exact))

    def __len__(self) -> int:
        return self._total - self._before

    def at(self, row: int) -> tuple[int, int]:
        """The line in a row, and which of its rows it is."""
        wanted = self._before + row
        index = bisect_right(self._ends, wanted)
        return self.first + index, wanted - (self._ends[index - 1] if index else self._before)

    def row(self, number: int) -> int:
        """The first row of a line."""
        index = min(max(0, number - self.first), len(self._ends))
        return (self._ends[index - 1] if index else self._before) - self._before


def _lead(line: OutputLine) -> Line:
    """What stands before a line: that states were written over, or that something was cut off."""
    lead: list[Span] = []
    if line.torn:
        lead.append(Span("…", "muted"))
    if line.folded:
        lead.append(Span(f"↻{line.folded} ", "muted"))
    if line.cut:
        lead.append(Span(f"✂{size(line.length)} ", "waiting"))
    return tuple(lead)


def _tail(line: OutputLine) -> Line:
    return (Span(f"… ({line.cut} more bytes)", "waiting"),) if line.cut else ()


def _marked(text: str, search: Search | None, here: bool) -> Line:
    spans = search.spans(text) if search is not None else []
    if not spans:
        return (Span(text),)
    found: list[Span] = []
    done = 0
    for start, end in spans:
        found += [Span(text[done:start]), Span(text[start:end], "chip-waiting" if here else "chip-idle")]
        done = end
    return (*found, Span(text[done:]))


def row_lines(
    line: OutputLine, width: int, exact: bool, search: Search | None = None, here: bool = False
) -> list[Line]:
    """A line as rows of a width."""
    if line.gap:
        return lay_out([Paragraph((Span(f"── {line.gap} ──", "unknown"),))], width)
    body = (*_lead(line), *_marked(shown(line, exact), search, here), *_tail(line))
    return lay_out([Paragraph(body, (Span("  ") if cells(body) > width else Span(""),), exact=True)], width)


@dataclass(frozen=True, slots=True)
class OutputRows:
    """Rows of an output. Its lines change only where a new one of these is shown.

    Attributes:
        fold: The lines.
        first: The first one.
        end: The one after the last.
        version: Another one whenever anything else has changed.
        exact: As in `shown`.
        wrapped: How lines are wrapped; None where each is one row.
        search: What is marked.
        here: The line that was found last.
    """

    fold: Fold
    first: int
    end: int
    version: int
    exact: bool = False
    wrapped: Wrapped | None = None
    search: Search | None = None
    here: int = -1

    def __len__(self) -> int:
        return self.end - self.first if self.wrapped is None else len(self.wrapped)

    def number(self, row: int) -> int:
        """The line in a row."""
        return self.first + row if self.wrapped is None else self.wrapped.at(row)[0]

    def line(self, index: int, width: int) -> Line:
        """One row."""
        if self.wrapped is not None:
            number, part = self.wrapped.at(index)
            rows = row_lines(self.fold.line(number), self.wrapped.width, self.exact, self.search, number == self.here)
            return rows[part] if part < len(rows) else ()
        number = self.first + index
        line = self.fold.line(number)
        if line.gap:
            return (Span(f"── {line.gap} ──", "unknown"),)
        # No more is drawn than there is room for; what is cut off here is marked by whoever fits it.
        text = shown(line, self.exact)
        return (*_lead(line), *_marked(text, self.search, number == self.here), *_tail(line))

    def whole(self, index: int) -> str:
        """The text of the line in a row, as far as it is kept, without the marks before it."""
        line = self.fold.line(self.number(index))
        return line.gap or shown(line, self.exact)

    def key(self, index: int) -> str:
        """The number of the line, on its first row."""
        if self.wrapped is None:
            return str(self.first + index)
        number, part = self.wrapped.at(index)
        return "" if part else str(number)

    def find(self, key: str) -> int | None:
        """The row of a line; of the first one where it was dropped."""
        if not key.isdigit():
            return None
        number = max(int(key), self.first)
        if number >= self.end:
            return None
        return number - self.first if self.wrapped is None else self.wrapped.row(number)
