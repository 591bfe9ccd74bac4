"""Fields of a foreign file with their types checked: a number of the right meaning, or nothing and the reason.

A reader asks `Fields` for what its producer writes. What is needed and not there, or there with another type, is a
`Problem`; all problems of a file are raised together as one `ResultError`, so that nobody ever gets half a record. What
is legal but strange is a `Remark` beside the record; one that is `unusable` says that the file states no measurement.

Types are never stretched: true is not a number, "5" is a number only where the producer is known to write numbers as
text, 5.0 is not a count, and what is not finite is not a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NoReturn, TypeVar

from gates.reading import ResultBytes, Unread, Unusable, kind_of, step
from gates.record import LARGEST, is_count, is_number
from gates.results.documents import Layout, Loaded, Part, join, load
from gates.results.meaning import Histogram, Meaning, Number, Series, Table

MOST_PROBLEMS: Final = 20
"""So many problems, and so many remarks on numbers that are not finite, are listed; more are counted."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,16}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,14}")
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a field cannot be used.

    Attributes:
        field: Path in the file; "" for the whole file.
        expected: What the producer writes there.
        found: What is there.
    """

    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something odd about a file that could be read.

    Attributes:
        field: Path in the file; "" for the whole file.
        text: What is odd, and what that means, in one line.
        unusable: Whether it keeps the numbers from being a measurement.
    """

    field: str
    text: str
    unusable: bool = False


class ResultError(Exception):
    """A file that is not what its reader takes. Nothing of it was handed on.

    Attributes:
        file: Name of the file.
        problems: What is wrong, at least one.
        unread: Whether it could not even be taken apart.
    """

    def __init__(self, file: str, problems: Sequence[Problem], *, unread: bool = False) -> None:
        self.file = file
        self.problems = tuple(problems)
        self.unread = unread
        super().__init__("; ".join(map(self._line, self.problems)))

    def _line(self, problem: Problem) -> str:
        place = f"{self.file}: {problem.field}" if problem.field else self.file
        return f"{place}: expected {problem.expected}; found {problem.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What every reader returns: the file's name, and what is odd about it.

    Attributes:
        file: Name of the file.
        remarks: What is odd.
    """

    WRITTEN_BY: ClassVar[str] = ""

    file: str
    remarks: tuple[Remark, ...]

    @property
    def usable(self) -> bool:
        """Whether the numbers are those of a measurement, as far as the file alone can tell."""
        return not any(remark.unusable for remark in self.remarks)


@dataclass(slots=True)
class Notes:
    """What was found wrong or odd in one file."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def problem(self, place: str, expected: str, found: str) -> None:
        """Write down what keeps the file from being used."""
        self.problems.append(Problem(place, expected, found))

    def remark(self, place: str, text: str, *, unusable: bool = False) -> None:
        """Write down what is odd."""
        self.remarks.append(Remark(place, text, unusable))

    def fault(self, place: str, text: str) -> None:
        """Write down what keeps the numbers from being a measurement."""
        self.remark(place, text, unusable=True)

    def refuse(self) -> NoReturn:
        """Raise the problems so far, of which there must be some.

        Raises:
            ResultError: Always.
        """
        if not self.problems:
            raise AssertionError("a needed field is missing and no problem was written down")
        listed = self.problems[:MOST_PROBLEMS]
        if more := len(self.problems) - len(listed):
            listed.append(Problem("", "no more problems", f"{more} more"))
        raise ResultError(self.file, listed)

    def close(self, parts: Sequence[Part] = ()) -> tuple[Remark, ...]:
        """End the reading; numbers that are not finite and were not asked for are remarked on.

        Raises:
            ResultError: When there was any problem.
        """
        if self.problems:
            self.refuse()
        others = [odd for part in parts for odd in part.unusable if odd.path not in self.named]
        for odd in others[:MOST_PROBLEMS]:
            self.remark(odd.path, f"{odd.text} is not a number; no reader uses this field")
        if len(others) > MOST_PROBLEMS:
            self.remark("", f"{len(others) - MOST_PROBLEMS} more numbers that are not finite, in unused fields")
        return tuple(self.remarks)


