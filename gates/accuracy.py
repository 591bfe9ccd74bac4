"""gate_accuracy: with the drafter on, is the server the one that was asked for, and are its answers still right?

First the server's own account of its settings is compared with what the catalog's entry requires: a setting that is not
as asked for, or that the server does not state, makes the run invalid, whatever its numbers. Then the accuracy is
compared with its bar, and the acceptance length with its own: a drafter that hardly drafts would let any accuracy pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from gates.catalog import sources
from gates.catalog.decimals import decimal
from gates.catalog.judging import (
    MOST_RUNS,
    CatalogExpected,
    RunSheet,
    bar_check,
    choose,
    comparable,
    conclude,
    judge_server,
    measure,
    read_foreign,
    slots,
)
from gates.catalog.measured import LENGTH_UNIT, RATE_UNIT, Measurement, Value
from gates.catalog.model import Bar, Entry
from gates.counters import ACCEPTANCE_FLOOR
from gates.expectations import Kind, setting
from gates.reading import ResultBytes
from gates.record import Sheet
from gates.verdict import Check, FailureClass, Verdict

GATE: Final = "accuracy"
SERVER: Final = "server_info"
KINDS: Final = (
    GATE,
    *(f"{GATE}_{number}" for number in range(2, MOST_RUNS + 1)),
    SERVER,
    *(f"{SERVER}_{number}" for number in range(2, MOST_RUNS + 1)),
    "catalog",
)
"""The measurement and its repetitions, what each one's server said of itself, and the catalog."""

_INVALID: Final = FailureClass.MEASUREMENT_INVALID
_LOW: Final = FailureClass.ACCURACY_REGRESSION
_NOT_DRAFTING: Final = FailureClass.ACCEPTANCE_REGRESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyExpected(CatalogExpected):
    """What an accuracy is compared with."""

    min_acceptance_length: float = setting(
        Kind.NUMBER,
        "smallest acceptance length that passes where the entry sets no bar on it, in tokens with the bonus token",
        1.5,
        floor=ACCEPTANCE_FLOOR,
    )


def judge_accuracy(*files: ResultBytes | None, expected: AccuracyExpected | None = None) -> Verdict:
    """Judge one or more measurements of accuracy.

    Args:
        files: In the order of `KINDS`; None for a repetition that was not made, for a server's account that lies within
            the measurement itself, and for the shipped catalog.
        expected: Which entry counts.
    """
    expected = expected or AccuracyExpected()
    sheet = Sheet(GATE)
    pairs = list(zip(slots(files, 0), slots(files, MOST_RUNS), strict=False))
    runs = [(measure(GATE, file, expected, sources.ACCURACY, accuracy=True), server) for file, server in pairs if file]
    _lonely(sheet, pairs)
    first = next((run.measured for run, _ in runs if run.measured is not None), None)
    entry = choose(sheet, files[2 * MOST_RUNS] if len(files) > 2 * MOST_RUNS else None, expected, first)
    if entry is not None:
        has = "accuracy" in entry.bars
        wanted = "a bar on accuracy in its entry"
        cls = FailureClass.USER_CONFIG_ERROR
        sheet.check("has_bar", has, "accuracy" if has else "none", wanted, file="catalog", cls=cls)
        for number, (run, server) in enumerate(runs, start=1):
            if run.measured is not None and has:
                _judge_run(run, run.measured, server, entry, expected, "" if number == 1 else f"_{number}")
    return conclude(GATE, sheet, [run for run, _ in runs], entry, _LOW)


def _lonely(sheet: Sheet, pairs: list[tuple[ResultBytes | None, ResultBytes | None]]) -> None:
    """A server's account without a measurement was meant for one that is not there."""
    for file, server in pairs:
        if server is not None and file is None:
            wanted = "a measurement beside it"
            sheet.check("measured_with", False, "nothing", wanted, file=server.name, cls=FailureClass.USER_CONFIG_ERROR)


def _judge_run(
    run: RunSheet,
    measured: Measurement,
    server: ResultBytes | None,
    entry: Entry,
    expected: AccuracyExpected,
    end: str,
) -> None:
    """Judge one measurement against its entry."""
    account = None if server is None else read_foreign(run.sheet, server, (sources.SGLANG_SERVER,))
    if server is None or account is not None:
        judge_server(run.sheet, account or measured, entry, expected)
    comparable(run, measured, entry, expected)
    if account is not None:
        comparable(run, account, entry, expected)
    _judge_task(run.sheet, measured, entry)
    bar = entry.bars["accuracy"]
    rule = entry.task.rule or "flexible"
    value = measured.accuracy.get(rule, measured.accuracy.get("") if entry.task.rule is None else None)
    run.bars = [bar_check("accuracy", value, bar, RATE_UNIT, measured, "accuracy", _LOW)]
    if entry.drafter is not None:
        length_bar = entry.bars.get("acceptance_length") or Bar((expected.min_acceptance_length,), "setting", "")
        run.bars += _length_bars(measured, account, length_bar)
    _tell(run.sheet, measured, account, value, bar, end)


def _judge_task(sheet: Sheet, measured: Measurement, entry: Entry) -> None:
    """Check that it is the task that the bar is about, as far as the producer says what it asked."""
    task = entry.task
    if task.name is not None and measured.task is not None:
        same = measured.task == task.name
        sheet.check("task", same, measured.task, f"= {task.name}", file=measured.file, field="task", cls=_INVALID)
    for name, wanted in (("samples", task.samples), ("shots", task.shots)):
        value: Value | None = getattr(measured, name)
        if wanted is None or name not in measured.fields:
            continue
        found = "nothing" if value is None else int(value.value)
        ok = value is not None and value.value == wanted
        place = measured.fields[name] if value is None else value.field
        sheet.check(name, ok, found, f"= {wanted}", file=measured.file, field=place, cls=_INVALID)


def _length_bars(measured: Measurement, account: Measurement | None, bar: Bar) -> list[Check]:
    """The acceptance length, wherever it is stated; at least one place has to state it."""
    places = [one for one in (measured, account) if one is not None and (one.length or "length" in one.fields)]
    if not places:
        places = [measured]
    return [
        bar_check("acceptance_length", one.length, bar, LENGTH_UNIT, one, "length", _NOT_DRAFTING) for one in places
    ]


def _tell(
    sheet: Sheet, measured: Measurement, account: Measurement | None, value: Value | None, bar: Bar, end: str
) -> None:
    """What a reader wants to know beside the verdict: both rules, the noise, and how much was drafted."""
    sheet.fact(f"accuracy{end}", None if value is None else float(value.value))
    for rule, one in measured.accuracy.items():
        if rule:
            sheet.fact(f"accuracy_{rule}{end}", float(one.value))
    length = measured.length or (account.length if account is not None else None)
    sheet.fact(f"acceptance_length{end}", None if length is None else float(length.value))
    if value is not None and measured.samples is not None and measured.samples.value > 0:
        share = min(max(float(value.value), 0.0), 1.0)
        error = math.sqrt(share * (1 - share) / float(measured.samples.value))
        sheet.fact(f"accuracy_stderr{end}", error)
        near = abs(value.value - decimal(bar.bars[0])) <= decimal(error)
        sheet.fact(f"within_one_stderr{end}", near)
