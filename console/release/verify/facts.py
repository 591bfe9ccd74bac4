"""What one check found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Word(StrEnum):
    """The three answers."""

    OK = "OK"
    WRONG = "WRONG"
    NOT_CHECKED = "NOT CHECKED"


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a verification.

    Attributes:
        word: Whether it is so.
        about: The file, the attempt or the gate.
        text: What was compared, and what was found where it is not so.
    """

    word: Word
    about: str
    text: str

    def to_json(self) -> dict[str, str]:
        """JSON form."""
        return {"word": str(self.word), "about": self.about, "text": self.text}


Facts = Iterator[Fact]


def ok(about: str, text: str) -> Fact:
    """It is so."""
    return Fact(Word.OK, about, text)


def wrong(about: str, text: str) -> Fact:
    """It is not so."""
    return Fact(Word.WRONG, about, text)


def not_checked(about: str, text: str) -> Fact:
    """Nobody can say from here, and why."""
    return Fact(Word.NOT_CHECKED, about, text)


def told(holds: bool, about: str, text: str, otherwise: str) -> Fact:
    """One fact, in the words for its answer."""
    return ok(about, text) if holds else wrong(about, otherwise)
