"""Lines of styled text, before any widget: what the screens are made of.

A line is a tuple of spans; a style is one of the names in `STYLES`, which the theme gives a colour. Text that did
not come from this program enters through `foreign` only. Nothing here imports Textual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from console.safe_text import safe

STYLES = (
    "text", "strong", "muted", "title", "key", "rule",
    "passed", "running", "waiting", "failed", "unknown", "human", "idle",
    "chip-waiting", "chip-failed", "chip-passed", "chip-human", "chip-unknown", "chip-idle",
)  # fmt: skip
"""Names of styles. A chip is drawn in the colour of its state behind dark or light text."""

MORE = "…"
"""Stands where a line was cut."""

WRAPPED = "↪"
"""Stands in the gutter before the rest of a line that did not fit."""


class Span(NamedTuple):
    """A piece of a line.

    Attributes:
        text: Printable text.
        style: One of STYLES.
        verb: Id of the verb that a click on it runs, empty for none.
    """

    text: str
    style: str = "text"
    verb: str = ""


Line = tuple[Span, ...]


LONGEST = 2000
"""Characters of a foreign text that are shown in lists; nobody reads more in a line, and drawing it costs time."""


def foreign(text: object, style: str = "text", *, longest: int = LONGEST) -> Span:
    """Text from anywhere else, made safe for the screen; what is longer than `longest` is cut, with a mark.

    What an operator decides on does not come this way: it is never cut.
    """
    whole = str(text)
    if len(whole) > longest:
        return Span(f"{safe(whole[:longest])}{MORE} ({len(whole) - longest} more characters)", style)
    return Span(safe(whole), style)


def plain(line: Iterable[Span]) -> str:
    """The text of a line without styles."""
    return "".join(span.text for span in line)


def cells(line: Iterable[Span]) -> int:
    """Width of a line on the screen, in cells."""
    return sum(cell_len(span.text) for span in line)


def fit(line: Line, width: int) -> Line:
    """A line no wider than `width` cells; one that is cut ends with a mark."""
    if cells(line) <= width:
        return line
    if width <= 0:
        return ()
    kept: list[Span] = []
    left = width - 1
    for span in line:
        size = cell_len(span.text)
        if size > left:
            kept.append(Span(set_cell_size(span.text, left).rstrip() + MORE, span.style, span.verb))
            break
        kept.append(span)
        left -= size
    return tuple(kept)


def pad(line: Line, width: int, *, right: bool = False) -> Line:
    """A line of exactly `width` cells, its text to the left or to the right."""
    line = fit(line, width)
    missing = width - cells(line)
    if missing <= 0:
        return line
    gap = Span(" " * missing)
    return (gap, *line) if right else (*line, gap)


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        title: Its heading.
        width: Cells; 0 for what is left over.
        right: Whether its text stands to the right, as numbers do.
        least: Width of the table below which the column is left out.
        tail: Whether the end of its text is what matters, as in paths: then it is cut at its beginning.
    """

    title: str
    width: int
    right: bool = False
    least: int = 0
    tail: bool = False


GAP = 2
"""Cells between two columns."""


def widths(columns: Sequence[Column], total: int) -> tuple[int, ...]:
    """The width of each column in a table of `total` cells; 0 for one that is left out.

    What is left over is shared equally by the columns of width 0.
    """
    shown = [column for column in columns if total >= column.least]
    flexible = sum(1 for column in shown if column.width == 0)
    left = total - sum(column.width for column in shown) - GAP * (len(shown) - 1)
    share = max(4, left // flexible) if flexible else 0
    return tuple((column.width or share) if total >= column.least else 0 for column in columns)


def table_row(columns: Sequence[Column], cells_: Sequence[Span | Line], total: int) -> Line:
    """One row of a table."""
    line: list[Span] = []
    for column, cell, size in zip(columns, cells_, widths(columns, total), strict=True):
        if size == 0:
            continue
        if line:
            line.append(Span(" " * GAP))
        content = (cell,) if isinstance(cell, Span) else cell
        if column.tail and cells(content) > size:
            content = (Span(MORE + _end(plain(content), size - 1), content[0].style),)
        line += pad(content, size, right=column.right)
    return fit(tuple(line), total)


def _end(text: str, width: int) -> str:
    """The end of a text, of at most `width` cells."""
    while cell_len(text) > width:
        text = text[max(1, len(text) - width) :]
    return text


def heading(columns: Sequence[Column], total: int) -> Line:
    """The headings of a table."""
    return table_row(columns, [Span(column.title, "muted") for column in columns], total)


class Paragraph(NamedTuple):
    """A line of any length, which is wrapped to the width of the screen.

    Attributes:
        body: The line.
        gutter: What stands before it, on its first row.
        exact: True where every character counts (a script, a command): wrapped anywhere, with a mark in the
            gutter of the rows that continue it. False for prose, which is wrapped between words.
    """

    body: Line
    gutter: Line = ()
    exact: bool = False


def lay_out(paragraphs: Iterable[Paragraph], width: int) -> list[Line]:
    """Paragraphs as rows of at most `width` cells. Nothing is left out but spaces at which prose is broken."""
    return [row for paragraph in paragraphs for row in _rows(paragraph, width)]


def _rows(paragraph: Paragraph, width: int) -> Iterator[Line]:
    gutter = cells(paragraph.gutter)
    room = width - gutter
    if room < 8:
        # No room beside the gutter: it is wrapped with the rest, so that nothing is cut.
        paragraph = Paragraph((*paragraph.gutter, *paragraph.body), (), paragraph.exact)
        gutter, room = 0, max(1, width)
    pieces = _pieces(paragraph.body, room, paragraph.exact)
    yield (*paragraph.gutter, *next(pieces, ()))
    mark = WRAPPED if paragraph.exact else ""
    lead = Span(f"{mark:>{gutter - 1}} " if gutter > 1 else " " * gutter, "muted")
    for piece in pieces:
        yield (lead, *piece)


def _pieces(body: Line, room: int, exact: bool) -> Iterator[Line]:
    text = plain(body)
    if text.isascii() and len(text) <= room:
        yield body
        return
    position = 0
    for end in _ends(text, room, exact):
        piece = _part(body, position, end)
        # The space at which prose is broken may be the one cell too many.
        yield piece if cells(piece) <= room else _part(body, position, end - 1)
        position = end


def _ends(text: str, room: int, exact: bool) -> Iterator[int]:
    """Where each row of a text ends."""
    position = 0
    for row in chop_cells(text, room) if exact else _by_words(text, room):
        position += len(row)
        yield position


def _by_words(text: str, room: int) -> Iterator[str]:
    """Rows of at most `room` cells, each broken after its last space where there is one."""
    rest = text
    while len(rest) > room or cell_len(rest) > room:
        piece = chop_cells(rest[:room], max(2, room))[0]
        if len(piece) < len(rest) and rest[len(piece)] == " ":
            piece += " "
        else:
            piece = piece[: piece.rfind(" ") + 1] or piece
        yield piece
        rest = rest[len(piece) :]
    yield rest


def _part(body: Line, start: int, end: int) -> Line:
    """Characters `start` to `end` of a line, with their styles."""
    spans: list[Span] = []
    position = 0
    for span in body:
        low, high = max(start - position, 0), min(end - position, len(span.text))
        if low < high:
            spans.append(Span(span.text[low:high], span.style, span.verb))
        position += len(span.text)
    return tuple(spans)