def open_file(file: ResultBytes, *layouts: Layout) -> tuple[Loaded, Notes]:
    """Take a file apart.

    Args:
        file: The file.
        layouts: Those that its producer writes.

    Raises:
        ResultError: When it cannot be read, or is laid out in another way.
    """
    loaded = load(file)
    expected = " or ".join(layouts)
    if isinstance(loaded, Unread):
        raise ResultError(file.name, [Problem("", expected, f"{loaded.fault}: {loaded.why}")], unread=True)
    if loaded.layout not in layouts:
        raise ResultError(file.name, [Problem("", expected, loaded.layout)])
    if not loaded.parts and loaded.layout is not Layout.TEXT:
        raise ResultError(file.name, [Problem("", expected, "an empty list")])
    return loaded, Notes(file.name)


def open_object(file: ResultBytes) -> tuple[Part, Fields]:
    """Take a file apart that must hold exactly one object."""
    loaded, notes = open_file(file, Layout.OBJECT)
    part = loaded.parts[0]
    return part, Fields(notes, part.path, part.root)


_Kind = TypeVar("_Kind")


def sure(value: _Kind | None) -> _Kind:
    """A needed field after `Notes.close`, which would have raised without it."""
    if value is None:
        raise AssertionError("a needed field is missing and no problem was written down")
    return value


