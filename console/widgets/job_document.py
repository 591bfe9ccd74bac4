"""The lines of an exact job (`console.release.job_view`) with styles, ready to be wrapped. Nothing is left out.

Nothing here imports Textual.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from console.release.job_view import Section
from console.widgets.ink import Line, Paragraph, Span

_MARGIN = Span("  ")
_NUMBERED = re.compile(r"( *\d+) (.*)", re.DOTALL)
_NAMED = re.compile(r"(\S+(?: \S+)*  +)(.*)", re.DOTALL)
_CHANGED = re.compile(r"( *)([-+] \d+)(.*)", re.DOTALL)
_BLANK = Paragraph(())
_TABLES = ("Job", "Where it runs", "Resources", "What an OK covers")
"""Sections whose lines are names and values in two columns."""


def document(sections: Sequence[Section], proposal_id: str) -> list[Paragraph]:
    """A whole job as paragraphs.

    Args:
        sections: Titles and lines, printable as they are.
        proposal_id: Name of the proposal, for the line at the end.
    """
    shown: list[Paragraph] = []
    for title, lines in sections:
        shown.append(Paragraph((Span(title, "waiting" if title == "Attention" else "title"),)))
        shown += [_paragraph(title, line) for line in lines]
        shown.append(_BLANK)
    shown.append(Paragraph((Span(f"── end of {proposal_id} ──", "muted"),)))
    return shown


def _paragraph(title: str, text: str) -> Paragraph:
    if title.startswith(("Script", "File ")):
        if found := _NUMBERED.fullmatch(text):
            return Paragraph((Span(found[2]),), (_MARGIN, Span(f"{found[1]}  ", "muted")), exact=True)
        return Paragraph((Span(text, "muted"),), (_MARGIN,), exact=True)
    if title == "Attention":
        return Paragraph((Span("▲ ", "waiting"), Span(text, "waiting")), (_MARGIN,), exact=True)
    if title.startswith("Different"):
        return Paragraph(_difference(text), (_MARGIN,), exact=True)
    if title == "Command":
        return Paragraph((Span(text),), (_MARGIN,), exact=True)
    if title in _TABLES and (found := _NAMED.fullmatch(text)):
        return Paragraph((Span(found[2]),), (_MARGIN, Span(found[1], "muted")), exact=True)
    return Paragraph((Span(text),), (_MARGIN,), exact=True)


def _difference(text: str) -> Line:
    """A line about what changed: risky fields first by word and colour, removed and added lines by sign and colour."""
    if text.startswith("RISK "):
        return (Span(" RISK ", "chip-failed"), Span(text[4:], "strong"))
    if found := _CHANGED.fullmatch(text):
        style = "failed" if found[2][0] == "-" else "passed"
        return (Span(found[1]), Span(found[2], style), Span(found[3]))
    return (Span(text),)
