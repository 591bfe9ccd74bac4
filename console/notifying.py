"""The sequences by which a terminal calls somebody: a notification on the desktop, a title, a badge. Pure.

Whatever text goes in, none of it can end a sequence or begin another: it passes `safe_text.safe` first.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from console.safe_text import cut, safe

LONGEST = 160
"""Characters of a notification; desktops show no more."""

_OSC777 = ("ghostty", "foot", "rxvt", "wezterm")
"""Terminals that know `OSC 777;notify`, by a part of TERM or TERM_PROGRAM; the others ignore or know `OSC 9`."""


def notification(text: str, way: str, environ: Mapping[str, str]) -> str:
    """A notification on the desktop.

    Args:
        text: Any text.
        way: "osc9" (iTerm2's sequence), "osc777" (urxvt's), "auto" for what the terminal knows, "off" for none.
        environ: Says which terminal it is.

    Returns:
        The sequence, empty for none.
    """
    if way == "off":
        return ""
    # A semicolon would be taken for the end of a field, and "4;" at the beginning for a progress bar.
    shown = cut(safe(text), LONGEST).replace(";", ",")
    if way == "auto":
        terminal = f"{environ.get('TERM', '')} {environ.get('TERM_PROGRAM', '')}".lower()
        way = "osc777" if any(name in terminal for name in _OSC777) else "osc9"
    return f"\x1b]777;notify;gonogo;{shown}\x07" if way == "osc777" else f"\x1b]9;gonogo: {shown}\x07"


def title(text: str, count: int, environ: Mapping[str, str]) -> str:
    """The terminal's title, with how many wait; and the badge of iTerm2, where it is that."""
    shown = safe(text)
    sequence = f"\x1b]2;({count}) {shown}\x07" if count else f"\x1b]2;{shown}\x07"
    if environ.get("TERM_PROGRAM") == "iTerm.app":
        badge = base64.b64encode(f"{count} waiting".encode() if count else b"").decode()
        sequence += f"\x1b]1337;SetBadgeFormat={badge}\x07"
    return sequence
