"""From where the operator looks and decides: a terminal, or a browser."""

from __future__ import annotations

import os
import socket

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""What textual-serve has a console drawn by."""


def in_browser() -> bool:
    """Whether this console is drawn in a browser."""
    return os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER


def terminal() -> str:
    """Where decisions come from, as the work log names it."""
    host = socket.gethostname()
    if in_browser():
        return f"browser on {host}"
    for descriptor in (0, 1, 2):
        try:
            return f"{os.ttyname(descriptor)} on {host}"
        except OSError:
            continue
    return f"no terminal on {host}"
