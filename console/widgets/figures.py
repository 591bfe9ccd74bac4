"""Times, ages, sizes and measured values as they are written on the screen. Nothing here imports Textual."""

from __future__ import annotations

from datetime import UTC, datetime

NOTHING = "—"
"""Stands where there is no value."""


def duration(seconds: float | None) -> str:
    """Seconds as "0:07", "12:34", "3:04:05" or "2d 03:04"; a dash for None."""
    if seconds is None:
        return NOTHING
    whole = max(0, int(seconds))
    minutes, secs = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def age(seconds: float | None) -> str:
    """An age as "0.4 s", "12 s", "5 min", "3 h" or "2 d"; "never" for None."""
    if seconds is None:
        return "never"
    seconds = max(0.0, seconds)
    for limit, size, unit in ((10, 1, "s"), (120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds:.1f} {unit}" if limit == 10 else f"{int(seconds / size)} {unit}"
    return f"{int(seconds / 86400)} d"


def moment(stamp: str) -> datetime | None:
    """A time of the log ("2026-08-12T09:30:11.000000Z"); None where it is none."""
    try:
        found = datetime.fromisoformat(stamp)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def since(stamp: str, now: datetime) -> float | None:
    """Seconds from a time of the log until now; None where there is no such time."""
    start = moment(stamp)
    return None if start is None else (now - start).total_seconds()


def between(start: str, end: str, now: datetime) -> float | None:
    """Seconds between two times of the log, until now where the second is missing."""
    last = moment(end) or now
    first = moment(start)
    return None if first is None else (last - first).total_seconds()


def time_of_day(stamp: str) -> str:
    """The time of day of a log entry, UTC; the text itself where it is no time."""
    found = moment(stamp)
    return stamp if found is None else f"{found:%H:%M:%S}"


def size(count: int | None) -> str:
    """Bytes as "812 B", "1.2 kB", "3.4 MB"; a dash for None."""
    if count is None:
        return NOTHING
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def measured(value: object) -> str:
    """A measured value with the digits that it has; "≈" stands before one that was rounded; "nothing" for None."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        exact = repr(value)
        return exact if len(exact) <= 10 else f"≈{value:.6g}"
    return str(value)


def digest(text: str) -> str:
    """The first twelve digits of a digest."""
    return text[:12]


def offset(seconds: float | None) -> str:
    """A clock difference with its sign; a dash for None."""
    return NOTHING if seconds is None else f"{seconds:+.2f} s".replace("-", "−")
