"""The release board: where the release is, what it waits for, and what the last gates measured.

It is the first thing that the console draws, so what its first frame does not need is imported and added later.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from console.release.state import Stage
from console.safe_text import safe
from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.verbs import Verb, verb
from console.widgets.board_rows import ATTEMPT, STAGE, pipeline, queue_rows
from console.widgets.lines import Lines, Rows


class Board(Area):
    """The board. Its cursor follows the stage that is current until somebody moves it."""

    scope = "board"
    BINDINGS = bindings("board")
    AUTO_FOCUS = "#pipeline"

    def __init__(self) -> None:
        super().__init__()
        self._chosen_by_hand = False
        self._complete = False

    def compose_body(self) -> Iterable[Widget]:
        """Queue and pipeline; what else there is follows after the first frame."""
        with Horizontal(id="upper"), Vertical(id="left"):
            yield _panel(Lines(id="queue", cursor=True), "Waiting for you")
            yield _panel(Lines(id="pipeline", cursor=True, moved=self._moved), "Pipeline")

    async def complete(self) -> None:
        """Add the selected stage, jobs and files, and the end of the log."""
        jobs = _panel(Lines(id="jobs", focusable=False, verb="jobs"), "Jobs")
        files = _panel(Lines(id="files", focusable=False, verb="files"), "Result files")
        right = Vertical(jobs, files, id="right")
        tail = _panel(Lines(id="tail", follow=True, focusable=False, verb="log"), "Work log")
        upper = self.query_one("#upper")
        with self.app.batch_update():
            await upper.mount(_panel(Lines(id="detail"), "Stage"), right)
            await self.mount(tail, after=upper)
            await super().complete()
            self._complete = True
            self.update_view()

    def part(self, name: str) -> Lines:
        """One of the lists by its id."""
        return self.query_one(f"#{name}", Lines)

    @property
    def stage(self) -> Stage:
        """The stage that is shown in full."""
        run = self.console.session.snapshot.run
        key = self.part("pipeline").key
        if key.startswith(ATTEMPT):
            attempt = run.attempt(key.removeprefix(ATTEMPT))
            key = f"{STAGE}{attempt.stage}" if attempt is not None else ""
        name = key.removeprefix(STAGE)
        return next((stage for stage in run.stages if stage.name == name), run.current)

    @property
    def target(self) -> str:
        """The attempt under the cursor; for a stage, what was judged there last, or its newest attempt."""
        key = self.part("pipeline").key
        if key.startswith(ATTEMPT):
            return key.removeprefix(ATTEMPT)
        stage = self.stage
        if stage.attempts:
            return stage.attempts[-1].id
        return stage.gates[-1].id if stage.gates else ""

    def verbs(self) -> list[Verb]:
        """Those of every screen, and opening: it is what there is to do with a job that waits."""
        found = [item for item in super().verbs() if item.id != "fleet" or self.console.leads_back]
        return [*found, verb("choose")]

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        focused = self.focused
        if item.id == "choose" and not (isinstance(focused, Lines) and focused.key):
            return "put the cursor on a stage or a job"
        return super().problem(item)

    def do_choose(self) -> None:
        """Open what is under the cursor."""
        if isinstance(self.focused, Lines):
            self.focused.action_move("choose")

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw everything."""
        self._take_queue(snapshot, now)
        pipe = self.part("pipeline")
        current = f"{STAGE}{snapshot.run.current.name}"
        move = not self._chosen_by_hand and current != pipe.key
        pipe.build(lambda width: Rows(*pipeline(snapshot, now, width)), key=current if move else None)
        if self._complete:
            self._take_detail(snapshot, now)
            self._take_live(snapshot, now)

    def _take_queue(self, snapshot: Snapshot, now: datetime) -> None:
        queue = self.part("queue")
        count = len(snapshot.waiting)
        queue.border_title = Content(f"Waiting for you · {count}" if count else "Waiting for you")
        if not count and self.focused is queue:
            self.set_focus(self.part("pipeline"))
        queue.can_focus = bool(count)
        queue.build(lambda width: Rows(*queue_rows(snapshot, now, width)))

    def _take_detail(self, snapshot: Snapshot, now: datetime) -> None:
        from console.widgets.ink import lay_out
        from console.widgets.stage_detail import stage_detail

        stage = self.stage
        key = self.part("pipeline").key
        only = key.removeprefix(ATTEMPT) if key.startswith(ATTEMPT) else ""
        detail = self.part("detail")
        detail.border_title = Content(f"Stage · {safe(stage.name)}")
        detail.build(lambda width: Rows(lay_out(stage_detail(snapshot, stage, now, width, only), width)))

    def _take_live(self, snapshot: Snapshot, now: datetime) -> None:
        from console.widgets.job_rows import feed_note, file_rows, job_rows
        from console.widgets.log_rows import LogRows

        note = feed_note(snapshot, now)
        jobs, files = self.part("jobs"), self.part("files")
        jobs.border_title = Content(f"Jobs · {note}" if note else "Jobs")
        jobs.build(lambda width: Rows(*job_rows(snapshot, now, width, short=True)))
        files.border_title = Content(f"Result files · {note}" if note else "Result files")
        files.build(lambda width: Rows(*file_rows(snapshot, now, width, short=True)))
        self.part("tail").show(LogRows(snapshot.log, short=True))

    def _moved(self) -> None:
        """Show what the cursor came to, in the same moment."""
        self._chosen_by_hand = True
        if not self._complete:
            return
        session = self.console.session
        self.part("detail").restart()
        self._take_detail(session.snapshot, session.clock.now())
        self.update_bar()

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        """Open a waiting job, or go into the stage that was chosen."""
        if message.lines.id == "queue":
            self.open_approval(message.key)
        elif message.lines.id == "pipeline":
            name = message.key.removeprefix(ATTEMPT)
            if any(item.id == name for item in self.console.session.snapshot.waiting):
                self.open_approval(name)
            elif self._complete:
                self.set_focus(self.part("detail"))

    def open_approval(self, proposal_id: str) -> None:
        """Show a waiting job. Only ever called by a deliberate act of the operator."""
        from console.screens.approval import Approval

        self.app.push_screen(Approval(proposal_id))

    def focus_queue(self) -> None:
        """Put the focus on what waits, without opening anything."""
        self.set_focus(self.part("queue"))


def _panel(lines: Lines, title: str) -> Lines:
    lines.border_title = Content(title)
    lines.add_class("panel")
    return lines
