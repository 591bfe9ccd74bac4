"""Foreign text for tests: anything that a cluster, a file or another program may send."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

from console.safe_text import CLOSE, OPEN

BLANK = set("\u3164\u115f\u1160\uffa0\u2800\U00013441\U00013442\U0001d159")
FORBIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs", "Mn", "Me", "Mc"}
HOSTILE = [
    "\x1b[2J\x1b]0;title\x07",
    "a\u202eb\u2066c",
    "zero\u200bwidth\u200d\ufeff",
    "e\u0301\u0327",
    "\u3164\u115f\uffa0\u2800",
    "\U00013441\U0001d159",
    "\r\b\x01\x7f\x9b",
    "\u2028\u2029\u00a0\u3000",
    "\ud800\udc80\udfff",
    f"{OPEN}ESC{CLOSE}",
    "\U000e0041\ue000\U0010ffff",
]
anything = st.text(st.characters(codec=None)) | st.lists(st.sampled_from(HOSTILE)).map("".join)
"""Any text, lone surrogates included."""


def visible(text: str) -> bool:
    return all(character == " " or unicodedata.category(character) not in FORBIDDEN for character in text)
