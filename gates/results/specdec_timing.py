"""`timing.json` and `aa_timing.json` of specdec_bench (NVIDIA Model-Optimizer, examples/specdec_bench).

Lists with one object for each run, appended as in `specdec_acceptance`. Throughputs are numbers; the statistics are
texts with four decimals. Times are in seconds. The "generation step time" has the time to the first token among its
intervals, so it is no time per output token, and it is absent, not 0, where every request got two chunks or fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Layout, Loaded, Part
from gates.results.fields import Fields, Notes, Problem, Reading, ResultError, open_file
from gates.results.meaning import Meaning, Number, Scope, Unit

THROUGHPUT: Final = Meaning(
    "output throughput",
    Unit.TOKENS_PER_SECOND,
    Scope.RUN,
    "output tokens / (last token's time - first request's start)",
)
THROUGHPUT_PER_GPU: Final = Meaning(
    "output throughput of one GPU of the tensor-parallel group", Unit.TOKENS_PER_SECOND, Scope.RUN, "throughput / tp"
)
E2E: Final = Meaning("time of a request, start to last token", Unit.SECONDS, Scope.RUN)
TTFT: Final = Meaning("time to the first token", Unit.SECONDS, Scope.RUN)
STEP: Final = Meaning(
    "interval between chunks, the time to the first one among them: not a time per output token",
    Unit.SECONDS,
    Scope.RUN,
)
GENERATION: Final = Meaning(
    "a request's tokens a second behind its first token",
    Unit.TOKENS_PER_SECOND,
    Scope.RUN,
    "(tokens - 1) / (last token's time - first token's time)",
)
OUTPUT: Final = Meaning("output tokens of a request", Unit.TOKENS, Scope.RUN)
AA_THROUGHPUT: Final = Meaning("output throughput as Artificial Analysis counts it", Unit.TOKENS_PER_SECOND, Scope.RUN)
AA_GENERATION: Final = Meaning(
    "a request's tokens a second as Artificial Analysis counts them", Unit.TOKENS_PER_SECOND, Scope.RUN
)

_PRINTED: Final = 1e-4
"""The statistics have four decimals."""

_QUANTILES: Final = ("0.25", "0.5", "0.75")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Spread of one quantity over the requests (over all intervals, for the step time)."""

    least: Number
    lower: Number
    median: Number
    upper: Number
    largest: Number
    mean: Number
    deviation: Number


@dataclass(frozen=True, slots=True)
class TimingRun:
    """One run; `step` and `generation` are None where no request got more than two chunks."""

    throughput: Number
    throughput_per_gpu: Number
    e2e: Statistics
    ttft: Statistics
    step: Statistics | None
    generation: Statistics | None
    output: Statistics


@dataclass(frozen=True, slots=True)
class AaRun:
    """One run of `aa_timing.json`."""

    throughput: Number
    generation: Statistics | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecdecTiming(Reading):
    """A whole `timing.json`: its runs, the oldest first."""

    WRITTEN_BY: ClassVar[str] = "specdec_bench of NVIDIA Model-Optimizer (timing.json)"

    runs: tuple[TimingRun, ...]

    def only(self) -> TimingRun:
        """The run, where the file holds exactly one.

        Raises:
            ResultError: When it holds several.
        """
        if len(self.runs) == 1:
            return self.runs[0]
        raise ResultError(self.file, [Problem("", "exactly one run", f"{len(self.runs)} runs, appended")])


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecdecAaTiming(Reading):
    """A whole `aa_timing.json`: its runs, the oldest first."""

    WRITTEN_BY: ClassVar[str] = "specdec_bench of NVIDIA Model-Optimizer (aa_timing.json)"

    runs: tuple[AaRun, ...]


def looks(loaded: Loaded) -> bool:
    """Whether the shape is that of `timing.json`."""
    keys = ("Output TPS", "Output TPS/gpu", "E2E Request Time", "TTFT Time", "Number of Output Tokens")
    return any(sum(key in part.root for key in keys) >= 2 for part in loaded.parts)


