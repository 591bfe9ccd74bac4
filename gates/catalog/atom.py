"""ATOM's accuracy catalogs: read, checked for what their own validator lets through, and turned into this format.

Such a file is a list of entries with `model_name`, `model_path`, the server's arguments as one text, and thresholds as
fractions. Whether an entry drafts is to be seen in its arguments only; the threshold on acceptance is optional there,
the number of draft tokens stands in the arguments and not beside the rate that depends on it, and per-position
thresholds are a text with commas. Three spellings of two keys are in use.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gates.catalog.check import Finding, check_catalog
from gates.catalog.model import Bar, Catalog, Entry, Task
from gates.reading import ResultBytes, Unusable
from gates.record import is_count, is_number
from gates.results.documents import Layout
from gates.results.fields import Fields, Notes, open_file

_ARGUMENTS: Final = ("extraArgs", "extra_args")
_ACCURACY: Final = ("accuracy_threshold", "accuracy_test_threshold")
_SHAPE: Final = ("model_name", "model_path", "env_vars", "runner", "test_level")
_METHOD: Final = ("--method", "--speculative-algorithm", "--spec-method")
_TOKENS: Final = ("--num-speculative-tokens", "--speculative-num-steps")
_TREE: Final = "--speculative-eagle-topk"
_DRAFTER: Final = ("--draft-model", "--speculative-draft-model-path")
_CONFIG: Final = ("--speculative-config", "--speculative_config")
_FLAGS: Final = frozenset((*_METHOD, *_TOKENS, *_DRAFTER, *_CONFIG, "--speculative-num-draft-tokens"))
_FAKED: Final = ("--spec-decode-acceptance-length", "--spec-decode-acceptance-rate")
_RELAXED: Final = "ATOM_ENABLE_RELAXED_MTP"
_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]{1,12})?")


@dataclass(frozen=True, slots=True)
class Drafting:
    """What an entry's arguments say about drafting: method, number of draft tokens, branches of a tree."""

    method: str
    draft_tokens: int | None = None
    topk: int | None = None


def looks(root: Any) -> bool:
    """Whether an object is an entry of such a catalog."""
    return isinstance(root, dict) and sum(key in root for key in _SHAPE) >= 2


def read_atom(file: ResultBytes, *, day: str) -> tuple[Catalog, list[Finding]]:
    """Read a catalog of ATOM.

    Args:
        file: The file.
        day: Day that the bars get as their date, since the file states none.

    Returns:
        The catalog in this format, and everything that is wrong with it here or there.

    Raises:
        ResultError: When a field is not what that format has there.
    """
    loaded, notes = open_file(file, Layout.LIST)
    entries: list[Entry] = []
    found: list[Finding] = []
    for i, part in enumerate(loaded.parts):
        fields = Fields(notes, part.path, part.root)
        entry = _entry(fields, file.name, day)
        if entry is not None:
            entries.append(entry)
            found += _odd(fields, entry, f"entries[{i}]")
    notes.close(loaded.parts)
    catalog = Catalog(file.name, file.name, tuple(entries))
    return catalog, [*found, *check_catalog(catalog), *_names_twice(catalog)]


def _names_twice(catalog: Catalog) -> Iterator[Finding]:
    """Names that come twice: whoever looks an entry up by name gets the first, whatever the drafter."""
    first: dict[str, int] = {}
    keys: set[object] = set()
    for i, entry in enumerate(catalog.entries):
        if entry.model in first and entry.key not in keys:
            words = f"model_name {entry.model!r} is that of entries[{first[entry.model]}] too"
            yield Finding(True, f"entries[{i}]", entry.words, words)
        first.setdefault(entry.model, i)
        keys.add(entry.key)


