"""What the acceptance and the accuracy gate share: the entry of the catalog, comparable measurements, bars, repeats."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from gates.catalog import own, sources
from gates.catalog.check import check_entry, errors
from gates.catalog.decimals import decimal, text
from gates.catalog.measured import LENGTH_UNIT, RATE_UNIT, Measurement, Value
from gates.catalog.model import Bar, Catalog, Entry, read_catalog, shipped
from gates.expectations import Expected, Kind, setting
from gates.header import agree, same_path
from gates.reading import ResultBytes
from gates.record import Sheet, same_value, shown
from gates.results.fields import ResultError
from gates.simulated import simulated_settings
from gates.verdict import Check, FailureClass, Verdict

MOST_RUNS: Final = 5
"""More measurements of one thing are never looked at."""

LEAST_STEPS: Final = 32
"""An acceptance over fewer verification steps says nothing; the smoke gate asks for as many."""

PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.ACCEPTANCE_REGRESSION,
    FailureClass.ACCURACY_REGRESSION,
)
_CONFIG: Final = FailureClass.USER_CONFIG_ERROR
_INVALID: Final = FailureClass.MEASUREMENT_INVALID
_LOW: Final = FailureClass.ACCEPTANCE_REGRESSION
_ABSENT: Final = object()
_ROUNDED_LENGTH: Final = 0.005
"""Lengths are printed with two decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogExpected(Expected):
    """Which entry of the catalog a measurement is held against."""

    model: str | None = setting(Kind.TEXT, "name of the model in the catalog; needed unless the file itself names one")
    drafter: str | None = setting(Kind.TEXT, "drafter of the entry, where the model has several")
    draft_tokens: int | None = setting(Kind.COUNT, "draft tokens a step of the entry")
    topk: int | None = setting(Kind.COUNT, "branches of the draft tree of the entry; 1 is a chain")
    drafter_path: str | None = setting(Kind.PATH, "drafter that must have been served: its folder, or name on the hub")


