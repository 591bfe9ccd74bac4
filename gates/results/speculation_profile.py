"""`speculation_profile.json` of NVIDIA Model-Optimizer, schema 1.0: acceptance by draft position.

Two programs write it: `ar_validate.py` (which says so in `producer`) and specdec_bench (which names no producer).
`conditional_accept_rates[i]` is the chance that draft token i + 1 is taken when all before it were,
`marginal_accept_rates[i]` the chance that the first i + 1 all are; both are fractions. `mean_accept_length` is over
steps, `mean_accept_length_per_request` over requests; the bonus token counts in both. With `measured` false it is a
placeholder, whose rates are zeros that nobody measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Fields, Reading, open_object, sure
from gates.results.meaning import Bonus, Histogram, Meaning, Number, Scope, Series, Table, Unit
from gates.results.speculation import ENOUGH_STEPS, check_simulated, exactly_taken

DRAFT_TOKENS: Final = Meaning("draft tokens a step (k)", Unit.TOKENS, Scope.SETTING)
CONDITIONAL: Final = Meaning(
    "by draft position: share of the steps that took all before it in which it was taken too",
    Unit.FRACTION,
    Scope.RUN,
    "P(first i + 1 taken) / P(first i taken)",
)
MARGINAL: Final = Meaning(
    "by draft position: share of all steps in which it was taken", Unit.FRACTION, Scope.RUN, "P(first i + 1 taken)"
)
PER_STEP: Final = Meaning(
    "acceptance length, mean over steps",
    Unit.TOKENS_PER_STEP,
    Scope.RUN,
    "tokens / steps = 1 + sum of the marginal rates",
    Bonus.WITH,
)
PER_REQUEST: Final = Meaning(
    "acceptance length, mean of the means of the requests", Unit.TOKENS_PER_STEP, Scope.RUN, bonus=Bonus.WITH
)
LENGTHS: Final = Meaning("steps by the number of tokens that they emitted", Unit.STEPS, Scope.RUN, bonus=Bonus.WITH)
CATEGORY: Final = Meaning("acceptance length of a category", Unit.TOKENS_PER_STEP, Scope.RUN, bonus=Bonus.WITH)
SAMPLES: Final = Meaning("prompts that were asked for", Unit.REQUESTS, Scope.SETTING)
OUTPUT_LENGTH: Final = Meaning("most output tokens of a prompt", Unit.TOKENS, Scope.SETTING)

SCHEMA: Final = "1.0"
_ROUNDED: Final = 2e-6
"""The file rounds to six decimals."""

_TRUNCATED: Final = 0.02
"""The producer's own tolerance for lengths beyond k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationProfile(Reading):
    """A measured profile.

    Attributes:
        producer: "ar_validate", or None from specdec_bench.
        method: Kind of drafter, where the file says it.
        k: `num_speculative_tokens`.
        conditional: Rates by draft position, conditional.
        marginal: Rates by draft position, of all steps.
        per_step: Mean acceptance length over steps.
        per_request: Mean over requests.
        histogram: Steps by emitted tokens.
        categories: Acceptance length by category, where there are any.
        dataset: What was measured on.
    """

    WRITTEN_BY: ClassVar[str] = "NVIDIA Model-Optimizer (speculation_profile.json, schema 1.0)"

    producer: str | None
    method: str | None
    verification: str | None
    k: Number
    conditional: Series
    marginal: Series
    per_step: Number
    per_request: Number | None
    histogram: Histogram | None
    categories: Table | None
    dataset: str | None
    samples: Number | None
    output_length: Number | None


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    keys = ("conditional_accept_rates", "marginal_accept_rates", "mean_accept_length", "mean_accept_length_per_request")
    return len(loaded.parts) == 1 and sum(key in loaded.parts[0].root for key in keys) >= 2


