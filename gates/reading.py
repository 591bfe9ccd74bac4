"""Strict JSON from bytes: either one whole object without surprises, or the reason why not. Never raises.

Python's own parser is lenient where a gate must not be: it takes `NaN` and `Infinity`, turns `1e999` into infinity,
lets the last of two equal keys win, and raises on very long integers and on deep nesting. Here

* a document that cannot be taken as one JSON object is `Unread`, with the reason (`Fault`) and where;
* a number that no comparison may trust (`NaN`, `Infinity`, `1e999`, an integer of thousands of digits) becomes an
  `Unusable` in the tree and is listed with its path (`arms.B.points[0].duration_s`), so that a gate can name it
  and still look at everything else.

Almost every file is clean, so that is what is fast: one pass of the C parser with two hooks. Paths are found in a
second, slower pass, only when something was odd.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

MAX_BYTES = 64 * 1024 * 1024
"""A result file larger than this is not one."""

BOM = b"\xef\xbb\xbf"
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_HALF_NUMBER = re.compile(r"\.|[eE][+-]?")
_HALF_ESCAPE = re.compile(r"\\?u?[0-9a-fA-F]{0,4}")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,79}")
_NUMBERS = frozenset({int, float})
_SHOWN = 80


class Fault(StrEnum):
    """Why bytes are not one strict JSON object."""

    MISSING = "missing"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    TRAILING = "trailing text"
    ENCODING = "not UTF-8"
    BOM = "byte-order mark"
    DUPLICATE = "duplicate key"
    DEPTH = "nested too deeply"
    SIZE = "too large"
    SYNTAX = "not JSON"
    NOT_OBJECT = "not an object"


@dataclass(frozen=True, slots=True)
class ResultBytes:
    """A result file as a gate gets it.

    Attributes:
        name: What to call it in checks, usually its file name.
        data: Its bytes; None where there is no such file.
        why: Why there are no bytes, in words, where that is known ("Permission denied").
    """

    name: str
    data: bytes | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """Bytes that cannot be taken as one strict JSON object.

    Attributes:
        fault: The kind of trouble.
        why: One line for people, with the place.
    """

    fault: Fault
    why: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """Stands in the tree for a number that no comparison may trust; `text` is how the file wrote it (cut)."""

    text: str


class Oddity(NamedTuple):
    """Where an `Unusable` is: path of the field and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One strict JSON object.

    Attributes:
        root: The object: str, int, float, bool, None, list and dict, and `Unusable` where a number was one.
        unusable: Every `Unusable` in it, in the order of the document.
    """

    root: dict[str, Any]
    unusable: tuple[Oddity, ...] = ()


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys, before anything is thrown away."""


class _OddError(Exception):
    """Ends the fast pass: something needs the slow one."""


