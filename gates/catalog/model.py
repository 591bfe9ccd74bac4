"""A catalog of thresholds as records, read strictly: every problem of a file at once, and no half-read catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Any, Final

from gates.catalog import schema
from gates.reading import ResultBytes, Unread, read_json
from gates.results.fields import MOST_PROBLEMS, Problem, ResultError

CATALOG_FILE: Final = "threshold_catalog.json"

ACCEPTANCE: Final = ("acceptance_rate", "per_position", "acceptance_length")
"""Names of the bars that look at the drafter; `accuracy` looks at the answers."""


Key = tuple[str, str | None, int | None, int | None]
"""What tells entries apart: model, drafter, draft tokens, top-k."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, with where it comes from.

    Attributes:
        bars: The bar; for `per_position` one for each draft position, otherwise exactly one.
        source: Where it comes from, in words.
        date: Day on which somebody last decided on it.
        minimum: Smallest healthy values it was made from; empty where that is not known.
        margin: How far it lies below them; None where that is not known.
    """

    bars: tuple[float, ...]
    source: str
    date: str
    minimum: tuple[float, ...] = ()
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What an accuracy was measured on. None where the catalog leaves it open.

    Attributes:
        name: Name of the task ("gsm8k").
        rule: How an answer is read: "strict" or "flexible".
        samples: Number of questions.
        shots: Examples before each question.
    """

    name: str | None = None
    rule: str | None = None
    samples: int | None = None
    shots: int | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """How many measurements may be made, and how many of them have to pass."""

    runs: int = 1
    passes: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """What one model with one drafter has to reach.

    Attributes:
        model: Name by which it is asked for; must be met exactly.
        drafter: Name of the drafter or its method; None where there is none.
        draft_tokens: Draft tokens a step; None where that is not known. Rates fall with it.
        topk: Branches of a draft tree, 1 for a chain; None where that is not stated.
        bars: By name: "acceptance_rate", "acceptance_length", "per_position", "accuracy".
        task: What the accuracy is measured on.
        server: Settings that the server must report, by its own names for them.
        repeat: The repeat policy.
        path: Where the model lies; for people.
        note: For people.
    """

    model: str
    drafter: str | None
    draft_tokens: int | None = None
    topk: int | None = None
    bars: Mapping[str, Bar] = field(default_factory=dict)
    task: Task = field(default_factory=Task)
    server: Mapping[str, Any] = field(default_factory=dict)
    repeat: Repeat = field(default_factory=Repeat)
    path: str | None = None
    note: str | None = None

    @property
    def key(self) -> Key:
        """What tells entries apart."""
        return self.model, self.drafter, self.draft_tokens, self.topk

    @property
    def words(self) -> str:
        """The entry in words, for messages."""
        parts = [self.model, f"drafter {self.drafter}" if self.drafter is not None else "no drafter"]
        if self.draft_tokens is not None:
            parts.append(f"{self.draft_tokens} draft tokens")
        if self.topk is not None:
            parts.append(f"top-k {self.topk}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Bars that were given up on purpose.

    Attributes:
        key: The entry that they were bars of.
        bars: Their names.
        source: Why, in words.
        date: Day on which somebody decided on it.
    """

    key: Key
    bars: tuple[str, ...]
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """A whole catalog: its file, its name for people, its entries in order, and what was given up."""

    file: str
    name: str
    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...] = ()


def read_catalog(file: ResultBytes) -> Catalog:
    """Read a catalog.

    Raises:
        ResultError: When it is not one strict JSON object that the schema allows, or states a day that there is not.
    """
    document = read_json(file.data)
    if isinstance(document, Unread):
        why = file.why if file.data is None and file.why else f"{document.fault}: {document.why}"
        raise ResultError(file.name, [Problem("", "a catalog of thresholds", why)], unread=True)
    whole = schema.shipped()
    found = [*schema.problems(document.root, whole, whole)]
    if not found:
        found = [*_wrong_days(document.root)]
    if more := len(found) - MOST_PROBLEMS:
        found = [*found[:MOST_PROBLEMS], Problem("", "no more problems", f"{more} more")] if more > 0 else found
    if found:
        raise ResultError(file.name, found)
    entries = tuple(_entry(item) for item in document.root["entries"])
    dropped = tuple(_dropped(item) for item in document.root.get("dropped", []))
    return Catalog(file.name, document.root.get("name", file.name), entries, dropped)


def _wrong_days(root: Mapping[str, Any]) -> Iterator[Problem]:
    days = [
        (f"entries[{i}].bars.{name}.date", bar["date"])
        for i, entry in enumerate(root["entries"])
        for name, bar in entry["bars"].items()
    ]
    days += [(f"dropped[{i}].date", item["date"]) for i, item in enumerate(root.get("dropped", []))]
    for field_, day in days:
        try:
            date.fromisoformat(day)
        except ValueError:
            yield Problem(field_, "a day that there is", day)


def _dropped(item: Mapping[str, Any]) -> Dropped:
    key = (item["model"], item["drafter"], item.get("draft_tokens"), item.get("topk"))
    return Dropped(key, tuple(item["bars"]), item["source"], item["date"])


def _entry(item: Mapping[str, Any]) -> Entry:
    bars = {name: _bar(value) for name, value in item["bars"].items()}
    accuracy = item["bars"].get("accuracy", {})
    return Entry(
        model=item["model"],
        drafter=item["drafter"],
        draft_tokens=item.get("draft_tokens"),
        topk=item.get("topk"),
        bars=bars,
        task=Task(accuracy.get("task"), accuracy.get("rule"), accuracy.get("samples"), accuracy.get("shots")),
        server=dict(item.get("server", {})),
        repeat=Repeat(**item.get("repeat", {})),
        path=item.get("path"),
        note=item.get("note"),
    )


def _bar(item: Mapping[str, Any]) -> Bar:
    return Bar(_many(item["bar"]), item["source"], item["date"], _many(item.get("minimum", [])), item.get("margin"))


def _many(value: Any) -> tuple[float, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def to_json(catalog: Catalog) -> dict[str, Any]:
    """The form of the file, without what is not stated."""
    made = {"schema_version": 1, "name": catalog.name, "entries": [entry_to_json(one) for one in catalog.entries]}
    if catalog.dropped:
        made["dropped"] = [_dropped_to_json(one) for one in catalog.dropped]
    return made


def _dropped_to_json(dropped: Dropped) -> dict[str, Any]:
    named = dict(zip(("model", "drafter", "draft_tokens", "topk"), dropped.key, strict=True))
    stated = {name: value for name, value in named.items() if value is not None or name == "drafter"}
    return {**stated, "bars": list(dropped.bars), "source": dropped.source, "date": dropped.date}


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry as the file holds it."""
    made: dict[str, Any] = {"model": entry.model, "path": entry.path, "drafter": entry.drafter}
    made |= {"draft_tokens": entry.draft_tokens, "topk": entry.topk}
    made = {name: value for name, value in made.items() if value is not None or name == "drafter"}
    made["bars"] = {name: _bar_to_json(name, bar, entry.task) for name, bar in entry.bars.items()}
    if entry.server:
        made["server"] = dict(entry.server)
    if entry.repeat != Repeat():
        made["repeat"] = {"runs": entry.repeat.runs, "passes": entry.repeat.passes}
    if entry.note:
        made["note"] = entry.note
    return made


def _bar_to_json(name: str, bar: Bar, task: Task) -> dict[str, Any]:
    listed = name == "per_position"
    made: dict[str, Any] = {"bar": list(bar.bars) if listed else bar.bars[0]}
    if bar.minimum:
        made["minimum"] = list(bar.minimum) if listed else bar.minimum[0]
    if bar.margin is not None:
        made["margin"] = bar.margin
    if name == "accuracy":
        stated = {"task": task.name, "rule": task.rule, "samples": task.samples, "shots": task.shots}
        made |= {key: value for key, value in stated.items() if value is not None}
    return made | {"source": bar.source, "date": bar.date}


@cache
def shipped() -> ResultBytes:
    """The catalog that comes with gonogo."""
    from importlib.resources import files  # costs more than all the rest of the gates

    return ResultBytes(CATALOG_FILE, files("gates").joinpath(CATALOG_FILE).read_bytes())