def read(file: ResultBytes) -> SpeculationProfile:
    """Read the file.

    Raises:
        ResultError: When it is a placeholder, of another schema, or a needed field is not what it must be.
    """
    part, fields = open_object(file)
    notes = fields.notes
    schema = fields.text("schema_version", need=True)
    if schema not in (None, SCHEMA):
        notes.problem(fields.at("schema_version"), f"{SCHEMA!r}", repr(schema)[:80])
    if fields.flag("measured", need=True) is False:
        notes.problem(fields.at("measured"), "true", "false: a placeholder, nothing was measured")
    k = fields.count("num_speculative_tokens", DRAFT_TOKENS, need=True, low=1)
    conditional = fields.series("conditional_accept_rates", CONDITIONAL, need=True, high=1)
    marginal = fields.series("marginal_accept_rates", MARGINAL, need=True, high=1)
    per_step = fields.number("mean_accept_length", PER_STEP, need=True)
    per_request = fields.number("mean_accept_length_per_request", PER_REQUEST)
    histogram = fields.histogram("acceptance_length_histogram", LENGTHS)
    conditions = fields.part("measurement_conditions") or Fields(notes, "measurement_conditions", {})
    texts = (fields.text("producer"), fields.text("method"), fields.text("verification_method"))
    categories = _categories(fields)
    dataset = conditions.text("dataset")
    samples, output = conditions.count("num_samples", SAMPLES), conditions.count("osl", OUTPUT_LENGTH)
    if samples is not None and samples.value == 0:
        notes.fault(samples.field, "0: nothing was measured")
    if k is not None and conditional is not None and marginal is not None and per_step is not None:
        _check(fields, k, conditional, marginal, per_step, histogram)
    remarks = notes.close((part,))
    return SpeculationProfile(
        file=file.name,
        remarks=remarks,
        producer=texts[0],
        method=texts[1],
        verification=texts[2],
        k=sure(k),
        conditional=sure(conditional),
        marginal=sure(marginal),
        per_step=sure(per_step),
        per_request=per_request,
        histogram=histogram,
        categories=categories,
        dataset=dataset,
        samples=samples,
        output_length=output,
    )


def _categories(fields: Fields) -> Table | None:
    """`per_category`: numbers, or objects with `mean_accept_length`."""
    inside = fields.part("per_category")
    if inside is None or not inside.values:
        return None
    found: list[tuple[str, Number | None]] = []
    for name, value in inside.values.items():
        deeper = inside.part(name) if isinstance(value, dict) else None
        if deeper is None:
            found.append((name, inside.number(name, CATEGORY)))
        else:
            found.append((name, deeper.number("mean_accept_length", CATEGORY)))
    good = tuple((name, number.written) for name, number in found if number is not None)
    return Table(good, CATEGORY, inside.path) if len(good) == len(found) else None


def _enough(histogram: Histogram) -> bool:
    return histogram.steps >= ENOUGH_STEPS


def _check(
    fields: Fields, k: Number, conditional: Series, marginal: Series, per_step: Number, histogram: Histogram | None
) -> None:
    notes = fields.notes
    for series in (conditional, marginal):
        if len(series.written) != k.value:
            notes.fault(series.field, f"holds {len(series.written)} positions, num_speculative_tokens is {k.value:g}")
    if any(other > one + _ROUNDED for one, other in pairwise(marginal.written)):
        notes.fault(marginal.field, "rises: a position cannot be taken more often than the one before it")
    for i, share in enumerate(marginal.written[: len(conditional.written)]):
        if not agree(prod(conditional.written[: i + 1]), share, relative=0, absolute=_ROUNDED * (i + 2)):
            notes.fault(marginal.field, f"position {i + 1} is not the product of the conditional rates up to it")
            break
    implied = 1 + sum(marginal.written)
    if not agree(implied, per_step.value, relative=0, absolute=_TRUNCATED):
        notes.fault(per_step.field, f"is not {implied:g}, 1 + the sum of the marginal rates: k is not the k of the run")
    if not per_step.value >= 1:
        notes.fault(per_step.field, "below 1: a length that counts the bonus token cannot be")
    if histogram is not None and histogram.mean is not None:
        mean = float(histogram.mean)
        if not agree(mean, per_step.value, relative=0, absolute=_ROUNDED):
            notes.fault(histogram.field, f"has the mean {mean:g}, mean_accept_length is {per_step.value:g}")
        if max(length for length, count in histogram.counts if count) > k.value + 1:
            notes.fault(histogram.field, f"has steps of more than {k.value + 1:g} tokens, which k = {k.value:g} allows")
    check_simulated(notes, marginal.field, exactly_taken(marginal.written), histogram is None or _enough(histogram))
    if fields.values.get("verification_method") not in (None, "longest_prefix"):
        notes.remark(fields.at("verification_method"), "rates by position describe longest-prefix verification only")
