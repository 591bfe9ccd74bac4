"""What a gate is told to expect: identities of the run, and thresholds, each described once.

Every gate has one frozen dataclass of settings. Its fields say what kind of value they take, what it means, and
between which bounds a threshold must lie, so that the conductor's mapping, the options of the command and the
documentation all come from the same place.

A threshold that lies at or outside its bounds can never fail, or never pass: it is refused, and so is a value that is
null, since whoever asks a gate to compare with something must know it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, TypeVar

from gates.record import LARGEST, Sheet, is_count, is_number
from gates.verdict import FailureClass

FILE: Final = "expectations"
"""What checks about settings name as their file."""

SHA256: Final = re.compile(r"[0-9a-f]{64}")
_COUNTS: Final = re.compile(r"[0-9]{1,15}(\s*,\s*[0-9]{1,15})*")


class Kind(StrEnum):
    """What kind of value a setting takes."""

    TEXT = "text"
    REVISION = "text, empty where none is pinned"
    PATH = "path"
    DIGEST = "64 hexadecimal digits"
    COUNT = "whole number >= 1"
    NUMBER = "number"
    COUNTS = "whole numbers >= 1, separated by commas"


@dataclass(frozen=True, slots=True)
class Described:
    """What is known about a setting.

    Attributes:
        kind: What it takes.
        about: One line for people.
        floor: A threshold must be greater; None where there is no bound.
        ceiling: A threshold must be smaller; None where there is no bound.
    """

    kind: Kind
    about: str
    floor: float | None = None
    ceiling: float | None = None


def setting(
    kind: Kind, about: str, default: Any = None, *, floor: float | None = None, ceiling: float | None = None
) -> Any:
    """A field of a dataclass of settings; without a default nothing is compared unless a value is given."""
    return field(default=default, metadata={"described": Described(kind, about, floor, ceiling)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What every gate can be told."""

    token: str | None = setting(Kind.TEXT, "token of the attempt that wrote the files")


def described(one: Field[Any]) -> Described:
    """What is known about a field of a dataclass of settings."""
    found: Described = one.metadata["described"]
    return found


_E = TypeVar("_E", bound=Expected)


def settle(kind: type[_E], given: Mapping[str, object], sheet: Sheet) -> _E | None:
    """Make settings from a mapping.

    Args:
        kind: The gate's dataclass of settings.
        given: Values by name. Lists and tuples of whole numbers, and their text form "1,8,32", are `COUNTS`.
        sheet: Where every setting that cannot be used is written down, as a USER_CONFIG_ERROR.

    Returns:
        The settings; None when any was refused, and then the sheet's inputs count as not readable.
    """
    known = {one.name: described(one) for one in fields(kind)}
    values: dict[str, Any] = {}
    refused = False
    for name, value in given.items():
        if name not in known:
            refused |= not _refuse(sheet, name, value, f"one of: {', '.join(sorted(known))}")
            continue
        settled = _settled(known[name], value)
        if settled is None:
            refused |= not _refuse(sheet, name, value, wanted(known[name]))
        else:
            values[name] = settled
    if refused:
        sheet.readable = False
        return None
    return kind(**values)


def wanted(what: Described) -> str:
    """What a setting takes, in words, with its bounds."""
    bounds = ((">", what.floor), ("<", what.ceiling))
    words = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
    return f"{what.kind} {words}".strip()


def parse(what: Described, text: str) -> object:
    """A setting's value from the text of a command line.

    Raises:
        ValueError: When the text is not of the setting's kind, or outside its bounds.
    """
    value: object = text
    if what.kind is Kind.NUMBER:
        value = float(text)
    elif what.kind is Kind.COUNT:
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) else None
    settled = _settled(what, value)
    if settled is None:
        raise ValueError(f"{text!r} is not a {wanted(what)}")
    return settled


def _refuse(sheet: Sheet, name: str, value: object, limit: str) -> bool:
    return sheet.check("setting", False, value, limit, file=FILE, field=name, cls=FailureClass.USER_CONFIG_ERROR)


def _settled(what: Described, value: object) -> Any:
    """The value as the dataclass holds it, None when it does not fit."""
    if what.kind is Kind.NUMBER:
        return value if _within(what, value) else None
    if what.kind is Kind.COUNT:
        return value if is_count(value) and value >= 1 else None
    if what.kind is Kind.COUNTS:
        return _counts(value)
    if not isinstance(value, str):
        return None
    if what.kind is Kind.DIGEST:
        return value if SHA256.fullmatch(value) else None
    return value if value or what.kind is Kind.REVISION else None


def _within(what: Described, value: object) -> bool:
    if not is_number(value):
        return False
    return (what.floor is None or value > what.floor) and (what.ceiling is None or value < what.ceiling)


def _counts(value: object) -> tuple[int, ...] | None:
    if isinstance(value, str) and _COUNTS.fullmatch(value.strip()):
        value = [int(part) for part in value.split(",")]
    if not isinstance(value, list | tuple) or not value:
        return None
    counts = tuple(value)
    fit = all(is_count(one) and one >= 1 for one in counts) and len(set(counts)) == len(counts)
    return counts if fit else None


def bar_below_ceiling(sheet: Sheet, name: str, bar: float, ceiling: float, what: str) -> None:
    """Check a bar whose ceiling only the file or another setting states."""
    if bar >= ceiling:
        sheet.check(
            "setting", False, bar, f"< {ceiling:g} ({what})", file=FILE, field=name, cls=FailureClass.USER_CONFIG_ERROR
        )
