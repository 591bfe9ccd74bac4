"""The fleet: every release with what it waits for, filtered as you type, sorted and folded. Nothing here writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from console.fleet.listing import COLUMNS, GROUPINGS, Row, Wish, rows
from console.fleet.reading import Fleet
from console.fleet.session import FleetSession
from console.fleet.verbs import SCOPE, SHARED, VERBS
from console.screens.base import Area
from console.screens.help import Help, help_of
from console.snapshot import Snapshot
from console.verbs import Verb, in_scopes, verb
from console.widgets.fleet_rows import FleetRows, detail, heading
from console.widgets.header import RunHeader
from console.widgets.ink import Line, Paragraph, Span, foreign, lay_out
from console.widgets.inked import Block, VerbClicked
from console.widgets.keybar import Offer
from console.widgets.lines import Lines, Rows, Source
from console.widgets.strips import Heading


class FleetHeader(RunHeader):
    """How many releases there are, how many wait for you, and how the list is shown."""

    DEFAULT_CSS = """
    FleetHeader { height: auto; padding: 0 1; background: $surface; }
    """

    words: tuple[Line, ...] = ((), ())

    def show(self, words: tuple[Line, ...]) -> None:
        """Show other words."""
        if words != self.words:
            self.refresh(layout=len(words) != len(self.words))
            self.words = words

    def lines(self, width: int) -> list[Line]:
        """The words, and one row for each problem."""
        return [row for line in self.words for row in lay_out([Paragraph(line)], width)[:2]]


class FleetLines(Lines):
    """The list; a second later only those visible rows are drawn again that became others."""

    @property
    def row(self) -> Row | None:
        """What the cursor is on."""
        source = self._source
        known = isinstance(source, FleetRows) and self._cursor < len(source.rows)
        return source.rows[self._cursor] if known and isinstance(source, FleetRows) else None

    def _show(self, source: Source, key: str | None) -> None:
        before = self._source
        same = isinstance(before, FleetRows) and isinstance(source, FleetRows) and len(before) == len(source)
        if not same or key is not None:
            super()._show(source, key)
            return
        cursor, wanted, self._source = self._cursor, self.key, source
        found = source.find(wanted)
        self._cursor = self._nearest(cursor if found is None else found, 1)
        moved = {cursor, self._cursor} if cursor != self._cursor else set()
        top, region = self.scroll_offset.y, self.scrollable_content_region
        kept = {}
        for index in range(top, min(top + region.height, len(source))):
            if index not in moved and before.line(index, region.width - 1) == source.line(index, region.width - 1):
                if (strip := self._drawn.get((index, region.width))) is not None:
                    kept[index, region.width] = strip
            else:
                self.refresh_lines(index)
        self._drawn = kept


class Detail(Block):
    """The release under the cursor, in three lines."""

    DEFAULT_CSS = """
    Detail { height: 4; padding: 0 1; border-top: solid $border; }
    """

    _lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Show another one."""
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def lines(self, width: int) -> list[Line]:
        """The lines."""
        return list(self._lines)


