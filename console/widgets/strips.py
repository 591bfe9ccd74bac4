"""A single line of text between other widgets: headings of tables, states."""

from __future__ import annotations

from collections.abc import Callable

from console.widgets.ink import Line
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
