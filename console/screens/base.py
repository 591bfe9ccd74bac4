"""What every full screen has: the header, its own body, the key bar, and one way to run a verb."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from inspect import isawaitable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import MountError, Widget

from console.session import Session
from console.settings import Settings
from console.snapshot import Snapshot
from console.verbs import AREAS, Situation, Verb, in_scopes
from console.widgets.header import Conducting, Facts, RunHeader
from console.widgets.ink import Line, Paragraph, Span, lay_out
from console.widgets.inked import Block, VerbClicked
from console.widgets.keybar import Keybar, Offer

SMALLEST = (60, 18)
"""Columns and rows below which a screen shows a plain message only."""


def bindings(scope: str) -> list[BindingType]:
    """The keys of a scope, from the list of verbs."""
    return [
        Binding(item.keys, f"verb('{item.id}')", item.label, show=False, id=f"{scope}.{item.id}")
        for item in in_scopes([scope])
    ]


class ConsoleApp(App[int]):
    """What screens may expect of the app.

    Attributes:
        session: The run that is shown.
        conducting: What is known of a conductor inside this console.
        problem: Why what is shown is old; empty while it is not.
        settings: What the operator has set.
        leads_back: Whether it was opened from the fleet.
    """

    session: Session
    conducting: Conducting = Conducting()
    problem: str = ""
    leads_back: bool = False
    settings: Settings = Settings()

    def say(self, text: str, *, severity: str = "information") -> None:
        """Show a short message. The text may be foreign."""
        raise NotImplementedError


class TooSmall(Block):
    """The plain message in a window that is too small."""

    def lines(self, width: int) -> list[Line]:
        """What is wrong and what to do."""
        size = self.app.size
        text = (
            (Span("This window is too small.", "strong"),),
            (Span(f"It has {size.width} columns and {size.height} rows."),),
            (Span(f"gonogo needs {SMALLEST[0]} by {SMALLEST[1]}; make it larger."),),
        )
        return lay_out(map(Paragraph, text), width)


class Area(Screen[None]):
    """A full screen.

    Attributes:
        scope: Which verbs work here, beside those that work everywhere.
    """

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual's own way
        (0, "-tiny"), (SMALLEST[0], "-narrow"), (100, "-normal"), (120, "-wide"), (150, "-broad"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (SMALLEST[1], "-short"), (36, "-tall")]  # noqa: RUF012
    AUTO_FOCUS: ClassVar[str | None] = None

    scope: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self._header, self._keybar = RunHeader(), Keybar()

    def compose(self) -> ComposeResult:
        """Header, body, key bar."""
        yield self._header
        yield from self.compose_body()
        yield self._keybar

    async def complete(self) -> None:
        """Add what the first frame does without."""
        await self.mount(TooSmall())

    def compose_body(self) -> Iterable[Widget]:
        """The screen's own widgets."""
        raise NotImplementedError

    @property
    def console(self) -> ConsoleApp:
        """The app."""
        app = self.app
        assert isinstance(app, ConsoleApp)
        return app

    @property
    def too_small(self) -> bool:
        """Whether the window shows nothing but a plain message."""
        return self.size.width < SMALLEST[0] or self.size.height < SMALLEST[1]

    @property
    def target(self) -> str:
        """The attempt that the cursor is on; empty for none."""
        return ""

    def situation(self) -> Situation:
        """What the guards of verbs look at."""
        session = self.console.session
        return Situation(session.snapshot, session.read_only_because, self.target, self.console.leads_back)

    def verbs(self) -> list[Verb]:
        """The verbs that work here."""
        return in_scopes(["app", self.scope])

    def update_view(self) -> None:
        """Draw the run as it is now: after a change, and once a second."""
        if not self._header.is_attached:
            return
        session = self.console.session
        now = session.clock.now()
        facts = Facts(
            session.snapshot,
            now,
            session.run_dir,
            session.read_only_because,
            self.console.conducting,
            self.console.problem,
            self.console.settings.production,
        )
        self._header.take(facts)
        self.take(session.snapshot, now)
        self.update_bar()

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the body."""
        raise NotImplementedError

    def run_changed(self) -> None:
        """Called when there is a new snapshot, also while another screen is on top."""

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now, in words; empty when it can."""
        return item.guard(self.situation())

    def update_bar(self) -> None:
        """Offer what can be done with what the cursor is on."""
        verbs = self.verbs()
        offers = [Offer(item, not self.problem(item)) for item in verbs if item.bar]
        # What belongs to this screen first, then what is everywhere.
        offers.sort(key=lambda offer: "app" in offer.verb.scopes)
        areas = [item for item in verbs if item.id in AREAS]
        self._keybar.take(self.scope, areas, offers)

    def on_mount(self) -> None:
        """Draw the run at once."""
        self.update_view()
        self.call_after_refresh(self._complete_while_open)

    async def _complete_while_open(self) -> None:
        """Complete the screen, unless the console was left by then: nothing can be added to it any more."""
        try:
            await self.complete()
        except MountError:
            if self.is_attached:
                raise

    def on_screen_resume(self) -> None:
        """Catch up with what happened while another screen was on top."""
        self.update_view()

    async def on_verb_clicked(self, message: VerbClicked) -> None:
        """Run what was clicked on."""
        message.stop()
        await self.run_verb(message.verb)

    async def action_verb(self, verb_id: str) -> None:
        """Run a verb by its key."""
        await self.run_verb(verb_id)

    async def run_verb(self, verb_id: str) -> None:
        """Run a verb, whatever way it was asked for; one that cannot be used now says why instead."""
        item = next((item for item in self.verbs() if item.id == verb_id), None)
        if item is None:
            return
        problem = self.problem(item)
        if problem:
            self.refuse(item, problem)
            return
        handler = getattr(self, f"do_{verb_id}", None) or getattr(self.console, f"do_{verb_id}")
        result = handler()
        if isawaitable(result):
            await result

    def refuse(self, item: Verb, problem: str) -> None:
        """Say why a verb was not run."""
        self.console.say(f"{item.label.rstrip('…')}: {problem}", severity="warning")

    def do_next(self) -> None:
        """Move to the next panel."""
        self.focus_next()

    def do_previous(self) -> None:
        """Move to the previous panel."""
        self.focus_previous()