class FleetScreen(Area):
    """The list of releases."""

    scope = SCOPE
    AUTO_FOCUS = "#rows"
    BINDINGS: ClassVar = [
        Binding(item.keys, f"verb('{item.id}')", item.label, show=False, id=f"{SCOPE}.{item.id}") for item in VERBS
    ]

    def __init__(self) -> None:
        super().__init__()
        self._header = FleetHeader()

    @property
    def fleet_session(self) -> FleetSession:
        """The session: what was read, and how it is shown."""
        session = self.console.session
        assert isinstance(session, FleetSession)
        return session

    def compose_body(self) -> Iterable[Widget]:
        """The filter, headings, releases."""
        field = Input(
            self.fleet_session.wish.words, id="filter", placeholder="words that a row must have", compact=True
        )
        field.display = bool(field.value)
        yield field
        yield Heading(id="head")
        yield FleetLines(id="rows", cursor=True, moved=self._moved)
        yield Detail(id="detail")

    def verbs(self) -> list[Verb]:
        """Those of the fleet, and those that work everywhere."""
        return [*VERBS, *SHARED, verb("choose")]

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        wish = self.fleet_session.wish
        if item.id == "fold_all" and not wish.grouping:
            return "nothing is folded by; press f first"
        if item.id == "clear" and not wish.words and not self.query_one("#filter", Input).has_focus:
            return "no filter is set"
        return ""

    async def on_verb_clicked(self, message: VerbClicked) -> None:
        """Sort by the heading that was clicked on, or run what was clicked on."""
        name = message.verb.removeprefix("sort:")
        if name == message.verb:
            await super().on_verb_clicked(message)
            return
        message.stop()
        if name in COLUMNS:
            wish = self.fleet_session.wish
            self._wish(wish._replace(column=name, reverse=wish.column == name and not wish.reverse))

    def update_view(self) -> None:
        """Draw the fleet as it is now."""
        if not self._header.is_attached:
            return
        session = self.fleet_session
        self.take(session.snapshot, session.clock.now())
        self.update_bar()

    def update_bar(self) -> None:
        """Offer what can be done."""
        offers = [Offer(item, not self.problem(item)) for item in self.verbs() if item.bar]
        self._keybar.take(self.scope, (), offers)

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw header and rows."""
        session = self.fleet_session
        wish, fleet = session.wish, session.fleet
        found = rows(fleet.releases, wish, now)
        empty = "no release has these words" if wish.words else "no release yet" if fleet.releases == () else ""
        # Whoever comes back from a release finds the cursor where it was.
        key, session.cursor = (session.cursor, "") if found else ("", session.cursor)
        self.query_one("#rows", FleetLines).show(FleetRows(found, now, wish.folded, empty), key=key or None)
        self.query_one("#head", Heading).show(lambda width: (Span(" "), *heading(width - 1, wish)))
        header = self._header
        assert isinstance(header, FleetHeader)
        shown = len({row.release.key for row in found if row.release is not None})
        header.show(_header(session, fleet, now, shown, self.console.problem))

        self._show_detail(now)

    def _moved(self) -> None:
        """Show what the cursor came to, in the same moment."""
        self._show_detail(self.fleet_session.clock.now())

    def _show_detail(self, now: datetime) -> None:
        lines = self.query_one("#rows", FleetLines)
        row = lines.row
        self.query_one("#detail", Detail).show([] if row is None else detail(row, now))

    def _wish(self, wish: Wish) -> None:
        self.fleet_session.wish = wish
        self.update_view()

    def do_waiting(self) -> None:
        """Put the cursor on the next release that waits for the operator, unfolding what hides it."""
        session = self.fleet_session
        now = session.clock.now()
        self._wish(session.wish._replace(folded=frozenset()))
        lines = self.query_one("#rows", FleetLines)
        source = lines._source
        assert isinstance(source, FleetRows)
        keys = [row.key for row in source.rows if row.release and not row.job and row.release.waits_for_you(now)]
        if not keys:
            self.console.say("nothing waits for you")
            return
        here = source.find(lines.key) or 0
        key = next((key for key in keys if (source.find(key) or 0) > here), keys[0])
        lines.move_to(source.find(key) or 0)
        self.set_focus(lines)

    def do_filter(self) -> None:
        """Type words."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)

    def do_clear(self) -> None:
        """Show all again."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.set_focus(self.query_one("#rows"))
        self._wish(self.fleet_session.wish._replace(words=""))

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter at once."""
        message.stop()
        self._wish(self.fleet_session.wish._replace(words=message.value))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Go to the rows; the filter stays."""
        message.stop()
        message.input.display = bool(message.value)
        self.set_focus(self.query_one("#rows"))

    def do_sort(self, step: int = 1) -> None:
        """Sort by another column."""
        wish = self.fleet_session.wish
        self._wish(wish._replace(column=COLUMNS[(COLUMNS.index(wish.column) + step) % len(COLUMNS)]))

    def do_sort_back(self) -> None:
        """Sort by the column before."""
        self.do_sort(-1)

    def do_order(self) -> None:
        """Turn the order round."""
        wish = self.fleet_session.wish
        self._wish(wish._replace(reverse=not wish.reverse))

    def do_fold(self) -> None:
        """Fold by something else."""
        wish = self.fleet_session.wish
        grouping = GROUPINGS[(GROUPINGS.index(wish.grouping) + 1) % len(GROUPINGS)]
        self._wish(wish._replace(grouping=grouping, folded=frozenset()))

    def do_fold_all(self) -> None:
        """Fold all groups; unfold them where all are."""
        session = self.fleet_session
        shown = rows(session.fleet.releases, session.wish._replace(folded=frozenset()), session.clock.now())
        groups = frozenset(row.group for row in shown if row.group)
        self._wish(session.wish._replace(folded=frozenset() if session.wish.folded >= groups else groups))

    def do_show_jobs(self) -> None:
        """Show jobs, or not."""
        wish = self.fleet_session.wish
        self._wish(wish._replace(jobs=not wish.jobs))

    def do_choose(self) -> None:
        """Open what is under the cursor."""
        self.query_one("#rows", FleetLines).action_move("choose")

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Open a release; fold or unfold a group."""
        message.stop()
        session = self.fleet_session
        if message.key.startswith("group:"):
            self._wish(session.wish._replace(folded=session.wish.folded ^ {message.key.removeprefix("group:")}))
            return
        path = Path(message.key.split("\n")[0])
        release = next((item for item in session.fleet.releases if item.path == path), None)
        if release is not None:
            session.cursor = message.key
            session.open(release)


