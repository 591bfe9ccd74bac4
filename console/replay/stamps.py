"""Time stamps as people and programs write them into logs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple


class Stamp(NamedTuple):
    """A time stamp within a text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        moment: UTC; None where it is a time of day only.
        clock: Hours, minutes, seconds.
        zoned: Whether it names a time zone.
    """

    start: int
    end: int
    moment: datetime | None
    clock: tuple[int, int, float]
    zoned: bool


_TIME = r"(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d|60)(?:[.,](?P<part>\d{1,9}))?)?"
_ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![A-Za-z0-9]))?"
_DATED = re.compile(
    r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    rf"(?:(?:[T ,_]|,? +)\s?{_TIME}{_ZONE})?(?!\d)"
)
_CLOCK = re.compile(rf"(?<![\d:.]){_TIME}{_ZONE}(?![\d:])")


def find_stamp(text: str) -> Stamp | None:
    """The first time stamp in a text: a date with or without a time, else a time of day; None where there is none."""
    for found in _DATED.finditer(text):
        stamp = _dated(found)
        if stamp is not None:
            return stamp
    clock = _CLOCK.search(text)
    if clock is None:
        return None
    return Stamp(clock.start(), clock.end(), None, _clock(clock), clock["zone"] is not None)


def _dated(found: re.Match[str]) -> Stamp | None:
    hour, minute, second = _clock(found) if found["hour"] is not None else (0, 0, 0.0)
    try:
        day = datetime(int(found["year"]), int(found["month"]), int(found["day"]), tzinfo=_zone(found["zone"]))
        moment = (day + timedelta(hours=hour, minutes=minute, seconds=second)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    zoned = found["zone"] is not None
    return Stamp(found.start(), found.end(), moment, (hour, minute, second), zoned)


def _clock(found: re.Match[str]) -> tuple[int, int, float]:
    part = float(f"0.{found['part']}") if found["part"] else 0.0
    return int(found["hour"]), int(found["minute"]), int(found["second"] or 0) + round(part, 6)


def _zone(text: str | None) -> timezone:
    if text is None or text in ("Z", "UTC", "GMT"):
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def of_day(stamp: Stamp, day: datetime | None) -> datetime | None:
    """A time of day as a moment of the day of another; None where there is none.

    A time much earlier than the one before it is taken to be of the next day: a log that runs past midnight.
    """
    if day is None:
        return None
    hour, minute, second = stamp.clock
    start = day.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        moment = start + timedelta(hours=hour, minutes=minute, seconds=second)
        return moment + timedelta(days=1) if moment < day - timedelta(hours=12) else moment
    except OverflowError:
        return None
