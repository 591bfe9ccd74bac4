"""What can be done on a screen, by which key, and what its signs mean. Derived from the list of verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from textual.content import Content
from textual.widget import Widget

from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.verbs import Verb, in_scopes
from console.widgets import words
from console.widgets.ink import Paragraph, Span, foreign, lay_out
from console.widgets.lines import Lines, Rows

ABOUT = {
    "board": "The release board: the stages, what waits for you, and what the gates measured against which limit.",
    "approval": "One exact job, whole. Read it to its end, then approve it by typing its code, or reject it.",
    "jobs": "Every attempt with its job on the cluster, the newest first.",
    "files": "Result files on the cluster: those that are watched, and those that were read.",
    "file": "One result file: the bytes that gates read, or those that are on the cluster now, as table or text.",
    "output": "What a job has written, as its conductor reads it from the cluster. ↻ counts states of a progress bar "
    "that were written over, ✂ marks a line that was cut, ── a place where bytes are missing.",
    "log": "The work log: every step, who did it and why, each entry chained to the one before.",
}
"""What each screen is for."""

_SIGNS = (
    words.PASSED, words.FAILED, words.RUNNING, words.WAITING, words.UNKNOWN, words.IDLE, words.STOPPED,
    words.Mark(words.HUMAN_SIGN, "a person intervened", "human"),
)  # fmt: skip


class Help(Area):
    """Help for the screen below it.

    Args:
        below: That screen.
    """

    scope = "help"
    BINDINGS = bindings("help")
    AUTO_FOCUS = "#text"

    def __init__(self, below: Area) -> None:
        super().__init__()
        self._about = below.scope
        self._problem = below.problem

    def compose_body(self) -> Iterable[Widget]:
        """One text."""
        text = Lines(id="text")
        text.border_title = Content(f"Help · {self._about}")
        text.add_class("panel")
        yield text

    def verbs(self) -> list[Verb]:
        """Only those of the help itself: nothing is done from here."""
        return [item for item in in_scopes(["help", "app"]) if not item.writes]

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the text."""
        text = self.query_one("#text", Lines)
        shown = help_text(self._about, self._problem)
        text.build(lambda width: Rows(lay_out(shown, width)))

    def do_back(self) -> None:
        """Back to the screen below."""
        self.dismiss()

    def do_help(self) -> None:
        """The key that opened it closes it."""
        self.dismiss()


def help_text(scope: str, problem: Callable[[Verb], str]) -> list[Paragraph]:
    """Help for a screen.

    Args:
        scope: Its scope.
        problem: Says why a verb cannot be used now; empty when it can.
    """
    parts = (("Here", scope), ("In every list", "list"), ("Everywhere", "app"))
    return help_of(ABOUT.get(scope, ""), [(title, in_scopes([name])) for title, name in parts], problem)


def help_of(about: str, parts: Iterable[tuple[str, Iterable[Verb]]], problem: Callable[[Verb], str]) -> list[Paragraph]:
    """Help made of a sentence and of some lists of verbs, each under a title."""
    blank = Paragraph(())
    shown = [Paragraph((Span(about),))]
    for title, verbs in parts:
        shown += [blank, Paragraph((Span(title, "title"),))]
        shown += [_verb(item, problem(item)) for item in verbs]
    shown += [blank, Paragraph((Span("Signs", "title"),))]
    shown += [Paragraph((foreign(mark.word),), (Span("  "), Span(f"{mark.sign:<14}", mark.style))) for mark in _SIGNS]
    shown += [
        blank,
        Paragraph(
            (Span("Keys can be typed, words can be clicked. To select text with the mouse, drag; ctrl+c copies it."),)
        ),
    ]
    return shown


def _verb(item: Verb, problem: str) -> Paragraph:
    keys = " ".join(_pretty(key) for key in item.keys.split(","))
    text: list[Span] = [Span(item.help)]
    if problem:
        text += [Span(" Not now: ", "muted"), foreign(problem, "muted"), Span(".", "muted")]
    return Paragraph(tuple(text), (Span("  "), Span(f"{keys:<14}", "muted" if problem else "key")))


_NAMES = {
    "question_mark": "?", "colon": ":", "slash": "/", "escape": "esc",
    "pageup": "pgup", "pagedown": "pgdn", "up": "↑", "down": "↓",
}  # fmt: skip


def _pretty(key: str) -> str:
    """A key as it is written on keyboards."""
    return _NAMES.get(key, key)
