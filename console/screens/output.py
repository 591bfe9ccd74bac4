"""A job's output as it grows: both streams, searched, wrapped or not. Only what is visible is drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from functools import partial

from textual.widget import Widget
from textual.widgets._input import Input

from backends.watcher.folding import Fold
from console.output_reader import Batch, OutputReader, fold_in
from console.release.output_paths import STDERR, STDOUT
from console.release.spool import Kept
from console.screens.attention import Attention
from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.verbs import AREAS, Verb
from console.widgets.ink import Line
from console.widgets.lines import Lines
from console.widgets.output_head import Shown, feed_line, job_line
from console.widgets.output_rows import OutputRows, Search, Wrapped, hidden
from console.widgets.strips import Heading

POLL_SECONDS = 0.25
"""So often we look whether more was read."""


class Output(Area):
    """The output of one attempt's job.

    Args:
        attempt_id: The attempt.
        what: Which stream.
    """

    scope = "output"
    BINDINGS = bindings("output")
    AUTO_FOCUS = "#lines"

    def __init__(self, attempt_id: str, what: str = STDOUT) -> None:
        super().__init__()
        self._attempt = attempt_id
        self._what = what
        self._kept: Kept | None = None
        self._fold = Fold()
        self._version = 0
        self._exact = False
        self._wrapped: Wrapped | None = None
        self._search: Search | None = None
        self._here = -1
        self._apart: bool | None = None
        self._attention = Attention()

    def compose_body(self) -> Iterable[Widget]:
        """The job, the state of the feed, the search, the lines."""
        yield Heading(id="job")
        yield Heading(id="feed")
        yield Input(id="search", placeholder="text to search for; enter keeps it, esc forgets it", compact=True)
        yield Lines(id="lines", cursor=True, follow=True, moved=self._moved)

    @property
    def lines(self) -> Lines:
        """The list of lines."""
        return self.query_one("#lines", Lines)

    @property
    def target(self) -> str:
        """The attempt."""
        return self._attempt

    def on_mount(self) -> None:
        """Begin to read, as long as the screen is open."""
        work = partial(self.run_worker, exit_on_error=False)
        work(self._read_on(), name="output", group="output", description="read the job's output")

    async def on_unmount(self) -> None:
        """Let the conductor know that nobody looks any more."""
        await self._attention.end(self.console.session)

    async def _read_on(self) -> None:
        reader, what = OutputReader(self.console.session.run_dir, self._attempt, self._what), self._what
        self._apart = await asyncio.to_thread(self._find_apart)
        while True:
            if what != self._what:
                reader, what = OutputReader(self.console.session.run_dir, self._attempt, self._what), self._what
            await self._attention.pay(self.console.session, self._attempt, self._what)
            batch = await asyncio.to_thread(reader.read)
            if what == self._what:
                self._take_batch(batch)
            await asyncio.sleep(0 if batch.more else POLL_SECONDS)

    def _find_apart(self) -> bool | None:
        """Whether the job has a file for each stream; None where nobody can tell."""
        from console.release import queue
        from console.release.output_paths import UnknownPath, is_apart

        attempt = self.console.session.snapshot.run.attempt(self._attempt)
        try:
            job = queue.load(self.console.session.run_dir, self._attempt).job()
            return is_apart(job, (attempt.job_id if attempt is not None else None) or "0")
        except (queue.QueueError, UnknownPath):
            return None

    def _take_batch(self, batch: Batch) -> None:
        """Show what was read, without moving whoever reads above the end."""
        if batch.anew:
            self._fold = Fold()
            self._restart_views()
        first = self._fold.first
        fold_in(self._fold, batch)
        known, self._kept = self._kept, batch.kept
        if batch.parts or batch.anew:
            self._show(dropped=self._fold.first - first)
        if batch.parts or known != batch.kept:
            self.update_view()

    def _restart_views(self) -> None:
        width = self.lines.room
        self._wrapped = Wrapped(width, self._exact) if self._wrapped is not None else None
        if self._search is not None:
            self._search = Search(self._search.words, self._exact)

    def _show(self, *, dropped: int = 0, key: str | None = None) -> None:
        self._version += 1
        lines, fold = self.lines, self._fold
        if self._wrapped is not None:
            rows = self._wrapped.row(fold.first) if dropped else 0
            self._wrapped.update(fold)
            dropped = rows if dropped else 0
        if self._search is not None:
            self._search.extend(fold)
        top = lines.scroll_offset.y
        lines.show(
            OutputRows(fold, fold.first, fold.end, self._version, self._exact, self._wrapped, self._search, self._here),
            key=key,
        )
        if dropped and not lines.follow:
            lines.scroll_to(y=max(0, top - dropped), animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self.call_after_refresh(self._wrap_again)

    def _wrap_again(self) -> None:
        if self._wrapped is not None and self._wrapped.width != self.lines.room:
            self._wrapped = Wrapped(self.lines.room, self._exact)
            self._show()

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw what stands above the lines."""
        self.query_one("#job", Heading).show(job_line(snapshot, self._attempt, self._what, self._apart))
        self.query_one("#feed", Heading).show(self._feed(snapshot, now))

    def _feed(self, snapshot: Snapshot, now: datetime) -> Line:
        lines, fold, key = self.lines, self._fold, self.lines.key
        number = int(key) if key.isdigit() else -1
        found = fold.line(number) if fold.first <= number < fold.end else None
        shown = Shown(
            lines=fold.end,
            dropped=fold.first,
            following=lines.follow,
            search=self._search,
            place=self._search.place(number) if self._search is not None else 0,
            hidden=hidden(found) if found is not None and not self._exact else 0,
        )
        reads = self.console.session.desk is not None and snapshot.conductor is not None
        return feed_line(self._kept, shown, now, reads=reads, problem=self._attention.problem)

    def _moved(self) -> None:
        session = self.console.session
        self.take(session.snapshot, session.clock.now())

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        if item.id in ("found_next", "found_before") and self._search is None:
            return "search for something first, with /"
        if item.id == "stream" and self._apart is not True:
            return "both streams go to one file" if self._apart is False else "the job's options do not tell"
        return super().problem(item)

    async def run_verb(self, verb_id: str) -> None:
        """Run a verb; other areas lie below this screen, so it is left before they are shown."""
        if verb_id in AREAS or verb_id == "waiting":
            self.dismiss()
        await super().run_verb(verb_id)

    def do_back(self) -> None:
        """Forget the search, or go back."""
        if self._search is not None or self.query_one("#search", Input).display:
            self._forget_search()
        else:
            self.dismiss()

    def do_follow(self) -> None:
        """Follow new lines, or stay."""
        lines = self.lines
        lines.follow = not lines.follow
        if lines.follow:
            lines.to_end()
        self._moved()

    def do_stream(self) -> None:
        """Show the other stream."""
        self._what = STDERR if self._what == STDOUT else STDOUT
        self._kept, self._fold, self._here = None, Fold(), -1
        self._attention.turn()
        self._restart_views()
        self.lines.follow = True
        self._show()
        self._moved()

    def do_wrap(self) -> None:
        """Wrap long lines, or not."""
        lines = self.lines
        key = lines.key
        self._wrapped = Wrapped(lines.room, self._exact) if self._wrapped is None else None
        self._show(key=None if lines.follow else key)

    def do_exact(self) -> None:
        """Show every byte, or leave out what only colours."""
        self._exact = not self._exact
        self._restart_views()
        self._show()
        self._moved()

    def do_search(self) -> None:
        """Type what to search for."""
        field = self.query_one("#search", Input)
        field.display = True
        self.set_focus(field)

    def _forget_search(self) -> None:
        field = self.query_one("#search", Input)
        field.value, field.display = "", False
        self._search, self._here = None, -1
        self.set_focus(self.lines)
        self._show()
        self._moved()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Go to the last line that has it, at or before the cursor."""
        message.stop()
        if not message.value:
            self._forget_search()
            return
        message.input.display = False
        self.set_focus(self.lines)
        self._search = Search(message.value, self._exact)
        self._search.extend(self._fold)
        key = self.lines.key
        self._go(self._search.step(int(key) + 1 if key.isdigit() else 0, -1))

    def do_found_next(self) -> None:
        """The next line that was found."""
        self._step(1)

    def do_found_before(self) -> None:
        """The line before that was found."""
        self._step(-1)

    def _step(self, way: int) -> None:
        key = self.lines.key
        assert self._search is not None, "the guard refuses before there is a search"
        self._go(self._search.step(int(key) if key.isdigit() else 0, way))

    def _go(self, number: int | None) -> None:
        if number is None:
            self._show()
            words = self._search.words if self._search is not None else ""
            self.console.say(f"not found: {words}", severity="warning")
        else:
            self._here = number
            self.lines.follow = False
            self._show(key=str(number))
        self._moved()
