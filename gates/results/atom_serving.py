"""ATOM's `benchmark_serving --save-result`.

`acceptance_rate` is a fraction here. It and `accept_length` come from `/debug/mtp_stats`, which counts since the start
of the server, warm-up included; null is no speculation, and a length of 0 stands for no steps. Prompts are random text.
Failed requests are not counted, and the key of the goodput ends in a colon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.atom_accuracy import LENGTH
from gates.results.documents import Loaded
from gates.results.fields import Fields, Reading, open_object
from gates.results.meaning import Meaning, Number, Scope, Table, Unit
from gates.results.serving import check_answers, check_per_second, read_latencies
from gates.results.speculation import remark_on_one

PROMPTS: Final = Meaning("prompts to send", Unit.REQUESTS, Scope.SETTING)
CONCURRENCY: Final = Meaning("most requests at a time", Unit.REQUESTS, Scope.SETTING)
REQUEST_RATE: Final = Meaning("requests a second to send", Unit.REQUESTS_PER_SECOND, Scope.SETTING)
MEASURED: Final = Meaning("mean number of requests at a time", Unit.REQUESTS, Scope.RUN)
DURATION: Final = Meaning("time of the run", Unit.SECONDS, Scope.RUN)
COMPLETED: Final = Meaning("requests that were answered", Unit.REQUESTS, Scope.RUN)
INPUT: Final = Meaning("prompt tokens of the answered requests", Unit.TOKENS, Scope.RUN)
OUTPUT: Final = Meaning("output tokens of the answered requests", Unit.TOKENS, Scope.RUN)
REQUESTS_A_SECOND: Final = Meaning("answered requests a second", Unit.REQUESTS_PER_SECOND, Scope.RUN)
THROUGHPUT: Final = Meaning("output throughput", Unit.TOKENS_PER_SECOND, Scope.RUN, "output tokens / duration")
RATE: Final = Meaning("acceptance rate", Unit.FRACTION, Scope.SERVER, "accepted / draft tokens")
LATENCY: Final = Meaning(
    "latencies: ttft to the first token, tpot for each token behind it, itl between chunks, e2el of the whole request",
    Unit.MILLISECONDS,
    Scope.RUN,
)

_LATENCIES: Final = re.compile(r"(?:mean|median|std|p[0-9]{1,2}(?:\.[0-9]+)?)_(?:ttft|tpot|itl|e2el)_ms")
_COMMON: Final = ("num_prompts", "request_goodput:", "total_token_throughput", "best_of", "burstiness")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomServing(Reading):
    """One run; `rate` and `length` are None where the server did not speculate."""

    WRITTEN_BY: ClassVar[str] = "ATOM benchmark_serving"

    date: str | None
    backend: str | None
    model: str
    prompts: Number
    concurrency: Number | None
    measured: Number | None
    request_rate: Number | None
    unlimited: bool
    duration: Number
    completed: Number
    input_tokens: Number
    output_tokens: Number
    request_throughput: Number
    output_throughput: Number
    rate: Number | None
    length: Number | None
    latencies: Table


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one. Other forks of the same program lack the two acceptance keys."""
    if len(loaded.parts) != 1:
        return False
    root = loaded.parts[0].root
    own = "accept_length" in root or "acceptance_rate" in root
    return own and "endpoint_type" not in root and sum(key in root for key in _COMMON) >= 3


def read(file: ResultBytes) -> AtomServing:
    """Read the file.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    part, fields = open_object(file)
    for key in ("accept_length", "acceptance_rate"):
        if key not in fields.values:
            fields.notes.problem(fields.at(key), "a number or null", "nothing")
    model = fields.text("model_id", need=True)
    prompts = fields.count("num_prompts", PROMPTS, need=True)
    duration = fields.number("duration", DURATION, need=True)
    completed = fields.count("completed", COMPLETED, need=True)
    inputs = fields.count("total_input_tokens", INPUT, need=True)
    outputs = fields.count("total_output_tokens", OUTPUT, need=True)
    requests = fields.number("request_throughput", REQUESTS_A_SECOND, need=True)
    throughput = fields.number("output_throughput", THROUGHPUT, need=True)
    rate = fields.number("acceptance_rate", RATE, high=1)
    length = fields.number("accept_length", LENGTH)
    if model is None or prompts is None or duration is None or completed is None or inputs is None:
        fields.notes.refuse()
    if outputs is None or requests is None or throughput is None:
        fields.notes.refuse()
    unlimited = fields.values.get("request_rate") == "inf"
    made = AtomServing(
        file=file.name,
        remarks=(),
        date=fields.text("date"),
        backend=fields.text("backend"),
        model=model,
        prompts=prompts,
        concurrency=fields.count("max_concurrency", CONCURRENCY, low=1),
        measured=fields.number("concurrency", MEASURED),
        request_rate=None if unlimited else fields.number("request_rate", REQUEST_RATE),
        unlimited=unlimited,
        duration=duration,
        completed=completed,
        input_tokens=inputs,
        output_tokens=outputs,
        request_throughput=requests,
        output_throughput=throughput,
        rate=rate,
        length=length,
        latencies=read_latencies(fields, _LATENCIES, LATENCY),
    )
    check_answers(fields, completed)
    check_per_second(fields.notes, throughput, outputs, duration)
    check_per_second(fields.notes, requests, completed, duration)
    made = _check_acceptance(fields, made)
    return replace(made, remarks=fields.notes.close((part,)))


def _check_acceptance(fields: Fields, made: AtomServing) -> AtomServing:
    notes = fields.notes
    if made.completed.value < made.prompts.value:
        notes.remark(made.completed.field, f"{made.completed.value:g} of {made.prompts.value:g} prompts were answered")
    if made.length is None and made.rate is None:
        notes.remark(fields.at("accept_length"), "null: the server does not speculate, or could not be asked")
        return made
    if made.length is None or made.rate is None:
        notes.fault(fields.at("accept_length"), "one of accept_length and acceptance_rate is null, the other is not")
        return made
    if made.length.value == 0:
        notes.fault(made.length.field, "0 stands for no length: there were no steps")
        return replace(made, length=None, rate=None)
    if made.length.value < 1:
        notes.fault(made.length.field, "below 1: a length that counts the bonus token cannot be")
    remark_on_one(notes, made.length)
    notes.remark(made.length.field, "covers the server since its start, warm-up included; prompts are random text")
    return made
