"""From a YAML document to a frozen model, with problems in the words of whoever wrote the file."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from console.release.errors import InputError, Problem, shown, suggestion
from console.release.yaml_reading import Document, Location

Scalar = bool | int | float | str
"""What a recipe value or an override may be."""

M = TypeVar("M", bound="Input")
T = TypeVar("T")


class Input(BaseModel):
    """Base of everything that is read from a file: frozen, no conversions, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


class Tolerant(Input):
    """The same for files that belong to other tools too: their keys are passed over."""

    model_config = ConfigDict(extra="ignore")


def refusal(expected: str, advice: str = "") -> PydanticCustomError:
    """An error for validators to raise; it becomes a `Problem` of the field."""
    # The context travels beside the template: the words may hold braces.
    return PydanticCustomError("input", "not what was expected", {"expected": expected, "advice": advice})


def complaint(
    check: Callable[[T], object], value: T, file: str, field: str, line: int | None = None, advice: str = ""
) -> Problem | None:
    """Run a check that raises `refusal`s on one value.

    Args:
        check: The check.
        value: The value.
        file: File of the value, for the problem.
        field: Its field.
        line: Its line.
        advice: What to do where the check does not say.

    Returns:
        The problem; None where there is none.
    """
    try:
        check(value)
    except PydanticCustomError as error:
        context = error.context or {}
        return Problem(file, field, context["expected"], shown(value), context["advice"] or advice, line)
    return None


def validate(model: type[M], document: Document, location: Location = ()) -> M:
    """Build a model from a document, or from the mapping at a place in it.

    Args:
        model: The model.
        document: The document.
        location: Where in it the mapping stands.

    Raises:
        InputError: With every problem that was found.
    """
    data: Any = document.data
    for part in location:
        data = data[part]
    try:
        return model.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        problems = [_problem(model, document, location, item) for item in errors if not _follows(item, errors)]
        raise InputError(*problems) from None


def _follows(error: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """True for a list that is only too short because what stands in it is wrong."""
    place = error["loc"]
    return error["type"] == "too_short" and any(item["loc"][: len(place)] == place != item["loc"] for item in errors)


def _problem(model: type[BaseModel], document: Document, base: Location, error: ErrorDetails) -> Problem:
    inner = tuple(part for part in error["loc"] if part != "[key]")
    place = (*base, *inner)
    context: Mapping[str, Any] = error.get("ctx") or {}
    # What is wrong with a key is found in the key, not in the value at its place.
    found = shown(error["input"], document.sources.get(place) if inner == error["loc"] else None)
    kind = error["type"]
    if kind == "extra_forbidden":
        known = _keys(model, inner[:-1])
        # A key may itself be spelt like the mark for keys, so there may be nothing left of its place.
        word = str(error["loc"][-1])
        return document.problem(place, "a key that is known here", f'"{word}"', suggestion(word, known))
    if kind == "missing":
        return document.problem(place, _described(model, inner), "nothing", "add this key")
    if kind == "input":
        return document.problem(place, context["expected"], found, context["advice"])
    expected, advice = _WORDS.get(kind, ""), ""
    if kind == "string_type" and isinstance(error["input"], bool | int | float):
        advice = "put it in quotes"
    if kind == "literal_error":
        expected = str(context["expected"]).replace("'", "")
        words = re.split(r", | or ", expected)
        if isinstance(error["input"], str) and not (advice := suggestion(error["input"], words)).startswith("did"):
            advice = ""
    if kind in _LIMITS:
        word, key = _LIMITS[kind]
        expected = f"a number {word} {context[key]}"
    if kind == "too_short":
        expected = f"at least {context['min_length']} in it"
    return document.problem(place, expected or error["msg"], found, advice)


_WORDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value lines)",
    "mapping_type": "a mapping (key: value lines)",
    "model_type": "a mapping (key: value lines)",
    "list_type": "a list",
    "tuple_type": "a list",
}
_LIMITS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("of at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("of at most", "le"),
}


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The model of a nested field, None where the place is a free mapping."""
    found: type[BaseModel] | None = model
    for part in location:
        if isinstance(part, str):
            info = found.model_fields.get(part) if found is not None else None
            found = None if info is None else _model_in(info.annotation)
    return found


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for item in get_args(annotation) if (found := _model_in(item)) is not None), None)


def _keys(model: type[BaseModel], location: Location) -> tuple[str, ...]:
    found = _model_at(model, location)
    return () if found is None else tuple(found.model_fields)


def _described(model: type[BaseModel], location: Location) -> str:
    """What a missing field should hold: its description."""
    found = _model_at(model, location[:-1])
    info = None if found is None else found.model_fields.get(str(location[-1]))
    return (info.description if info is not None else None) or "a value"


def visible(value: str) -> str:
    """Refuse line ends, control and format characters: no name, path, word or number holds any."""
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise refusal("text without control characters", f"delete U+{ord(character):04X}")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise refusal("text that is not empty")
    return visible(value)


def _name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        advice = "use letters, digits, dots, dashes and underscores; begin with a letter or digit"
        raise refusal("a name of at most 64 plain characters", advice)
    return value


def cluster_path(value: str) -> str:
    """Check and normalise an absolute path on a cluster."""
    _text(value)
    if not value.startswith("/"):
        advice = "write it out, ~ is not expanded on the cluster" if value.startswith("~") else ""
        raise refusal("an absolute path on the cluster (/...)", advice)
    if ".." in value.split("/"):
        raise refusal("a path without ..")
    if "%" in value or "\\" in value:
        raise refusal("a path without % and \\", "Slurm takes them for patterns in the names of output files")
    normal = "/" + posixpath.normpath(value).lstrip("/")
    if normal == "/":
        raise refusal("a folder below /")
    return normal


def _local(value: str) -> str:
    _text(value)
    try:
        path = Path(value).expanduser()
    except RuntimeError:
        raise refusal("a path on this machine", "~ cannot be expanded: there is no such home folder") from None
    if not path.is_absolute():
        raise refusal("an absolute path on this machine (/... or ~/...)")
    return str(path)


Text = Annotated[str, AfterValidator(_text)]
"""One line of visible text."""

Name = Annotated[str, AfterValidator(_name)]
"""A word that can be a folder's name on any system."""

ClusterPath = Annotated[str, AfterValidator(cluster_path)]
"""An absolute path on the cluster, normalised, without `..`."""

LocalPath = Annotated[str, AfterValidator(_local)]
"""An absolute path on this machine, `~` expanded."""
