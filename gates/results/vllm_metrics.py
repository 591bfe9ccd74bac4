"""vLLM's `/metrics`: counters of speculative decoding since the server started, as Prometheus text.

Each counter has a series for every engine (data-parallel rank) and a gauge beside it whose name ends in `_created` and
whose value is a time: names are matched exactly, or it would be added in. A position without a series was never reached
and stands for 0; it does not move the others up. One reading says little about a measurement: `difference` of two does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from gates.counters import MOST_DRAFT_TOKENS, Counters
from gates.header import agree
from gates.reading import ResultBytes
from gates.record import LARGEST
from gates.results.documents import Layout, Loaded
from gates.results.fields import Notes, Problem, Reading, ResultError, open_file
from gates.results.meaning import Bonus, Meaning, Number, Scope, Series, Unit
from gates.results.speculation import ENOUGH_STEPS, check_counts, check_simulated, exactly_taken, rises

DRAFTS: Final = Meaning("steps that had draft tokens", Unit.STEPS, Scope.SERVER)
DRAFT_TOKENS: Final = Meaning("draft tokens", Unit.TOKENS, Scope.SERVER)
ACCEPTED: Final = Meaning("draft tokens that were taken", Unit.TOKENS, Scope.SERVER)
POSITIONS: Final = Meaning("by draft position: steps in which it was taken", Unit.STEPS, Scope.SERVER)
OUTPUT: Final = Meaning("output tokens", Unit.TOKENS, Scope.SERVER)
PROMPT: Final = Meaning("prompt tokens", Unit.TOKENS, Scope.SERVER)
STARTED: Final = Meaning("when the server's process started, seconds since 1970", Unit.SECONDS, Scope.MOMENT)
LENGTH: Final = Meaning("acceptance length", Unit.TOKENS_PER_STEP, Scope.SERVER, "1 + accepted / drafts", Bonus.WITH)
RATE: Final = Meaning("acceptance rate", Unit.FRACTION, Scope.SERVER, "accepted / draft tokens")

_PREFIX: Final = "vllm:spec_decode_num_"
_TOTALS: Final = ("drafts", "draft_tokens", "accepted_tokens")
_BY_POSITION: Final = "accepted_tokens_per_pos"
_LINE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?[0-9]+)?[ \t]*")
_LABEL: Final = re.compile(r'[ \t]*([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"[ \t]*(?:,|$)')
_VALUE: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]{1,3})?|Inf|NaN)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the text."""

    line: int
    name: str
    labels: tuple[tuple[str, str], ...]
    value: str

    @property
    def field(self) -> str:
        """How to point at it."""
        return f"line {self.line}: {self.name}"

    def label(self, name: str) -> str:
        """One label, "" where there is none."""
        return dict(self.labels).get(name, "")


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """The counters of one engine.

    Attributes:
        engine: Its number, as text; "" where the version has no such label.
        model: Name of the model.
        positions: Steps in which each position was taken; positions without a series are 0.
    """

    engine: str
    model: str
    drafts: Number
    draft_tokens: Number
    accepted: Number
    positions: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmMetrics(Reading):
    """One reading of the counters.

    Attributes:
        engines: None of them where the server does not speculate.
        length: Acceptance length over all engines since the start; None without drafts.
        rate: Acceptance rate over all engines since the start; None without draft tokens.
        started: Start of the server, to tell it from another one.
    """

    WRITTEN_BY: ClassVar[str] = "vLLM /metrics"

    engines: tuple[EngineCounters, ...]
    length: Number | None
    rate: Number | None
    output_tokens: Number | None
    prompt_tokens: Number | None
    started: Number | None

    @property
    def totals(self) -> Counters:
        """Sums over all engines."""
        width = max((len(engine.positions.written) for engine in self.engines), default=0)
        rows = [[int(count) for count in engine.positions.written] for engine in self.engines]
        return Counters(
            drafts=sum(int(engine.drafts.written) for engine in self.engines),
            draft_tokens=sum(int(engine.draft_tokens.written) for engine in self.engines),
            accepted=sum(int(engine.accepted.written) for engine in self.engines),
            per_position=tuple(sum(row[i] for row in rows if i < len(row)) for i in range(width)),
        )


