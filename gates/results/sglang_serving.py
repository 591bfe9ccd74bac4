"""SGLang's `bench_serving --output-file`: one JSON object a line, appended by every run.

`accept_length` is what data-parallel rank 0 stated after the run. It counts the bonus token, and covers everything
since the server started or its cache was flushed, not this run. Failed requests are not counted: `completed` must be
compared with what was asked for, which the file does not say. `request_rate` may be a bare `Infinity`, or "trace".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes, Unusable
from gates.results.documents import Layout, Loaded
from gates.results.fields import Fields, Notes, Reading, open_file
from gates.results.meaning import Bonus, Meaning, Number, Scope, Table, Unit
from gates.results.serving import check_answers, check_per_second, read_latencies
from gates.results.sglang_server import ServerFacts, read_facts
from gates.results.speculation import remark_on_one

CONCURRENCY: Final = Meaning("most requests at a time", Unit.REQUESTS, Scope.SETTING)
REQUEST_RATE: Final = Meaning("requests a second to send", Unit.REQUESTS_PER_SECOND, Scope.SETTING)
MEASURED: Final = Meaning("mean number of requests at a time", Unit.REQUESTS, Scope.RUN, "sum of latencies / duration")
DURATION: Final = Meaning("time of the run", Unit.SECONDS, Scope.RUN)
COMPLETED: Final = Meaning("requests that were answered", Unit.REQUESTS, Scope.RUN)
INPUT: Final = Meaning("prompt tokens", Unit.TOKENS, Scope.RUN)
OUTPUT: Final = Meaning("output tokens, as the server or the request states them", Unit.TOKENS, Scope.RUN)
RETOKENIZED: Final = Meaning("output tokens, counted again by the client's tokenizer", Unit.TOKENS, Scope.RUN)
REQUESTS_A_SECOND: Final = Meaning("answered requests a second", Unit.REQUESTS_PER_SECOND, Scope.RUN)
THROUGHPUT: Final = Meaning("output throughput", Unit.TOKENS_PER_SECOND, Scope.RUN, "output tokens / duration")
LATENCY: Final = Meaning(
    "latencies: ttft to the first token, tpot for each token behind it, itl between chunks, e2e_latency of the request",
    Unit.MILLISECONDS,
    Scope.RUN,
)
LENGTH: Final = Meaning(
    "acceptance length of data-parallel rank 0",
    Unit.TOKENS_PER_STEP,
    Scope.SERVER_OR_FLUSH,
    "tokens accepted, the bonus token among them / verify steps",
    Bonus.WITH,
)

_KEYS: Final = (
    "accept_length",
    "total_output_tokens_retokenized",
    "sharegpt_output_len",
    "random_range_ratio",
    "server_info",
    "mean_e2e_latency_ms",
)
_LATENCIES: Final = re.compile(r"(?:mean|median|std|max|p[0-9]{1,2})_(?:e2e_latency|ttft|tpot|itl)_ms")


@dataclass(frozen=True, slots=True)
class ServingRun:
    """One line.

    Attributes:
        request_rate: None without limit, with a trace, and where the file says nothing.
        unlimited: Whether the file says that there is no limit.
        traced: Whether requests were sent at the times of a trace.
        concurrency: `max_concurrency`; None is without limit.
        measured: Requests at a time, as measured.
        length: None where the file says null: speculation was off, or too little was verified.
        server: What the server stated after the run, where it could be asked.
    """

    tag: str | None
    backend: str
    dataset: str | None
    request_rate: Number | None
    unlimited: bool
    traced: bool
    concurrency: Number | None
    measured: Number | None
    duration: Number
    completed: Number
    input_tokens: Number
    output_tokens: Number
    retokenized: Number
    request_throughput: Number
    output_throughput: Number
    latencies: Table
    length: Number | None
    server: ServerFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangServing(Reading):
    """A whole file: its runs, the oldest first."""

    WRITTEN_BY: ClassVar[str] = "SGLang bench_serving"

    runs: tuple[ServingRun, ...]


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    return bool(loaded.parts) and all(
        sum(key in part.root for key in _KEYS) >= 3 and "endpoint_type" not in part.root for part in loaded.parts
    )


def read(file: ResultBytes) -> SglangServing:
    """Read the file.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    loaded, notes = open_file(file, Layout.LINES, Layout.OBJECT)
    found = [_run(Fields(notes, part.path, part.root)) for part in loaded.parts]
    runs = tuple(run for run in found if run is not None)
    _remark_runs(notes, runs)
    return SglangServing(file=file.name, remarks=notes.close(loaded.parts), runs=runs)


