"""How often a cluster's Slurm is asked, whoever asks over a connection."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """When Slurm may be asked again.

    Each of Slurm's commands is paid for with one interval, and the bill is the connection's: a release that begins, or
    one that is conducted beside another, does not ask sooner because somebody else did the asking until now.

    Args:
        clock: Monotonic time, seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = clock()

    def wait(self) -> float:
        """How long until Slurm may be asked, seconds; 0 for now."""
        return max(0.0, self._due - self._clock())

    def spend(self, queries: int, interval: float) -> None:
        """Slurm was asked.

        Args:
            queries: How many of its commands ran.
            interval: What each of them costs, seconds.
        """
        self._due = self._clock() + queries * interval
