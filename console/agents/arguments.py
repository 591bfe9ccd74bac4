"""What a tool takes: each field is described once, published as JSON Schema and read by the same description.

Whatever an agent sends is data of unknown origin. A field that is not exactly what its description says is refused
in one line that names it; nothing is trimmed, guessed or converted.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.release.errors import InputError, Problem, suggestion
from console.safe_text import cut

_CONTROL = frozenset({"Cc", "Cs"})
_UNSEEN = frozenset({"Cc", "Cs", "Cf", "Co", "Cn", "Zl", "Zp"})
_LONGEST_NAME = 60


def refuse(where: str, expected: str, found: str, advice: str = "") -> InputError:
    """One clear line about one field ("propose_job: script")."""
    file, _, field = where.partition(": ")
    return InputError(Problem(file, field or "arguments", expected, found, advice))


class Kind(ABC):
    """One kind of value."""

    about: str
    required: bool

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""

    @abstractmethod
    def read(self, value: Any, where: str) -> Any:
        """The value, checked.

        Raises:
            InputError: When it is not what the schema says.
        """

    @property
    @abstractmethod
    def default(self) -> Any:
        """The value where none is given."""


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Text.

    Attributes:
        about: What it is for, for the agent.
        most: So many bytes of UTF-8 at most.
        control: Control characters that it may hold; none makes it one line of visible characters.
        required: Whether it must be given, and not be blank.
    """

    about: str
    most: int
    control: str = ""
    required: bool = True

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema; the length counts characters there, so it is the looser of the two limits."""
        return {"type": "string", "description": self.about, "maxLength": self.most}

    def read(self, value: Any, where: str) -> str:
        """The text.

        Raises:
            InputError: When it is none, is too long, or holds what it may not.
        """
        text = _text(value, where, self.most, self.control, _CONTROL if self.control else _UNSEEN)
        if self.required and not text.strip():
            raise refuse(where, "text that says something", "nothing")
        return text

    @property
    def default(self) -> str:
        """Empty text."""
        return ""


@dataclass(frozen=True, slots=True)
class Words(Kind):
    """A list of words, each one argument of a command.

    Attributes:
        about: What it is for.
        most: So many words at most.
        longest: So many bytes in one word at most.
        required: Whether it must be given.
    """

    about: str
    most: int
    longest: int
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        word = {"type": "string", "maxLength": self.longest}
        return {"type": "array", "items": word, "maxItems": self.most, "description": self.about}

    def read(self, value: Any, where: str) -> tuple[str, ...]:
        """The words.

        Raises:
            InputError: When they are none, or one of them cannot be an argument.
        """
        if not isinstance(value, list):
            raise refuse(where, "a list of texts, one for each word", _shown(value))
        if len(value) > self.most:
            raise refuse(where, f"at most {self.most} words", f"{len(value)}")
        return tuple(_text(word, f"{where}[{number}]", self.longest) for number, word in enumerate(value))

    @property
    def default(self) -> tuple[str, ...]:
        """No words."""
        return ()


@dataclass(frozen=True, slots=True)
class Texts(Kind):
    """Texts by name.

    Attributes:
        about: What they are for.
        most: So many of them at most.
        longest: So many bytes in one of them at most.
        control: Control characters that they may hold.
    """

    about: str
    most: int
    longest: int
    control: str = ""
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        value = {"type": "string", "maxLength": self.longest}
        return {
            "type": "object", "additionalProperties": value, "maxProperties": self.most, "description": self.about,
        }  # fmt: skip

    def read(self, value: Any, where: str) -> dict[str, str]:
        """The texts; what their names may be is for the tool to say.

        Raises:
            InputError: When they are none, or one of them is too long or holds what it may not.
        """
        if not isinstance(value, dict):
            raise refuse(where, "an object of texts by name", _shown(value))
        if len(value) > self.most:
            raise refuse(where, f"at most {self.most} names", f"{len(value)}")
        return {
            _text(name, f"{where}: a name", 400): _text(
                text, f"{where}.{_name(name)}", self.longest, self.control, _CONTROL if self.control else _UNSEEN
            )
            for name, text in value.items()
        }

    @property
    def default(self) -> dict[str, str]:
        """None of them."""
        return {}


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A whole number.

    Attributes:
        about: What it is for.
        least: The smallest that it may be.
        most: The largest that it may be.
        usual: What it is where none is given.
    """

    about: str
    least: int
    most: int
    usual: int
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {
            "type": "integer", "minimum": self.least, "maximum": self.most, "default": self.usual,
            "description": self.about,
        }  # fmt: skip

    def read(self, value: Any, where: str) -> int:
        """The number.

        Raises:
            InputError: When it is none, or out of its range.
        """
        if type(value) is not int or not self.least <= value <= self.most:
            raise refuse(where, f"a whole number from {self.least} to {self.most}", _shown(value))
        return value

    @property
    def default(self) -> int:
        """What it is where none is given."""
        return self.usual


def schema(fields: Mapping[str, Kind]) -> dict[str, Any]:
    """JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {name: kind.schema() for name, kind in fields.items()},
        "required": [name for name, kind in fields.items() if kind.required],
        "additionalProperties": False,
    }


def read(tool: str, fields: Mapping[str, Kind], given: Any) -> dict[str, Any]:
    """The arguments of one call, every field checked.

    Args:
        tool: Name of the tool, for the error.
        fields: What it takes.
        given: What was sent.

    Raises:
        InputError: Naming the first field that is wrong, missing or unknown.
    """
    if not isinstance(given, dict):
        raise refuse(tool, "an object", _shown(given))
    for name in given:
        if name not in fields:
            known = suggestion(_name(name), fields) or "it takes none"
            raise refuse(f"{tool}: {_name(name)}", "an argument that this tool has", "another", known)
    found = {}
    for name, kind in fields.items():
        if name not in given and kind.required:
            raise refuse(f"{tool}: {name}", "a value", "nothing")
        found[name] = kind.read(given[name], f"{tool}: {name}") if name in given else kind.default
    return found


def _text(value: Any, where: str, most: int, control: str = "", never: frozenset[str] = _CONTROL) -> str:
    if not isinstance(value, str):
        raise refuse(where, "text", _shown(value))
    # Before it is encoded: a text of a gigabyte is refused for its length alone.
    if len(value) > most or len(value.encode("utf-8", "surrogatepass")) > most:
        raise refuse(where, f"at most {most} bytes", "more")
    if value.isascii() and value.isprintable():
        return value
    for place, character in enumerate(value):
        if character not in control and unicodedata.category(character) in never:
            allowed = " and line breaks" if "\n" in control else ""
            raise refuse(where, f"visible characters{allowed} only", f"{character} at {place}")
    return value


def _name(name: Any) -> str:
    """A name that was sent, for an error; the error makes it safe."""
    return cut(str(name), _LONGEST_NAME)


def _shown(value: Any) -> str:
    """What was sent instead, in a few words: never the whole of it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a number of many digits"
    if isinstance(value, int | float):
        return f"the number {value}"
    kinds = ((str, "text"), (list, "a list"), (dict, "an object"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "something else")
