"""`data.js` of ATOM's dashboard: a script, `window.BENCHMARK_DATA = {...}`, as github-action-benchmark writes it.

Each entry names its unit itself. A score is a fraction, "MTP acceptance (%)" is in per cent, "avg toks/fwd" is an
acceptance length. A CI run in which a score or a rate was missing has no entry for it, so what is absent was not
necessarily not measured, and the newest entry need not be of the newest commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Layout, Loaded
from gates.results.fields import Fields, Reading, open_file
from gates.results.meaning import PER_CENT, Bonus, Meaning, Number, Scope, Unit

SCORE: Final = Meaning("accuracy, rounded to four decimals", Unit.FRACTION, Scope.RUN)
RATE: Final = Meaning(
    "acceptance rate, written in per cent", Unit.FRACTION, Scope.SERVER, "accepted / draft tokens", scale=PER_CENT
)
LENGTH: Final = Meaning("acceptance length (tokens per forward)", Unit.TOKENS_PER_STEP, Scope.SERVER, bonus=Bonus.WITH)

VARIABLE: Final = "BENCHMARK_DATA"
_UNITS: Final = {"score": (SCORE, 1.0), "%": (RATE, 100.0), "tok/fwd": (LENGTH, float("inf"))}


@dataclass(frozen=True, slots=True)
class DashboardValue:
    """One number of one CI run, under the name that the dashboard shows."""

    suite: str
    commit: str
    name: str
    value: Number
    extra: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomDashboard(Reading):
    """All entries whose unit is known, in the order of the file.

    Attributes:
        values: Scores, rates and lengths.
        others: How many entries have another unit (throughputs, times), and were left alone.
    """

    WRITTEN_BY: ClassVar[str] = "ATOM dashboard (github-action-benchmark data.js)"

    repository: str | None
    values: tuple[DashboardValue, ...]
    others: int


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one, with at least one entry that ATOM's script makes."""
    if loaded.layout is not Layout.SCRIPT or loaded.script != VARIABLE or len(loaded.parts) != 1:
        return False
    return "tok/fwd" in loaded.text or " accuracy (GSM8K)" in loaded.text or " MTP acceptance (%)" in loaded.text


def read(file: ResultBytes) -> AtomDashboard:
    """Read the file.

    Raises:
        ResultError: When it is no such script, or an entry of a known unit is not what it must be.
    """
    loaded, notes = open_file(file, Layout.SCRIPT)
    part = loaded.parts[0]
    if loaded.script != VARIABLE:
        notes.problem("", f"window.{VARIABLE} = {{...}}", f"window.{loaded.script} = ...")
    fields = Fields(notes, part.path, part.root)
    suites = fields.part("entries", need=True)
    values: list[DashboardValue] = []
    others = 0
    for suite in suites.values if suites is not None else ():
        for run in suites.parts(suite, need=True) if suites is not None else ():
            found, skipped = _run(suite, run)
            values += found
            others += skipped
    if suites is not None and not values and not others:
        notes.problem(suites.path, "at least one entry", "none")
    repository = fields.text("repoUrl")
    if others:
        notes.remark(fields.at("entries"), f"{others} of another unit, which this reader leaves alone")
    return AtomDashboard(
        file=file.name,
        remarks=notes.close(loaded.parts),
        repository=repository,
        values=tuple(values),
        others=others,
    )


def _run(suite: str, run: Fields) -> tuple[list[DashboardValue], int]:
    commit = run.part("commit", need=True)
    digest = commit.text("id", need=True) if commit is not None else None
    values: list[DashboardValue] = []
    others = 0
    for bench in run.parts("benches", need=True):
        name, unit = bench.text("name", need=True), bench.text("unit", need=True)
        meaning, high = _UNITS.get(unit or "", (None, 0.0))
        if meaning is None:
            others += 1
            continue
        if unit == "%" and name is not None and not name.endswith("MTP acceptance (%)"):
            others += 1
            continue
        value = bench.number("value", meaning, need=True, high=high)
        extra = bench.text("extra")
        if value is not None and name is not None and digest is not None:
            values.append(DashboardValue(suite, digest, name, value, extra))
    return values, others
