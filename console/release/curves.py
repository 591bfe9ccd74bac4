"""What can be drawn of a result file: training by step, acceptance by position, throughput and speedup by concurrency.

Pure: bytes in, plots out. Only numbers that stand in the file are drawn, and those that follow from its counters. A
number that is missing or not finite is a gap: it is counted and never bridged by a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gates.reading import Unread, read_json

LINE, BARS = "line", "bars"
"""How a plot is drawn: a curve over numbers, or a bar for each of a few places."""

MOST_POINTS = 100_000
"""A curve of more points than this is not drawn whole: the first so many are, and the rest is counted."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place, and the value there; None where there is none that is a finite number."""

    place: float
    value: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of one thing, in the order of the file.

    Attributes:
        name: What tells it from the others of its plot; empty where there is no other.
        points: Its points, gaps among them.
        unplaced: Entries of the file without a place (a step, a concurrency), which cannot be drawn at all.
    """

    name: str
    points: tuple[Point, ...]
    unplaced: int = 0

    @property
    def gaps(self) -> int:
        """How many values are missing or not finite."""
        return sum(point.value is None for point in self.points) + self.unplaced

    @property
    def values(self) -> list[Point]:
        """The points that have a value."""
        return [point for point in self.points if point.value is not None]


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    Attributes:
        title: What is drawn.
        over: What the places are.
        unit: Unit of the values; empty for a plain number.
        shape: LINE or BARS.
        curves: At least one.
    """

    title: str
    over: str
    unit: str
    shape: str
    curves: tuple[Curve, ...]

    @property
    def gaps(self) -> int:
        """How many values are missing or not finite."""
        return sum(curve.gaps for curve in self.curves)


def plots_of(data: bytes) -> tuple[list[Plot], str]:
    """The plots of a result file, and why there are none where it cannot be read.

    Args:
        data: Its bytes.
    """
    document = read_json(data)
    if isinstance(document, Unread):
        return [], f"{document.fault}: {document.why}"
    root = document.root
    found = [*_training(root), *_benchmark(root)]
    return [plot for plot in found if any(curve.points or curve.unplaced for curve in plot.curves)], ""


_TRAINING = (
    ("loss", "Training loss", ""),
    ("accuracy", "Training accuracy", "share"),
    ("grad_norm", "Gradient norm", ""),
)


def _training(root: Mapping[str, Any]) -> list[Plot]:
    rows = _objects(root.get("log_history"))
    found = []
    for key, title, unit in _TRAINING:
        # An entry of another kind (an evaluation, the summary) has none of these keys and is no gap in any.
        own = [row for row in rows if any(name in row for name, _, _ in _TRAINING)]
        if any(key in row for row in own):
            found.append(Plot(title, "optimizer step", unit, LINE, (_curve("", own, "step", key),)))
    return found


def _benchmark(root: Mapping[str, Any]) -> list[Plot]:
    arms = root.get("arms")
    if not isinstance(arms, dict):
        return []
    rows = {name: _objects(arm.get("points")) for name in ("A", "B") if isinstance(arm := arms.get(name), dict)}
    curves = [_curve(name, points, "concurrency", "output_tokens_per_s") for name, points in rows.items()]
    found = [Plot("Throughput, A without and B with the drafter", "concurrency", "tokens/s", BARS, tuple(curves))]
    speedup = _curve("", _objects(root.get("speedup")), "concurrency", "value")
    found.append(Plot("Speedup, B over A", "concurrency", "times", BARS, (speedup,)))
    drafted = rows.get("B", [])
    length = _curve("", drafted, "concurrency", "acceptance_length")
    found.append(Plot("Acceptance length", "concurrency", "tokens", BARS, (length,)))
    return [*found, *_positions(drafted)]


def _positions(rows: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Share of steps in which the draft token at each position was taken; positions that are not listed count 0."""
    curves = []
    for row in rows:
        level, counters = _number(row.get("concurrency")), row.get("counters")
        if level is None or not isinstance(counters, dict):
            continue
        drafts, taken = _number(counters.get("drafts")), counters.get("per_position")
        if not isinstance(taken, list):
            continue
        shares = [_ratio(_number(count), drafts) for count in taken[:MOST_POINTS]]
        points = tuple(Point(place, share) for place, share in enumerate(shares, 1))
        curves.append(Curve(f"at concurrency {level:g}", points, max(0, len(taken) - MOST_POINTS)))
    return [Plot("Acceptance by position", "draft position", "share of steps", BARS, tuple(curves))] if curves else []


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _curve(name: str, rows: Sequence[Mapping[str, Any]], place: str, key: str) -> Curve:
    points, unplaced = [], max(0, len(rows) - MOST_POINTS)
    for row in rows[:MOST_POINTS]:
        at = _number(row.get(place))
        if at is None:
            unplaced += 1
        else:
            points.append(Point(at, _number(row.get(key))))
    return Curve(name, tuple(points), unplaced)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    """A finite number; None for anything else, text that looks like one too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