def difference(before: VllmMetrics, after: VllmMetrics) -> Counters:
    """What was counted between two readings of one server.

    Raises:
        ResultError: When the second one is not of the same server, later: another start, other engines, or a counter
            that fell.
    """
    started = [reading.started.value for reading in (before, after) if reading.started is not None]
    if len(set(started)) > 1:
        _refuse(after, "process_start_time_seconds", f"{started[0]:.10g}, as in {before.file}", f"{started[1]:.10g}")
    names = [sorted((engine.engine, engine.model) for engine in reading.engines) for reading in (before, after)]
    if names[0] != names[1]:
        _refuse(after, "engines", f"those of {before.file}", f"{len(names[1])} engines, of another set")
    one, other = before.totals, after.totals
    width = max(len(one.per_position), len(other.per_position))
    padded = [counters.per_position + (0,) * (width - len(counters.per_position)) for counters in (one, other)]
    made = Counters(
        drafts=other.drafts - one.drafts,
        draft_tokens=other.draft_tokens - one.draft_tokens,
        accepted=other.accepted - one.accepted,
        per_position=tuple(late - early for early, late in zip(*padded, strict=True)),
    )
    if min(made.drafts, made.draft_tokens, made.accepted, *made.per_position) < 0:
        _refuse(after, "counters", f"none lower than in {before.file}", "one that fell: the server was started again")
    return made


def _refuse(reading: VllmMetrics, place: str, expected: str, found: str) -> None:
    raise ResultError(reading.file, [Problem(place, expected, found)])


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    return loaded.layout is Layout.TEXT and bool(re.search(r"^vllm:[a-z_]+", loaded.text, re.MULTILINE))


def read(file: ResultBytes) -> VllmMetrics:
    """Read the text.

    Raises:
        ResultError: When a line is no sample, a series comes twice, or a counter is none.
    """
    loaded, notes = open_file(file, Layout.TEXT)
    samples = list(_samples(notes, loaded.text))
    if not any(sample.name.startswith("vllm:") for sample in samples):
        notes.problem("", "counters whose names begin with vllm:", "none")
    engines = _engines(notes, samples)
    output = _sum(notes, samples, "vllm:generation_tokens_total", OUTPUT)
    prompt = _sum(notes, samples, "vllm:prompt_tokens_total", PROMPT)
    started = _sum(notes, samples, "process_start_time_seconds", STARTED, whole=False)
    length, rate = _derived(engines)
    for engine in engines:
        if engine.drafts.value >= ENOUGH_STEPS:
            shares = [count / engine.drafts.value for count in engine.positions.values]
            check_simulated(notes, engine.positions.field, exactly_taken(shares))
    if not engines:
        notes.remark("", "no speculation counters: this server does not speculate")
    if len({engine.model for engine in engines}) > 1:
        notes.fault("", "counters of several models: their sums mean nothing")
    return VllmMetrics(
        file=file.name,
        remarks=notes.close(),
        engines=engines,
        length=length,
        rate=rate,
        output_tokens=output,
        prompt_tokens=prompt,
        started=started,
    )


def _samples(notes: Notes, text: str) -> Iterator[Sample]:
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    if not text.endswith("\n"):
        notes.problem("", "a newline at the end", "none: cut off, maybe in the middle of a number")
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole.removesuffix("\r")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        labels = _labels(match[2] or "") if match is not None else None
        if match is None or labels is None or not _VALUE.fullmatch(match[3]):
            notes.problem(f"line {number}", 'name{label="value",...} and a number', "something else")
            if len(notes.problems) > 5:
                return
            continue
        key = (match[1], labels)
        if key in seen:
            notes.problem(f"line {number}: {match[1]}", "each series once", "the same labels again")
        seen.add(key)
        yield Sample(number, match[1], labels, match[3])


