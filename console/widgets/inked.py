"""Turns lines of styled text into what the terminal gets: the one place where they do."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from console.safe_text import safe
from console.widgets.ink import Line, fit

if TYPE_CHECKING:
    from textual.geometry import Region, Size

_COLOURS = (
    "background",
    "cursor",
    "rule",
    "accent",
    "passed",
    "running",
    "waiting",
    "failed",
    "unknown",
    "human",
    "idle",
)
_STATES = _COLOURS[4:]
_LOOKS = {
    "text": "",
    "strong": "bold",
    "muted": "$idle",
    "title": "bold $accent",
    "key": "bold $accent",
    "rule": "$rule",
    "cursor": "on $cursor",
    "bar": "$accent",
    **{name: f"${name}" for name in _STATES},
    "waiting": "bold $waiting",
    "human": "bold $human",
    **{f"chip-{name}": f"bold $background on ${name}" for name in _STATES},
}
"""Each style in the words of Rich, colours by their names in the theme."""


@lru_cache(maxsize=256)
def _style(name: str, colours: tuple[tuple[str, str], ...]) -> Style:
    look = _LOOKS[name]
    for colour, value in colours:
        look = look.replace(f"${colour}", value)
    return Style.parse(look)


class VerbClicked(Message):
    """Somebody clicked on what names a verb.

    Attributes:
        verb: Its id.
    """

    def __init__(self, verb: str) -> None:
        super().__init__()
        self.verb = verb


class Inked(Widget):
    """A widget that is drawn line by line from styled text."""

    _colours: tuple[str, tuple[tuple[str, str], ...]] = ("", ())
    _base: Style | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Some rows. What they stand on is the same for all of them, and costly to find: it is found once."""
        self._base = self.rich_style
        try:
            return super().render_lines(crop)
        finally:
            self._base = None

    @property
    def base(self) -> Style:
        """Colours that a row stands on."""
        return self.rich_style if self._base is None else self._base

    def look(self, name: str) -> Style:
        """A style of `console.widgets.ink.STYLES` in the colours of the theme."""
        theme = self.app.theme
        if self._colours[0] != theme:
            variables = self.app.theme_variables
            found = [(name, variables[f"gonogo-{name}"]) for name in _COLOURS]
            self._colours = (theme, tuple(found))
        return _style(name, self._colours[1])

    def strip(self, line: Line, width: int, base: Style | None = None) -> Strip:
        """A line as a strip of exactly `width` cells on the widget's own background."""
        base = self.base if base is None else base
        segments = []
        for text, style, verb in fit(line, width):
            # Foreign text is safe before it gets here; this holds even for a caller that forgot.
            shown = text if text.isprintable() else safe(text)
            drawn = base + self.look(style)
            segments.append(Segment(shown, drawn + Style(meta={"verb": verb}) if verb else drawn))
        return Strip(segments).adjust_cell_length(width, base)


class Block(Inked):
    """A few lines that neither scroll nor take the focus.

    A click on a span that names a verb posts `VerbClicked`.
    """

    ALLOW_SELECT = False

    _made: tuple[int, list[Line]] | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Some rows, of lines that are made once for all of them."""
        width = self.content_size.width
        self._made = (width, self.lines(width))
        try:
            return super().render_lines(crop)
        finally:
            self._made = None

    def lines(self, width: int) -> list[Line]:
        """The lines, for a width in cells. To be overridden."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines."""
        return len(self.lines(width))

    def render_line(self, y: int) -> Strip:
        """One row."""
        width = self.content_size.width
        lines = self._made[1] if self._made is not None and self._made[0] == width else self.lines(width)
        return self.strip(lines[y] if y < len(lines) else (), width)

    def on_click(self, event: events.Click) -> None:
        """Run the verb that was clicked on."""
        name = event.style.meta.get("verb")
        if name:
            event.stop()
            self.post_message(VerbClicked(name))
