"""One exact job, shown whole, and the deliberate act of deciding on it.

It is opened by the operator only, and nothing here is decided by a single key: approving means reading to the end,
opening the field, typing the job's code and pressing Enter; rejecting means typing a reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import partial

from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets._input import Input

from console.reader import signature
from console.release.state import Outcome
from console.screens.approval_guard import ApprovalGuard, TypingGuard
from console.screens.approval_job import Shown, Standing, read_shown, standing
from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.verbs import AREAS, Verb
from console.widgets.figures import duration
from console.widgets.ink import Line, Paragraph, Span, foreign, lay_out
from console.widgets.lines import Lines, Rows
from console.widgets.strips import Heading, Words

RETURN_SECONDS = 1.5
"""For so long a decision stays on the screen before it goes back to the board."""


class TypedField(Input):
    """A field of one line for what must be typed. Keeps what was pasted out where that would shorten the act."""

    def __init__(self) -> None:
        super().__init__(id="field", compact=True, select_on_focus=False)
        self.takes_paste = False

    def _on_paste(self, event: events.Paste) -> None:
        if not self.takes_paste:
            event.prevent_default()
            event.stop()


class Approval(Area):
    """The approval screen.

    Args:
        proposal_id: The proposal to show.
    """

    scope = "approval"
    BINDINGS = bindings("approval")
    AUTO_FOCUS = "#body"

    def __init__(self, proposal_id: str) -> None:
        super().__init__()
        self.proposal_id = proposal_id
        self._shown: Shown | None = None
        self._problem = ""
        self._with_files = False
        self._act = ""
        self._decided: Line = ()
        self._message = ""
        self._looked: object = None

        self.body = Lines(id="body")
        """The list that holds the job."""
        self.field = TypedField()
        """The field of the code, or of the reason."""
        self._summary, self._lock = Heading(id="summary"), Words(id="lock")
        self._row = Vertical(self._lock, self.field, id="act")

    def compose_body(self) -> Iterable[Widget]:
        """What the job is, the whole job, and the row in which it is decided."""
        monotonic = self.console.session.clock.monotonic
        self.guard = ApprovalGuard(monotonic)
        self._typing = TypingGuard(monotonic)
        self.body.add_class("panel")
        self.body.border_title = Content(self.proposal_id)
        return (self._summary, self.body, self._row)

    def on_mount(self) -> None:
        """Begin to read the job."""
        super().on_mount()
        self.watch(self.body, "scroll_y", self._scrolls, init=False)
        self._read()

    def _scrolls(self) -> None:
        """What is visible is known only after the next refresh."""
        self.call_after_refresh(self._scrolled)

    # Reading and drawing the job.

    def _read(self) -> None:
        self.guard.changed()
        self._message = ""
        self._close_field()
        self._shown = None
        self._problem = ""
        self._work(self._read_and_draw, "read")

    def _work(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        self.run_worker(
            work,
            name=name,
            group=name,
            exclusive=True,
            exit_on_error=False,
            description=f"{name} {self.proposal_id}",
        )

    async def _read_and_draw(self) -> None:
        session = self.console.session
        read = partial(read_shown, session.run_dir, session.snapshot.state, self.proposal_id, self._with_files)
        found = await asyncio.to_thread(read)
        if isinstance(found, str):
            self._problem = found
            self.guard.void = found
            self.body.show(Rows(((foreign(found, "failed"),),)))
            self.update_view()
            return
        self._shown = found
        self.guard.void = found.problem
        await self._draw()

    async def _draw(self) -> None:
        """Wrap the job to the width of the screen; until it is painted nothing can be decided."""
        self.guard.hidden()
        shown, body = self._shown, self.body
        if shown is None:
            return
        width = body.room
        rows = await asyncio.to_thread(lay_out, shown.paragraphs, width)
        if width != body.room:
            self._work(self._draw, "draw")
            return
        body.show(Rows(rows))
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        if self.too_small:
            return
        self.guard.painted()
        self._scrolled()
        self.set_timer(0.6, self.update_view)

    def _scrolled(self) -> None:
        if self._shown is not None and not self.too_small and self.body.at_end:
            self.guard.end_shown()
        self.update_view()

    def on_resize(self) -> None:
        """Draw the job for the new size; the moment of grace begins again."""
        self.guard.hidden()
        self.call_after_refresh(lambda: self._work(self._draw, "draw"))

    def on_screen_suspend(self) -> None:
        """Another screen covers the job."""
        self.guard.hidden()

    def on_screen_resume(self) -> None:
        """The job is to be seen again."""
        super().on_screen_resume()
        if self._shown is not None:
            self._work(self._draw, "draw")

    # What stands around the job.

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw what the job is, and whether it can be decided on."""
        self._summary.show(self._summary_line())
        message = (Paragraph((foreign(self._message, "waiting"),)),) if self._message else ()
        self._lock.show(*message, Paragraph(self._lock_line()))

    def _summary_line(self) -> Line:
        if self._shown is None:
            problem = Span("✗ this job cannot be shown", "failed")
            return (problem if self._problem else Span("… reading the job", "muted"),)
        return (*self._time_left(self._shown.expires_at), *self._shown.banner)

    def _time_left(self, expires_at: str) -> Line:
        """How long it can still be decided on, where the rules set a time."""
        if not expires_at or self._decided:
            return ()
        from console.release import rules

        now = self.console.session.clock.now()
        if rules.is_past(expires_at, now):
            return (Span(" EXPIRED ", "chip-failed"), Span("  "))
        left = (rules.read_time(expires_at) - now).total_seconds()
        return (Span(f" {duration(left)} left to decide ", "chip-waiting"), Span("  "))

    def _lock_line(self) -> Line:
        if self._decided:
            return self._decided
        if self._act == "approve" and self._shown is not None:
            return (
                Span("Type "), Span(self._shown.code, "chip-waiting"), Span(" and press enter to approve this job. "),
                Span("esc closes", "muted"),
            )  # fmt: skip
        if self._act == "reject":
            return (Span("Say why, and press enter to reject this job. "), Span("esc closes", "muted"))
        problem = self.against("approve")
        if problem:
            return (Span("⊘ locked: ", "waiting"), foreign(problem), Span(self._progress(), "muted"))
        offers = [("approve", " a approve… ", "chip-passed"), ("reject", " r reject… ", "chip-human")]
        line: list[Span] = [Span("○ read to its end. ", "passed")]
        for verb_id, text, style in offers:
            line += [Span(text, style, verb_id), Span("  ")]
        return tuple(line)

    def _progress(self) -> str:
        body = self.body
        rows = body.virtual_size.height
        if self._shown is None or self.guard.void or not rows or self.guard.seen_to_end:
            return ""
        seen = min(rows, body.scroll_offset.y + body.scrollable_content_region.height)
        return f"  ({100 * seen // rows} % shown)"

    def against(self, verb_id: str) -> str:
        """Why the job cannot be approved, or rejected, now; empty when it can."""
        if self.too_small:
            return "the window is too small to show the job"
        if self._decided:
            return "it is decided"
        if self._shown is not None and self._shown.expires_at:
            from console.release import rules

            if rules.is_past(self._shown.expires_at, self.console.session.clock.now()):
                return f"its time was up at {self._shown.expires_at}; it expires, and nobody can decide on it"
        problem = self.guard.against_approve() if verb_id == "approve" else self.guard.against_reject()
        return problem

    def verbs(self) -> list[Verb]:
        """No keys for other areas: digits are what a code is made of."""
        return [item for item in super().verbs() if item.id not in AREAS]

    def problem(self, item: Verb) -> str:
        """Why a verb cannot be used now."""
        found = super().problem(item)
        if found or item.id not in ("approve", "reject"):
            return found
        return self.against(item.id)

    def refuse(self, item: Verb, problem: str) -> None:
        """Say why a verb was not run, in the row in which the job is decided."""
        if item.id in ("approve", "reject"):
            self._message = "" if problem == self.against("approve") else f"cannot {item.id}: {problem}"
            self.app.bell()
            self.update_view()
        else:
            super().refuse(item, problem)

    # What happens elsewhere.

    def run_changed(self) -> None:
        """Look whether somebody else decided, or another job lies there now."""
        place = self.console.session.run_dir / "submissions" / self.proposal_id
        state = self.console.session.snapshot.run.attempt(self.proposal_id)
        looked = (signature(place / "job.json"), signature(place / "decision.json"), state)
        if looked != self._looked and self._shown is not None and not self._decided:
            self._looked = looked
            self._work(partial(self._look, self._shown), "look")

    async def _look(self, shown: Shown) -> None:
        session = self.console.session
        found = await asyncio.to_thread(standing, session.run_dir, self.proposal_id)
        if self._shown is not shown or self._decided:
            return
        self._take_standing(shown, found)
        self.update_view()

    def _take_standing(self, shown: Shown, found: Standing) -> None:
        attempt = self.console.session.snapshot.run.attempt(self.proposal_id)
        if found.decision is not None:
            self._void(f"{found.decision}; nothing is left to decide here")
        elif found.problem:
            self._void(found.problem)
        elif found.digest != shown.digest:
            self._void("the job was CHANGED ON DISK after it was shown; R shows what lies there now")
        elif attempt is not None and attempt.outcome is not Outcome.PROPOSED:
            self._void(f"it is {attempt.outcome} now; nothing is left to decide here")

    def _void(self, why: str) -> None:
        self.guard.void = why
        self._close_field()

    # The act.

    def do_approve(self) -> None:
        """Open the field for the code."""
        self._open_field("approve", "code, 8 hex digits", paste=False)

    def do_reject(self) -> None:
        """Open the field for the reason."""
        self._open_field("reject", "reason; it goes back to the proposer", paste=True)

    def _open_field(self, act: str, placeholder: str, *, paste: bool) -> None:
        self._act, self._message = act, ""
        field = self.field
        field.value = ""
        field.placeholder = placeholder
        field.takes_paste = paste
        self._typing.opened()
        self._row.add_class("-open")
        # The field takes a row from the job: its end stays in sight.
        self.body.follow = self.body.at_end
        self.set_focus(field)
        self.update_view()

    def _close_field(self) -> None:
        self._act = ""
        self.body.follow = False
        self._row.remove_class("-open")
        self.field.value = ""
        if self.focused is self.field:
            self.set_focus(self.body)

    def on_input_changed(self, message: Input.Changed) -> None:
        """Note when typing began."""
        self._typing.typed(message.value)

    async def on_input_submitted(self, message: Input.Submitted) -> None:
        """Decide, if everything holds."""
        message.stop()
        act, text, shown = self._act, message.value.strip(), self._shown
        problem = self._typing.against_enter() or (self.against(act) if act else "nothing was asked")
        if not problem and act == "approve" and (shown is None or text.lower() != shown.code):
            problem = f"this is not the code of this job: {text}; nothing was decided"
        if problem or shown is None:
            self._message = problem
            self.field.value = ""
            self.app.bell()
            self.update_view()
            return
        await self._decide(act, text, shown)

    async def _decide(self, act: str, text: str, shown: Shown) -> None:
        from console.release.queue import QueueError

        desk = self.console.session.desk
        assert desk is not None, "the verbs that open the field need a desk"
        seconds, seen = self.guard.shown_s, self.guard.seen_to_end
        try:
            self._void(desk.announce())
        except QueueError as error:
            self._void(str(error))
            self.update_view()
            return
        self.update_view()
        if act == "approve":
            write = partial(desk.approve, self.proposal_id, shown.digest, shown_s=seconds)
        else:
            write = partial(desk.reject, self.proposal_id, shown.digest, text, shown_s=seconds, seen_to_end=seen)
        try:
            decision = await asyncio.to_thread(write)
        except (QueueError, OSError) as error:
            self._void(str(error))
            self.update_view()
            return
        word = decision.decision.upper() if desk.final else "FIRST OF TWO APPROVALS"
        chip = Span(f" {word} ", "chip-passed" if act == "approve" else "chip-human")
        self._decided = (chip, foreign(f" by {decision.operator} after {duration(seconds)} on the screen"))
        self.update_view()
        self.set_timer(RETURN_SECONDS, self._return)

    def on_unmount(self) -> None:
        """Whoever leaves while the agent is waited for has decided nothing."""
        desk = self.console.session.desk
        if desk is not None and not self._decided:
            desk.abandon()

    def _return(self) -> None:
        if self.is_current:
            self.dismiss()

    def do_back(self) -> None:
        """Close the field, or go back."""
        if self._act:
            self._close_field()
            self.update_view()
        else:
            self.dismiss()

    def do_reload(self) -> None:
        """Show what lies on disk now."""
        if not self._decided:
            self._read()

    def do_uploads(self) -> None:
        """Show the text of the job's files too, or not."""
        if not self._decided:
            self._with_files = not self._with_files
            self._read()
