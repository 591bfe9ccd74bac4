"""The history of a model for people: a table, a small plot for each measure, and the shifts marked in both.

Only runs that can be compared are compared: one series has one drafter, one number of draft tokens and one cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from console.release.history import Release
from console.safe_text import cut, safe
from gates.catalog.decimals import decimal
from gates.catalog.levels import SHIFT, shifts

ROWS: Final = 5
"""Height of a plot in lines."""

COLUMNS: Final = 60
"""Most releases in a plot; the newest are shown."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is followed over releases.

    Attributes:
        name: Its name for programs.
        title: Its name for people.
        sources: Which gate's fact it is, the first that a release has.
        limit: A distance from the level of the releases before that counts as a shift.
        percent: Whether it is shown in per cent.
        per_token: Whether the limit is for each draft token.
    """

    name: str
    title: str
    sources: tuple[tuple[str, str], ...]
    limit: Fraction
    percent: bool = False
    per_token: bool = False


MEASURES: Final = (
    Measure(
        "acceptance_rate",
        "acceptance rate",
        (("acceptance", "acceptance_rate"), ("bench", "acceptance_rate_c1"), ("smoke", "acceptance_rate")),
        SHIFT,
        percent=True,
    ),
    Measure(
        "acceptance_length",
        "acceptance length (tokens)",
        (("acceptance", "acceptance_length"), ("bench", "acceptance_length_c1"), ("smoke", "acceptance_length")),
        SHIFT,
        per_token=True,
    ),
    Measure("speedup", "speedup at concurrency 1", (("bench", "speedup_c1"),), Fraction(1, 10)),
    Measure("accuracy", "accuracy", (("accuracy", "accuracy"),), Fraction(3, 100), percent=True),
    Measure("exact_match", "greedy exact match", (("correctness", "exact_match"),), SHIFT, percent=True),
)


@dataclass(frozen=True, slots=True)
class Point:
    """A measure in one release: its value, where it was read, and how far it shifted, None where it did not."""

    value: float | None
    source: str
    shift: float | None


@dataclass(frozen=True, slots=True)
class Series:
    """Releases that can be compared, the oldest first, with the points of every measure."""

    drafter: str
    draft_tokens: int | None
    cluster: str
    releases: tuple[Release, ...]
    points: dict[str, tuple[Point, ...]]

    @property
    def words(self) -> str:
        """What the releases of the series have in common."""
        tokens = "unknown number of" if self.draft_tokens is None else str(self.draft_tokens)
        return safe(f"{self.drafter}, {tokens} draft tokens, on {self.cluster}")


def series_of(releases: Sequence[Release]) -> list[Series]:
    """The series in the releases of one model, in the order in which each began."""
    groups: dict[tuple[str, int | None, str], list[Release]] = {}
    for release in releases:
        groups.setdefault((release.drafter, release.draft_tokens, release.cluster), []).append(release)
    made = []
    for (drafter, tokens, cluster), group in groups.items():
        points = {measure.name: _points(measure, group, tokens) for measure in MEASURES}
        made.append(Series(drafter, tokens, cluster, tuple(group), points))
    return made


def _points(measure: Measure, releases: Sequence[Release], tokens: int | None) -> tuple[Point, ...]:
    found = [release.value(*measure.sources) for release in releases]
    values = [None if one is None else decimal(one.value) for one in found]
    limit = measure.limit * (tokens or 1) if measure.per_token else measure.limit
    moved = shifts(values, limit)
    return tuple(
        Point(
            None if one is None else one.value,
            "" if one is None else f"{one.gate}: {one.name}",
            None if shift is None else float(shift),
        )
        for one, shift in zip(found, moved, strict=True)
    )


def to_json(model: str, series: Sequence[Series]) -> dict[str, object]:
    """For programs: every release with every measure, and the shifts by themselves."""
    rows: list[dict[str, object]] = []
    moved: list[dict[str, object]] = []
    for one in series:
        for i, release in enumerate(one.releases):
            row: dict[str, object] = {
                "run_id": release.run_id,
                "day": release.day,
                "drafter": release.drafter,
                "draft_tokens": release.draft_tokens,
                "cluster": release.cluster,
                "verdict": release.verdict,
                "manifest_sha256": release.manifest,
                "log_head": release.head,
            }
            for name, points in one.points.items():
                point = points[i]
                row[name] = point.value
                if point.shift is not None:
                    moved.append(
                        {
                            "run_id": release.run_id,
                            "day": release.day,
                            "measure": name,
                            "value": point.value,
                            "shift": point.shift,
                            "source": point.source,
                        }
                    )
            rows.append(row)
    return {"model": model, "releases": rows, "shifts": moved}


def lines(model: str, series: Sequence[Series]) -> list[str]:
    """For people: a table and the plots of each series."""
    made = [safe(model)]
    for one in series:
        made += ["", one.words, *_table(one)]
        for measure in MEASURES:
            points = one.points[measure.name]
            if sum(point.value is not None for point in points) > 1:
                made += ["", *_plot(measure, points)]
        made += _told(one)
    return made


def _table(series: Series) -> list[str]:
    head = ["day", "run", "verdict", "rate", "AL", "speedup", "accuracy", "match"]
    rows = [head]
    for i, release in enumerate(series.releases):
        cells = [_cell(measure, series.points[measure.name][i]) for measure in MEASURES]
        rows.append([safe(release.day), cut(safe(release.run_id), 32), safe(release.verdict), *cells])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(measure: Measure, point: Point) -> str:
    if point.value is None:
        return "-"
    mark = "" if point.shift is None else " v" if point.shift < 0 else " ^"
    return _number(measure, point.value) + mark


def _number(measure: Measure, value: float) -> str:
    return f"{100 * value:.1f}%" if measure.percent else f"{value:.3f}"


def _plot(measure: Measure, points: Sequence[Point]) -> list[str]:
    """One column for each release, the newest at the right; `v` and `^` where it shifted."""
    shown = points[-COLUMNS:]
    values = [point.value for point in shown if point.value is not None]
    if not values:
        return []
    low, high = min(values), max(values)
    rows = [[" "] * len(shown) for _ in range(ROWS)]
    for column, point in enumerate(shown):
        if point.value is not None:
            part = (point.value - low) / (high - low) if high > low else 0.5
            sign = "o" if point.shift is None else "v" if point.shift < 0 else "^"
            rows[ROWS - 1 - round(part * (ROWS - 1))][column] = sign
    names = [_number(measure, high), *[""] * (ROWS - 2), _number(measure, low)]
    if high == low:
        rows, names = [rows[ROWS // 2]], names[:1]
    width = max(map(len, names))
    return [
        measure.title,
        *(f"  {name.rjust(width)} |{''.join(row)}".rstrip() for name, row in zip(names, rows, strict=True)),
    ]


def _told(series: Series) -> list[str]:
    """The shifts, a line for each."""
    made = []
    for measure in MEASURES:
        for release, point in zip(series.releases, series.points[measure.name], strict=True):
            if point.shift is not None and point.value is not None:
                word = "fell" if point.shift < 0 else "rose"
                before = _number(measure, point.value - point.shift)
                now = _number(measure, point.value)
                where = f"{release.day}, {release.run_id}"
                made.append(safe(f"SHIFT: {measure.title} {word} from {before} to {now} ({where}; {point.source})"))
    return ["", *made] if made else []
