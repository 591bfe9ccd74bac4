"""The thresholds of a release: which entry of which catalog it is held against, fixed when the run begins.

The catalog's bytes are kept in the run folder, so a catalog that changes later changes nothing in a release that was
begun, and whoever asks later why a drafter passed finds the bars that counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.release.canonical import sha256
from console.release.catalog_file import catalog_bytes
from console.release.errors import InputError, Problem, suggestion
from console.release.recipe_task import Task
from console.release.spec import ReleaseSpec
from gates.catalog.check import check_entry, errors
from gates.catalog.model import ACCEPTANCE, Catalog, Entry, read_catalog, shipped
from gates.reading import ResultBytes
from gates.registry import file_name
from gates.results.fields import ResultError

CATALOG_NAME = "catalog.json"
"""The copy in the run folder."""

CATALOG = "catalog"
"""Kind of file under which the gates know it."""

MEASURED_BY: Mapping[str, str] = {"acceptance": "bench", "accuracy": "accuracy"}
"""For each gate that reads a catalog, the kind of result file that it judges."""


def named(gate: str, files: Mapping[str, bytes | None]) -> dict[str, ResultBytes]:
    """Files by the gate's own kinds, under the names by which people know them."""
    return {kind: ResultBytes(_name(gate, kind), data) for kind, data in files.items()}


def _name(gate: str, kind: str) -> str:
    if gate not in MEASURED_BY or kind == CATALOG:
        return file_name(kind)
    repeat = kind.removeprefix(gate).removeprefix("_")
    return file_name(MEASURED_BY[gate]) + (f" ({repeat})" if repeat else "")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The entry that counts.

    Attributes:
        file: The catalog that was named, for people.
        data: Its bytes, as JSON.
        entry: The entry.
    """

    file: str
    data: bytes
    entry: Entry

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that the entry asks for."""
        asked = {"acceptance": any(name in self.entry.bars for name in ACCEPTANCE), "accuracy": _has_accuracy(self)}
        return tuple(gate for gate, wanted in asked.items() if wanted)

    def expected(self) -> dict[str, Any]:
        """What a gate is told to find this very entry again."""
        model, drafter, draft_tokens, topk = self.entry.key
        told = {"model": model, "drafter": drafter, "draft_tokens": draft_tokens, "topk": topk}
        return {name: value for name, value in told.items() if value is not None}

    def inputs(self) -> dict[str, Any]:
        """What the log records of it."""
        return {
            "catalog": self.file,
            "catalog_sha256": sha256(self.data),
            "catalog_entry": self.entry.words,
            "catalog_gates": ", ".join(self.gates),
        }


def _has_accuracy(thresholds: Thresholds) -> bool:
    return "accuracy" in thresholds.entry.bars


def choose_thresholds(
    spec: ReleaseSpec, file: Path, kept: Path, tasks: tuple[Task, ...], draft_tokens: object
) -> Thresholds | None:
    """The thresholds of a release; None where it names no catalog.

    Args:
        spec: The inputs.
        file: The release file, beside which the catalog is looked for.
        kept: The copy of a run that was begun; it counts where it is there.
        tasks: The jobs of the release.
        draft_tokens: Draft tokens a step that the recipe asks for; None where it does not say.

    Raises:
        InputError: When the catalog cannot be used, has no entry for this release or more than one, or asks for what
            no job of it measures.
    """
    if spec.catalog is None:
        return None
    begun = kept.exists()
    named = _place(spec.catalog.file, file)
    read = ResultBytes(CATALOG_NAME, kept.read_bytes()) if begun else _read(named, file)
    try:
        catalog = read_catalog(read)
    except ResultError as error:
        raise InputError(*_problems(str(kept) if begun else str(named or read.name), error)) from None
    entry = _entry(spec, catalog, file, draft_tokens)
    assert read.data is not None, "a catalog that was read has bytes"
    found = Thresholds(spec.catalog.file, read.data, entry)
    _measured(found, tasks, file)
    return found


def _place(name: str, file: Path) -> Path | None:
    return None if name == "builtin" else file.parent / Path(name).expanduser()


def _read(path: Path | None, file: Path) -> ResultBytes:
    if path is None:
        return shipped()
    try:
        found = catalog_bytes(path)
    except ResultError as error:
        raise InputError(*_problems(str(path), error)) from None
    if found.data is None:
        expected = 'a readable catalog of thresholds, or "builtin"'
        raise InputError(Problem(str(file), "catalog.file", expected, found.why or str(path)))
    return found


def _problems(file: str, error: ResultError) -> list[Problem]:
    advice = "`gonogo catalog check` shows everything that is wrong with it"
    return [Problem(file, one.field, one.expected, one.found, advice) for one in error.problems]


def _entry(spec: ReleaseSpec, catalog: Catalog, file: Path, draft_tokens: object) -> Entry:
    """The only entry for this model, drafter and number of draft tokens."""
    choice = spec.catalog
    assert choice is not None, "only asked where there is one"
    model, drafter = choice.model or spec.target, choice.drafter or spec.algorithm
    named = [one for one in catalog.entries if one.model == model]
    if not named:
        known = sorted({one.model for one in catalog.entries})
        expected = f"the name of a model in {catalog.file} ({', '.join(known[:5])}{', ...' if len(known) > 5 else ''})"
        raise InputError(Problem(str(file), "catalog.model", expected, f'"{model}"', suggestion(model, known)))
    fit = [one for one in named if one.drafter == drafter and one.draft_tokens in (None, draft_tokens)]
    if len(fit) == 1 and fit[0].draft_tokens is None:
        # The gate is told what the entry states, which must not leave it a choice either.
        fit = [one for one in named if one.drafter == drafter]
    if len(fit) != 1:
        expected = f"exactly one entry of {catalog.file} for {model} with drafter {drafter}"
        expected += f" and {draft_tokens} draft tokens" if draft_tokens is not None else ""
        have = "; ".join(one.words for one in fit or named)
        advice = "name another drafter (catalog.drafter), or add the entry"
        raise InputError(Problem(str(file), "catalog", expected, f"{len(fit)}, it has: {have}", advice))
    place = f"entries[{catalog.entries.index(fit[0])}]"
    faulty = errors(list(check_entry(fit[0], place)))
    if faulty:
        expected = "an entry without errors"
        raise InputError(*(Problem(catalog.file, one.field, expected, one.text) for one in faulty))
    return fit[0]


def _measured(found: Thresholds, tasks: tuple[Task, ...], file: Path) -> None:
    """A bar that nothing is measured for would never be looked at."""
    for gate in found.gates:
        kind = MEASURED_BY[gate]
        if not any(kind in task.results and task.stage == "bench" for task in tasks):
            expected = f"a recipe whose bench measures {gate}, since the entry {found.entry.words} has a bar on it"
            advice = "take a recipe that does, or an entry without that bar"
            raise InputError(Problem(str(file), "catalog", expected, f"no job that writes {kind}", advice))