def _labels(text: str) -> tuple[tuple[str, str], ...] | None:
    """The labels in order of their names; None when they are not written as labels are, or one comes twice."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None or match[1] in found:
            return None
        found[match[1]] = match[2]
        at = match.end()
    return tuple(sorted(found.items()))


def _number(notes: Notes, sample: Sample, meaning: Meaning, *, whole: bool = True) -> Number | None:
    value = float(sample.value)
    if not math.isfinite(value) or not 0 <= value < LARGEST or (whole and value != int(value)):
        notes.problem(sample.field, "a count" if whole else "a number", sample.value[:40])
        return None
    return Number(int(value) if whole else value, meaning, sample.field)


def _sum(notes: Notes, samples: list[Sample], name: str, meaning: Meaning, *, whole: bool = True) -> Number | None:
    found = [_number(notes, sample, meaning, whole=whole) for sample in samples if sample.name == name]
    good = [number.written for number in found if number is not None]
    if not good or len(good) < len(found):
        return None
    return Number(sum(good) if whole else good[0], meaning, name)


def _engines(notes: Notes, samples: list[Sample]) -> tuple[EngineCounters, ...]:
    by_engine: dict[tuple[str, str], dict[str, list[Sample]]] = {}
    for sample in samples:
        if sample.name.startswith(_PREFIX) and sample.name.endswith("_total"):
            kind = sample.name.removeprefix(_PREFIX).removesuffix("_total")
            kinds = by_engine.setdefault((sample.label("model_name"), sample.label("engine")), {})
            kinds.setdefault(kind, []).append(sample)
    made = [_engine(notes, model, engine, kinds) for (model, engine), kinds in sorted(by_engine.items())]
    return tuple(engine for engine in made if engine is not None)


def _engine(notes: Notes, model: str, engine: str, kinds: dict[str, list[Sample]]) -> EngineCounters | None:
    totals: list[Number | None] = []
    for kind, meaning in zip(_TOTALS, (DRAFTS, DRAFT_TOKENS, ACCEPTED), strict=True):
        found = kinds.get(kind, [])
        if len(found) != 1:
            place = f"{_PREFIX}{kind}_total"
            notes.problem(place, f"one series for engine {engine!r}", f"{len(found)}")
            totals.append(None)
        else:
            totals.append(_number(notes, found[0], meaning))
    positions = _positions(notes, kinds.get(_BY_POSITION, []))
    drafts, draft_tokens, accepted = totals
    if drafts is None or draft_tokens is None or accepted is None or positions is None:
        return None
    check_counts(notes, drafts, draft_tokens, accepted)
    if positions.written:
        if rises(positions.values) or positions.values[0] > drafts.value:
            notes.fault(positions.field, "rises, or exceeds the steps: a position cannot be taken that often")
        if not agree(sum(positions.written), accepted.value):
            notes.fault(positions.field, f"add up to {sum(positions.written):g} of {accepted.value:g} accepted tokens")
    return EngineCounters(engine, model, drafts, draft_tokens, accepted, positions)


def _positions(notes: Notes, samples: list[Sample]) -> Series | None:
    found: dict[int, Number | None] = {}
    for sample in samples:
        label = sample.label("position")
        if not re.fullmatch(r"0|[1-9][0-9]{0,2}", label) or int(label) >= MOST_DRAFT_TOKENS:
            notes.problem(sample.field, f"a position below {MOST_DRAFT_TOKENS}", repr(label)[:40])
            return None
        if int(label) in found:
            notes.problem(sample.field, "each position once for an engine", f"position {label} again")
        found[int(label)] = _number(notes, sample, POSITIONS)
    counts: list[float] = []
    for position in range(max(found, default=-1) + 1):
        number = found.get(position)
        if number is None and position in found:
            return None
        counts.append(0 if number is None else number.written)
    return Series(tuple(counts), POSITIONS, f"{_PREFIX}{_BY_POSITION}_total")


def _derived(engines: tuple[EngineCounters, ...]) -> tuple[Number | None, Number | None]:
    drafts, draft_tokens, accepted = (
        sum(numbers)
        for numbers in (
            [engine.drafts.written for engine in engines],
            [engine.draft_tokens.written for engine in engines],
            [engine.accepted.written for engine in engines],
        )
    )
    place = f"{_PREFIX}*_total"
    length = Number(1 + accepted / drafts, LENGTH, place) if drafts else None
    return length, Number(accepted / draft_tokens, RATE, place) if draft_tokens else None
