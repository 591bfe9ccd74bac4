"""`acceptance_rate.json` of specdec_bench (NVIDIA Model-Optimizer, examples/specdec_bench).

A list: every run into the same folder appends one object, and a run in which a request failed appends none, so the
last element may be that of an earlier drafter. The SpecBench and MT-Bench classes write this file too; they add
`Category_AL`, and write `Request_AL` without turns.

An acceptance length here is the number of tokens in a chunk that the engine emitted, so the bonus token counts.
`Average_AL` is the mean over (request, turn) of the mean length in each, every request weighing the same; the histogram
is over all steps, so its mean is another number. Both are right, neither may stand for the other. The first chunk (from
the prefill, one token) is counted, and chunks that a loaded server merged count as one. A newer version trims the first
and the last chunk; its files hold keys with `Binned`. Lengths from the two versions are not comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes, step
from gates.results.documents import Layout, Loaded, Part
from gates.results.fields import Fields, Notes, Problem, Reading, ResultError, open_file
from gates.results.meaning import Bonus, Histogram, Meaning, Number, Scope, Table, Unit
from gates.results.speculation import ENOUGH_STEPS, check_simulated

AVERAGE: Final = Meaning(
    "acceptance length, mean of the means of each request and turn",
    Unit.TOKENS_PER_STEP,
    Scope.RUN,
    "mean over (request, turn) of (tokens / chunks)",
    Bonus.WITH,
)
ONE_REQUEST: Final = Meaning(
    "acceptance length of one request and turn", Unit.TOKENS_PER_STEP, Scope.REQUEST, "tokens / chunks", Bonus.WITH
)
ONE_CATEGORY: Final = Meaning(
    "acceptance length of one category of questions", Unit.TOKENS_PER_STEP, Scope.RUN, bonus=Bonus.WITH
)
LENGTHS: Final = Meaning("steps by the number of tokens that they emitted", Unit.STEPS, Scope.RUN, bonus=Bonus.WITH)
CONDITIONAL: Final = Meaning(
    "by length n, the first being 1: share of the steps of the next shorter listed length or more that reached n",
    Unit.FRACTION,
    Scope.RUN,
    "P(length >= n) / P(length >= the listed length before n)",
    Bonus.WITH,
)
JOINT: Final = Meaning(
    "by length n: share of the steps that emitted n tokens or more",
    Unit.FRACTION,
    Scope.RUN,
    "P(length >= n); draft position i (from 1) is n = i + 1",
    Bonus.WITH,
)

_KEYS: Final = ("Request_AL", "Average_AL", "Acceptance_Length_Histogram", "Joint_Acceptance_Rate")
_EXACT: Final = 1e-6


@dataclass(frozen=True, slots=True)
class AcceptanceRun:
    """One run.

    Attributes:
        average: `Average_AL`, every request and turn weighing the same.
        requests: Acceptance length by "request/turn" (by question where the file has no turns).
        histogram: Steps by emitted tokens, the bonus token counted.
        conditional: Acceptance by length, conditional.
        joint: Acceptance by length, joint. Lengths that never occurred are not listed: see `positions`.
        categories: Acceptance length by category of questions, where the data set has categories.
        trimmed: Whether the version trims the first and last chunk of each request.
    """

    average: Number
    requests: Table
    histogram: Histogram
    conditional: Table
    joint: Table
    categories: Table | None
    trimmed: bool

    def positions(self, k: int) -> tuple[float, ...]:
        """Share of the steps in which the draft token at each of k positions was taken, from the histogram.

        The file's own tables leave out lengths that never occurred, which are not 0: where no step emitted exactly
        three tokens but some emitted four, as many reached three as reached four.
        """
        shares = (self.histogram.reached(position + 2) for position in range(k))
        return tuple(float(share) for share in shares if share is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecdecAcceptance(Reading):
    """A whole file: its runs, the oldest first."""

    WRITTEN_BY: ClassVar[str] = "specdec_bench of NVIDIA Model-Optimizer (acceptance_rate.json)"

    runs: tuple[AcceptanceRun, ...]

    def only(self) -> AcceptanceRun:
        """The run, where the file holds exactly one.

        Raises:
            ResultError: When it holds several, of which nobody can tell whose each is.
        """
        if len(self.runs) == 1:
            return self.runs[0]
        raise ResultError(self.file, [Problem("", "exactly one run", f"{len(self.runs)} runs, appended")])


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    found = [sum(key in part.root for key in _KEYS) for part in loaded.parts]
    return bool(found) and max(found) >= 2


def read(file: ResultBytes) -> SpecdecAcceptance:
    """Read the file.

    Raises:
        ResultError: When a field that every run has is missing or is not what it must be.
    """
    loaded, notes = open_file(file, Layout.LIST)
    runs = [_run(notes, part) for part in loaded.parts]
    if len(runs) > 1:
        notes.fault("", f"holds {len(runs)} runs, appended: all but the last are stale, and the last one may be too")
    remarks = notes.close(loaded.parts)
    return SpecdecAcceptance(file=file.name, remarks=remarks, runs=tuple(run for run in runs if run is not None))


def _run(notes: Notes, part: Part) -> AcceptanceRun | None:
    fields = Fields(notes, part.path, part.root)
    average = fields.number("Average_AL", AVERAGE, need=True)
    requests = _requests(fields)
    histogram = fields.histogram("Acceptance_Length_Histogram", LENGTHS, need=True)
    conditional = fields.table("Conditional_Acceptance_Rate", CONDITIONAL, need=True, high=1 + _EXACT)
    joint = fields.table("Joint_Acceptance_Rate", JOINT, need=True, high=1 + _EXACT)
    categories = fields.table("Category_AL", ONE_CATEGORY)
    if average is None or requests is None or histogram is None or conditional is None or joint is None:
        return None
    for empty in (table for table in (conditional, joint) if not table.written):
        notes.problem(empty.field, "at least one length", "none")
    if not histogram.steps:
        notes.problem(histogram.field, "at least one step", "none")
        return None
    trimmed = any("Binned" in key for key in part.root)
    run = AcceptanceRun(average, requests, histogram, conditional, joint, categories, trimmed)
    _remark(fields, run)
    return run


def _requests(fields: Fields) -> Table | None:
    """`Request_AL` of both shapes, flat."""
    outer = fields.part("Request_AL", need=True)
    if outer is None:
        return None
    found: list[tuple[str, Number | None]] = []
    for name, value in outer.values.items():
        inner = outer.part(name) if isinstance(value, dict) else None
        if inner is None:
            found.append((name, outer.number(name, ONE_REQUEST, need=True)))
        else:
            found += ((f"{name}/{turn}", inner.number(turn, ONE_REQUEST, need=True)) for turn in inner.values)
    if not found:
        fields.notes.problem(outer.path, "at least one request", "none")
    good = tuple((name, number.written) for name, number in found if number is not None)
    return Table(good, ONE_REQUEST, outer.path) if good and len(good) == len(found) else None


def _check_simulated(notes: Notes, run: AcceptanceRun) -> None:
    """The first chunk of a request is one token however acceptance is made, so as many of length one are left out."""
    counts = dict(run.histogram.counts)
    firsts = min(counts.get(1, 0), len(run.requests.written))
    steps = [counts.get(length, 0) - (firsts if length == 1 else 0) for length in range(1, min(max(counts), 256) + 1)]
    check_simulated(notes, run.histogram.field, steps, enough=sum(steps) >= ENOUGH_STEPS)


def _remark(fields: Fields, run: AcceptanceRun) -> None:
    notes = fields.notes
    if run.average.value < 1:
        notes.fault(run.average.field, "below 1: a length that counts the bonus token cannot be")
    elif run.average.value == 1:
        notes.remark(run.average.field, "exactly 1: nothing was drafted, or not one drafted token was taken")
    lengths = [length for _, length in run.requests.written]
    mean = sum(lengths) / len(lengths)
    if not agree(mean, run.average.value, relative=_EXACT):
        notes.fault(run.average.field, f"is not the mean {mean:g} of Request_AL")
    if run.histogram.counts[0][0] == 0:
        notes.remark(run.histogram.field, "has steps that emitted no token")
    for name, share in run.joint.written:
        reached = run.histogram.reached(int(name)) if name.isascii() and name.isdecimal() and len(name) < 10 else None
        if reached is None or not agree(float(reached), share, relative=_EXACT, absolute=_EXACT):
            notes.fault(step(run.joint.field, name), f"{share:g} does not follow from the histogram")
            break
    _check_simulated(notes, run)
    if run.trimmed:
        notes.remark(fields.path, "first and last chunk trimmed: not comparable with lengths of older versions")
