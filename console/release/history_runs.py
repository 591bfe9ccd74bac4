"""Runs of the past, from which bars are proposed: out of a history, or out of a file of runs as JSON.

Such a file is a list of objects, or one object a line:

    {"run": "nightly-17", "day": "2026-07-08", "model": "M", "drafter": "mtp", "draft_tokens": 3, "topk": null,
     "healthy": true, "why": "", "acceptance_rate": 0.612, "acceptance_length": 2.84, "accuracy": 0.955}

Rates and accuracies are fractions 0-1, lengths tokens per target step with the bonus token. `run`, `day`, `model` and
`drafter` are needed; what was not measured is left out. The `data.js` of ATOM's dashboard is such a list too: one entry
for each CI run, in order, without the number of draft tokens.
"""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Final

from console.release import history
from console.release.history import MAGIC, Release
from gates.catalog.decimals import decimal
from gates.catalog.propose import Run
from gates.reading import MAX_BYTES, ResultBytes, Unread
from gates.results import atom_dashboard
from gates.results.documents import Layout, load
from gates.results.fields import Fields, Problem, ResultError, open_file
from gates.results.meaning import Bonus, Meaning, Scope, Unit

SOURCES: Final = {
    "acceptance_rate": (("acceptance", "acceptance_rate"), ("bench", "acceptance_rate_c1")),
    "acceptance_length": (("acceptance", "acceptance_length"), ("bench", "acceptance_length_c1")),
    "accuracy": (("accuracy", "accuracy"),),
}
"""Which gate's fact a measure is taken from: the first that a release has. A smoke test is too short to set a bar."""

_HIGHEST: Final = {"acceptance_rate": 1.0, "acceptance_length": 257.0, "accuracy": 1.0}
_MEANINGS: Final = {
    "acceptance_rate": Meaning("acceptance rate", Unit.FRACTION, Scope.RUN),
    "acceptance_length": Meaning("acceptance length", Unit.TOKENS_PER_STEP, Scope.RUN, bonus=Bonus.WITH),
    "accuracy": Meaning("accuracy", Unit.FRACTION, Scope.RUN),
}
_SHOWN_AS: Final = {
    "MTP acceptance (%)": "acceptance_rate",
    "avg toks/fwd": "acceptance_length",
    "accuracy (GSM8K)": "accuracy",
}
"""How the dashboard's names end, behind the name of the model."""

_DASHBOARD: Final = "as the model's name says"
_TOKENS: Final = Meaning("draft tokens", Unit.TOKENS, Scope.SETTING)


def read_runs(path: Path) -> list[Run]:
    """The runs of a file, which is a history or a list of runs.

    Raises:
        ResultError: When it is neither, or a run states something that it cannot.
        console.release.history.HistoryError: When it is an SQLite file, but no history.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        why = f"{error.strerror or error}"
        raise ResultError(str(path), [Problem("", "a history, or runs as JSON", why)], unread=True) from None
    if data.startswith(MAGIC):
        return [run_of(release) for release in history.read(path)]
    file = ResultBytes(path.name, data)
    script = load(file)
    if not isinstance(script, Unread) and atom_dashboard.looks(script):
        return _dashboard(atom_dashboard.read(file))
    loaded, notes = open_file(file, Layout.LIST, Layout.LINES, Layout.OBJECT)
    found = [_run(Fields(notes, part.path, part.root)) for part in loaded.parts]
    notes.close(loaded.parts)
    return [run for run in found if run is not None]


def run_of(release: Release) -> Run:
    """A release as a run: healthy when its verdict was that the drafter is ready."""
    values: dict[str, Fraction] = {}
    for measure, names in SOURCES.items():
        found = release.value(*names)
        if found is not None:
            values[measure] = decimal(found.value)
    ready = release.verdict == "DRAFTER_READY"
    why = "" if ready else f"its verdict is {release.verdict}"
    return Run(
        release.run_id, release.day, release.model, release.drafter, release.draft_tokens, None, ready, why, values
    )


def _dashboard(read: atom_dashboard.AtomDashboard) -> list[Run]:
    """The runs of a dashboard, one for each CI run and model. Their order is that of the file; days are not stated."""
    found: dict[tuple[str, str], Run] = {}
    order: dict[str, int] = {}
    for one in read.values:
        place = one.value.field.rpartition(".benches")[0]
        number = order.setdefault(place, len(order) + 1)
        for end, measure in _SHOWN_AS.items():
            if one.name.endswith(end):
                model = one.name.removesuffix(end).strip()
                fresh = Run(f"{one.commit[:12]} at {place}", f"CI run {number:06d}", model, _DASHBOARD)
                found.setdefault((place, model), fresh).values[measure] = one.value.exact
    return [run for run in found.values() if "acceptance_rate" in run.values]


def _run(fields: Fields) -> Run | None:
    name, day, model = (_words(fields, key) for key in ("run", "day", "model"))
    if "drafter" not in fields.values:
        fields.notes.problem(fields.at("drafter"), "text, or null for a run without a drafter", "nothing")
    drafter, healthy, why = fields.text("drafter"), fields.flag("healthy"), fields.text("why")
    tokens, topk = fields.count("draft_tokens", _TOKENS, low=1), fields.count("topk", _TOKENS, low=1)
    values: dict[str, Fraction] = {}
    for measure, meaning in _MEANINGS.items():
        number = fields.number(measure, meaning, high=_HIGHEST[measure])
        if number is not None:
            values[measure] = number.exact
    if day is not None and not _is_day(day):
        fields.notes.problem(fields.at("day"), "a day like 2026-07-08", f"{day[:40]!r}")
    if not (name and day and model):
        return None
    counts = [None if one is None else int(one.written) for one in (tokens, topk)]
    return Run(name, day, model, drafter, counts[0], counts[1], healthy, why or "", values)


def _words(fields: Fields, key: str) -> str | None:
    found = fields.text(key, need=True)
    if found == "":
        fields.notes.problem(fields.at(key), "text that is not empty", "empty text")
    return found


def _is_day(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False
