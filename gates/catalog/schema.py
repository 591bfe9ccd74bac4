"""Checks JSON values against the part of JSON Schema (2020-12) that the shipped schema uses.

The schema is a file beside the gates, so that editors and other programs read the very rules by which a catalog is
read here. Types are taken more strictly than JSON Schema has to: 5.0 is not an integer, true is not a number, and a
number that is not finite, or too large for a gate, is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from gates.catalog.decimals import decimal
from gates.reading import Unusable, kind_of, step
from gates.record import is_count, is_number
from gates.results.fields import Problem

SCHEMA_FILE: Final = "threshold_catalog.schema.json"

_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "string": ("text", lambda value: isinstance(value, str)),
    "integer": ("a whole number", is_count),
    "number": ("a finite number", is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
}
_BOUNDS: Final[tuple[tuple[str, str, Callable[[Any, Any], bool]], ...]] = (
    ("minimum", ">=", lambda value, bound: value >= bound),
    ("maximum", "<=", lambda value, bound: value <= bound),
    ("exclusiveMinimum", ">", lambda value, bound: value > bound),
    ("exclusiveMaximum", "<", lambda value, bound: value < bound),
)
_KNOWN: Final = frozenset(
    {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "required"}
    | {"additionalProperties", "items", "minItems", "maxItems", "enum", "const", "pattern", "minLength", "maxLength"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)


@cache
def shipped() -> dict[str, Any]:
    """The schema of the catalog, as it is shipped."""
    from importlib.resources import files  # costs more than all the rest of the gates

    found: dict[str, Any] = json.loads(files("gates").joinpath(SCHEMA_FILE).read_text("utf-8"))
    return found


def problems(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "") -> Iterator[Problem]:
    """Everything in a value that the schema does not allow.

    Args:
        value: A JSON value, as `gates.reading` reads it.
        schema: The schema of this value.
        root: The whole schema, for `$ref`.
        path: Where the value is, for the problems.

    Raises:
        ValueError: When the schema uses a keyword that is not understood here; then nothing is taken as allowed.
    """
    if unknown := set(schema) - _KNOWN:
        raise ValueError(f"the schema uses {', '.join(sorted(unknown))}")
    if reference := schema.get("$ref"):
        yield from problems(value, root["$defs"][reference.removeprefix("#/$defs/")], root, path)
        return
    wanted = schema.get("type", [])
    types = [wanted] if isinstance(wanted, str) else wanted
    if types and not any(_TYPES[name][1](value) for name in types):
        yield Problem(path, " or ".join(_TYPES[name][0] for name in types), found(value))
        return
    if isinstance(value, dict):
        yield from _object(value, schema, root, path)
    elif isinstance(value, list):
        yield from _list(value, schema, root, path)
    else:
        yield from _scalar(value, schema, path)


def _object(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[Problem]:
    known = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield Problem(step(path, key), _wanted(known.get(key, {}), root), "nothing")
    others = schema.get("additionalProperties", {})
    for key, item in value.items():
        if key in known:
            yield from problems(item, known[key], root, step(path, key))
        elif others is False:
            yield Problem(step(path, key), f"one of the keys {', '.join(known)}", "another key")
        else:
            yield from problems(item, others, root, step(path, key))


def _list(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[Problem]:
    fewest, most = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < fewest or (most is not None and len(value) > most):
        yield Problem(path, f"at least {fewest} items" + (f", at most {most}" if most else ""), f"{len(value)}")
    for i, item in enumerate(value):
        yield from problems(item, schema.get("items", {}), root, step(path, i))


def _scalar(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if "const" in schema and not _equal(value, schema["const"]):
        yield Problem(path, json.dumps(schema["const"]), found(value))
    if "enum" in schema and not any(_equal(value, one) for one in schema["enum"]):
        yield Problem(path, " or ".join(map(json.dumps, schema["enum"])), found(value))
    if isinstance(value, str):
        shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
        if len(value) < shortest:
            yield Problem(path, "text that is not empty", "empty text")
        if longest is not None and len(value) > longest:
            yield Problem(path, f"at most {longest} characters", f"{len(value)}")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield Problem(path, schema.get("title", f"text like {schema['pattern']}"), found(value))
    if is_number(value):
        for key, sign, fits in _BOUNDS:
            if key in schema and not fits(decimal(value), decimal(schema[key])):
                yield Problem(path, f"a number {sign} {schema[key]:g}", found(value))


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _wanted(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if reference := schema.get("$ref"):
        schema = root["$defs"][reference.removeprefix("#/$defs/")]
    wanted = schema.get("type", "string")
    words = " or ".join(_TYPES[name][0] for name in ([wanted] if isinstance(wanted, str) else wanted))
    return f"{words} ({schema['title']})" if "title" in schema else words


def found(value: Any) -> str:
    """A value in a few words, for a message."""
    if isinstance(value, str):
        return json.dumps(value if len(value) <= 60 else value[:60] + "…")
    if isinstance(value, Unusable):
        return value.text
    return f"{value}" if is_number(value) else kind_of(value)
