"""What the words of a foreign log's entry say it is. A log of another program has no events, only text."""

from __future__ import annotations

import re

from console.replay.marks import APPROVAL, FAILURE, GATE

_APPROVAL = re.compile(r"\bapprov(?:ed|al|es|ing)\b|\bOK(?:'d| given| from)\b", re.IGNORECASE)
_NOT_APPROVED = re.compile(
    r"\b(?:not|never|without|awaiting|wait(?:s|ing)? for|asked for|needs?)\b[^.;]{0,30}\bapprov", re.IGNORECASE
)
_GATE = re.compile(r"\bgate(?:[_ -]\w+)?\b|\bverdict\b", re.IGNORECASE)
_FAILURE = re.compile(
    r"\b(?:fail(?:ed|s|ure)?|errors?|refused|crashed|timed out|INFEASIBLE|ANOMALOUS|SYSTEMIC|NO-GO)\b", re.IGNORECASE
)
_NO_FAILURE = re.compile(r"\b(?:no|0|zero|without|not) (?:fail\w*|errors?)\b", re.IGNORECASE)


def kinds_of(text: str) -> list[str]:
    """The marks that an entry's words make. Words can mislead: a mark is a place to look at, not a verdict."""
    found = []
    if _APPROVAL.search(text) and not _NOT_APPROVED.search(text):
        found.append(APPROVAL)
    if _GATE.search(text):
        found.append(GATE)
    if _FAILURE.search(_NO_FAILURE.sub("", text)):
        found.append(FAILURE)
    return found
