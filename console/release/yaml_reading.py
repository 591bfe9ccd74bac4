"""Strict reading of the small YAML files that people write: release, clusters, recipe.

Only mappings, lists, text, numbers, true, false and null come out, with the line of every field. Duplicate keys,
keys that are not text, tags of other types, second documents and oversized files are refused. Words that the
YAML 1.1 rules of most tools turn into something else are handled where it hurts: `12:30:00`, `2026-08-21` and
`0755` stay text (never a sexagesimal number, a date or an octal number), `1e-4` is a number; `no` and `on` are
booleans as everywhere, but the way they were written is kept, so that a message can say so.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.reader import ReaderError

from console.release.errors import InputError, Problem, shown

MAX_BYTES = 1 << 20
"""Largest file that is read. Hand-written files are far below it."""

MAX_NODES = 20_000
"""Most values that a file may hold after its aliases are followed: a bomb of nested aliases ends here."""

MAX_DEPTH = 50
"""Deepest nesting of mappings and lists."""

Location = tuple[str | int, ...]
"""Keys and list indices from the top of a file to a field."""


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML mapping and where its fields stand.

    Attributes:
        file: The file, for messages.
        data: The mapping: plain dicts with text keys, lists, str, bool, int, float, None.
        lines: Line of each field, from 1.
        sources: How each unquoted scalar is written.
    """

    file: str
    data: dict[str, Any]
    lines: Mapping[Location, int] = field(default_factory=dict)
    sources: Mapping[Location, str] = field(default_factory=dict)

    def line(self, location: Location) -> int | None:
        """Line of a field, or of the nearest field around it; None where only the whole file is around it."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines[location] if location else None

    def problem(self, location: Location, expected: str, found: str = "", advice: str = "") -> Problem:
        """A problem with one field of this document."""
        return Problem(self.file, field_name(location), expected, found, advice, self.line(location))


def field_name(location: Location) -> str:
    """A location as people write it: `tasks[2].environment.NAME`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(path: Path, what: str) -> Document:
    """Read a YAML file that must hold one mapping.

    Args:
        path: The file.
        what: What the file is, for messages about all of it ("release file").

    Raises:
        InputError: When it is missing, unreadable, too large, no YAML, or no mapping; every problem in one go.
    """
    return parse_document(read_text(path, what), str(path), what)


def read_text(path: Path, what: str) -> str:
    """Read a regular file of at most MAX_BYTES as UTF-8 text.

    Raises:
        InputError: When that is not possible.
    """
    data = read_file(path, what, MAX_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Problem(str(path), what, "UTF-8 text", "other bytes", "save it as UTF-8", line)) from None


