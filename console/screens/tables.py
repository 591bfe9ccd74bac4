"""All jobs and all result files of a run, as live tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from textual.content import Content
from textual.widget import Widget

from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.verbs import Verb, verb
from console.widgets.ink import Line, Span, lay_out
from console.widgets.job_rows import SEPARATOR, feed_note, file_heading, file_rows, job_detail, job_heading, job_rows
from console.widgets.lines import Lines, Rows
from console.widgets.strips import Heading


def feed_line(snapshot: Snapshot, now: datetime, what: str) -> Line:
    """Whether what is shown is live, or how old it is."""
    note = feed_note(snapshot, now)
    if snapshot.run.verdict is not None:
        return (Span(f"· the release is closed; {what} as they were in the end", "muted"),)
    if note:
        return (Span(f"? feed is dead: {note}; {what} as last heard", "unknown"),)
    return (Span("● live", "passed"), Span(f" {what} as the cluster says now", "muted"))


class Jobs(Area):
    """Every attempt with its job, the newest first."""

    scope = "jobs"
    BINDINGS = bindings("jobs")
    AUTO_FOCUS = "#rows"

    def compose_body(self) -> Iterable[Widget]:
        """State of the feed, headings, jobs, the job under the cursor."""
        yield Heading(id="feed")
        yield Heading(id="head")
        yield Lines(id="rows", cursor=True, moved=self._moved)
        detail = Lines(id="job")
        detail.border_title = Content("Job")
        detail.add_class("panel")
        yield detail

    @property
    def target(self) -> str:
        """The attempt under the cursor."""
        return self.query_one("#rows", Lines).key

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the jobs."""
        rows = self.query_one("#rows", Lines)
        rows.build(lambda width: Rows(*job_rows(snapshot, now, width)))
        self.query_one("#feed", Heading).show(feed_line(snapshot, now, "jobs"))
        self.query_one("#head", Heading).show(lambda width: (Span(" "), *job_heading(width - 2)))
        detail = self.query_one("#job", Lines)
        attempt = snapshot.run.attempt(rows.key)
        shown = [] if attempt is None else job_detail(snapshot, attempt)
        detail.build(lambda width: Rows(lay_out(shown, width)))

    def _moved(self) -> None:
        self.query_one("#job", Lines).restart()
        session = self.console.session
        self.take(session.snapshot, session.clock.now())
        self.update_bar()


class Files(Area):
    """Result files: those that are watched, and those that were read."""

    scope = "files"
    BINDINGS = bindings("files")
    AUTO_FOCUS = "#rows"

    def compose_body(self) -> Iterable[Widget]:
        """State of the feed, headings, files."""
        yield Heading(id="feed")
        yield Heading(id="head")
        yield Lines(id="rows", cursor=True)

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the files."""
        rows = self.query_one("#rows", Lines)
        rows.build(lambda width: Rows(*file_rows(snapshot, now, width)))
        self.query_one("#feed", Heading).show(feed_line(snapshot, now, "files"))
        self.query_one("#head", Heading).show(lambda width: (Span(" "), *file_heading(width - 2)))

    def verbs(self) -> list[Verb]:
        """Those of every screen, and opening."""
        return [*super().verbs(), verb("choose")]

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        if item.id == "choose" and not self.query_one("#rows", Lines).key:
            return "there is no file"
        return super().problem(item)

    def do_choose(self) -> None:
        """Open the file under the cursor."""
        self.query_one("#rows", Lines).action_move("choose")

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Show the file that was chosen."""
        message.stop()
        attempt_id, _, kind = message.key.partition(SEPARATOR)
        self.open_file(attempt_id, kind)

    def open_file(self, attempt_id: str, kind: str) -> None:
        """Show a result file."""
        from console.screens.file import ResultFile

        self.app.push_screen(ResultFile(attempt_id, kind))