def read_json(data: bytes | None, *, allow_bom: bool = False, limit: int = MAX_BYTES) -> Document | Unread:
    """Read one JSON object, strictly.

    Args:
        data: The file's bytes; None where there is no file.
        allow_bom: Whether a UTF-8 byte-order mark may come first. JSON has none (RFC 8259, section 8.1), but some
            producers write one.
        limit: Largest size taken, in bytes.

    Returns:
        The document, or why it cannot be read. Never raises, whatever the bytes are.
    """
    text = _text(data, allow_bom, limit)
    if isinstance(text, Unread):
        return text
    try:
        root = json.loads(text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        return _syntax(error, text)
    except RecursionError:
        return Unread(Fault.DEPTH, "objects and lists are nested too deeply")
    except (_OddError, ValueError):  # ValueError: an integer of more digits than Python converts
        return _slowly(text)
    return Document(root) if isinstance(root, dict) else _not_object(root)


def step(path: str, key: str | int) -> str:
    """The path of a part: `arms.B.points[0]`; a key that is not a plain word is quoted (`files["a b"]`)."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(_cut(key))}]"
    return f"{path}.{key}" if path else key


def _text(data: bytes | None, allow_bom: bool, limit: int) -> str | Unread:
    if data is None:
        return Unread(Fault.MISSING, "there is no such file")
    if len(data) > limit:
        return Unread(Fault.SIZE, f"{len(data)} bytes, more than the {limit} of a result file")
    if data.startswith(BOM):
        if not allow_bom:
            return Unread(Fault.BOM, "begins with a byte-order mark; write UTF-8 without one")
        data = data[len(BOM) :]
    if not data.strip(b" \t\r\n\x00"):
        return Unread(Fault.EMPTY, f"holds nothing ({len(data)} bytes)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return Unread(Fault.TRUNCATED, f"ends in the middle of a character, after {error.start} bytes")
        return Unread(Fault.ENCODING, f"byte {error.start} is not UTF-8")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _OddError
    return made


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _OddError
    return number


def _refuse(text: str) -> None:
    raise _OddError


def _syntax(error: json.JSONDecodeError, text: str) -> Unread:
    if error.msg == "Extra data":
        return Unread(Fault.TRAILING, f"more text follows the document at character {error.pos}")
    if _ends_there(error, text):
        return Unread(Fault.TRUNCATED, f"ends in the middle of the document, after {len(text)} characters")
    return Unread(Fault.SYNTAX, f"{error.msg} at character {error.pos} (line {error.lineno})")


def _ends_there(error: json.JSONDecodeError, text: str) -> bool:
    """Whether the only trouble is that the text stops: what is there could be the beginning of good JSON."""
    if error.msg.startswith("Unterminated string"):
        return True
    rest = text[error.pos :].strip(" \t\r\n")
    if error.msg.startswith("Invalid \\u"):
        return bool(_HALF_ESCAPE.fullmatch(rest))
    return any(literal.startswith(rest) for literal in _LITERALS) or bool(_HALF_NUMBER.fullmatch(rest))


def _slowly(text: str) -> Document | Unread:
    """Read again, keeping every key and every odd number, to say where they are."""
    keeping: dict[str, Any] = {
        "object_pairs_hook": _Pairs,
        "parse_float": _float_or_odd,
        "parse_constant": Unusable,
    }
    try:
        try:
            tree = json.loads(text, **keeping)
        except json.JSONDecodeError:
            raise
        except ValueError:  # an integer of more digits than Python converts; to look at each of them costs most
            tree = json.loads(text, parse_int=_int_or_odd, **keeping)
    except json.JSONDecodeError as error:
        return _syntax(error, text)
    except RecursionError:
        return Unread(Fault.DEPTH, "objects and lists are nested too deeply")
    holder: dict[str, Any] = {}
    unusable: list[Oddity] = []
    for path, value in _unfold(tree, holder):
        if value is None:
            return Unread(Fault.DUPLICATE, f"{path} is there twice")
        unusable.append(Oddity(path, value.text))
    root = holder[""]
    return Document(root, tuple(unusable)) if isinstance(root, dict) else _not_object(root)


def _float_or_odd(text: str) -> float | Unusable:
    number = float(text)
    return Unusable(_cut(text)) if math.isinf(number) else number


def _int_or_odd(text: str) -> int | Unusable:
    try:
        return int(text)
    except ValueError:
        return Unusable(_cut(text))


def _unfold(tree: Any, holder: dict[str, Any]) -> Iterator[tuple[str, Unusable | None]]:
    """Turn pairs into dicts, without recursion; yields every odd number, and None for a key that comes twice."""
    waiting: list[tuple[str, Any, Any, Any]] = [("", tree, holder, "")]
    while waiting:
        path, value, box, key = waiting.pop()
        inside: Any
        if isinstance(value, _Pairs):
            inside = box[key] = {}
            for name, item in value:
                if name in inside:
                    yield step(path, name), None
                inside[name] = item
            # Most values are plain ones, which stay as they are: no path is made for them.
            waiting += [(step(path, name), item, inside, name) for name, item in reversed(value) if _deep(item)]
        elif isinstance(value, list):
            inside = box[key] = value
            if not _NUMBERS.issuperset(map(type, value)):
                places = reversed(range(len(value)))
                waiting += [(step(path, i), value[i], inside, i) for i in places if _deep(value[i])]
        else:
            box[key] = value
            if isinstance(value, Unusable):
                yield path, value


def _deep(value: object) -> bool:
    return isinstance(value, list | Unusable)  # objects are lists of pairs here


def _not_object(root: object) -> Unread:
    return Unread(Fault.NOT_OBJECT, f"holds {kind_of(root)}, not an object")


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Unusable):
        return _cut(value.text)
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return f"a list of {len(value)}" if isinstance(value, list) else "an object"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