def _remark_runs(notes: Notes, runs: tuple[ServingRun, ...]) -> None:
    if len(runs) < 2:
        return
    notes.remark("", f"holds {len(runs)} runs, appended: each must be taken by its settings")
    same = Counter(
        (run.tag, run.backend, run.dataset, run.concurrency and run.concurrency.written, _rate(run)) for run in runs
    )
    for count in same.values():
        if count > 1:
            notes.fault(
                "", f"{count} runs with the same tag and settings: nobody can tell which is the one that counts"
            )


def _rate(run: ServingRun) -> float | None:
    return None if run.request_rate is None else run.request_rate.written


def _run(fields: Fields) -> ServingRun | None:
    backend = fields.text("backend", need=True)
    duration = fields.number("duration", DURATION, need=True)
    completed = fields.count("completed", COMPLETED, need=True)
    inputs = fields.count("total_input_tokens", INPUT, need=True)
    outputs = fields.count("total_output_tokens", OUTPUT, need=True)
    requests = fields.number("request_throughput", REQUESTS_A_SECOND, need=True)
    throughput = fields.number("output_throughput", THROUGHPUT, need=True)
    if "accept_length" not in fields.values:
        fields.notes.problem(fields.at("accept_length"), "a number or null", "nothing")
    rate, unlimited, traced = _request_rate(fields)
    tag, dataset = fields.text("tag"), fields.text("dataset_name")
    concurrency = fields.count("max_concurrency", CONCURRENCY, low=1)
    measured = fields.number("concurrency", MEASURED)
    retokenized = fields.count("total_output_tokens_retokenized", RETOKENIZED, need=True)
    latencies = read_latencies(fields, _LATENCIES, LATENCY)
    length = fields.number("accept_length", LENGTH)
    info = fields.part("server_info")
    server = read_facts(info, need=False) if info is not None else None
    if backend is None or duration is None or completed is None or inputs is None or outputs is None:
        return None
    if requests is None or throughput is None or retokenized is None:
        return None
    run = ServingRun(
        tag=tag,
        backend=backend,
        dataset=dataset,
        request_rate=rate,
        unlimited=unlimited,
        traced=traced,
        concurrency=concurrency,
        measured=measured,
        duration=duration,
        completed=completed,
        input_tokens=inputs,
        output_tokens=outputs,
        retokenized=retokenized,
        request_throughput=requests,
        output_throughput=throughput,
        latencies=latencies,
        length=length,
        server=server,
    )
    _remark(fields, run)
    return run


def _request_rate(fields: Fields) -> tuple[Number | None, bool, bool]:
    """The rate; whether it is without limit; whether the times of a trace were followed."""
    value = fields.values.get("request_rate")
    if isinstance(value, Unusable) and value.text == "Infinity":
        fields.notes.named.add(fields.at("request_rate"))
        return None, True, False
    if value in ("trace", "inf"):
        return None, value == "inf", value == "trace"
    return fields.number("request_rate", REQUEST_RATE), False, False


def _check_rank(fields: Fields, run: ServingRun, length: Number) -> None:
    """Check the length against that of the first rank, from whose answer it was taken."""
    first = run.server.states[0].length if run.server is not None and run.server.states else None
    if first is not None and not agree(length.value, first.value):
        fields.notes.fault(length.field, f"is {length.value:g}, and {first.field} is {first.value:g}")


def _remark(fields: Fields, run: ServingRun) -> None:
    notes = fields.notes
    notes.remark(run.completed.field, "failed requests are not counted: compare it with how many were asked for")
    if run.length is None:
        words = "null: speculation is off, or too little was verified, or the server could not be asked"
        notes.remark(fields.at("accept_length"), words)
    elif run.length.value < 1:
        notes.fault(run.length.field, "below 1: a length that counts the bonus token cannot be")
    else:
        remark_on_one(notes, run.length)
        notes.remark(run.length.field, "covers the server since its start or last flush, warm-up included")
        _check_rank(fields, run, run.length)
    if run.server is not None and len(run.server.states) > 1:
        notes.remark(fields.at("accept_length"), f"is that of one of {len(run.server.states)} ranks")
    if run.dataset in ("random", "random-ids"):
        notes.remark(fields.at("dataset_name"), "random text: acceptance says nothing of the drafter's quality")
    check_answers(fields, run.completed)
    check_per_second(notes, run.output_throughput, run.output_tokens, run.duration)
    check_per_second(notes, run.request_throughput, run.completed, run.duration)
