"""What all result files share: how they begin, what their writer said of itself, and how values are compared."""

from __future__ import annotations

import math
import posixpath
from fractions import Fraction
from typing import Final

from gates.expectations import Expected
from gates.record import Record, shown
from gates.verdict import FailureClass

SCHEMA_VERSION: Final = 1

IDENTITY_TOLERANCE: Final = 0.01
"""Two ways to state one number may differ by one per cent: the rounding of what is printed, a scrape that raced."""


def judge_header(record: Record, expected: Expected) -> None:
    """Check what every result file begins with: schema version, producer, and the token when one is expected.

    A file that carries another token was written by another attempt or another run. It never counts, whatever it
    says: that is MEASUREMENT_INVALID, or what the gate sets for its files.
    """
    version = record.integer("schema_version")
    if version is not None:
        record.check("schema_version", version == SCHEMA_VERSION, version, f"= {SCHEMA_VERSION}", "schema_version")
    producer = record.text("producer")
    if producer is not None:
        record.sheet.fact("producer", producer)
    token = record.text("token", empty=True)
    if expected.token is not None and token is not None:
        record.check("token", token == expected.token, token or "empty", f"= {shown(expected.token)}", "token")


def judge_problems(record: Record, cls: FailureClass, *, optional: bool = False) -> None:
    """Check that the program that wrote the file found nothing wrong itself."""
    if optional and not record.has("problems"):
        return
    problems = record.classed(cls).texts("problems", empty=True)
    if problems is not None:
        record.check("problems", not problems, "; ".join(problems) or "none", "none", "problems", cls=cls)


def judge_status(record: Record, cls: FailureClass, good: tuple[str, ...] = ("ok",)) -> str | None:
    """Check the status word; returns it."""
    status = record.classed(cls).text("status")
    if status is not None:
        detail = first_text(record, ("error", "detail", "failure"))
        measured = status if status in good or not detail else f"{status} ({detail})"
        record.check("status", status in good, measured, f"= {' or '.join(good)}", "status", cls=cls)
    return status


def first_text(record: Record, keys: tuple[str, ...]) -> str:
    """The first of some fields that is a text that is not empty; "" when none is."""
    for key in keys:
        value = record.values.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def same_path(one: str, other: str) -> bool:
    """Whether two POSIX paths are written the same way but for `.`, `//` and a final slash."""
    return posixpath.normpath(one) == posixpath.normpath(other)


def plain_relative(path: str) -> bool:
    """Whether a path stays below the folder it is relative to."""
    parts = path.split("/")
    return bool(path) and "\0" not in path and not any(part in ("", ".", "..") for part in parts)


def agree(one: float, other: float, relative: float = IDENTITY_TOLERANCE, absolute: float = 0.0) -> bool:
    """Whether two numbers are the same within a tolerance of the larger one, or within an absolute one.

    A billionth of slack keeps a difference that is exactly at the tolerance inside it, however it was rounded. What is
    not finite agrees with nothing.
    """
    if not (math.isfinite(one) and math.isfinite(other)):
        return False
    return abs(one - other) <= max(relative * max(abs(one), abs(other)), absolute) * (1 + 1e-9)


def exactly(number: float) -> Fraction:
    """A number from a file or a setting as the decimal that was written, so that 0.9 means nine tenths."""
    return Fraction(repr(number))
