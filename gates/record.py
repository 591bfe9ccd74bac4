"""Fields of a result file, with their types checked, and the sheet on which a gate writes its checks.

A gate asks a `Record` for a field and gets a value of exactly that type, or None; for every None that is not allowed
there is a failing check on the sheet that names file and field. So a gate may simply leave out what it cannot
compare: the verdict has failed already.

Types are never stretched: true is not a number, "5" is not a number, 5.0 is not a count, and a number too large to be
one (10^15 and more) is refused, so that no arithmetic on what was read can overflow.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from gates.reading import ResultBytes, Unread, Unusable, kind_of, read_json, step
from gates.verdict import Check, FailureClass, Measured, Verdict, decide

LARGEST: Final = 10**15
"""No count, rate, size or time in a result file reaches this."""

MOST_ALIKE: Final = 20
"""So many failing checks of one name are listed one by one; more are counted."""

_SHOWN = 200
_ABSENT: Final = object()


class Sheet:
    """Collects the checks of one gate, in the order in which a reader wants them.

    Attributes:
        gate: Name of the gate.
        malformed: Class of a field that is missing or of a wrong type.
        checks: The checks so far.
        readable: False once a file could not be read at all.
    """

    def __init__(self, gate: str, malformed: FailureClass = FailureClass.MEASUREMENT_INVALID) -> None:
        self.gate = gate
        self.malformed = malformed
        self.checks: list[Check] = []
        self.readable = True
        self._facts: dict[str, Measured] = {}
        self._failed: Counter[str] = Counter()

    def open(
        self,
        result: ResultBytes,
        *,
        unread: FailureClass = FailureClass.RESULT_MISSING,
        unusable: FailureClass | None = None,
    ) -> Record | None:
        """Read a result file.

        Args:
            result: The file.
            unread: Class of a file that cannot be read.
            unusable: Class of a number that is not finite, anywhere in the file; None takes `malformed`.

        Returns:
            The whole document, None when it cannot be read (which is a failing check).
        """
        document = read_json(result.data)
        if isinstance(document, Unread):
            why = result.why if result.data is None and result.why else f"{document.fault}: {document.why}"
            self.check("readable", False, why, "one complete, strict JSON object", file=result.name, cls=unread)
            self.readable = False
            return None
        for odd in document.unusable:
            self.check("finite", False, odd.text, "a finite number", file=result.name, field=odd.path, cls=unusable)
        return Record(self, result.name, "", document.root)

    def check(
        self,
        name: str,
        ok: bool,
        measured: object,
        limit: str,
        *,
        unit: str = "",
        file: str = "",
        field: str = "",
        cls: FailureClass | None = None,
    ) -> bool:
        """Write down one comparison; returns `ok`. `cls` is the class that a failure stands for."""
        self._failed[name] += not ok
        if ok:
            self.checks.append(Check(name, ok, shown(measured), _one_line(limit), unit, file, field))
        elif self._failed[name] <= MOST_ALIKE:
            stands_for = cls or self.malformed
            self.checks.append(Check(name, ok, shown(measured), _one_line(limit), unit, file, field, stands_for))
        return ok

    def fact(self, name: str, value: object) -> None:
        """Keep a number worth showing; None is kept too."""
        self._facts[name] = shown(value)

    def verdict(self, default: FailureClass, precedence: Sequence[FailureClass] = ()) -> Verdict:
        """The verdict over everything that was written down."""
        for name, count in list(self._failed.items()):
            if count > MOST_ALIKE:
                alike = next(check for check in self.checks if check.name == name and not check.ok)
                words = f"no more that fail {name} than those listed"
                further = count - MOST_ALIKE
                self.check("further", False, further, words, unit="checks", file=alike.file, cls=alike.failure_class)
        return decide(
            self.gate,
            self.checks,
            default,
            facts=self._facts.items(),
            precedence=precedence,
            readable=self.readable,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """An object inside a result file.

    Attributes:
        sheet: Where failing fields are written down.
        file: Name of the file.
        path: Path of this object in the file, "" for the document.
        values: The object.
        cls: Class of its malformed fields; None takes the sheet's.
    """

    sheet: Sheet
    file: str
    path: str
    values: dict[str, Any]
    cls: FailureClass | None = None

    def classed(self, cls: FailureClass) -> Record:
        """The same object, whose malformed fields stand for another class."""
        return Record(self.sheet, self.file, self.path, self.values, cls)

    def at(self, key: str) -> str:
        """The path of a field."""
        return step(self.path, key)

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(key) is not None

    def check(
        self,
        name: str,
        ok: bool,
        measured: object,
        limit: str,
        field: str = "",
        *,
        unit: str = "",
        cls: FailureClass | None = None,
    ) -> bool:
        """Write down a comparison about one of this object's fields; returns `ok`."""
        where = self.at(field) if field else self.path
        return self.sheet.check(name, ok, measured, limit, unit=unit, file=self.file, field=where, cls=cls or self.cls)

    def text(self, key: str, *, optional: bool = False, empty: bool = False) -> str | None:
        """A text; `empty` allows the empty one, `optional` a field that is null or not there."""
        wanted = "text" if empty else "text that is not empty"
        found: str | None = self._field(
            key, wanted, optional, lambda value: isinstance(value, str) and (empty or value != "")
        )
        return found

    def label(self, key: str) -> str | None:
        """A name that some write as text and some as a whole number, as text."""
        found: str | int | None = self._field(
            key,
            "text or a whole number",
            False,
            lambda value: value != "" and (isinstance(value, str) or is_count(value)),
        )
        return None if found is None else str(found)

    def flag(self, key: str, *, optional: bool = False) -> bool | None:
        """True or false."""
        found: bool | None = self._field(key, "true or false", optional, lambda value: isinstance(value, bool))
        return found

    def integer(self, key: str, *, minimum: int = 0, optional: bool = False) -> int | None:
        """A whole number, at least `minimum` and below 10^15."""
        wanted = f"a whole number >= {minimum}"
        found: int | None = self._field(key, wanted, optional, lambda value: is_count(value) and value >= minimum)
        return found

    def number(
        self, key: str, *, minimum: float | None = None, above: float | None = None, optional: bool = False
    ) -> float | None:
        """A finite number, at least `minimum`, greater than `above`."""
        bounds = ((">=", minimum), (">", above))
        wanted = " ".join(["a finite number", *(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)])
        found: float | None = self._field(
            key,
            wanted,
            optional,
            lambda value: (
                is_number(value) and (minimum is None or value >= minimum) and (above is None or value > above)
            ),
        )
        return found

    def record(self, key: str, *, optional: bool = False) -> Record | None:
        """An object inside this one."""
        found: dict[str, Any] | None = self._field(key, "an object", optional, lambda value: isinstance(value, dict))
        return None if found is None else Record(self.sheet, self.file, self.at(key), found, self.cls)

    def records(self, key: str, *, empty: bool = False) -> tuple[Record, ...] | None:
        """A list of objects; None as soon as one item is something else."""
        items: list[Any] | None = self._list(key, empty, "a list of objects", lambda item: isinstance(item, dict))
        if items is None:
            return None
        path = self.at(key)
        return tuple(Record(self.sheet, self.file, f"{path}[{i}]", item, self.cls) for i, item in enumerate(items))

    def integers(self, key: str, *, empty: bool = False) -> tuple[int, ...] | None:
        """A list of whole numbers >= 0 and below 10^15; token ids and layer numbers are such lists."""
        items = self.values.get(key)
        # Token ids are most of what a result file holds: one look at the set of types instead of one at each item.
        if isinstance(items, list) and set(map(type, items)) == {int} and min(items) >= 0 and max(items) < LARGEST:
            return tuple(items)
        found = self._list(key, empty, "a list of whole numbers >= 0", lambda item: is_count(item) and item >= 0)
        return None if found is None else tuple(found)

    def numbers(self, key: str, *, empty: bool = False) -> tuple[float, ...] | None:
        """A list of finite numbers."""
        found = self._list(key, empty, "a list of finite numbers", is_number)
        return None if found is None else tuple(found)

    def texts(self, key: str, *, empty: bool = False) -> tuple[str, ...] | None:
        """A list of texts that are not empty."""
        found = self._list(
            key, empty, "a list of texts that are not empty", lambda item: isinstance(item, str) and item != ""
        )
        return None if found is None else tuple(found)

    def null(self, key: str, name: str, why: str) -> bool:
        """Check that the field is there and null."""
        value = self.values.get(key, _ABSENT)
        return self.check(name, value is None, "nothing" if value is _ABSENT else value, f"null ({why})", key)

    def malformed(self, key: str, wanted: str) -> None:
        """Write down that a field is missing or wrong."""
        value = self.values.get(key, _ABSENT)
        if isinstance(value, Unusable):
            return  # its own check names it already
        found = "nothing" if value is _ABSENT else _brief(value)
        self.sheet.check("field", False, found, wanted, file=self.file, field=self.at(key), cls=self.cls)

    def _field(self, key: str, wanted: str, optional: bool, fits: Callable[[Any], bool]) -> Any:
        value = self.values.get(key, _ABSENT)
        if optional and (value is _ABSENT or value is None):
            return None
        if fits(value):
            return value
        self.malformed(key, wanted)
        return None

    def _list(self, key: str, empty: bool, wanted: str, fits: Callable[[Any], bool]) -> list[Any] | None:
        value = self.values.get(key, _ABSENT)
        if not isinstance(value, list) or (not value and not empty):
            self.malformed(key, wanted if empty else f"{wanted}, not empty")
            return None
        wrong = [i for i, item in enumerate(value) if not fits(item)]
        for i in wrong:
            if not isinstance(value[i], Unusable):
                place = f"{self.at(key)}[{i}]"
                self.sheet.check("field", False, _brief(value[i]), wanted, file=self.file, field=place, cls=self.cls)
        return None if wrong else value


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number that a file may state (not true or false, not 5.0)."""
    return type(value) is int and -LARGEST < value < LARGEST


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number that a file may state (not true or false)."""
    if type(value) is float:
        return math.isfinite(value) and -LARGEST < value < LARGEST
    return is_count(value)


def shown(value: object) -> Measured:
    """A value as a check or a fact may hold it: JSON can write it, and it is not too long to read."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if is_count(value) else "a number too large"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        # JSON may hold half of a surrogate pair, which no file and no terminal can.
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple) and all(isinstance(item, int | float | str) for item in value):
        return shown(", ".join(map(str, value)))
    return kind_of(value)


def same_value(one: object, other: object) -> bool:
    """Whether two JSON values are the same, where 1, 1.0 and true are three different things."""
    try:
        return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)
    except RecursionError:
        return False


def _one_line(text: str) -> str:
    """A limit, which may repeat what a file says, as one line without control characters."""
    if not text.isprintable():
        text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _brief(value: object) -> str:
    """A wrong value in a few words: scalars as they are written, the rest by kind."""
    if isinstance(value, str):
        return f"text {json.dumps(value[:40])}"
    if isinstance(value, bool) or value is None:
        return kind_of(value)
    if isinstance(value, int | float):
        return f"{value}" if is_number(value) else "a number too large"
    return kind_of(value)
