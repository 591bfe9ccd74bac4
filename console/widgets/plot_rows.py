"""Plots as rows of text: curves in braille dots, bars in blocks; and in words. Nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from console.plot_reading import Drawn
from console.release.curves import LINE, Curve, Plot, Point
from console.safe_text import safe
from console.widgets.figures import age, digest, since
from console.widgets.ink import Line, Paragraph, Span, fit, foreign, lay_out

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character by row and column of its dots."""

_EIGHTHS = " ▏▎▍▌▋▊▉"
_STYLES = {"A": "idle", "B": "running"}


def rows(found: Sequence[Drawn], now: datetime, width: int, height: int) -> list[Line]:
    """All plots below each other.

    Args:
        found: What there is to draw.
        now: The time, for ages.
        width: Cells of a row.
        height: Rows of a curve.
    """
    made: list[Line] = []
    for drawn in found:
        for plot in drawn.plots:
            made += [*_heading(drawn, plot, now, width), *_body(plot, width, height), ()]
        if drawn.problem:
            told = (foreign(drawn.file, "strong"), Span(": "), foreign(drawn.problem))
            made += [*lay_out([Paragraph(told, (Span("? ", "unknown"),))], width), ()]
    return made or [(Span("No result file with numbers to draw was read yet.", "muted"),)]


def _heading(drawn: Drawn, plot: Plot, now: datetime, width: int) -> list[Line]:
    unit = f" [{plot.unit}]" if plot.unit else ""
    source = f"{drawn.file}  SHA-256 {digest(drawn.sha256)}  read {age(since(drawn.time, now))} ago"
    title: Line = (Span(f"{plot.title}{unit} over {plot.over}", "title"),)
    if plot.gaps:
        title = (*title, Span(f"  ▲ {_gaps(plot.gaps)}", "waiting"))
    return [fit(title, width), fit((foreign(source, "muted"),), width)]


def _gaps(count: int) -> str:
    return f"{count} {'gap' if count == 1 else 'gaps'}: missing or not finite"


def _body(plot: Plot, width: int, height: int) -> list[Line]:
    if not any(curve.values for curve in plot.curves):
        return [(Span("no value that is a finite number", "muted"),)]
    return _curve_rows(plot.curves[0], width, height) if plot.shape == LINE else _bar_rows(plot, width)


def _curve_rows(curve: Curve, width: int, height: int) -> list[Line]:
    """A curve, with the highest and lowest value at its left and the first and last place below."""
    values = [point.value for point in curve.values if point.value is not None]
    low, high = min(values), max(values)
    names = [_short(high), *[""] * (height - 2), _short(low)]
    margin = max(map(len, names))
    room = max(4, width - margin - 3)
    drawn = dots(curve.points, room, height)
    shown: list[Line] = [
        (Span(f"{name:>{margin}} ", "muted"), Span("│", "rule"), Span(text, "running"))
        for name, text in zip(names, drawn, strict=True)
    ]
    first, last = (f"{place:g}" for place in (curve.points[0].place, curve.points[-1].place))
    gap = " " * max(1, room - len(first) - len(last))
    shown.append((Span(f"{'':>{margin}} └", "rule"), Span(f"{first}{gap}{last}", "muted")))
    return [fit(line, width) for line in shown]


