"""Scores of SGLang: `run_eval` (`/tmp/<eval>_<model>.json`) and `metrics.json` of sgl-eval.

Scores are fractions. With `--repeat`, run_eval writes `mean_score`, and `scores` as texts with three decimals, and no
`score`. How many examples were asked is not in the file of run_eval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Reading, open_object
from gates.results.meaning import Meaning, Number, Scope, Series, Unit

SCORE: Final = Meaning("score: mean over the examples", Unit.FRACTION, Scope.RUN)
MEAN_SCORE: Final = Meaning("score: mean over examples and repeats", Unit.FRACTION, Scope.RUN)
ONE_SCORE: Final = Meaning("score of each repeat, rounded to three decimals", Unit.FRACTION, Scope.RUN)
DEVIATION: Final = Meaning("standard deviation of the score over the examples", Unit.FRACTION, Scope.RUN)
LATENCY: Final = Meaning("time of the evaluation (mean over the repeats)", Unit.SECONDS, Scope.RUN)
THROUGHPUT: Final = Meaning("output throughput", Unit.TOKENS_PER_SECOND, Scope.RUN, "completion tokens / latency")

_ROUNDED: Final = 0.0005 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangEval(Reading):
    """One evaluation.

    Attributes:
        score: The score, or the mean over repeats.
        repeats: Score of each repeat; None where there was one.
        deviation: `score:std`, where the file has it.
    """

    WRITTEN_BY: ClassVar[str] = "SGLang run_eval"

    score: Number
    repeats: Series | None
    deviation: Number | None
    latency: Number
    output_throughput: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SglEval(Reading):
    """`metrics.json` of sgl-eval."""

    WRITTEN_BY: ClassVar[str] = "sgl-eval (metrics.json)"

    model: str | None
    score: Number
    latency: Number | None
    output_throughput: Number | None


def looks(loaded: Loaded) -> bool:
    """Whether the shape is that of run_eval."""
    if len(loaded.parts) != 1:
        return False
    root = loaded.parts[0].root
    once = "score" in root and ("score:std" in root or "output_throughput" in root)
    return "latency" in root and (once or "mean_score" in root or "scores" in root) and "results" not in root


def looks_sgl(loaded: Loaded) -> bool:
    """Whether the shape is that of sgl-eval."""
    if len(loaded.parts) != 1:
        return False
    root = loaded.parts[0].root
    return isinstance(root.get("aggregate"), dict) and ("latency_seconds" in root or "output_throughput_tps" in root)


def read(file: ResultBytes) -> SglangEval:
    """Read the file of run_eval.

    Raises:
        ResultError: When it has no score, or both kinds of score, or one that is none.
    """
    part, fields = open_object(file)
    notes = fields.notes
    repeats = None
    if "mean_score" in fields.values or "scores" in fields.values:
        if "score" in fields.values:
            notes.problem(fields.at("score"), "either score, or mean_score and scores", "both")
        score = fields.number("mean_score", MEAN_SCORE, need=True, high=1)
        repeats = fields.series("scores", ONE_SCORE, need=True, high=1, as_text=True)
        if repeats is not None and not repeats.written:
            notes.problem(repeats.field, "at least one score", "none")
        elif repeats is not None and score is not None:
            mean = sum(repeats.written) / len(repeats.written)
            if not agree(mean, score.value, relative=0, absolute=_ROUNDED):
                notes.fault(score.field, f"is {score.value:g}, and the mean of scores is {mean:g}")
    else:
        score = fields.number("score", SCORE, need=True, high=1)
    deviation = fields.number("score:std", DEVIATION)
    latency = fields.number("latency", LATENCY, need=True)
    throughput = fields.number("output_throughput", THROUGHPUT)
    if throughput is None:
        notes.remark(fields.at("output_throughput"), "not stated: the server counted no completion tokens")
    notes.remark("", "does not say how many examples were asked")
    remarks = notes.close((part,))
    if score is None or latency is None:
        notes.refuse()
    return SglangEval(
        file=file.name,
        remarks=remarks,
        score=score,
        repeats=repeats,
        deviation=deviation,
        latency=latency,
        output_throughput=throughput,
    )


def read_sgl(file: ResultBytes) -> SglEval:
    """Read `metrics.json` of sgl-eval.

    Raises:
        ResultError: When it has no score, or one that is none.
    """
    part, fields = open_object(file)
    aggregate = fields.part("aggregate", need=True)
    score = aggregate.number("score", SCORE, need=True, high=1) if aggregate is not None else None
    model = fields.text("model")
    latency = fields.number("latency_seconds", LATENCY)
    throughput = fields.number("output_throughput_tps", THROUGHPUT)
    remarks = fields.notes.close((part,))
    if score is None:
        fields.notes.refuse()
    return SglEval(
        file=file.name, remarks=remarks, model=model, score=score, latency=latency, output_throughput=throughput
    )
