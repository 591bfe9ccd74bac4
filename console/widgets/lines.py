"""A list of any length, of which only what is visible is made: lines over an index.

It has a cursor that stays on its row when rows come and go, or none, for text that is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.verbs import in_scopes
from console.widgets.ink import Line, Span, plain
from console.widgets.inked import Inked, VerbClicked

if TYPE_CHECKING:
    from textual import events
    from textual.selection import Selection

_WIDE = 400
"""Cells that a row has when it is copied."""

_CACHED = 2000
"""So many drawn rows are kept at most."""


class Source(Protocol):
    """Where rows come from."""

    def __len__(self) -> int: ...

    def line(self, index: int, width: int) -> Line:
        """One row, made for a width in cells."""

    def key(self, index: int) -> str:
        """What the row is about; empty for a row that the cursor passes over."""

    def find(self, key: str) -> int | None:
        """The row that is about something."""


class Rows:
    """Rows that are there already.

    Args:
        lines: The rows.
        keys: What each is about; none of them takes the cursor where this is left out.
    """

    __slots__ = ("keys", "lines")

    def __init__(self, lines: Sequence[Line] = (), keys: Sequence[str] = ()) -> None:
        self.lines = lines
        self.keys = keys

    def __len__(self) -> int:
        return len(self.lines)

    def line(self, index: int, width: int) -> Line:
        """One row."""
        return self.lines[index]

    def key(self, index: int) -> str:
        """What it is about."""
        return self.keys[index] if self.keys else ""

    def find(self, key: str) -> int | None:
        """The row that is about something."""
        return next((index for index, name in enumerate(self.keys) if name == key), None) if key else None


Builder = Callable[[int], Rows]
"""Makes rows for a width in cells."""


class Lines(Inked, ScrollView, can_focus=True, inherit_bindings=False):
    """The list.

    Args:
        cursor: Whether it has a cursor.
        follow: Whether it stays at its end when rows are added, until somebody moves away from there.
        verb: Verb that a click anywhere on it runs.
        moved: Called at once when the cursor has moved.
    """

    DEFAULT_CSS = """
    Lines { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [  # noqa: RUF012 - Textual's own way
        Binding(item.keys, f"move('{item.id}')", item.label, show=False, id=f"list.{item.id}")
        for item in in_scopes(["list"])
    ]

    class Chosen(Message):
        """A row was chosen with Enter, or by a click on the row under the cursor.

        Attributes:
            lines: The list.
            key: What the row is about.
        """

        def __init__(self, lines: Lines, key: str) -> None:
            super().__init__()
            self.lines = lines
            self.key = key

        @property
        def control(self) -> Lines:
            """The list."""
            return self.lines

    def __init__(
        self,
        *,
        id: str,
        cursor: bool = False,
        follow: bool = False,
        verb: str = "",
        focusable: bool = True,
        moved: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(id=id)
        self.can_focus = focusable
        self.follow = follow
        self._has_cursor = cursor
        self._verb = verb
        self._moved = moved
        self._source: Source = Rows()
        self._cursor = 0
        self._builder: Builder | None = None
        self._built_for = 0
        self._drawn: dict[tuple[int, int], Strip] = {}

    @property
    def key(self) -> str:
        """What the row under the cursor is about; empty for none."""
        return self._source.key(self._cursor) if self._has_cursor and self._cursor < len(self._source) else ""

    @property
    def copied(self) -> str:
        """The text of the row under the cursor, whole where its source can tell; empty for none."""
        if not self.key:
            return ""
        whole = getattr(self._source, "whole", None)
        found = whole(self._cursor) if callable(whole) else plain(self._source.line(self._cursor, _WIDE))
        return str(found).rstrip()

    @property
    def room(self) -> int:
        """Cells that a row may have, whether or not there is a scrollbar just now."""
        bar = 0 if self.show_vertical_scrollbar else 1
        return max(8, self.scrollable_content_region.width - bar - self._has_cursor)

    @property
    def at_end(self) -> bool:
        """Whether the last row is in sight. An empty list, or one that was not drawn yet, is not at its end."""
        height = self.scrollable_content_region.height
        return bool(len(self._source)) and height > 0 and self.scroll_offset.y + height >= len(self._source)

    def build(self, builder: Builder, *, key: str | None = None) -> None:
        """Show rows that depend on the width; they are made again whenever that changes.

        Args:
            builder: Makes them.
            key: What the cursor shall be on instead of where it is.
        """
        self._builder = builder
        self._built_for = self.room
        self._show(builder(self._built_for), key)

    def show(self, source: Source, *, key: str | None = None) -> None:
        """Show other rows. The cursor stays on what it was on, and the scroll position where it was.

        Args:
            source: The rows.
            key: What the cursor shall be on instead.
        """
        self._builder = None
        self._show(source, key)

    def _rebuild(self) -> None:
        if self._builder is not None and self._built_for != self.room:
            self.build(self._builder)

    def _show(self, source: Source, key: str | None) -> None:
        if key is None and source == self._source:
            return
        wanted = self.key if key is None else key
        before, self._source = self._source, source
        if isinstance(before, Rows) and isinstance(source, Rows) and len(before) == len(source) and key is None:
            # A second later most rows are as they were: over a slow link only the others are sent again.
            self._show_changed(before, source)
            return
        self._drawn.clear()
        if self._has_cursor:
            found = source.find(wanted)
            self._cursor = self._nearest(self._cursor if found is None else found, 1)
        if self.virtual_size.height != len(source):
            self.virtual_size = Size(1, len(source))
        self.refresh()
        if self.follow:
            self.to_end()
        elif self._has_cursor and key is not None:
            self._keep_in_sight()

    def _show_changed(self, before: Rows, after: Rows) -> None:
        cursor = self._cursor
        if self._has_cursor:
            found = after.find(before.key(cursor)) if cursor < len(before) else None
            self._cursor = self._nearest(cursor if found is None else found, 1)
        for index, (old, new) in enumerate(zip(before.lines, after.lines, strict=True)):
            if old != new or (self._cursor != cursor and index in (cursor, self._cursor)):
                self._drawn = {place: strip for place, strip in self._drawn.items() if place[0] != index}
                self.refresh_lines(index)

    def restart(self) -> None:
        """Scroll back to the beginning."""
        self._jump(0)

    def to_end(self) -> None:
        """Go to the last row."""
        if self._has_cursor:
            self._cursor = self._nearest(len(self._source) - 1, -1)
        self._jump(len(self._source))

    def _jump(self, y: int) -> None:
        """Scroll so that a row is the first one, as far as there are rows; also before the scrollbar is there."""
        self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Make rows for the new width; stay at the end of a list that is followed, or keep the cursor in sight."""
        self._rebuild()
        if self.follow:
            self._jump(len(self._source))
        elif self._has_cursor:
            self._keep_in_sight()

    def _nearest(self, index: int, step: int) -> int:
        """The row at an index that the cursor may be on, or the next one in a direction, or in the other."""
        last = len(self._source) - 1
        index = max(0, min(index, last))
        for way in (step, -step):
            found = index
            while 0 <= found <= last:
                if self._source.key(found):
                    return found
                found += 1 if way > 0 else -1
        return index

    def _keep_in_sight(self) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if self._cursor < top:
            # Headings above the first row come into sight with it.
            first = self._nearest(0, 1)
            self._jump(0 if self._cursor == first else self._cursor)
        elif height and self._cursor >= top + height:
            self._jump(self._cursor - height + 1)

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Show in a scrollbar that has just appeared how far the list was scrolled before."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def move_to(self, index: int, step: int = 1) -> None:
        """Put the cursor on a row, or on the next one that takes it."""
        before, top = self._cursor, self.scroll_offset.y
        self._cursor = self._nearest(index, step)
        self.follow = self.follow and self._cursor == self._nearest(len(self._source) - 1, -1)
        self._keep_in_sight()
        if self._cursor != before:
            # Only two rows look otherwise than before; the others are only drawn again where they were scrolled.
            two = (before, self._cursor)
            self._drawn = {place: strip for place, strip in self._drawn.items() if place[0] not in two}
            if self.scroll_offset.y == top:
                self.refresh_lines(before)
                self.refresh_lines(self._cursor)
            else:
                self.refresh()
            if self._moved is not None:
                self._moved()

    def action_move(self, verb_id: str) -> None:
        """Carry out a verb of the scope "list"."""
        if verb_id == "choose":
            if self.key:
                self.post_message(self.Chosen(self, self.key))
            elif self._verb:
                self.post_message(VerbClicked(self._verb))
            return
        page = max(1, self.scrollable_content_region.height - 1)
        end = len(self._source)
        step = {"up": -1, "down": 1, "page_up": -page, "page_down": page, "first": -end, "last": end}[verb_id]
        if self._has_cursor:
            self.move_to(self._cursor + step, step)
        else:
            self.follow = False
            self._jump(self.scroll_offset.y + step)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the click was; a click on the cursor chooses."""
        event.stop()
        name = event.style.meta.get("verb") or self._verb
        if name:
            self.post_message(VerbClicked(name))
            return
        offset = event.get_content_offset(self)
        if offset is None or not self._has_cursor:
            return
        index = offset.y + self.scroll_offset.y
        if index >= len(self._source) or not self._source.key(index):
            return
        if index == self._cursor:
            self.post_message(self.Chosen(self, self.key))
        else:
            self.move_to(index)

    def notify_style_update(self) -> None:
        """Forget drawn rows when the theme changes."""
        self._drawn.clear()
        super().notify_style_update()

    def watch_has_focus(self, value: bool) -> None:
        """Redraw the cursor."""
        self._drawn.clear()
        super().watch_has_focus(value)

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if self._builder is not None and self._built_for != self.room:
            self._build_in_place(self._builder)
        strip = self._drawn.get((index, width))
        if strip is None:
            if len(self._drawn) >= _CACHED:
                self._drawn.clear()
            strip = self._drawn[index, width] = self._draw(index, width)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(index)) is not None:
            strip = self._mark_selected(strip, span, width)
        return strip.apply_offsets(0, index)

    def _build_in_place(self, builder: Builder) -> None:
        """Make the rows for a width that is known only now; where their number changes, that is laid out later."""
        self._built_for = self.room
        rows = builder(self.room)
        if len(rows) == len(self._source):
            self._source = rows
            self._drawn.clear()
        else:
            self.call_later(self._show, rows, None)

    def _draw(self, index: int, width: int) -> Strip:
        base = self.base
        if index >= len(self._source):
            return Strip.blank(width, base)
        if not self._has_cursor:
            return self.strip(self._source.line(index, width), width, base)
        here = index == self._cursor and bool(self._source.key(index))
        # What is shown beside follows the cursor of some lists: there it stays to be seen.
        here = here and (self.has_focus or self._moved is not None)
        mark = Span(("▌" if self.has_focus else "▏") if here else " ", "bar")
        line = (mark, *self._source.line(index, width - 1))
        return self.strip(line, width, base + self.look("cursor") if here else base)

    def _mark_selected(self, strip: Strip, span: tuple[int, int], width: int) -> Strip:
        start, end = span
        end = width if end == -1 else end
        style = self.screen.get_component_rich_style("screen--selection")
        before, middle, after = strip.divide([start, end, width]) if start < end else (strip, Strip([]), Strip([]))
        return Strip.join([before, middle.apply_style(style), after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as it is shown."""
        first = 0 if selection.start is None else selection.start.y
        last = len(self._source) - 1 if selection.end is None else min(selection.end.y, len(self._source) - 1)
        width = self.scrollable_content_region.width
        margin = " " if self._has_cursor else ""
        rows = [margin + plain(self._source.line(index, width - len(margin))) for index in range(first, last + 1)]
        if not rows:
            return None
        if selection.end is not None and selection.end.y <= last:
            rows[-1] = rows[-1][: selection.end.x]
        if selection.start is not None:
            rows[0] = rows[0][selection.start.x :]
        return "\n".join(row.rstrip() for row in rows), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Redraw what is selected."""
        self.refresh()
