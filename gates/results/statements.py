"""What a record states, one by one, for whoever prints it: every number with its unit, meaning and place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from gates.results.fields import Reading
from gates.results.meaning import Histogram, Meaning, Number, Series, Table

Stated = Number | Series | Table | Histogram

_BESIDE: Final = ("file", "remarks")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a file states.

    Attributes:
        name: Attribute of the record (`runs[0].average`).
        value: A number with its meaning, several of one meaning, or a text or flag; None is "not stated".
    """

    name: str
    value: Stated | str | bool | int | None


def statements(reading: Reading, ends: int | None = None) -> Iterator[Statement]:
    """Everything that a record states, in the order of its attributes.

    Args:
        reading: The record.
        ends: So many of the first and of the last are enough where there are many of a kind; None takes all.
    """
    for one in fields(reading):
        if one.name not in _BESIDE:
            yield from _inside(one.name, getattr(reading, one.name), ends)


def _inside(name: str, value: Any, ends: int | None) -> Iterator[Statement]:
    if isinstance(value, Number | Series | Table | Histogram | str | bool | int) or value is None:
        yield Statement(name, value)
    elif isinstance(value, tuple):
        left_out = range(0) if ends is None else range(ends, len(value) - ends)
        for number, item in enumerate(value):
            if number not in left_out:
                yield from _inside(f"{name}[{number}]", item, ends)
            elif number == left_out.start:
                yield Statement(name, f"{len(value)} of them, {len(left_out)} left out here")
    elif is_dataclass(value):
        for one in fields(value):
            yield from _inside(f"{name}.{one.name}", getattr(value, one.name), ends)
    else:
        raise AssertionError(f"{name} is {type(value).__name__}, which no record holds")


def to_json(statement: Statement) -> dict[str, Any]:
    """A statement as JSON has it."""
    value = statement.value
    if isinstance(value, Number):
        return {"name": statement.name, "value": value.value, "written": value.written, **_described(value)}
    if isinstance(value, Series):
        return {"name": statement.name, "values": list(value.values), **_described(value)}
    if isinstance(value, Table):
        return {"name": statement.name, "values": [list(pair) for pair in value.written], **_described(value)}
    if isinstance(value, Histogram):
        return {"name": statement.name, "counts": [list(pair) for pair in value.counts], **_described(value)}
    return {"name": statement.name, "value": value}


def _described(value: Stated) -> dict[str, Any]:
    meaning: Meaning = value.meaning
    return {
        "field": value.field,
        "unit": str(meaning.unit),
        "meaning": meaning.name,
        "formula": meaning.formula or None,
        "bonus_token": None if meaning.bonus is None else str(meaning.bonus),
        "scope": str(meaning.scope),
    }
