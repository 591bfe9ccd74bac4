"""gate_acceptance: does the target still take as many of the drafter's tokens as it used to?

Accuracy cannot answer that: speculative decoding keeps the target's output whatever is drafted, so a broken draft head
leaves accuracy unchanged and only acceptance and throughput collapse. The bars come from a catalog, for each model,
drafter and number of draft tokens; they are compared exactly, as decimals, in units that follow from who wrote the file
and in which field. A rate that is missing where its producer would have written it is a regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gates.catalog.judging import (
    MOST_RUNS,
    CatalogExpected,
    acceptance_bars,
    choose,
    comparable,
    conclude,
    judge_server,
    measure,
    slots,
)
from gates.catalog.model import ACCEPTANCE
from gates.catalog.sources import ACCEPTANCE as SOURCES
from gates.reading import ResultBytes
from gates.record import Sheet
from gates.verdict import FailureClass, Verdict

GATE: Final = "acceptance"
KINDS: Final = (GATE, *(f"{GATE}_{number}" for number in range(2, MOST_RUNS + 1)), "catalog")
"""The measurement, its repetitions, and the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceExpected(CatalogExpected):
    """Which entry of the catalog an acceptance is held against."""


def judge_acceptance(*files: ResultBytes | None, expected: AcceptanceExpected | None = None) -> Verdict:
    """Judge one or more measurements of acceptance.

    Args:
        files: In the order of `KINDS`; None for a repetition that was not made, and for the shipped catalog.
        expected: Which entry counts.
    """
    expected = expected or AcceptanceExpected()
    sheet = Sheet(GATE)
    given = [file for file in slots(files, 0) if file is not None]
    runs = [measure(GATE, file, expected, SOURCES, accuracy=False) for file in given]
    first = next((run.measured for run in runs if run.measured is not None), None)
    entry = choose(sheet, files[MOST_RUNS] if len(files) > MOST_RUNS else None, expected, first)
    if entry is not None:
        names = [name for name in ACCEPTANCE if name in entry.bars]
        wanted = "at least one bar on acceptance in its entry"
        have = ", ".join(names) or "none"
        sheet.check("has_bar", bool(names), have, wanted, file="catalog", cls=FailureClass.USER_CONFIG_ERROR)
        for number, run in enumerate(runs, start=1):
            if run.measured is None:
                continue
            judge_server(run.sheet, run.measured, entry, expected)
            comparable(run, run.measured, entry, expected)
            run.bars = acceptance_bars(run.measured, entry)
            end = "" if number == 1 else f"_{number}"
            for name in ("rate", "length"):
                value = getattr(run.measured, name)
                sheet.fact(f"acceptance_{name}{end}", None if value is None else float(value.value))
    return conclude(GATE, sheet, runs, entry, FailureClass.ACCEPTANCE_REGRESSION)