def dots(points: Sequence[Point], width: int, height: int) -> list[str]:
    """Points as rows of braille characters, joined to their neighbours; nothing is drawn across a gap.

    Args:
        points: The points; their places need not rise.
        width: Characters of a row.
        height: Rows.
    """
    known = [point for point in points if point.value is not None]
    cells = [[0] * width for _ in range(height)]
    if known:
        across, up = (
            _Scale([point.place for point in known], 2 * width),
            _Scale([point.value for point in known if point.value is not None], 4 * height),
        )
        before: tuple[int, int] | None = None
        for point in points:
            if point.value is None:
                before = None
                continue
            here = (across(point.place), 4 * height - 1 - up(point.value))
            for x, y in _between(before or here, here):
                cells[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
            before = here
    return ["".join(chr(0x2800 + bits) if bits else " " for bits in row) for row in cells]


class _Scale:
    """Numbers to dots."""

    def __init__(self, numbers: Sequence[float], count: int) -> None:
        self._low, self._high, self._last = min(numbers), max(numbers), count - 1

    def __call__(self, number: float) -> int:
        # Halves first: the difference of two finite numbers may not be finite.
        whole = self._high / 2 - self._low / 2
        return self._last // 2 if whole <= 0 else round((number / 2 - self._low / 2) / whole * self._last)


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(steps + 1):
        yield (
            start[0] + round((end[0] - start[0]) * step / steps),
            start[1] + round((end[1] - start[1]) * step / steps),
        )


def _bar_rows(plot: Plot, width: int) -> list[Line]:
    values = [point.value for curve in plot.curves for point in curve.values if point.value is not None]
    top = max(*values, 0.0) if values else 0.0
    labels = [(curve, f"{curve.name} " if len(curve.name) == 1 else "") for curve in plot.curves]
    margin = max((len(f"{point.place:g}") for curve in plot.curves for point in curve.points), default=1)
    shown: list[Line] = []
    for place in sorted({point.place for curve in plot.curves for point in curve.points}) if _sides(plot) else ():
        for curve, label in labels:
            shown += [_bar(point, label, top, margin, width) for point in curve.points if point.place == place]
    if not shown:
        for curve, label in labels:
            if curve.name:
                shown.append((Span(curve.name, "muted"),))
            shown += [_bar(point, label, top, margin, width) for point in curve.points]
    return shown


def _sides(plot: Plot) -> bool:
    """Whether the curves are compared place by place, as A with B."""
    return len(plot.curves) > 1 and all(len(curve.name) == 1 for curve in plot.curves)


def _bar(point: Point, label: str, top: float, margin: int, width: int) -> Line:
    head = f"{point.place:>{margin}g} {label}"
    if point.value is None:
        return (Span(head, "muted"), Span("gap", "waiting"))
    room = max(1, width - len(head) - 12)
    eighths = round(8 * room * point.value / top) if top > 0 and point.value > 0 else 0
    bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return fit(
        (Span(head, "muted"), Span(bar, _STYLES.get(label.strip(), "running")), Span(f" {_short(point.value)}")), width
    )


def _short(value: float) -> str:
    return f"{value:.4g}"


def words(found: Sequence[Drawn], now: datetime) -> Iterator[str]:
    """The same facts line by line, each of which stands for itself."""
    for drawn in found:
        name = safe(drawn.file)
        for plot in drawn.plots:
            where = f"from {name}, SHA-256 {digest(drawn.sha256)}, read {age(since(drawn.time, now))} ago"
            yield f"{plot.title} over {plot.over}, {where}: {_told(plot)}"
            if plot.shape != LINE:
                yield from _each(plot)
        if drawn.problem:
            yield f"Not drawn: {name}: {safe(drawn.problem)}"
    if not found:
        yield "No result file with numbers to draw was read yet."


def _told(plot: Plot) -> str:
    known = [point for curve in plot.curves for point in curve.values]
    gaps = f", {_gaps(plot.gaps)}" if plot.gaps else ""
    text = f"{len(known)} {'value' if len(known) == 1 else 'values'}{gaps}"
    if plot.shape != LINE or not known:
        return text
    low, high = min(known, key=_value), max(known, key=_value)
    return f"{text}; first {_at(known[0])}, last {_at(known[-1])}, lowest {_at(low)}, highest {_at(high)}"


def _each(plot: Plot) -> Iterator[str]:
    unit = f" {plot.unit}" if plot.unit else ""
    for curve in plot.curves:
        name = f" {curve.name}" if curve.name else ""
        for point in curve.points:
            value = "a gap" if point.value is None else f"{_short(point.value)}{unit}"
            yield f"  {plot.title}{name}, {plot.over} {point.place:g}: {value}"


def _value(point: Point) -> float:
    return point.value if point.value is not None else 0.0


def _at(point: Point) -> str:
    return f"{_short(_value(point))} at {point.place:g}"
