"""Small valid files of each producer, made here; the numbers follow from one another as each producer computes them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from gates.reading import ResultBytes
from gates.results.fields import ResultError

LENGTHS = {1: 4, 2: 3, 4: 3}
"""Steps by emitted tokens; no step emitted three."""


def specdec_acceptance() -> list[dict[str, Any]]:
    steps = sum(LENGTHS.values())
    joint, conditional, before = {}, {}, 1.0
    for length in LENGTHS:
        share = sum(count for other, count in LENGTHS.items() if other >= length) / steps
        joint[str(length)], conditional[str(length)] = share, share / before
        before = share
    return [
        {
            "Request_AL": {"0": {"0": 2.0}, "1": {"0": 2.5, "1": 1.5}},
            "Average_AL": 2.0,
            "Acceptance_Length_Histogram": {str(length): count for length, count in LENGTHS.items()},
            "Conditional_Acceptance_Rate": conditional,
            "Joint_Acceptance_Rate": joint,
        }
    ]


def encode(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode()


def file(document: Any, name: str = "result.json") -> ResultBytes:
    """A file of a document, or of bytes as they are."""
    if isinstance(document, str):
        document = document.encode()
    return ResultBytes(name, document if isinstance(document, bytes) else encode(document))


Keys = tuple[str | int, ...]


def walk(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Every place in a document."""
    if keys:
        yield keys
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*keys, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from walk(item, (*keys, i))


def put(document: Any, keys: Keys, value: Any) -> Any:
    """A copy with one value put in place of another."""
    made = copy.deepcopy(document)
    box = made
    for key in keys[:-1]:
        box = box[key]
    box[keys[-1]] = value
    return made


def drop(document: Any, keys: Keys) -> Any:
    """A copy without one value."""
    made = copy.deepcopy(document)
    box = made
    for key in keys[:-1]:
        box = box[key]
    del box[keys[-1]]
    return made


def refusal(read: Callable[[ResultBytes], Any], document: Any) -> ResultError:
    """The error with which a reader refuses a document."""
    try:
        made = read(file(document))
    except ResultError as error:
        return error
    raise AssertionError(f"was read: {made}")