def _header(session: FleetSession, fleet: Fleet, now: datetime, shown: int, problem: str) -> tuple[Line, ...]:
    count = len(fleet.releases)
    waiting = sum(1 for item in fleet.releases if item.waits_for_you(now))
    wish = session.wish
    chip = f" ◆ {waiting} WAIT{'S' if waiting == 1 else ''} FOR YOU "
    first: Line = (
        Span("Fleet", "strong"),
        Span(f"  {count} release{'' if count == 1 else 's'}  " if session.read else "  reading…  "),
        Span(chip, "chip-waiting", "waiting") if waiting else Span("nothing waits for you", "muted"),
        *((Span("  "), Span(" READ-ONLY ", "chip-idle")) if session.read_only else ()),
    )
    how = f"sorted by {wish.column}{', turned round' if wish.reverse else ''}"
    how += f" · folded by {wish.grouping}" if wish.grouping else ""
    how += " · with jobs" if wish.jobs else ""
    second: list[Span] = [Span(how, "muted")]
    if wish.words:
        second += [Span(f" · {shown} of {count} have ", "muted"), foreign(wish.words, "key")]
    problems = (*fleet.problems, *((problem,) if problem else ()))
    return (first, tuple(second), *((Span("▲ ", "waiting"), foreign(text, "waiting")) for text in problems[:3]))


class FleetHelp(Help):
    """Help for the fleet."""

    def __init__(self, below: Area) -> None:
        super().__init__(below)
        self._header = FleetHeader()

    def verbs(self) -> list[Verb]:
        """Back, and what works everywhere."""
        return [verb("back"), *SHARED]

    def update_view(self) -> None:
        """Draw the text."""
        if self._header.is_attached:
            self.take(self.console.session.snapshot, self.console.session.clock.now())
            self.update_bar()

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the text."""
        about = "Every release below the given folders: its state, what it waits for and since when."
        parts = (("Here", VERBS), ("In every list", in_scopes(["list"])), ("Everywhere", SHARED))
        shown = help_of(about, parts, self._problem)
        self.query_one("#text", Lines).build(lambda width: Rows(lay_out(shown, width)))