@dataclass(frozen=True, slots=True)
class Fields:
    """An object inside a foreign file.

    Attributes:
        notes: Where problems and remarks are written down.
        path: Path of this object in the file.
        values: The object.
    """

    notes: Notes
    path: str
    values: dict[str, Any]

    def at(self, key: str) -> str:
        """Path in the file of one of the fields."""
        return join(self.path, step("", key))

    def has(self, key: str) -> bool:
        """Whether a field is there and is not null."""
        return self.values.get(key) is not None

    def number(
        self,
        key: str,
        meaning: Meaning,
        *,
        need: bool = False,
        low: float = 0.0,
        high: float = math.inf,
        as_text: bool = False,
        whole: bool = False,
    ) -> Number | None:
        """A number.

        Args:
            key: Its field.
            meaning: What it means when this producer writes it.
            need: Whether the file is of no use without it. Otherwise null and absent are None, and so is what is not
                finite, with a remark.
            low: Least value, as written.
            high: Largest value, as written.
            as_text: Whether this producer writes the number as text.
            whole: Whether it is a whole number.
        """
        if not self._there(key, _kind(whole, as_text), need):
            return None
        value = self._finite(key, self.values[key], need=need, as_text=as_text, whole=whole)
        if value is None:
            return None
        if not low <= value <= high:
            self.notes.problem(self.at(key), f"{_bounds(low, high)} ({meaning.name})", f"{value:g}")
            return None
        return Number(value, meaning, self.at(key))

    def count(self, key: str, meaning: Meaning, *, need: bool = False, low: int = 0) -> Number | None:
        """A whole number from `low` on."""
        return self.number(key, meaning, need=need, low=low, whole=True)

    def series(
        self,
        key: str,
        meaning: Meaning,
        *,
        need: bool = False,
        low: float = 0.0,
        high: float = math.inf,
        as_text: bool = False,
        whole: bool = False,
    ) -> Series | None:
        """A list of numbers, each as `number` takes it; None when one of them is not."""
        if not self._there(key, "a list of numbers", need):
            return None
        value = self.values[key]
        if not isinstance(value, list):
            self.notes.problem(self.at(key), "a list of numbers", _found(value))
            return None
        inside = Fields(self.notes, self.at(key), {})
        found = [inside._item(i, item, meaning, (low, high), as_text, whole, need) for i, item in enumerate(value)]
        good = tuple(item for item in found if item is not None)
        return Series(good, meaning, self.at(key)) if len(good) == len(found) else None

    def table(
        self, key: str, meaning: Meaning, *, need: bool = False, low: float = 0.0, high: float = math.inf
    ) -> Table | None:
        """An object of numbers by name; None when one of them is none."""
        inside = self.part(key, need=need)
        if inside is None:
            return None
        found = [(name, inside.number(name, meaning, need=need, low=low, high=high)) for name in inside.values]
        good = tuple((name, number.written) for name, number in found if number is not None)
        return Table(good, meaning, self.at(key)) if len(good) == len(found) else None

    def histogram(self, key: str, meaning: Meaning, *, need: bool = False) -> Histogram | None:
        """An object of counts whose keys are whole numbers, written as text as JSON must; None when one is not."""
        inside = self.part(key, need=need)
        if inside is None:
            return None
        counts: list[tuple[int, int]] = []
        for name in inside.values:
            if not _WHOLE.fullmatch(name):
                self.notes.problem(self.at(key), "whole numbers as keys", _found(name))
                continue
            count = inside.count(name, meaning, need=True)
            if count is not None:
                counts.append((int(name), int(count.written)))
        return Histogram(tuple(sorted(counts)), meaning, self.at(key)) if len(counts) == len(inside.values) else None

    def text(self, key: str, *, need: bool = False) -> str | None:
        """A text."""
        return self._typed(key, "text", need, lambda value: value if isinstance(value, str) else None)

    def flag(self, key: str, *, need: bool = False) -> bool | None:
        """True or false."""
        return self._typed(key, "true or false", need, lambda value: value if isinstance(value, bool) else None)

    def part(self, key: str, *, need: bool = False) -> Fields | None:
        """An object."""
        value = self._typed(key, "an object", need, lambda value: value if isinstance(value, dict) else None)
        return None if value is None else Fields(self.notes, self.at(key), value)

    def parts(self, key: str, *, need: bool = False) -> tuple[Fields, ...]:
        """A list of objects; those that are none are problems."""
        value = self._typed(key, "a list of objects", need, lambda value: value if isinstance(value, list) else None)
        return tuple(self._parts(key, value or []))

    def _parts(self, key: str, items: list[Any]) -> Iterator[Fields]:
        for number, item in enumerate(items):
            path = step(self.at(key), number)  # never a bare part, so `step` is enough
            if isinstance(item, dict):
                yield Fields(self.notes, path, item)
            else:
                self.notes.problem(path, "an object", _found(item))

    def _typed(self, key: str, what: str, need: bool, take: Callable[[Any], _Kind | None]) -> _Kind | None:
        if not self._there(key, what, need):
            return None
        value = take(self.values[key])
        if value is None:
            self.notes.problem(self.at(key), what, _found(self.values[key]))
        return value

    def _there(self, key: str, what: str, need: bool) -> bool:
        """Whether there is a value; null and absent are problems where it is needed."""
        if self.has(key):
            return True
        if need:
            self.notes.problem(self.at(key), what, "null" if key in self.values else "nothing")
        return False

    def _finite(self, key: str | int, value: Any, *, need: bool, as_text: bool, whole: bool) -> float | None:
        place = self.at(key) if isinstance(key, str) else step(self.path, key)
        what = _kind(whole, as_text)
        if isinstance(value, Unusable) or (as_text and isinstance(value, str) and _spoilt(value)):
            self.notes.named.add(place)
            shown = value.text if isinstance(value, Unusable) else value
            if need:
                self.notes.problem(place, what, shown)
            else:
                self.notes.fault(place, f"{shown} is not a number: what should be measured here was not")
            return None
        given = value
        if as_text:
            value = _parsed(value)
        if not (is_count(value) if whole else is_number(value)):
            large = isinstance(value, int | float) and abs(value) >= LARGEST
            self.notes.problem(place, f"{what} below {LARGEST:g}" if large else what, _found(given))
            return None
        number: float = value
        return number

    def _item(
        self,
        i: int,
        item: Any,
        meaning: Meaning,
        bounds: tuple[float, float],
        as_text: bool,
        whole: bool,
        need: bool,
    ) -> float | None:
        value = self._finite(i, item, need=need, as_text=as_text, whole=whole)
        if value is not None and not bounds[0] <= value <= bounds[1]:
            self.notes.problem(step(self.path, i), f"{_bounds(*bounds)} ({meaning.name})", f"{value:g}")
            return None
        return value


def _kind(whole: bool, as_text: bool) -> str:
    return "a whole number" if whole else "a number written as text" if as_text else "a number"


def _spoilt(text: str) -> bool:
    return text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity")


def _parsed(value: Any) -> Any:
    """A number that was written as text; anything else unchanged, but never a bare number."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        number = float(value)
        return number if math.isfinite(number) else value
    return None if is_number(value) else value


def _bounds(low: float, high: float) -> str:
    if high == math.inf:
        return f"at least {low:g}"
    return f"at most {high:g}" if low == -math.inf else f"from {low:g} to {high:g}"


def _found(value: Any) -> str:
    if isinstance(value, str):
        return f"text {value[:_SHOWN]!r}{'…' if len(value) > _SHOWN else ''}"
    return repr(value)[:_SHOWN] if isinstance(value, int | float) and not isinstance(value, bool) else kind_of(value)
