"""Dialogs: what an operator asks of the conductor, and leaving while it runs. Each is a deliberate act."""

from __future__ import annotations

import asyncio

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets._input import Input

from console.safe_text import safe
from console.screens.approval_guard import TypingGuard
from console.screens.base import ConsoleApp
from console.session import Clock, Desk
from console.verbs import Situation
from console.widgets.ink import Paragraph, Span, foreign
from console.widgets.strips import Words

_TITLES = {
    "note": "Write a note into the log",
    "abort": "Stop the run here",
    "cancel": "Cancel a job on the cluster",
    "retry": "Propose an attempt again",
    "settle": "Rule on a submission whose outcome is unknown",
}
_HINTS = {
    "note": "what the log shall say",
    "abort": "why",
    "cancel": "why",
    "retry": "why, and what you corrected",
    "settle": "submitted JOB_ID, or: not submitted",
}


class Request(ModalScreen[bool]):
    """Asks for the operator's words and for a confirmation, then files the request.

    What it is about is fixed when it opens, whatever the lists below do meanwhile.

    Args:
        verb: One of console.release.requests.VERBS.
        situation: What the cursor was on.
        desk: Where the request is filed.
        clock: The clocks.
    """

    BINDINGS = [Binding("escape", "dismiss(False)", "Close", show=False)]  # noqa: RUF012
    AUTO_FOCUS = "#words"

    def __init__(self, verb: str, situation: Situation, desk: Desk, clock: Clock) -> None:
        super().__init__()
        self._verb = verb
        self._target = situation.target if verb in ("cancel", "retry", "settle") else ""
        self._situation = situation
        self._desk = desk
        self._typing = TypingGuard(clock.monotonic)

    @property
    def word(self) -> str:
        """What must be typed to confirm: the job's id to cancel it, else the verb."""
        attempt = self._situation.attempt
        if self._verb == "cancel" and attempt is not None and attempt.job_id is not None:
            return attempt.job_id
        return self._verb

    def compose(self) -> ComposeResult:
        """What will happen, the operator's words, the confirmation."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content(_TITLES[self._verb])
            yield Words(*self._about())
            yield Input(id="words", placeholder=_HINTS[self._verb], compact=True)
            yield Words(Paragraph((Span("Type "), foreign(self.word, "chip-waiting"), Span(" to confirm, enter."))))
            yield Input(id="confirm", compact=True)
            yield Words(Paragraph((Span("tab moves between the fields, esc closes", "muted"),)))

    def _about(self) -> list[Paragraph]:
        attempt = self._situation.attempt
        shown: list[Paragraph] = []
        if self._target and attempt is not None:
            job = f"job {attempt.job_id}, " if attempt.job_id is not None else ""
            shown.append(Paragraph((foreign(f"{job}{attempt.id}: {attempt.summary}", "strong"),)))
        elif self._target:
            shown.append(Paragraph((foreign(self._target, "strong"),)))
        shown.append(Paragraph((Span("This becomes a HUMAN_INTERVENTION in the log.", "human"),)))
        if self._situation.snapshot.conductor is None:
            shown.append(
                Paragraph((Span("No conductor is running: it is done when one takes up the run.", "waiting"),))
            )
        return shown

    def on_input_changed(self, message: Input.Changed) -> None:
        """Note when the confirmation was begun."""
        if message.input.id == "confirm":
            self._typing.typed(message.value)

    async def on_input_submitted(self, message: Input.Submitted) -> None:
        """From the words to the confirmation; from there to the request."""
        message.stop()
        confirm, words = self.query_one("#confirm", Input), self.query_one("#words", Input)
        if message.input is words:
            self.set_focus(confirm)
            return
        problem = self._against(words.value.strip(), confirm.value.strip())
        if problem:
            self._say(problem)
            return
        try:
            await asyncio.to_thread(self._desk.ask, self._verb, words.value.strip(), self._target)
        except OSError as error:
            self._say(f"the request could not be written: {error}")
            return
        self._say(f"asked the conductor to {self._verb} {self._target}".rstrip(), "information")
        self.dismiss(True)

    def _against(self, words: str, confirmation: str) -> str:
        if not words:
            return "say it in your own words first"
        if self._verb == "settle" and not (words.startswith("submitted ") or words.split()[:2] == ["not", "submitted"]):
            return "begin with: submitted JOB_ID, or: not submitted"
        if confirmation != self.word:
            return f"type {self.word} to confirm; nothing was asked"
        return self._typing.against_enter()

    def _say(self, text: str, severity: str = "warning") -> None:
        app = self.app
        assert isinstance(app, ConsoleApp)
        app.say(safe(text), severity=severity)


class Leave(ModalScreen[bool]):
    """Asks whether to leave while the conductor runs in this console."""

    BINDINGS = [Binding("escape", "dismiss(False)", "Stay", show=False)]  # noqa: RUF012
    AUTO_FOCUS = "#confirm"

    def compose(self) -> ComposeResult:
        """What happens then, and the word that must be typed."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content("Leave while the conductor runs")
            yield Words(
                Paragraph((Span("The conductor of this run lives in this console and stops with it."),)),
                Paragraph((Span("Jobs on the cluster go on; `gonogo resume` watches them again.", "muted"),)),
                Paragraph((Span("Type "), Span("stop", "chip-waiting"), Span(" and press enter to leave."))),
            )
            yield Input(id="confirm", compact=True)
            yield Words(Paragraph((Span("esc stays", "muted"),)))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Leave only when the word is there."""
        message.stop()
        self.dismiss(message.value.strip().lower() == "stop")
