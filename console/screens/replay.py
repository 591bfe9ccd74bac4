"""A replay on the screen: the board, jobs, files and log as they were at a moment, and the time line below.

Nothing here can write: the session has no desk, no verb that writes is offered, and a job is never opened to decide on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from console.replay import verbs
from console.replay.recording import FOREIGN, Recording
from console.replay.session import ReplaySession
from console.replay.view import SIGNS, TimeLine, header
from console.screens.base import Area
from console.screens.board import Board
from console.screens.help import help_text
from console.screens.log import Log
from console.screens.looking import LookingHelp, UnplacedThings, not_recorded, nothing, only_looks, recorded_line
from console.screens.tables import Files, Jobs
from console.snapshot import LogView, Snapshot
from console.verbs import Verb
from console.widgets.header import RunHeader
from console.widgets.ink import Line, Paragraph, Span, foreign, lay_out
from console.widgets.inked import Block
from console.widgets.lines import Lines, Rows
from console.widgets.strips import Heading


class ReplayHeader(RunHeader):
    """The header over a moment of the past."""

    DEFAULT_CSS = """
    ReplayHeader { height: auto; padding: 0 1; background: $surface; }
    """

    recording: Recording | None = None

    def lines(self, width: int) -> list[Line]:
        """Which run, which moment, and what it was waiting for then."""
        if self.facts is None or self.recording is None:
            return [(), (), ()]
        return header(self.recording, self.facts.snapshot, self.facts.now, width)


class TimeLineBar(Block):
    """The time line. A click on it goes there, and dragging it scrubs."""

    DEFAULT_CSS = """
    TimeLineBar { dock: bottom; height: 3; padding: 0 1; background: $surface; margin-bottom: 1; }
    """

    class Scrubbed(Message):
        """Somebody clicked on the time line.

        Attributes:
            fraction: Where, from 0 to 1.
        """

        def __init__(self, fraction: float) -> None:
            super().__init__()
            self.fraction = fraction

    line: TimeLine | None = None

    def lines(self, width: int) -> list[Line]:
        """Marks, bar, words."""
        return [] if self.line is None else self.line.rows(width)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go to where the mouse was pressed, and from then on where it is dragged."""
        event.stop()
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < 2:
            self.capture_mouse()
            self._scrub(offset.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the mouse while it is held down on the time line."""
        if self.app.mouse_captured is self:
            event.stop()
            self._scrub(event.screen_x - self.content_region.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        event.stop()
        self.release_mouse()

    def _scrub(self, cell: float) -> None:
        self.post_message(self.Scrubbed(max(0.0, min(1.0, cell / max(1, self.content_size.width - 1)))))


class InReplay(Area):
    """What every area of a replay has: another header, and no verb that writes."""

    def __init__(self) -> None:
        super().__init__()
        self._header = ReplayHeader()

    @property
    def replay(self) -> ReplaySession:
        """The session."""
        session = self.console.session
        assert isinstance(session, ReplaySession)
        return session

    def on_mount(self) -> None:
        """Tell the header what it is about; Textual calls what the screen below does at this event too."""
        assert isinstance(self._header, ReplayHeader)
        self._header.recording = self.replay.recording

    def verbs(self) -> list[Verb]:
        """Those that only look."""
        return only_looks(super().verbs())


class ReplayJobs(Jobs, InReplay):
    """Every attempt as the log knew it then."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the jobs, and say that they are of the log."""
        super().take(snapshot, now)
        self.query_one("#feed", Heading).show(recorded_line("jobs as the log knew them at this moment"))
        if snapshot.unrecorded:
            not_recorded(self.query_one("#rows", Lines), snapshot)


class ReplayFiles(Files, InReplay):
    """The result files that had been read then."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the files, and say which are recorded at all."""
        super().take(snapshot, now)
        self.query_one("#feed", Heading).show(recorded_line("the files that had been read; watching is not recorded"))
        rows = self.query_one("#rows", Lines)
        if snapshot.unrecorded:
            not_recorded(rows, snapshot)
        elif not any(attempt.results for attempt in snapshot.run.attempts):
            nothing(rows, "no file had been read")

    def open_file(self, attempt_id: str, kind: str) -> None:
        """A file is not opened in a replay: the log holds its digest, and not its bytes."""
        self.console.say("a replay shows the log only; `gonogo open` shows the file")


class ReplayLog(Log, InReplay):
    """The log up to the moment."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the log, and say how far it was checked."""
        super().take(snapshot, now)
        self.query_one("#chain", Heading).show((*self.filter_words(snapshot.log), *self._chain(snapshot.log)))

    def _find_human(self, log: LogView) -> None:
        # The index knows them: a log of any length is not read through for them.
        marks = self.replay.recording.marks
        self._human = list(marks.of("intervention")[: marks.before("intervention", len(log))])
        self._looked_at = log

    def _chain(self, log: LogView) -> Line:
        recording = self.replay.recording
        shown = "interventions only" if self._only_human else "all entries"
        tail = Span(f"  {len(log)} of {len(recording)} entries · {shown}", "muted")
        if recording.problem:
            return (Span("✗ CHAIN BROKEN ", "failed"), foreign(recording.problem, "failed"))
        if recording.form == FOREIGN:
            return (Span("? no chain: the log is of another program", "unknown"), tail)
        if recording.checked:
            return (Span("✓ chain verified", "passed"), tail)
        return (Span("… checking the chain", "muted"), tail)


class Replay(Board, InReplay):
    """The board at a moment of the log, with the time line."""

    scope = verbs.SCOPE
    BINDINGS = [  # noqa: RUF012 - Textual's own way
        # Before the lists get them: space and the arrows are the player's here.
        Binding(item.keys, f"verb('{item.id}')", item.label, show=False, id=f"replay.{item.id}", priority=True)
        for item in verbs.VERBS
    ]

    def __init__(self) -> None:
        super().__init__()
        self._time_line = TimeLineBar()

    def compose_body(self) -> Iterable[Widget]:
        """The board's own, and the time line."""
        yield from super().compose_body()
        yield self._time_line

    def on_mount(self) -> None:
        """Give the time line its recording."""
        self._time_line.line = TimeLine(self.replay.recording, self.replay.player)

    def verbs(self) -> list[Verb]:
        """The player's, then those of every area."""
        return [*verbs.VERBS, *super().verbs()]

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        replay = self.replay
        if item.id in verbs.JUMPS:
            kind, forward = verbs.JUMPS[item.id]
            here = replay.player.count - 1
            marks = replay.recording.marks
            found = marks.after(kind, here) if forward else marks.ahead(kind, here)
            where = "behind" if forward else "before"
            return f"there is no {kind} {where} this moment" if found is None else ""
        if item.id == "unplaced" and not (replay.recording.unplaced or replay.recording.notes):
            return "every line was placed, and nothing was assumed"
        return "" if item.id in verbs.BY_ID else super().problem(item)

    async def run_verb(self, verb_id: str) -> None:
        """Run a verb of the player, or another."""
        item = verbs.BY_ID.get(verb_id)
        if item is None:
            await super().run_verb(verb_id)
            return
        problem = self.problem(item)
        if problem:
            self.refuse(item, problem)
            return
        handler = getattr(self, f"do_{verb_id}", None)
        if handler is not None:
            handler()
        else:
            self._move(verb_id)
        self.moved()

    def moved(self) -> None:
        """Show where the player is now."""
        self.replay.show()
        self.run_changed()
        self.update_view()

    def _move(self, verb_id: str) -> None:
        player, clock = self.replay.player, self.replay.clock.monotonic()
        if verb_id in verbs.JUMPS:
            player.jump(*verbs.JUMPS[verb_id])
        elif verb_id in verbs.SPEEDS:
            player.set_speed(verbs.SPEEDS[verb_id], clock)
        else:
            player.scrub(player.fraction + verbs.SCRUBS[verb_id])

    def do_play(self) -> None:
        """Play, or stand still."""
        player = self.replay.player
        if player.playing:
            player.advance(self.replay.clock.monotonic())
            player.pause()
        else:
            player.play(self.replay.clock.monotonic())

    def do_step_back(self) -> None:
        """One entry back."""
        self.replay.player.step(-1)

    def do_step_on(self) -> None:
        """One entry on."""
        self.replay.player.step(1)

    def do_to_begin(self) -> None:
        """To the first entry."""
        self.replay.player.to_begin()

    def do_to_end(self) -> None:
        """To the last entry."""
        self.replay.player.to_end()

    def do_faster(self) -> None:
        """The next higher speed."""
        self.replay.player.faster(self.replay.clock.monotonic())

    def do_slower(self) -> None:
        """The next lower speed."""
        self.replay.player.slower(self.replay.clock.monotonic())

    def do_unplaced(self) -> None:
        """Show what could not be placed."""
        recording = self.replay.recording
        self.app.push_screen(ReplayUnplaced(self, recording.notes, recording.unplaced))

    def on_time_line_bar_scrubbed(self, message: TimeLineBar.Scrubbed) -> None:
        """Go to where the time line was clicked."""
        self.replay.player.scrub(message.fraction)
        self.moved()

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the board and the time line."""
        super().take(snapshot, now)
        count = len(snapshot.waiting)
        self.part("queue").border_title = Content(
            f"Waited for a decision · {count}" if count else "Waited for a decision"
        )
        self._time_line.refresh()

    def _take_queue(self, snapshot: Snapshot, now: datetime) -> None:
        if snapshot.waiting:
            super()._take_queue(snapshot, now)
            return
        queue = self.part("queue")
        if self.focused is queue:
            self.set_focus(self.part("pipeline"))
        queue.can_focus = False
        if snapshot.unrecorded:
            not_recorded(queue, snapshot)
        else:
            nothing(queue, "nothing waited")

    def _take_live(self, snapshot: Snapshot, now: datetime) -> None:
        super()._take_live(snapshot, now)
        jobs, files = self.part("jobs"), self.part("files")
        jobs.border_title, files.border_title = Content("Jobs · as recorded"), Content("Result files · those read")
        if snapshot.unrecorded:
            not_recorded(jobs, snapshot)
            not_recorded(files, snapshot)
        elif not any(attempt.results for attempt in snapshot.run.attempts):
            nothing(files, "no file had been read")

    def open_approval(self, proposal_id: str) -> None:
        """A job is not opened in a replay: what lies in submissions/ tells of the present."""
        self.console.say(f"{proposal_id}: a replay shows the log only; `gonogo queue show` shows the job")


class ReplayHelp(LookingHelp, InReplay):
    """Help for the board of a replay."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the text."""
        problem = self._problem
        about = "A replay: the board as it was at a moment of the log, and the time line. Nothing can be changed here."
        shown = [Paragraph((Span(about),)), Paragraph(()), Paragraph((Span("Here", "title"),))]
        for item in verbs.VERBS:
            against = problem(item)
            keys = item.press or " ".join(item.keys.split(","))
            text = [Span(item.help)]
            if against:
                text.append(Span(f" Not now: {against}.", "muted"))
            shown.append(Paragraph(tuple(text), (Span("  "), Span(f"{keys:<14}", "muted" if against else "key"))))
        shown += [Paragraph(()), Paragraph((Span("On the time line", "title"),))]
        shown += [Paragraph((Span(kind),), (Span("  "), sign, Span(" " * 13))) for kind, sign in SIGNS.items()]
        # Of the general text, what it says of lists and of everywhere.
        shown += help_text(verbs.SCOPE, problem)[3:]
        self.query_one("#text", Lines).build(lambda width: Rows(lay_out(shown, width)))


class ReplayAreaHelp(LookingHelp, InReplay):
    """Help for the other areas of a replay."""


class ReplayUnplaced(UnplacedThings, InReplay):
    """What of the log could not be placed."""
