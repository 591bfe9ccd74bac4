"""Golden acceptance lengths of InferenceX (`golden_al_distribution/*.yaml`).

YAML whose innermost keys are whole numbers: model, then thinking on or off, then k, and the acceptance length that was
measured once on SPEED-Bench with that many draft tokens. They are references, rounded to two decimals; how they were
measured is in the comments, which no program reads.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml

from gates.counters import MOST_DRAFT_TOKENS
from gates.reading import ResultBytes, kind_of, step
from gates.record import is_number
from gates.results.documents import Layout, Loaded
from gates.results.fields import Notes, Reading, open_file
from gates.results.meaning import Bonus, Meaning, Number, Scope, Unit

GOLDEN: Final = Meaning(
    "reference acceptance length, measured once on SPEED-Bench, rounded to two decimals",
    Unit.TOKENS_PER_STEP,
    Scope.SETTING,
    bonus=Bonus.WITH,
)

MOST_BYTES: Final = 1024 * 1024
_MODES: Final = ("thinking_on", "thinking_off")
_ROUNDED: Final = 0.005 + 1e-9


@dataclass(frozen=True, slots=True)
class GoldenLength:
    """One reference: for one model and mode, with k draft tokens a step."""

    model: str
    mode: str
    k: int
    length: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenLengths(Reading):
    """A whole file."""

    WRITTEN_BY: ClassVar[str] = "InferenceX golden acceptance lengths"

    lengths: tuple[GoldenLength, ...]

    def find(self, model: str, mode: str, k: int) -> Number | None:
        """One reference; None where the file has none for exactly this."""
        return next((one.length for one in self.lengths if (one.model, one.mode, one.k) == (model, mode, k)), None)


class _Loader(yaml.SafeLoader):
    """Plain YAML: no key twice, no anchors, which could make a small file large."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("anchors are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()  # by equality, as a dict has them: true and 1 are one key
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable) or key in seen:
                raise yaml.YAMLError(f"{str(key)[:40]} is there twice, or is no key")
            seen.add(key)
        return super().construct_mapping(node, deep)


def _plain_number(loader: _Loader, node: Any) -> float:
    """A decimal number: YAML also knows octal numbers, and takes 1:30 for ninety."""
    text = str(node.value)
    if re.fullmatch(r"0|[1-9][0-9]{0,14}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,15}\.[0-9]{1,15}", text):
        return float(text)
    raise yaml.YAMLError(f"{text[:40]} is not a plain decimal number")


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _plain_number)


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    return loaded.layout is Layout.TEXT and any(f"\n  {mode}:" in f"\n{loaded.text}" for mode in _MODES)


def read(file: ResultBytes) -> GoldenLengths:
    """Read the file.

    Raises:
        ResultError: When it is not such YAML, or a length is none.
    """
    loaded, notes = open_file(file, Layout.TEXT)
    found: list[GoldenLength] = []
    for model, modes in _mapping(notes, "", _parse(notes, loaded.text)):
        if not isinstance(model, str):
            notes.problem(str(model)[:80], "the name of a model", kind_of(model))
        elif not model.startswith("_"):
            found += _model(notes, model, modes)
    if not found and not notes.problems:
        notes.problem("", "at least one model with a length", "none")
    return GoldenLengths(file=file.name, remarks=notes.close(), lengths=tuple(found))


def _parse(notes: Notes, text: str) -> Any:
    if len(text) > MOST_BYTES:
        notes.problem("", f"at most {MOST_BYTES} characters", f"{len(text)}")
        return {}
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        place = getattr(error, "problem_mark", None)
        line = f"line {place.line + 1}: " if place is not None else ""
        why = getattr(error, "problem", None) or str(error) or type(error).__name__
        notes.problem("", "plain YAML", f"{line}{why}"[:200])
        return {}


def _mapping(notes: Notes, place: str, value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    notes.problem(place, "a mapping", kind_of(value))
    return []


def _model(notes: Notes, model: str, modes: Any) -> list[GoldenLength]:
    place = step("", model)
    found: list[GoldenLength] = []
    for mode, lengths in _mapping(notes, place, modes):
        if mode not in _MODES:
            notes.problem(place, " or ".join(_MODES), str(mode)[:80])
            continue
        inside = step(place, mode)
        for k, length in _mapping(notes, inside, lengths):
            spot = f"{inside}.{str(k)[:20]}"
            if type(k) is not int or not 1 <= k <= MOST_DRAFT_TOKENS:
                notes.problem(spot, f"a number of draft tokens from 1 to {MOST_DRAFT_TOKENS}", kind_of(k))
            elif not is_number(length):
                notes.problem(spot, "a number", str(length)[:40])
            elif not 1 <= length <= k + 1 + _ROUNDED:
                notes.problem(spot, f"from 1 to {k + 1}, the most with {k} draft tokens", f"{length:g}")
            else:
                found.append(GoldenLength(model, mode, k, Number(length, GOLDEN, spot)))
    return found
