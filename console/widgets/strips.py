"""Text between other widgets: headings of tables, states, words of dialogs."""

from __future__ import annotations

from collections.abc import Callable

from console.widgets.ink import Line, Paragraph, lay_out
from console.widgets.inked import Block


class Heading(Block):
    """One line."""

    DEFAULT_CSS = """
    Heading { height: 1; padding: 0 1; }
    """

    _line: Line | Callable[[int], Line] = ()

    def show(self, line: Line | Callable[[int], Line]) -> None:
        """Show another line, or what makes one for a width in cells."""
        if callable(line) or line != self._line:
            self._line = line
            self.refresh()

    def lines(self, width: int) -> list[Line]:
        """The line."""
        return [self._line(width) if callable(self._line) else self._line]


class Words(Block):
    """Some text, wrapped.

    Args:
        paragraphs: The text.
    """

    DEFAULT_CSS = """
    Words { height: auto; padding: 0 1; }
    """

    def __init__(self, *paragraphs: Paragraph, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs = paragraphs

    def show(self, *paragraphs: Paragraph) -> None:
        """Show other text."""
        if paragraphs != self._paragraphs:
            self._paragraphs = paragraphs
            self.refresh(layout=True)

    def lines(self, width: int) -> list[Line]:
        """The wrapped text."""
        return lay_out(self._paragraphs, width)
