"""Speculation metrics in the answer of one vLLM request (`--per-request-spec-decode-metrics`).

They lie in `metrics.speculative_decoding` of the response. `mean_acceptance_length` counts the bonus token;
`acceptance_histogram[n]` is the number of steps in which n draft tokens were taken, which does not. The rate is a
fraction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Fields, Notes, Reading, open_object
from gates.results.meaning import Bonus, Histogram, Meaning, Number, Scope, Unit
from gates.results.speculation import EXACT, check_counts, check_length, check_rate

LENGTH: Final = Meaning("acceptance length", Unit.TOKENS_PER_STEP, Scope.REQUEST, "1 + accepted / steps", Bonus.WITH)
RATE: Final = Meaning("acceptance rate", Unit.FRACTION, Scope.REQUEST, "accepted / draft tokens")
STEPS: Final = Meaning("steps that had draft tokens", Unit.STEPS, Scope.REQUEST)
DRAFT_TOKENS: Final = Meaning("draft tokens", Unit.TOKENS, Scope.REQUEST)
ACCEPTED: Final = Meaning("draft tokens that were taken", Unit.TOKENS, Scope.REQUEST)
MOST: Final = Meaning("draft tokens a step (k)", Unit.TOKENS, Scope.SETTING)
ACCEPTED_BY_STEP: Final = Meaning(
    "steps by the number of draft tokens that were taken", Unit.STEPS, Scope.REQUEST, bonus=Bonus.WITHOUT
)
OUTPUT: Final = Meaning("output tokens", Unit.TOKENS, Scope.REQUEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmRequest(Reading):
    """One request; `length` and `rate` are None where it had no step with draft tokens."""

    WRITTEN_BY: ClassVar[str] = "vLLM, response of one request"

    model: str | None
    length: Number | None
    rate: Number | None
    histogram: Histogram
    steps: Number | None
    draft_tokens: Number | None
    accepted: Number | None
    k: Number | None
    output_tokens: Number | None


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    if len(loaded.parts) != 1:
        return False
    metrics = loaded.parts[0].root.get("metrics")
    return isinstance(metrics, dict) and "speculative_decoding" in metrics


def read(file: ResultBytes) -> VllmRequest:
    """Read the file.

    Raises:
        ResultError: When it has no speculation metrics, or they are not what they must be.
    """
    part, fields = open_object(file)
    metrics = fields.part("metrics", need=True)
    inside = metrics.part("speculative_decoding", need=True) if metrics is not None else None
    usage = fields.part("usage")
    output = usage.count("completion_tokens", OUTPUT) if usage is not None else None
    model = fields.text("model")
    histogram = _histogram(inside) if inside is not None else None
    if inside is None or histogram is None:
        fields.notes.refuse()
    drafted = histogram.steps > 0
    length = inside.number("mean_acceptance_length", LENGTH, need=drafted)
    rate = inside.number("draft_acceptance_rate", RATE, need=drafted, high=1 + 1e-9)
    if not drafted:
        fields.notes.remark(histogram.field, "has no steps: nothing was drafted in this request")
    made = VllmRequest(
        file=file.name,
        remarks=(),
        model=model,
        length=length if drafted else None,
        rate=rate if drafted else None,
        histogram=histogram,
        steps=inside.count("num_spec_steps", STEPS),
        draft_tokens=inside.count("num_draft_tokens", DRAFT_TOKENS),
        accepted=inside.count("num_accepted_draft_tokens", ACCEPTED),
        k=inside.count("num_spec_tokens", MOST, low=1),
        output_tokens=output,
    )
    _check(fields.notes, made)
    return replace(made, remarks=fields.notes.close((part,)))


def _histogram(fields: Fields) -> Histogram | None:
    series = fields.series("acceptance_histogram", ACCEPTED_BY_STEP, need=True, whole=True)
    if series is None:
        return None
    counts = tuple((accepted, int(count)) for accepted, count in enumerate(series.written))
    return Histogram(counts, ACCEPTED_BY_STEP, series.field)


def _check(notes: Notes, made: VllmRequest) -> None:
    histogram, mean = made.histogram, made.histogram.mean
    if mean is None:
        return
    implied = 1 + float(mean)
    if made.length is not None and not agree(made.length.value, implied, EXACT):
        notes.fault(made.length.field, f"is {made.length.value:g}, and 1 + the mean of the histogram is {implied:g}")
    if made.steps is not None and made.steps.value != histogram.steps:
        notes.fault(made.steps.field, f"is {made.steps.value:g}, and the histogram has {histogram.steps}")
    if made.steps is not None and made.draft_tokens is not None and made.accepted is not None:
        check_counts(notes, made.steps, made.draft_tokens, made.accepted)
        if made.length is not None:
            check_length(notes, made.length, made.steps, made.accepted)
        if made.rate is not None:
            check_rate(notes, made.rate, made.draft_tokens, made.accepted)
    if made.k is not None:
        if max(accepted for accepted, steps in histogram.counts if steps) > made.k.value:
            notes.fault(histogram.field, f"has steps in which more than k = {made.k.value:g} draft tokens were taken")
        emitted = histogram.steps * implied
        if made.output_tokens is not None and emitted > made.output_tokens.value + made.k.value:
            notes.fault(made.output_tokens.field, f"{made.output_tokens.value:g}, and the steps emitted {emitted:g}")
