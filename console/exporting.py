"""What is on the screen, taken along as files. Nothing is ever written over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

MOST_TRIES = 1000


class _Piece(Protocol):
    @property
    def text(self) -> str:
        """Its text."""
        ...


def text_of(strips: Iterable[Iterable[_Piece]]) -> str:
    """Rows of a screen as text, without the spaces at their ends."""
    rows = ["".join(piece.text for piece in strip).rstrip() for strip in strips]
    return "\n".join(rows).rstrip("\n") + "\n"


def save(folder: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Save texts under one name of their own.

    Args:
        folder: Where; it is made.
        name: What the files are called; a number is added where that is taken.
        texts: By ending (".svg"), what to write.

    Returns:
        The files.

    Raises:
        OSError: When they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, MOST_TRIES):
        stem = name if number == 1 else f"{name}-{number}"
        paths = [folder / f"{stem}{ending}" for ending in texts]
        if _create(paths, list(texts.values())):
            return paths
    raise FileExistsError(f"{folder}: {MOST_TRIES} files of the name {name} are there already")


def _create(paths: list[Path], texts: list[str]) -> bool:
    """Create all files, or none where one is there already."""
    made: list[Path] = []
    try:
        for path, text in zip(paths, texts, strict=True):
            # "x" refuses whatever is there, a link that leads nowhere too.
            with open(path, "x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
                os.fsync(file.fileno())
    except FileExistsError:
        for path in made:
            path.unlink()
        return False
    return True
