"""The run of another program on the screen: board, log, and what could not be placed. Nothing here can write."""

from __future__ import annotations

from datetime import datetime

from textual.binding import Binding
from textual.content import Content

from console.replay import verbs
from console.replay.foreign_session import ForeignSession
from console.replay.foreign_view import header
from console.screens.base import Area
from console.screens.board import Board
from console.screens.help import help_text
from console.screens.log import Log
from console.screens.looking import LookingHelp, UnplacedThings, not_recorded, only_looks, recorded_line
from console.screens.tables import Files, Jobs
from console.snapshot import LogView, Snapshot
from console.verbs import Verb
from console.widgets.header import RunHeader
from console.widgets.ink import Line, Paragraph, Span, foreign, lay_out
from console.widgets.lines import Lines, Rows
from console.widgets.strips import Heading


class ForeignHeader(RunHeader):
    """The header over a run of another program."""

    DEFAULT_CSS = """
    ForeignHeader { height: auto; padding: 0 1; background: $surface; }
    """

    session: ForeignSession | None = None

    def lines(self, width: int) -> list[Line]:
        """Which run, what is not recorded, and what the state file says."""
        if self.facts is None or self.session is None:
            return [(), (), ()]
        problems = self.facts.snapshot.problems
        if self.facts.problem:
            problems = (self.facts.problem, *problems)
        return header(self.facts.run_dir.name, self.facts.snapshot, self.session.beside, problems, width)


class InForeign(Area):
    """What every area over such a run has: another header, and no verb that writes."""

    def __init__(self) -> None:
        super().__init__()
        self._header = ForeignHeader()

    @property
    def foreign_session(self) -> ForeignSession:
        """The session."""
        session = self.console.session
        assert isinstance(session, ForeignSession)
        return session

    def on_mount(self) -> None:
        """Tell the header what it is about; Textual calls what the screen below does at this event too."""
        assert isinstance(self._header, ForeignHeader)
        self._header.session = self.foreign_session

    def verbs(self) -> list[Verb]:
        """Those that only look."""
        return only_looks(super().verbs())


class ForeignJobs(Jobs, InForeign):
    """Jobs: the convention has no place for them."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Say so."""
        super().take(snapshot, now)
        self.query_one("#feed", Heading).show(recorded_line("what the state file says of jobs stands at its stages"))
        not_recorded(self.query_one("#rows", Lines))


class ForeignFiles(Files, InForeign):
    """Result files: the convention has no place for them."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Say so."""
        super().take(snapshot, now)
        self.query_one("#feed", Heading).show(recorded_line("what the state file says of files stands at its stages"))
        not_recorded(self.query_one("#rows", Lines))


def no_chain(log: LogView, only_human: bool) -> Line:
    """What is known of a log that has no chain."""
    shown = "interventions only" if only_human else "all entries"
    return (
        Span("? no chain: the log is of another program", "unknown"),
        Span(f"  {len(log)} entries · {shown}", "muted"),
    )


class ForeignLog(Log, InForeign):
    """The log of another program."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the log; there is no chain that could be checked."""
        super().take(snapshot, now)
        self.query_one("#chain", Heading).show(no_chain(snapshot.log, self._only_human))


class ForeignBoard(Board, InForeign):
    """The board over a run of another program."""

    scope = verbs.FOREIGN_SCOPE
    BINDINGS = [  # noqa: RUF012 - Textual's own way
        Binding(item.keys, f"verb('{item.id}')", item.label, show=False, id=f"foreign.{item.id}")
        for item in verbs.FOREIGN_VERBS
    ]

    def verbs(self) -> list[Verb]:
        """Replaying it and what could not be placed, then those of every area."""
        return [*verbs.FOREIGN_VERBS, *super().verbs()]

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        if item.id == verbs.REPLAY:
            return "" if len(self.console.session.snapshot.log) else "no line of the log could be placed"
        return "" if item in verbs.FOREIGN_VERBS else super().problem(item)

    async def run_verb(self, verb_id: str) -> None:
        """Run one of these verbs, or another."""
        item = next((item for item in verbs.FOREIGN_VERBS if item.id == verb_id), None)
        if item is None:
            await super().run_verb(verb_id)
        elif problem := self.problem(item):
            self.refuse(item, problem)
        elif verb_id == verbs.REPLAY:
            getattr(self.console, f"do_{verb_id}")()
        else:
            session = self.foreign_session
            said = [f"{key}: {value}" for key, value in session.beside.facts]
            others = [*session.beside.unplaced, *(f"the state file also says {fact}" for fact in said)]
            self.app.push_screen(ForeignUnplaced(self, session.log.notes, session.log.unplaced, others))

    def _take_queue(self, snapshot: Snapshot, now: datetime) -> None:
        super()._take_queue(snapshot, now)
        self.part("queue").border_title = Content("Waiting for a decision")
        not_recorded(self.part("queue"))

    def _take_live(self, snapshot: Snapshot, now: datetime) -> None:
        super()._take_live(snapshot, now)
        for name, title in (("jobs", "Jobs"), ("files", "Result files")):
            self.part(name).border_title = Content(title)
            not_recorded(self.part(name))


class ForeignHelp(LookingHelp, InForeign):
    """Help for the areas other than the board."""


class ForeignBoardHelp(ForeignHelp):
    """Help for the board."""

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the text."""
        about = "The run of another program, as far as its log and its state file can be read. Nothing is inferred."
        shown = [Paragraph((Span(about),)), Paragraph(()), Paragraph((Span("Here", "title"),))]
        for item in verbs.FOREIGN_VERBS:
            against = self._problem(item)
            text = [Span(item.help), *((foreign(f" Not now: {against}.", "muted"),) if against else ())]
            shown.append(Paragraph(tuple(text), (Span("  "), Span(f"{item.key:<14}", "muted" if against else "key"))))
        shown += help_text(verbs.FOREIGN_SCOPE, self._problem)[3:]
        self.query_one("#text", Lines).build(lambda width: Rows(lay_out(shown, width)))


class ForeignUnplaced(UnplacedThings, InForeign):
    """What could not be placed."""