def looks_aa(loaded: Loaded) -> bool:
    """Whether the shape is that of `aa_timing.json`."""
    return any("AA Output TPS" in part.root or "AA Generation Tokens Per Second" in part.root for part in loaded.parts)


def read(file: ResultBytes) -> SpecdecTiming:
    """Read `timing.json`.

    Raises:
        ResultError: When a field that every run has is missing or is not what it must be.
    """
    loaded, notes = open_file(file, Layout.LIST)
    runs = [_run(notes, part) for part in loaded.parts]
    _remark_count(notes, len(runs))
    remarks = notes.close(loaded.parts)
    return SpecdecTiming(file=file.name, remarks=remarks, runs=tuple(run for run in runs if run is not None))


def read_aa(file: ResultBytes) -> SpecdecAaTiming:
    """Read `aa_timing.json`.

    Raises:
        ResultError: When a field that every run has is missing or is not what it must be.
    """
    loaded, notes = open_file(file, Layout.LIST)
    runs: list[AaRun] = []
    for part in loaded.parts:
        fields = Fields(notes, part.path, part.root)
        throughput = fields.number("AA Output TPS", AA_THROUGHPUT, need=True)
        generation = _statistics(fields, "AA Generation Tokens Per Second", AA_GENERATION)
        if throughput is not None:
            runs.append(AaRun(throughput, generation))
    _remark_count(notes, len(loaded.parts))
    return SpecdecAaTiming(file=file.name, remarks=notes.close(loaded.parts), runs=tuple(runs))


def _remark_count(notes: Notes, count: int) -> None:
    if count > 1:
        notes.fault("", f"holds {count} runs, appended: all but the last are stale, and the last one may be too")


def _run(notes: Notes, part: Part) -> TimingRun | None:
    fields = Fields(notes, part.path, part.root)
    throughput = fields.number("Output TPS", THROUGHPUT, need=True)
    per_gpu = fields.number("Output TPS/gpu", THROUGHPUT_PER_GPU, need=True)
    e2e = _statistics(fields, "E2E Request Time", E2E, need=True)
    ttft = _statistics(fields, "TTFT Time", TTFT, need=True)
    step = _statistics(fields, "Request Generation Step Time", STEP)
    generation = _statistics(fields, "Request Generation Tokens Per Second", GENERATION)
    output = _statistics(fields, "Number of Output Tokens", OUTPUT, need=True)
    if throughput is None or per_gpu is None or e2e is None or ttft is None or output is None:
        return None
    if per_gpu.value > 0:
        group = throughput.value / per_gpu.value
        if group < 1 - 1e-6 or abs(group - round(group)) > 1e-6 * group:
            notes.fault(per_gpu.field, f"{throughput.value:g} is no whole multiple of {per_gpu.value:g}")
    elif throughput.value > 0:
        notes.fault(per_gpu.field, f"0 beside a throughput of {throughput.value:g}")
    if step is None and not fields.has("Request Generation Step Time"):
        notes.remark(fields.path, "no step time: no request got more than two chunks")
    return TimingRun(throughput, per_gpu, e2e, ttft, step, generation, output)


def _statistics(fields: Fields, key: str, meaning: Meaning, *, need: bool = False) -> Statistics | None:
    inside = fields.part(key, need=need)
    if inside is None:
        return None
    quantiles = inside.part("quantiles", need=True)
    found = [inside.number(name, meaning, need=True, as_text=True) for name in ("min", "max", "mean", "std")]
    if quantiles is None:
        return None
    found += [quantiles.number(name, meaning, need=True, as_text=True) for name in _QUANTILES]
    good = [number for number in found if number is not None]
    if len(good) < len(found):
        return None
    least, largest, mean, deviation, lower, median, upper = good
    order = (least, lower, median, upper, largest)
    slack = _PRINTED * (1 + largest.value)
    falls = any(one.value > other.value + slack for one, other in pairwise(order))
    if falls or not least.value - slack <= mean.value <= largest.value + slack:
        fields.notes.fault(inside.path, "quantiles and mean are not in order between min and max")
    return Statistics(least, lower, median, upper, largest, mean, deviation)
