"""The one place where foreign text becomes text for a screen.

Whatever came from a cluster, a file, a job name or another program may hold control characters, escape
sequences, bidirectional marks, zero-width characters or bytes that are no text at all. `safe` makes every one
of them visible and none of them effective. It never removes anything, and it is injective: two different
inputs never look the same, so what an operator reads is what will run.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

OPEN, CLOSE = "\u2039", "\u203a"
"""What stands around a character that is shown by name; OPEN itself is always shown by name."""

# Categories that have no shape of their own, or change the shape of their neighbours: controls, formats,
# private, surrogates, unassigned, line and paragraph separators, odd spaces, combining marks.
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs", "Mn", "Me", "Mc"})
# Letters and signs that are drawn as nothing: Hangul fillers, the empty Braille cell, blank hieroglyphs and notes.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\U00013441\U00013442\U0001d159")
_NAMES = {"\n": "LF", "\r": "CR", "\t": "TAB", "\x1b": "ESC", "\x00": "NUL", "\x07": "BEL", "\x08": "BS"}


def _shown(character: str) -> str:
    """One character as it appears on the screen."""
    if character == OPEN or character in _BLANK:
        return f"{OPEN}U+{ord(character):04X}{CLOSE}"
    if " " <= character <= "~":
        return character
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"{OPEN}0x{code - 0xDC00:02X}{CLOSE}"
    return f"{OPEN}{_NAMES.get(character, f'U+{code:04X}')}{CLOSE}"


def decode(data: bytes) -> str:
    """Bytes as text without loss: what is not UTF-8 becomes lone surrogates, which `safe` shows as bytes."""
    return data.decode("utf-8", "surrogateescape")


def safe(text: str | bytes) -> str:
    """One line of foreign text, every special character made visible (a newline too).

    Args:
        text: Any text or bytes, of any length.

    Returns:
        Printable text without control, format, combining or blank characters; different for different inputs.
    """
    if isinstance(text, bytes):
        text = decode(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def safe_lines(text: str | bytes) -> Iterator[str]:
    """Foreign text of several lines: split at newlines only, each line made safe."""
    if isinstance(text, bytes):
        text = decode(text)
    for line in text.split("\n"):
        yield safe(line)


def cut(text: str, width: int) -> str:
    """Safe text cut to a number of characters, with a mark where something is missing.

    Only for lists and logs. What an operator decides on is never cut.
    """
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def oddities(text: str | bytes) -> tuple[int, int]:
    """How many characters are shown by name, and how many others are not ASCII.

    Returns:
        (hidden, foreign): counts for the banner over a job that is to be approved. Newlines do not count.
    """
    if isinstance(text, bytes):
        text = decode(text)
    hidden = foreign = 0
    for character in text:
        if character == "\n" or " " <= character <= "~":
            continue
        if _shown(character) == character:
            foreign += 1
        else:
            hidden += 1
    return hidden, foreign
