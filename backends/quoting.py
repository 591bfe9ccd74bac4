"""The one place where an argument becomes text for a POSIX shell."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def quote(text: str) -> str:
    """An argument as one word of a POSIX shell, whatever is in it.

    Args:
        text: Any text without a NUL character.

    Returns:
        The text itself where it is plain, else in single quotes.

    Raises:
        ValueError: For a NUL character, which no argument can hold.
    """
    if "\0" in text:
        raise ValueError("an argument of a command cannot hold a NUL character")
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
