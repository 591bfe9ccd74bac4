"""Levels in a series of measurements: what a model usually reaches, and where it began to reach something else.

Run-to-run jitter of an acceptance rate is under one point; a broken draft head costs tens of points and then stays.
So a level is a median of neighbours, which no single odd run moves, and a shift is a distance of several jitters.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import median
from typing import Final

NEIGHBOURS: Final = 3
"""So many runs in a row make a level."""

SHIFT: Final = Fraction(5, 100)
"""A distance of so much from the level is a shift, for what is measured as a fraction."""


def best_level(values: Sequence[Fraction]) -> Fraction | None:
    """The best level that was held: the highest median of neighbouring runs; None with fewer runs than that takes."""
    windows = range(len(values) - NEIGHBOURS + 1)
    return max((median(values[i : i + NEIGHBOURS]) for i in windows), default=None)


def shifts(values: Sequence[Fraction | None], limit: Fraction = SHIFT) -> list[Fraction | None]:
    """For every value how far it lies from the level of the runs just before it, where that is a shift; else None.

    A run after a shift starts a new level: a drop is marked once, where it happened, and not in every run after it.
    Runs without a value are passed over.
    """
    found: list[Fraction | None] = []
    level: list[Fraction] = []
    for value in values:
        moved = None
        if value is not None:
            if level and abs(value - median(level)) >= limit:
                moved = value - median(level)
                level = []
            level = [*level[-(2 * NEIGHBOURS - 2) :], value]
        found.append(moved)
    return found
