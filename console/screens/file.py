"""One result file: as the text that it is, or as a table, with its digest and its age."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from functools import partial

from textual.widget import Widget

from backends.watcher.folding import Fold
from console.file_reading import Contents, read_file
from console.release.output_paths import RESULT
from console.screens.attention import Attention
from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.verbs import AREAS, Verb
from console.widgets.figures import NOTHING, age, since, size
from console.widgets.file_table import NoTable, Table, TableRows, table_of
from console.widgets.ink import Line, Span, foreign
from console.widgets.lines import Lines
from console.widgets.output_rows import OutputRows, Wrapped
from console.widgets.strips import Heading

POLL_SECONDS = 0.5

LONGEST_BYTES = 20_000
"""So much of one line is shown as text."""


class ResultFile(Area):
    """A result file.

    Args:
        attempt_id: The attempt that writes it.
        kind: Its kind.
    """

    scope = "file"
    BINDINGS = bindings("file")
    AUTO_FOCUS = "#lines"

    def __init__(self, attempt_id: str, kind: str) -> None:
        super().__init__()
        self._attempt, self._kind = attempt_id, kind
        self._contents: Contents | None = None
        self._table: Table | None = None
        self._no_table = ""
        self._as_table = True
        self._fold = Fold()
        self._version = 0
        self._attention = Attention()

    def compose_body(self) -> Iterable[Widget]:
        """What file, how old, headings, its rows."""
        yield Heading(id="about")
        yield Heading(id="state")
        yield Heading(id="head")
        yield Lines(id="lines", cursor=True)

    @property
    def lines(self) -> Lines:
        """The rows."""
        return self.query_one("#lines", Lines)

    def on_mount(self) -> None:
        """Begin to read, as long as the screen is open."""
        work = partial(self.run_worker, exit_on_error=False)
        work(self._read_on(), name="file", group="file", description="read the result file")

    async def on_unmount(self) -> None:
        """Let the conductor know that nobody looks any more."""
        await self._attention.end(self.console.session)

    async def _read_on(self) -> None:
        session = self.console.session
        while True:
            found = await asyncio.to_thread(read_file, session.run_dir, session.snapshot.run, self._attempt, self._kind)
            if found != self._contents:
                same = self._contents is not None and found.data == self._contents.data
                self._contents = found
                if not same:
                    await asyncio.to_thread(self._make)
                    self._show()
                self.update_view()
            if not found.judged:
                await self._attention.pay(session, self._attempt, f"{RESULT}{self._kind}")
            await asyncio.sleep(POLL_SECONDS)

    def _make(self) -> None:
        """Make table and lines of the bytes; it may take a while, and draws nothing."""
        contents = self._contents or Contents()
        try:
            self._table, self._no_table = table_of(contents.path, contents.data), ""
        except NoTable as error:
            self._table, self._no_table = None, str(error)
        self._fold = Fold(longest=LONGEST_BYTES, keep_lines=10**6)
        self._fold.feed(contents.data)

    def _show(self) -> None:
        self._version += 1
        lines = self.lines
        if self._as_table and self._table is not None:
            rows = TableRows(self._table)
            lines.show(rows)
            self.query_one("#head", Heading).show(lambda width: (Span(" "), *rows.heading(width - 2)))
            return
        wrapped = Wrapped(lines.room, True)
        wrapped.update(self._fold)
        lines.show(OutputRows(self._fold, self._fold.first, self._fold.end, self._version, True, wrapped))
        self.query_one("#head", Heading).show((Span(" the bytes as text", "muted"),))

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self.call_after_refresh(self._show)

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw what stands above the rows."""
        contents = self._contents
        self.query_one("#about", Heading).show(
            (foreign(self._kind, "strong"), Span(" of "), foreign(self._attempt, "strong"))
        )
        self.query_one("#state", Heading).show(
            (Span("… reading", "running"),) if contents is None else self._state(contents, now)
        )

    def _state(self, contents: Contents, now: datetime) -> Line:
        read = age(since(contents.since, now)) if contents.since else ""
        words: list[Span] = []
        if contents.judged:
            words.append(Span("✓ read by gates", "passed"))
        elif contents.since:
            words.append(Span("● watched", "running"))
        if read:
            words.append(Span(f" {read} ago", "muted"))
        if contents.said:
            words.append(foreign(f" ? {contents.said}", "unknown"))
        form = self._table.form if self._table is not None and self._as_table else "text"
        words.append(Span(f"  {size(contents.size)} · {form}", "muted"))
        if self._table is not None and self._as_table and self._table.left_out:
            words.append(Span(f", {self._table.left_out} not shown", "waiting"))
        words.append(Span(f" · SHA-256 {contents.sha256 or NOTHING}", "muted"))
        return tuple(words)

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        if item.id == "table" and self._table is None:
            return f"it is no table: {self._no_table}" if self._no_table else "it is not read yet"
        return super().problem(item)

    async def run_verb(self, verb_id: str) -> None:
        """Run a verb; other areas lie below this screen, so it is left before they are shown."""
        if verb_id in AREAS or verb_id == "waiting":
            self.dismiss()
        await super().run_verb(verb_id)

    def do_back(self) -> None:
        """Go back."""
        self.dismiss()

    def do_table(self) -> None:
        """Show the table, or the text."""
        self._as_table = not self._as_table
        self._show()
        self.lines.restart()
        self.update_view()
