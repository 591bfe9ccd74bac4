"""The work log as a live table, with what every entry holds and whether the chain is whole."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from textual.content import Content
from textual.widget import Widget

from console.release.journal import Entry, Kind
from console.screens.base import Area, bindings
from console.snapshot import UNREAD, LogView, Snapshot
from console.widgets.figures import digest
from console.widgets.ink import Line, Span, foreign, lay_out
from console.widgets.lines import Lines, Rows
from console.widgets.log_rows import LogRows, entry_detail, log_heading
from console.widgets.strips import Heading


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

    def compose_body(self) -> Iterable[Widget]:
        """State of the chain, headings, entries, the entry under the cursor."""
        yield Heading(id="chain")
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
        chosen = list(self._human) if self._only_human else None
        entries.show(LogRows(log, chosen))
        chain = chain_line(log, len(self._human), self._only_human, entries.follow)
        self.query_one("#chain", Heading).show(chain)
        self.query_one("#head", Heading).show(lambda width: (Span(" "), *log_heading(width - 2)))
        self._take_entry(log)

    def _find_human(self, log: LogView) -> None:
        """Find the interventions among entries that were added."""
        count = len(self._looked_at)
        if not log.continues(self._looked_at):
            self._human, count = [], 0
        self._human += [index for index in range(count, len(log)) if log[index].kind is Kind.HUMAN_INTERVENTION]
        self._looked_at = log

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
        self._moved()

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
