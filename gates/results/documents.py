"""From bytes to JSON objects, for files that hold them in other ways than one object to a file.

Tools append: a list that is read and written again, one object a line, or documents one after the other with nothing
but white space between. A dashboard's data is JSON behind `window.NAME =`. The splitting happens here; every object by
itself is then read by `gates.reading`, with all its strictness. What is legal for which producer is the readers'
business: they name the layouts that they take.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

from gates.reading import BOM, MAX_BYTES, Fault, Oddity, ResultBytes, Unread, read_json, step


class Layout(StrEnum):
    """How a file holds its objects."""

    OBJECT = "one JSON object"
    LIST = "a JSON list of objects"
    LINES = "one JSON object a line"
    SEQUENCE = "JSON objects one after the other"
    SCRIPT = "a JSON object in a script"
    TEXT = "text, not JSON"


_LFS_POINTER: Final = "version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Part:
    """One object of a file.

    Attributes:
        path: Where it is: "" for the only object, "[1]" for the second one of a list, "document 2" of a sequence.
        root: The object; numbers that no comparison may trust are `Unusable` in it.
        unusable: Where those are, by path in the file.
    """

    path: str
    root: dict[str, Any]
    unusable: tuple[Oddity, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file whose objects were read.

    Attributes:
        name: What to call the file.
        layout: How it holds its objects.
        parts: Its objects; none for text and for an empty list.
        script: Name that a script gives the object (`BENCHMARK_DATA`), else "".
        text: The whole text.
    """

    name: str
    layout: Layout
    parts: tuple[Part, ...]
    script: str
    text: str


_SPACE: Final = " \t\r\n"
_SCRIPT: Final = re.compile(r"\s*window\.([A-Za-z_$][A-Za-z0-9_$]{0,79})\s*=\s*")
_NUMBERED: Final = re.compile(r"document [0-9]+")
_BOUNDS: Final = json.JSONDecoder(parse_float=lambda _: 0, parse_int=lambda _: 0, parse_constant=lambda _: 0)


def load(file: ResultBytes) -> Loaded | Unread:
    """Read a file in whatever layout it is. Never raises.

    Returns:
        Its objects, or why there are none to be had. Text that does not begin like JSON is `Layout.TEXT`.
    """
    text = _text(file)
    if isinstance(text, Unread):
        return text
    script = ""
    start = 0
    layout = None
    if match := _SCRIPT.match(text):
        script, start, layout = match[1], match.end(), Layout.SCRIPT
    first = text[start:].lstrip(_SPACE)[:1]
    if first == "[":
        layout = layout or Layout.LIST
        found = _split_list(text, start)
    elif first == "{":
        found = _split_sequence(text, start, script=bool(script))
        if not isinstance(found, Unread):
            layout = layout or _layout_of(text, found)
    elif script:
        fault = Fault.SYNTAX if first else Fault.TRUNCATED
        return Unread(fault, f"no object stands behind window.{script} = at {_place(text, start)}")
    else:
        return Loaded(file.name, Layout.TEXT, (), script, text)
    if isinstance(found, Unread):
        return found
    assert layout is not None
    parts: list[Part] = []
    for number, (begin, end) in enumerate(found):
        path = _path(layout, number, len(found))
        document = read_json(text[begin:end].encode())
        if isinstance(document, Unread):
            return Unread(document.fault, f"{path}: {document.why}" if path else document.why)
        parts.append(_part(path, document.root, document.unusable))
    return Loaded(file.name, layout, tuple(parts), script, text)


def _path(layout: Layout, number: int, count: int) -> str:
    if layout is Layout.LIST:
        return step("", number)
    if layout in (Layout.LINES, Layout.SEQUENCE) or count > 1:
        return f"document {number + 1}"
    return ""


def _part(path: str, root: dict[str, Any], unusable: tuple[Oddity, ...]) -> Part:
    return Part(path, root, tuple(Oddity(join(path, odd.path), odd.text) for odd in unusable))