@dataclass(slots=True)
class RunSheet:
    """One measurement while it is judged: what keeps it from counting, and how it stands to each bar."""

    sheet: Sheet
    file: ResultBytes
    measured: Measurement | None = None
    bars: list[Check] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether the measurement counts."""
        return self.measured is not None and self.sheet.readable and all(check.ok for check in self.sheet.checks)

    @property
    def good(self) -> bool:
        """Whether it counts and holds every bar, of which there is one."""
        return self.sound and bool(self.bars) and all(check.ok for check in self.bars)


def measure(
    gate: str, file: ResultBytes, expected: CatalogExpected, known: Sequence[sources.Source], *, accuracy: bool
) -> RunSheet:
    """Read one measurement, whoever wrote it."""
    run = RunSheet(Sheet(gate), file)
    if own.looks(file):
        run.measured = own.measure(run.sheet, file, expected, accuracy=accuracy)
        return run
    run.measured = read_foreign(run.sheet, file, known)
    if run.measured is None:
        return run
    run.sheet.fact("producer", run.measured.producer)
    if expected.token is not None:
        run.sheet.check("token", False, "nothing", f"= {shown(expected.token)}", file=file.name, field="token")
    return run


def read_foreign(sheet: Sheet, file: ResultBytes, known: Sequence[sources.Source]) -> Measurement | None:
    """Read a file of another producer; what is wrong with it is written on the sheet.

    A file whose own numbers contradict each other is no measurement. What it says is still held against the bars, so
    that one look shows everything that is wrong.
    """
    try:
        measured, faults = sources.measure(file, known)
    except ResultError as error:
        sheet.readable = sheet.readable and not error.unread
        name = "readable" if error.unread else "field"
        cls = FailureClass.RESULT_MISSING if error.unread else _INVALID
        for one in error.problems:
            sheet.check(name, False, one.found, one.expected, file=error.file, field=one.field, cls=cls)
        return None
    for fault in faults:
        wanted = "numbers that hang together"
        sheet.check("sound", False, fault.text, wanted, file=file.name, field=fault.field, cls=_INVALID)
    return measured


def choose(
    sheet: Sheet, file: ResultBytes | None, expected: CatalogExpected, measured: Measurement | None
) -> Entry | None:
    """The entry that counts; why there is none is written on the sheet.

    Args:
        sheet: Where checks are written down.
        file: The catalog; None takes the shipped one.
        expected: What was asked for.
        measured: A measurement, whose own name of the model is taken where none was asked for.
    """
    file = file or shipped()
    try:
        catalog = _read(file)
    except ResultError as error:
        sheet.readable = False
        for one in error.problems:
            sheet.check("catalog", False, one.found, one.expected, file=error.file, field=one.field, cls=_CONFIG)
        return None
    sheet.fact("catalog", f"{file.name}, SHA-256 {hashlib.sha256(file.data or b'').hexdigest()}")
    model = expected.model or (measured.model if measured is not None else None)
    if model is None and measured is None:
        return None  # what is wrong with the measurement says it all
    if model is None:
        sheet.check("entry", False, "nothing", "a model's name (--model)", file=catalog.file, cls=_CONFIG)
        sheet.readable = False
        return None
    wanted = {"drafter": expected.drafter, "draft_tokens": expected.draft_tokens, "topk": expected.topk}
    given = {name: value for name, value in wanted.items() if value is not None}
    named = [one for one in catalog.entries if one.model == model]
    fit = [one for one in named if all(getattr(one, name) == value for name, value in given.items())]
    words = ", ".join([model, *(f"{name} {value}" for name, value in given.items())])
    limit = f"exactly one entry for {words}"
    if len(fit) != 1:
        limit += "; it has " + ("; ".join(one.words for one in fit or named) or _close(model, catalog))
    if not sheet.check("entry", len(fit) == 1, len(fit), limit, unit="fitting", file=catalog.file, cls=_CONFIG):
        sheet.readable = False
        return None
    place = f"entries[{catalog.entries.index(fit[0])}]"
    for finding in errors(list(check_entry(fit[0], place))):
        limit = "an entry without errors"
        sheet.check("entry_sound", False, finding.text, limit, file=catalog.file, field=finding.field, cls=_CONFIG)
    sheet.fact("entry", fit[0].words)
    return fit[0]


@lru_cache(maxsize=4)
def _read(file: ResultBytes) -> Catalog:
    """The same bytes are the same catalog."""
    return read_catalog(file)


def _close(model: str, catalog: Catalog) -> str:
    names = sorted({one.model for one in catalog.entries})
    return ", ".join(difflib.get_close_matches(model, names, n=3, cutoff=0.3) or names[:5])


def comparable(run: RunSheet, measured: Measurement, entry: Entry, expected: CatalogExpected) -> None:
    """Check that a measurement is one of what the entry is about, and that its numbers hang together."""
    sheet = run.sheet
    k = expected.draft_tokens or entry.draft_tokens
    stated = measured.draft_tokens
    if stated is not None and k is not None:
        where = stated.file or measured.file
        sheet.check("draft_tokens", stated.value == k, _number(stated), f"= {k}", file=where, field=stated.field)
    if stated is not None:
        k = int(stated.value)
    sheet.fact("draft_tokens", k)
    length = measured.length
    if length is not None:
        where = length.file or measured.file
        limit = ">= 1 with the bonus token" + ("" if k is None else f" and <= {k} + 1")
        within = length.value >= 1 and (k is None or length.value <= k + 1)
        sheet.check(
            "acceptance_within_k", within, _number(length), limit, unit=LENGTH_UNIT, file=where, field=length.field
        )
    steps = measured.steps
    if steps is not None:
        limit, unit = f">= {LEAST_STEPS}: fewer are luck", "verification steps"
        enough = steps.value >= LEAST_STEPS
        sheet.check("steps", enough, _number(steps), limit, unit=unit, file=measured.file, field=steps.field)
    if measured.positions is not None and k is not None:
        beyond = [value for value in measured.positions[k:] if value.value > 0]
        place = beyond[0].field if beyond else measured.fields.get("positions", "")
        words = f"{len(beyond)} beyond" if beyond else "none beyond"
        limit = f"no draft token taken at a position beyond {k}"
        sheet.check("positions_within_k", not beyond, words, limit, file=measured.file, field=place)
    if (
        measured.chained
        and entry.topk in (None, 1)
        and length is not None
        and measured.rate is not None
        and k is not None
    ):
        _chained(sheet, measured, length, measured.rate, k)


def judge_server(sheet: Sheet, stated: Measurement, entry: Entry, expected: CatalogExpected) -> None:
    """Compare what was served with what was asked for; what is not stated is not as required."""
    settings = stated.server or {}
    wanted_path = expected.drafter_path
    if wanted_path is not None:
        same = stated.drafter is not None and same_path(stated.drafter, wanted_path)
        place = stated.fields.get("drafter", "")
        limit = f"= {shown(wanted_path)}" + ("" if place else f"; {stated.producer} never states the drafter")
        said = "nothing" if stated.drafter is None else stated.drafter
        sheet.check("drafter_path", same, said, limit, file=stated.file, field=place or "drafter", cls=_INVALID)
    found = sorted(simulated_settings(settings))
    limit = "no setting that simulates acceptance"
    sheet.check("not_simulated", not found, found or "none", limit, file=stated.file, field="", cls=_INVALID)
    for name, wanted in entry.server.items():
        value: Any = settings.get(name, _ABSENT)
        said = "nothing" if value is _ABSENT else value
        ok = value is not _ABSENT and same_value(value, wanted)
        sheet.check("server_setting", ok, said, f"= {shown(wanted)}", file=stated.file, field=name, cls=_INVALID)


def _chained(sheet: Sheet, measured: Measurement, length: Value, rate: Value, k: int) -> None:
    """A length that changed its meaning, or another number of draft tokens, does not fit the rate beside it."""
    implied = float(1 + k * rate.value)
    sheet.check(
        "acceptance_identity",
        agree(float(length.value), implied, absolute=_ROUNDED_LENGTH * (k + 1)),
        _number(length),
        f"= 1 + {k} x rate {text(rate.value)} = {implied:.4f}, within 1%",
        unit=LENGTH_UNIT,
        file=measured.file,
        field=length.field,
    )


def acceptance_bars(measured: Measurement, entry: Entry) -> list[Check]:
    """How a measurement stands to each bar on acceptance."""
    made: list[Check] = []
    for name, unit in (("acceptance_rate", RATE_UNIT), ("acceptance_length", LENGTH_UNIT)):
        if name in entry.bars:
            part = name.removeprefix("acceptance_")
            made.append(bar_check(name, getattr(measured, part), entry.bars[name], unit, measured, part, _LOW))
    positions = entry.bars.get("per_position")
    if positions is not None:
        found = measured.positions
        for i in range(len(positions.bars)):
            value = found[i] if found is not None and i < len(found) else None
            made.append(
                bar_check(f"position_{i + 1}", value, positions, RATE_UNIT, measured, "positions", _LOW, item=i)
            )
    return made


def bar_check(
    name: str,
    value: Value | None,
    bar: Bar,
    unit: str,
    measured: Measurement,
    part: str,
    low: FailureClass,
    *,
    item: int = 0,
) -> Check:
    """Compare exactly, as decimals; what is missing never passes.

    Args:
        name: Name of the check.
        value: What was measured; None where the file does not say it.
        bar: The bar.
        unit: Unit of both.
        measured: The measurement.
        part: Attribute of the measurement that was looked at.
        low: Class of a value under its bar, and of one that is missing where its producer writes it.
        item: Which of several bars.
    """
    limit = f">= {text(decimal(bar.bars[item]))}"
    if value is None:
        place = measured.fields.get(part, "")
        why = limit if place else f"{limit}; {measured.producer} never writes it"
        return Check(name, False, None, why, unit, measured.file, place or part, low if place else _INVALID)
    ok = value.value >= decimal(bar.bars[item])
    where = value.file or measured.file
    return Check(
        name, ok, _measured(value.value, ok, bar.bars[item]), limit, unit, where, value.field, None if ok else low
    )


def _measured(value: Fraction, ok: bool, bar: float) -> float | str:
    """The value as a number; as text where the number would read like a bar that it is under."""
    number = float(value)
    return text(value, 20) if not ok and f"{number:.6g}" == f"{float(bar):.6g}" else number


def _number(value: Value) -> float | int:
    return int(value.value) if value.value.denominator == 1 else float(value.value)


def conclude(
    gate: str,
    sheet: Sheet,
    runs: Sequence[RunSheet],
    entry: Entry | None,
    low: FailureClass,
) -> Verdict:
    """The verdict over all measurements, by the entry's repeat policy.

    A measurement that cannot count never stands for a pass and never for one of the tries: it has to be made again.
    """
    for run in runs:
        judged = run.sheet.verdict(_INVALID)
        sheet.checks += judged.checks
        sheet.readable = sheet.readable and judged.readable
        for name, value in judged.facts:
            sheet.fact(name, value)
    if entry is None:
        return sheet.verdict(_CONFIG, PRECEDENCE)
    first = runs[0].file.name if runs else gate
    digests = {hashlib.sha256(run.file.data or b"").digest() for run in runs}
    if len(runs) > 1:
        same = len(digests) == len(runs)
        sheet.check("runs_differ", same, len(digests), f"= {len(runs)}", unit="different files", file=first)
    policy = entry.repeat
    good = sum(run.good for run in runs)
    enough = good >= policy.passes
    if policy.runs == 1 and len(runs) == 1:
        sheet.checks += runs[0].bars
        return sheet.verdict(low, PRECEDENCE)
    within = f"<= {policy.runs}, or the best of many tries would count"
    sheet.check("runs", len(runs) <= policy.runs, len(runs), within, unit="measurements", file=first, cls=_CONFIG)
    for number, run in enumerate(runs, start=1):
        if enough and run.sound and not run.good:
            under = "; ".join(f"{bar.name} {bar.measured} (wanted {bar.limit})" for bar in run.bars if not bar.ok)
            sheet.fact(f"run_{number}_under_bar", under)
        else:
            sheet.checks += run.bars
    lost = sum(run.sound and not run.good for run in runs)
    decided = enough or lost > policy.runs - policy.passes
    wanted = f">= {policy.passes} of {policy.runs}"
    if not decided:
        wanted += "; not decided yet, measure again and give every file"
        if all(run.sound for run in runs):
            sheet.fact("measure_again", policy.runs - len(runs))
    cls = low if decided else _INVALID
    sheet.check("repeats", enough, good, wanted, unit="measurements that pass", file=first, cls=cls)
    return sheet.verdict(low, PRECEDENCE)


def slots(files: Sequence[ResultBytes | None], start: int) -> list[ResultBytes | None]:
    """The files of one of the gate's kinds, which has `MOST_RUNS` places from `start` on."""
    return list(files[start : start + MOST_RUNS])
