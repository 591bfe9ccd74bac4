"""Dialogs of a login: the key of a new host, and what a server or a locked key asks for.

All words of a server are foreign text. What is typed lives in the field and in the answer, and nowhere else: the
fields are emptied as soon as they are read, and a dialog that was answered cannot be answered again.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets._input import Input

from backends.hosts.operator import Answers, NewHostKey, Prompt, Question, Secret
from console.safe_text import safe
from console.screens.approval_guard import TypingGuard
from console.screens.base import ConsoleApp
from console.session import Clock
from console.widgets.ink import Paragraph, Span, foreign
from console.widgets.strips import Words

TAKE, AGAIN = "trust", "login"
"""Words that must be typed: to take a new key, to begin another login."""

LONGEST_WORDS = 300
"""Characters of a server's words that are shown; a prompt is a line, and what is longer is cut with a mark."""

MOST_FIELDS = 12
"""A server that asks for more at once is not answered."""


class _Asking(ModalScreen[object]):
    """What the dialogs share: a box, a guard against haste, and leaving without an answer.

    Args:
        clock: The clocks.
    """

    BINDINGS = [Binding("escape", "refuse", "Refuse", show=False)]  # noqa: RUF012
    AUTO_FOCUS = "Input"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._typing = TypingGuard(clock.monotonic)
        self._over = False

    def refuse(self) -> object:
        """What the dialog gives when it is left."""
        return None

    def action_refuse(self) -> None:
        """Leave without an answer."""
        self.end(self.refuse())

    def end(self, result: object) -> None:
        """Close the dialog, once."""
        if not self._over:
            self._over = True
            self.dismiss(result)

    def withdraw(self) -> None:
        """Nobody waits for the answer any more: close now, or as soon as the dialog is on top again."""
        if self.is_current:
            self.end(self.refuse())
        else:
            self._over = True

    def on_screen_resume(self) -> None:
        """Close a dialog that was withdrawn while another lay on it."""
        if self._over:
            self.dismiss(self.refuse())

    def on_input_changed(self, message: Input.Changed) -> None:
        """Note when an answer was begun."""
        if message.input is self.last_field:
            self._typing.typed(message.value)

    @property
    def last_field(self) -> Input:
        """The field in which Enter ends the dialog."""
        return self.query(Input).last()

    def say(self, text: str) -> None:
        """Say why nothing was done."""
        app = self.app
        assert isinstance(app, ConsoleApp)
        app.say(safe(text), severity="warning")


class _Typed(_Asking):
    """A dialog that does something when one word is typed, and nothing otherwise."""

    word = ""

    def refuse(self) -> object:
        """No."""
        return False

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Only the word counts, typed by somebody."""
        message.stop()
        if message.value.strip() != self.word:
            self.say(f"type {self.word} to go on, esc refuses; nothing was done")
        elif problem := self._typing.against_enter():
            self.say(problem)
        else:
            self.end(True)


class HostKey(_Typed):
    """Shows the key of a host that nobody knows yet. It is refused unless the word is typed.

    Args:
        key: The key.
        clock: The clocks.
    """

    word = TAKE

    def __init__(self, key: NewHostKey, clock: Clock) -> None:
        super().__init__(clock)
        self._key = key

    def compose(self) -> ComposeResult:
        """Host, key, fingerprint, what to compare it with, where it is written; the confirmation."""
        key = self._key
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content("A host that is not known yet")
            yield Words(
                _fact("host", key.known_as),
                _fact("port", key.port),
                _fact("login", key.host),
                _fact("key", key.algorithm),
                Paragraph((foreign(key.fingerprint, "strong"),), (Span("fingerprint ", "muted"),), exact=True),
                Paragraph((foreign(key.file),), (Span("written to  ", "muted"),), exact=True),
            )
            yield Words(
                Paragraph((Span("Compare it with "), foreign(key.compare_with), Span("."))),
                Paragraph((Span("Accepting it becomes a HUMAN_INTERVENTION in the log.", "human"),)),
            )
            yield Words(
                Paragraph((Span("Type "), Span(TAKE, "chip-waiting"), Span(" to accept it, enter; esc refuses.")))
            )
            yield Input(id="confirm", compact=True)


def _fact(name: str, value: object) -> Paragraph:
    return Paragraph((foreign(value),), (Span(f"{name:<12}", "muted"),))


class LogInAgain(_Typed):
    """Asks before a login that will ask something: a server may send a code, or count an attempt, as it begins.

    Args:
        host: Whom.
        why: Why there is another login.
        clock: The clocks.
    """

    word = AGAIN

    def __init__(self, host: str, why: str, clock: Clock) -> None:
        super().__init__(clock)
        self._host = host
        self._why = why

    def compose(self) -> ComposeResult:
        """What happened, and the confirmation."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content("Log in again")
            yield Words(
                Paragraph((foreign(self._host, "strong", longest=LONGEST_WORDS),)),
                Paragraph((foreign(self._why, longest=LONGEST_WORDS),)),
                Paragraph(
                    (Span("It will ask you again; it may send you a code as soon as the login begins.", "muted"),)
                ),
            )
            yield Words(
                Paragraph((Span("Type "), Span(AGAIN, "chip-waiting"), Span(" to log in, enter; esc does not.")))
            )
            yield Input(id="confirm", compact=True)


_TITLES = {
    Secret.PASSPHRASE: "Passphrase of a key",
    Secret.PASSWORD: "Password",
    Secret.DIALOG: "The server asks",
}


class Prompts(_Asking):
    """One round of questions. Fields that the server wants hidden show nothing of what is typed.

    Args:
        question: What is asked.
        clock: The clocks.
    """

    def __init__(self, question: Question, clock: Clock) -> None:
        super().__init__(clock)
        self._question = question

    def compose(self) -> ComposeResult:
        """Who asks, their words, and a field for each prompt."""
        question = self._question
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content(_TITLES[question.kind])
            yield Words(
                Paragraph((foreign(question.host, "strong", longest=LONGEST_WORDS),)),
                *(
                    Paragraph((foreign(words, longest=LONGEST_WORDS),), (Span("it says  ", "muted"),))
                    for words in (question.title, question.instructions)
                    if words.strip()
                ),
            )
            with Vertical(id="fields"):
                for number, prompt in enumerate(question.prompts):
                    yield Words(_asked(prompt))
                    yield Input(id=f"answer-{number}", password=not prompt.echo, compact=True)
            yield Words(
                Paragraph(
                    (
                        Span(
                            "enter goes on, and answers in the last field; esc gives no answer. Nothing is kept.",
                            "muted",
                        ),
                    )
                )
            )

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """To the next field; from the last one the answers, once."""
        message.stop()
        fields = list(self.query(Input))
        place = fields.index(message.input)
        if place + 1 < len(fields):
            self.set_focus(fields[place + 1])
            return
        # An empty answer is one where a server wants just Enter; what was typed must have been typed.
        problem = self._typing.against_enter() if message.value else ""
        if problem:
            self.say(problem)
            return
        answers = Answers(tuple(field.value for field in fields))
        self._over = True
        for field in fields:
            field.value = ""
        self.dismiss(answers)

    def action_refuse(self) -> None:
        """Leave without an answer, and leave nothing in the fields."""
        for field in self.query(Input):
            field.value = ""
        super().action_refuse()


def _asked(prompt: Prompt) -> Paragraph:
    hidden = "" if prompt.echo else "  (hidden)"
    return Paragraph((foreign(prompt.text.rstrip() or "answer", longest=LONGEST_WORDS), Span(hidden, "muted")))