def join(path: str, inside: str) -> str:
    """The path in the file of a path inside a part."""
    if not path or not inside:
        return path or inside
    if _NUMBERED.fullmatch(path):
        return f"{path}: {inside}"
    return f"{path}{inside}" if inside.startswith("[") else f"{path}.{inside}"


def _text(file: ResultBytes) -> str | Unread:
    data = file.data
    if data is None:
        return Unread(Fault.MISSING, file.why or "there is no such file")
    if len(data) > MAX_BYTES:
        return Unread(Fault.SIZE, f"{len(data)} bytes, more than the {MAX_BYTES} of a result file")
    if data.startswith(BOM):
        return Unread(Fault.BOM, "begins with a byte-order mark, which none of the known tools writes")
    if not data.strip(b" \t\r\n\x00"):
        return Unread(Fault.EMPTY, f"holds nothing ({len(data)} bytes)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return Unread(Fault.TRUNCATED, f"ends in the middle of a character, after {error.start} bytes")
        return Unread(Fault.ENCODING, f"byte {error.start} is not UTF-8")


def _end_of(text: str, begin: int) -> int | Unread:
    """Where the value that begins here ends."""
    try:
        return _BOUNDS.raw_decode(text, begin)[1]
    except RecursionError:
        return Unread(Fault.DEPTH, "objects and lists are nested too deeply")
    except ValueError as error:
        rest = read_json(text[begin:].encode())  # says better what is wrong; its places count from `begin`
        fault = rest.fault if isinstance(rest, Unread) else Fault.SYNTAX
        if fault is Fault.TRUNCATED:
            return Unread(fault, f"ends in the middle of the document, after {len(text)} characters")
        return Unread(Fault.SYNTAX, f"not JSON at {_place(text, getattr(error, 'pos', begin))}")


def _place(text: str, position: int) -> str:
    return f"character {position} (line {text.count(chr(10), 0, position) + 1})"


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _split_sequence(text: str, begin: int, *, script: bool) -> list[tuple[int, int]] | Unread:
    found: list[tuple[int, int]] = []
    begin = _skip(text, begin)
    while begin < len(text):
        if script and found:
            if text[begin:].strip(_SPACE + ";"):
                return Unread(Fault.TRAILING, f"more text follows the object at {_place(text, begin)}")
            break
        if text[begin] != "{":
            return Unread(Fault.TRAILING, f"more text follows the document at {_place(text, begin)}")
        end = _end_of(text, begin)
        if isinstance(end, Unread):
            return end
        found.append((begin, end))
        begin = _skip(text, end)
    return found


def _split_list(text: str, begin: int) -> list[tuple[int, int]] | Unread:
    whole = _end_of(text, begin := _skip(text, begin))
    if isinstance(whole, Unread):
        return whole
    if text[whole:].strip(_SPACE):
        return Unread(Fault.TRAILING, f"more text follows the list at {_place(text, _skip(text, whole))}")
    found: list[tuple[int, int]] = []
    at = _skip(text, begin + 1)
    while text[at] != "]":
        end = _end_of(text, at)
        if isinstance(end, Unread):
            return end
        if text[at] != "{":
            return Unread(Fault.NOT_OBJECT, f"{step('', len(found))} is not an object")
        found.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _layout_of(text: str, found: list[tuple[int, int]]) -> Layout:
    if len(found) == 1:
        return Layout.OBJECT
    between = [text[one[1] : other[0]] for one, other in pairwise(found)]
    lines = all("\n" in gap for gap in between) and not any("\n" in text[begin:end] for begin, end in found)
    return Layout.LINES if lines else Layout.SEQUENCE


def stands_in(data: bytes | None) -> str:
    """What lies in the place of a result without being one, in words; "" where nothing can be said."""
    begin = (data or b"")[:1024].lstrip().decode("utf-8", "replace")
    if begin.startswith(_LFS_POINTER):
        return "a Git LFS pointer: the file itself was never fetched"
    if begin.startswith("<"):
        return "HTML or XML, perhaps an error page that was saved in place of the file"
    return ""
