"""The garbage collector stays out of the way to the first frame, and of everything that was made on it.

What is imported and built there lives as long as the process: looking through it again and again finds nothing, and
costs milliseconds, of the start and later of single keys.
"""

from __future__ import annotations

import gc


def begin() -> None:
    """Called before the screen is imported: nothing is collected until it is painted."""
    gc.disable()


def painted() -> None:
    """Called after the first frame: what there is now is never looked through again, what comes is."""
    gc.freeze()
    gc.enable()