def _entry(fields: Fields, source: str, day: str) -> Entry | None:
    name = fields.text("model_name", need=True)
    path = fields.text("model_path", need=True)
    arguments = " ".join(filter(None, (fields.text(key) for key in _ARGUMENTS)))
    drafting = drafting_of(arguments, fields.notes, fields.at("extraArgs"))
    bars: dict[str, Bar] = {}
    rate = _fraction(fields, "mtp_accept_threshold")
    if rate is not None:
        bars["acceptance_rate"] = Bar((rate,), f"{source}: mtp_accept_threshold", day)
    positions = _positions(fields)
    if positions:
        bars["per_position"] = Bar(positions, f"{source}: mtp_per_pos_threshold", day)
    given = [(key, _fraction(fields, key)) for key in _ACCURACY if fields.has(key)]
    if len(given) != 1:
        notes = fields.notes
        notes.problem(fields.at(_ACCURACY[0]), f"exactly one of {' and '.join(_ACCURACY)}", f"{len(given)}")
    elif given[0][1] is not None:
        bars["accuracy"] = Bar((given[0][1],), f"{source}: {given[0][0]}", day)
    shots = _count(fields, "lm_eval_num_fewshot")
    if not name or not path:
        return None
    return Entry(
        model=name,
        drafter=None if drafting is None else drafting.method,
        draft_tokens=None if drafting is None else drafting.draft_tokens,
        topk=None if drafting is None else drafting.topk,
        bars=bars,
        task=Task("gsm8k", "flexible", None, shots) if "accuracy" in bars else Task(),
        path=path,
        note=fields.text("_baseline_note") or None,
    )


def _odd(fields: Fields, entry: Entry, place: str) -> Iterator[Finding]:
    """What this format allows and a user of it would not expect."""
    if all(fields.has(key) for key in _ARGUMENTS):
        yield Finding(True, place, entry.words, f"states both {' and '.join(_ARGUMENTS)}; which of them counts?")
    arguments = " ".join(str(fields.values.get(key)) for key in _ARGUMENTS)
    for flag in _FAKED:
        if flag in arguments:
            yield Finding(True, place, entry.words, f"asks for {flag}: that acceptance is made up, not measured")
    if f"{_RELAXED}=1" in str(fields.values.get("env_vars")):
        yield Finding(True, place, entry.words, f"sets {_RELAXED}: wrong drafts are taken too, so no bar on it holds")
    for key in (*_ACCURACY, "mtp_accept_threshold"):
        if fields.values.get(key) == 0:
            yield Finding(True, f"{place}.{key}", entry.words, "is 0, which the workflow takes for no threshold at all")


def drafting_of(arguments: str, notes: Notes, place: str) -> Drafting | None:
    """What the arguments of a server say about drafting; None when they do not ask for a drafter."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        notes.problem(place, "arguments as a shell takes them", f"text that is none ({error})")
        return None
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    given = {word: value for word, value in zip(split, [*split[1:], ""], strict=True) if word.startswith("--")}
    if not _FLAGS & given.keys():
        return None
    config = next((_config(given[flag], notes, place) for flag in _CONFIG if flag in given), {})
    method = next((given[flag] for flag in _METHOD if flag in given), None) or config.get("method")
    tokens = next((_whole(given[flag]) for flag in _TOKENS if flag in given), None)
    if tokens is None and is_count(config.get("num_speculative_tokens")):
        tokens = config["num_speculative_tokens"]
    drafter = next((given[flag] for flag in _DRAFTER if flag in given), None) or config.get("model")
    name = method if isinstance(method, str) and method else "drafter"
    if isinstance(drafter, str) and drafter:
        name = f"{name} {drafter}"
    return Drafting(name.lower() if name == method else name, tokens or None, _whole(given.get(_TREE, "")))


def _config(text: str, notes: Notes, place: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    notes.problem(place, "a JSON object as the speculative config", "something else")
    return {}


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 4 and int(text) else None


def _fraction(fields: Fields, key: str) -> float | None:
    value = fields.values.get(key)
    if value is None:
        return None
    if not is_number(value) or not 0 <= value <= 1:
        fields.notes.problem(fields.at(key), "a fraction 0-1", _shown(value))
        return None
    return float(value)


def _count(fields: Fields, key: str) -> int | None:
    value = fields.values.get(key)
    if value is None:
        return None
    if not is_count(value) or value < 0:
        fields.notes.problem(fields.at(key), "a whole number", _shown(value))
        return None
    return value


def _positions(fields: Fields) -> tuple[float, ...]:
    """A text like "0.8,0.6" as numbers; none where it is absent or wrong, which is a problem."""
    text = fields.text("mtp_per_pos_threshold")
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(_NUMBER.fullmatch(part) and float(part) <= 1 for part in parts):
        fields.notes.problem(fields.at("mtp_per_pos_threshold"), 'fractions like "0.8,0.6"', _shown(text))
        return ()
    return tuple(float(part) for part in parts)


def _shown(value: object) -> str:
    return value.text if isinstance(value, Unusable) else json.dumps(value, default=str)[:60]
