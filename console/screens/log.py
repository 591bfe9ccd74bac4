"""The work log as a live table, with what every entry holds and whether the chain is whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from console.log_filter import LogFilter, parse
from console.release.journal import Entry, Kind
from console.screens.base import Area, bindings
from console.snapshot import UNREAD, LogView, Snapshot
from console.widgets.figures import digest
from console.widgets.ink import Line, Span, foreign, lay_out
from console.widgets.lines import Lines, Rows
from console.widgets.log_rows import LogRows, entry_detail, log_heading
from console.widgets.strips import Heading

PART = 3000
"""So many entries are looked through at once for a filter; a long log is gone through in parts."""

PART_SECONDS = 0.05
"""From one such part to the next."""


class Log(Area):
    """The log screen."""

    scope = "log"
    BINDINGS = bindings("log")
    AUTO_FOCUS = "#entries"

    def __init__(self) -> None:
        super().__init__()
        self._only_human = False
        self._human: list[int] = []
        self._looked_at = UNREAD
        self._filter = LogFilter()
        self._matches: list[int] = []
        self._searched, self._searched_in = 0, UNREAD

    def compose_body(self) -> Iterable[Widget]:
        """State of the chain, headings, entries, the entry under the cursor."""
        yield Heading(id="chain")
        yield Input(id="filter", placeholder="words  stage:…  actor:…  kind:…", compact=True)
        yield Heading(id="head")
        yield Lines(id="entries", cursor=True, follow=True, moved=self._moved)
        detail = Lines(id="entry")
        detail.border_title = Content("Entry")
        detail.add_class("panel")
        yield detail

    @property
    def entries(self) -> Lines:
        """The list of entries."""
        return self.query_one("#entries", Lines)

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the log as far as it has been read."""
        log = snapshot.log
        entries = self.entries
        self._find_human(log)
        self._go_through(log)
        chosen = self._chosen(log)
        entries.show(LogRows(log, chosen))
        chain = chain_line(log, len(self._human), self._only_human, entries.follow)
        self.query_one("#chain", Heading).show((*self.filter_words(log), *chain))
        self.query_one("#head", Heading).show(lambda width: (Span(" "), *log_heading(width - 2)))
        self._take_entry(log)

    def _find_human(self, log: LogView) -> None:
        """Find the interventions among entries that were added."""
        count = len(self._looked_at)
        if not log.continues(self._looked_at):
            self._human, count = [], 0
        self._human += [index for index in range(count, len(log)) if log[index].kind is Kind.HUMAN_INTERVENTION]
        self._looked_at = log

    def on_mount(self) -> None:
        """Go on through a long log while a filter is set."""
        self.set_interval(PART_SECONDS, self._go_on, name="filter")

    def _go_on(self) -> None:
        session = self.console.session
        if not self._filter.empty and self._searched < len(session.snapshot.log):
            self.take(session.snapshot, session.clock.now())

    def _go_through(self, log: LogView) -> None:
        """Look through the next part of the log."""
        if self._filter.empty:
            return
        if not (log.continues(self._searched_in) or self._searched_in.continues(log)):
            self._matches, self._searched = [], 0
        self._searched_in = log
        end = min(len(log), self._searched + PART)
        self._matches += [place for place in range(self._searched, end) if self._filter.shows(log[place])]
        self._searched = max(self._searched, end)

    def _chosen(self, log: LogView) -> list[int] | None:
        """Positions of the entries that are shown; None for all."""
        if not self._filter.empty:
            return self._matches[: bisect_left(self._matches, len(log))]
        return list(self._human) if self._only_human else None

    def filter_words(self, log: LogView) -> Line:
        """What a filter found, and how far it has looked."""
        if self._filter.empty:
            return ()
        count = bisect_left(self._matches, len(log))
        far = f", {self._searched} of {len(log)} looked through" if self._searched < len(log) else ""
        return (Span(f"/ {count} found{far}  ", "key"),)

    def _set_filter(self) -> None:
        self._filter = parse(self.query_one("#filter", Input).value, human=self._only_human)
        self._matches, self._searched, self._searched_in = [], 0, UNREAD
        self._moved()

    def do_filter(self) -> None:
        """Type what to look for."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)

    async def do_back(self) -> None:
        """Show all entries again, or go back."""
        field = self.query_one("#filter", Input)
        if not field.display:
            await self.app.do_back()  # type: ignore[attr-defined]
            return
        field.value, field.display = "", False
        self.set_focus(self.entries)
        self._set_filter()

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter while somebody types."""
        message.stop()
        self._set_filter()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Go to the entries that were found."""
        message.stop()
        self.set_focus(self.entries)

    def _take_entry(self, log: LogView) -> None:
        detail = self.query_one("#entry", Lines)
        position = self._position(log)
        entry: Entry | None = None if position is None else log[position]
        rows = [] if entry is None or position is None else entry_detail(entry, position < log.verified)
        detail.build(lambda width: Rows(lay_out(rows, width)))

    def _position(self, log: LogView) -> int | None:
        key = self.entries.key
        index = LogRows(log).find(key) if key else None
        return index

    def _moved(self) -> None:
        self.query_one("#entry", Lines).restart()
        session = self.console.session
        self.take(session.snapshot, session.clock.now())

    def do_interventions(self) -> None:
        """Show all entries, or interventions only."""
        self._only_human = not self._only_human
        self._set_filter()

    def do_follow(self) -> None:
        """Follow new entries, or stay."""
        entries = self.entries
        entries.follow = not entries.follow
        if entries.follow:
            entries.to_end()
        self._moved()


def chain_line(log: LogView, human: int, only_human: bool, follow: bool) -> Line:
    """Whether the chain is whole, how many interventions there are, and what is shown."""
    state: Line
    head = f"  {len(log)} entries, head {digest(log[-1].hash)}" if len(log) else ""
    if not log.read or log.more:
        state = (Span("… reading the log", "muted"),)
    elif log.problem:
        return (Span("✗ CHAIN BROKEN ", "failed"), foreign(log.problem, "failed"))
    else:
        state = (Span("✓ chain verified", "passed"),)
    torn: Line = (Span("  an entry is being written", "muted"),) if log.torn else ()
    shown = "interventions only" if only_human else "all entries"
    words = f"  ◈ {human} · {shown} · {'following' if follow else 'not following'}"
    return (*state, *torn, Span(words, "human" if only_human else "muted"), Span(head, "muted"))
