"""What one check found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


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


def read(path: Path) -> bytes | None:
    """The bytes of a file; None where there is none, or where it cannot be read as one."""
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


def kept(about: str, path: Path, wanted: bytes | None) -> Fact:
    """A file that is exactly what the log says, or is not there where the log says nothing."""
    data = read(path)
    if wanted is None:
        there = path.exists() or path.is_symlink()
        return wrong(about, "the log knows nothing of it") if there else ok(about, "is not there, as the log says")
    if data is None:
        return wrong(about, "the log says that it was written, but there is none that can be read")
    return told(data == wanted, about, "is what the log says", "it is not what the log says")