def read_file(path: Path, what: str, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises:
        InputError: When that is not possible.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise InputError(Problem(str(path), what, "a file", kind, "name the file itself"))
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(Problem(str(path), what, "a file", "nothing at this path", "check the path")) from None
    except (OSError, ValueError) as error:
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise InputError(Problem(str(path), what, "a readable file", f"an error ({why})")) from None
    if len(data) > limit:
        raise InputError(Problem(str(path), what, f"at most {limit} bytes", "more", "is it the right file?"))
    return data


def parse_document(text: str, file: str, what: str) -> Document:
    """Parse YAML text that must hold one mapping.

    Args:
        text: The YAML text.
        file: Name of the file, for messages.
        what: What the file is, for messages about all of it.

    Raises:
        InputError: As `read_document`.
    """
    node = _compose(text, file, what)
    if node is None:
        raise InputError(Problem(file, what, "a mapping (key: value lines)", "an empty file"))
    reader = _Reader(file, what)
    try:
        data = reader.value(node, ())
    except _TooMuch as error:
        reader.problems.append(Problem(file, what, str(error), "more", "write it out more simply"))
        data = None
    if not reader.problems and not isinstance(data, dict):
        kind = shown(data, getattr(node, "value", None) if isinstance(node, yaml.ScalarNode) else None)
        reader.problems.append(Problem(file, what, "a mapping (key: value lines)", kind))
    if reader.problems:
        raise InputError(*reader.problems)
    return Document(file, data, reader.lines, reader.sources)


class _TooMuch(Exception):
    """A limit was passed; the text says which."""


class _Budget:
    """Counts values and nesting against the limits."""

    def __init__(self) -> None:
        self._count = 0
        self._depth = 0

    def __enter__(self) -> None:
        self._count += 1
        self._depth += 1
        if self._count > MAX_NODES:
            raise _TooMuch(f"at most {MAX_NODES} values, each use of an alias counted")
        if self._depth > MAX_DEPTH:
            raise _TooMuch(f"at most {MAX_DEPTH} levels of nesting")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


class _Loader(yaml.SafeLoader):
    """Composes nodes only; scalars are resolved by the rules below instead of YAML 1.1's."""

    # Empty on purpose: the resolvers of SafeLoader are class state that would be shared.
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._budget = _Budget()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose one node, within the limits."""
        with self._budget:
            return super().compose_node(parent, index)


def _resolver(name: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), list(first))


_resolver("bool", r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$", "yYnNtTfFoO")
_resolver("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789")
_resolver("float", r"^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789")
_resolver("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+.")
_resolver("null", r"^(?:~|null|Null|NULL)$", "~nN")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])
_resolver("merge", r"^<<$", "<")

_MERGE = "tag:yaml.org,2002:merge"


def _compose(text: str, file: str, what: str) -> yaml.Node | None:
    """The node tree of the only document, or None where there is none."""
    try:
        loader = _Loader(text)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
        return node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        if "single document" in said:
            raise InputError(Problem(file, what, "one YAML document", 'a second one after "---"', line=line)) from None
        raise InputError(Problem(file, what, "valid YAML", f"an error ({said})", line=line)) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"the control character U+{int(error.character):04X}"
        raise InputError(Problem(file, what, "printable characters", found, "delete it", line)) from None
    except _TooMuch as error:
        raise InputError(Problem(file, what, str(error), "more", "write it out more simply")) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # An escape like "\UFFFFFFFF" ends in a ValueError inside the scanner.
        raise InputError(Problem(file, what, "valid YAML", f"an error ({error})")) from None


class _Reader:
    """Turns nodes into plain values, noting lines, sources and problems on the way."""

    def __init__(self, file: str, what: str) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[Location, int] = {}
        self.sources: dict[Location, str] = {}
        self._file = file
        self._what = what
        self._budget = _Budget()

    def value(self, node: yaml.Node, location: Location) -> Any:
        """The value of a node; problems are collected, and stand-ins returned for them."""
        with self._budget:
            self.lines.setdefault(location, node.start_mark.line + 1)
            if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
                return self._mapping(node, location)
            if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
                return [self.value(item, (*location, index)) for index, item in enumerate(node.value)]
            if isinstance(node, yaml.ScalarNode):
                return self._scalar(node, location)
            return self._tagged(node, location)

    def _mapping(self, node: yaml.MappingNode, location: Location) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key_node, value_node in reversed(node.value):
            if key_node.tag == _MERGE:
                merged.update(self._merge(value_node, location))
        own: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = None if key_node.tag == _MERGE else self._key(key_node, location, line)
            if key is None:
                continue
            place = (*location, key)
            if key in first:
                found = f"it again (first in line {first[key]})"
                self._problem(place, "the key once", found, "delete one of them", line)
                continue
            first[key] = line
            if key in merged:
                self._forget(place)
            self.lines[place] = line
            own[key] = self.value(value_node, place)
        return {**merged, **own}

    def _forget(self, place: Location) -> None:
        """Drop what a merged mapping noted at and below a key that stands here itself."""
        self.lines = {known: line for known, line in self.lines.items() if known[: len(place)] != place}
        self.sources = {known: text for known, text in self.sources.items() if known[: len(place)] != place}

    def _merge(self, node: yaml.Node, location: Location) -> dict[str, Any]:
        """What a `<<` key brings in; of several mappings the first wins."""
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(item, yaml.MappingNode) for item in nodes):
            line = node.start_mark.line + 1
            self._problem((*location, "<<"), "a mapping to merge, or a list of them", "something else", "", line)
            return {}
        merged: dict[str, Any] = {}
        for item in reversed(nodes):
            merged.update(self.value(item, location) or {})
        return merged

    def _problem(self, location: Location, expected: str, found: str, advice: str, line: int) -> None:
        name = field_name(location) or self._what
        self.problems.append(Problem(self._file, name, expected, found, advice, line))

    def _key(self, node: yaml.Node, location: Location, line: int) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str":
            return str(node.value)
        found, advice = "a list or mapping", ""
        if isinstance(node, yaml.ScalarNode):
            found, advice = shown(self._scalar(node, location), node.value), "put the key in quotes"
        self._problem(location, "text as a key", found, advice, line)
        return None

    def _scalar(self, node: yaml.ScalarNode, location: Location) -> Any:
        text: str = node.value
        if node.style is None:
            self.sources[location] = text
        read = _SCALARS.get(node.tag)
        if read is None:
            return self._tagged(node, location)
        try:
            return read(text)
        except (ValueError, KeyError):
            tag = node.tag.replace("tag:yaml.org,2002:", "")
            self._problem(location, f"a sensible {tag}", shown(text), "", node.start_mark.line + 1)
            return None

    def _tagged(self, node: yaml.Node, location: Location) -> None:
        found = f"the tag {node.tag.replace('tag:yaml.org,2002:', '!!')}"
        expected = "plain text, a number, a list or a mapping"
        self._problem(location, expected, found, "leave the tag (!...) out", node.start_mark.line + 1)


def _float(text: str) -> float:
    """A float in any of YAML's spellings, `.inf` and `.nan` among them."""
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


_BOOLEANS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_NULLS = {"": None, "~": None, "null": None}
_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:str": str,
    _MERGE: str,
    "tag:yaml.org,2002:null": lambda text: _NULLS[text.lower()],
    "tag:yaml.org,2002:bool": lambda text: _BOOLEANS[text.lower()],
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": _float,
}
