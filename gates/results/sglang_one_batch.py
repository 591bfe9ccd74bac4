"""SGLang's `bench_one_batch_server --result-filename`: one JSON object a line, appended.

-1 stands for nothing in `acc_length` and `last_gen_throughput`. Prompts are random token ids, so a length says nothing
of a drafter's quality. The length is that of one data-parallel rank, the first or the last by version, since the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes
from gates.results.documents import Layout, Loaded
from gates.results.fields import Fields, Reading, open_file
from gates.results.meaning import Bonus, Meaning, Number, Scope, Unit
from gates.results.speculation import remark_on_one

BATCH: Final = Meaning("requests of the batch", Unit.REQUESTS, Scope.SETTING)
INPUT: Final = Meaning("prompt tokens of each request", Unit.TOKENS, Scope.SETTING)
OUTPUT: Final = Meaning("output tokens of each request", Unit.TOKENS, Scope.SETTING)
LATENCY: Final = Meaning("time of the batch", Unit.SECONDS, Scope.RUN)
TTFT: Final = Meaning("time until the last request had its first token", Unit.SECONDS, Scope.RUN)
INPUT_THROUGHPUT: Final = Meaning(
    "prompt throughput", Unit.TOKENS_PER_SECOND, Scope.RUN, "batch x input / last time to first token"
)
OUTPUT_THROUGHPUT: Final = Meaning(
    "output throughput", Unit.TOKENS_PER_SECOND, Scope.RUN, "batch x output / (latency - last time to first token)"
)
OVERALL_THROUGHPUT: Final = Meaning(
    "throughput of prompt and output tokens", Unit.TOKENS_PER_SECOND, Scope.RUN, "batch x (input + output) / latency"
)
LAST_THROUGHPUT: Final = Meaning("throughput that a rank logged last", Unit.TOKENS_PER_SECOND, Scope.MOMENT)
LENGTH: Final = Meaning(
    "acceptance length of one rank, on random token ids",
    Unit.TOKENS_PER_STEP,
    Scope.SERVER_OR_FLUSH,
    "tokens accepted, the bonus token among them / verify steps",
    Bonus.WITH,
)

NOTHING: Final = -1
_KEYS: Final = ("acc_length", "last_ttft", "overall_throughput", "last_gen_throughput", "run_name", "batch_size")


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One line; `length` and `last_throughput` are None where the file says -1."""

    name: str
    batch: Number
    input_length: Number
    output_length: Number
    latency: Number
    ttft: Number
    input_throughput: Number | None
    output_throughput: Number | None
    overall_throughput: Number | None
    last_throughput: Number | None
    length: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangOneBatch(Reading):
    """A whole file: its runs, the oldest first."""

    WRITTEN_BY: ClassVar[str] = "SGLang bench_one_batch_server"

    runs: tuple[BatchRun, ...]


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    return bool(loaded.parts) and all(sum(key in part.root for key in _KEYS) >= 4 for part in loaded.parts)


def read(file: ResultBytes) -> SglangOneBatch:
    """Read the file.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    loaded, notes = open_file(file, Layout.LINES, Layout.OBJECT)
    found = [_run(Fields(notes, part.path, part.root)) for part in loaded.parts]
    runs = tuple(run for run in found if run is not None)
    if len(runs) > 1:
        notes.remark("", f"holds {len(runs)} runs, appended")
        settings = [(run.name, run.batch.value, run.input_length.value, run.output_length.value) for run in runs]
        if len(set(settings)) < len(settings):
            notes.fault("", "several runs with the same name and sizes: nobody can tell which is the one that counts")
    return SglangOneBatch(file=file.name, remarks=notes.close(loaded.parts), runs=runs)


def _run(fields: Fields) -> BatchRun | None:
    name = fields.text("run_name", need=True)
    batch = fields.count("batch_size", BATCH, need=True, low=1)
    inputs = fields.count("input_len", INPUT, need=True)
    outputs = fields.count("output_len", OUTPUT, need=True)
    latency = fields.number("latency", LATENCY, need=True)
    ttft = fields.number("last_ttft", TTFT, need=True)
    throughputs = (
        fields.number("input_throughput", INPUT_THROUGHPUT),
        fields.number("output_throughput", OUTPUT_THROUGHPUT),
        fields.number("overall_throughput", OVERALL_THROUGHPUT),
    )
    last = _or_nothing(fields, "last_gen_throughput", LAST_THROUGHPUT)
    length = _or_nothing(fields, "acc_length", LENGTH, need=True)
    if name is None or batch is None or inputs is None or outputs is None or latency is None or ttft is None:
        return None
    run = BatchRun(name, batch, inputs, outputs, latency, ttft, *throughputs, last, length)
    _remark(fields, run)
    return run


def _or_nothing(fields: Fields, key: str, meaning: Meaning, *, need: bool = False) -> Number | None:
    """A number, None for exactly -1."""
    value = fields.values.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == NOTHING:
        fields.notes.remark(fields.at(key), "-1 stands for nothing: the server did not state it")
        return None
    return fields.number(key, meaning, need=need)


def _remark(fields: Fields, run: BatchRun) -> None:
    notes = fields.notes
    if run.length is not None and run.length.value < 1:
        notes.fault(run.length.field, "below 1: a length that counts the bonus token cannot be")
    elif run.length is not None:
        remark_on_one(notes, run.length)
        notes.remark(run.length.field, "on random token ids: says nothing of the drafter's quality")
    if run.overall_throughput is not None and run.latency.value > 0:
        implied = run.batch.value * (run.input_length.value + run.output_length.value) / run.latency.value
        if not agree(run.overall_throughput.value, implied):
            notes.fault(run.overall_throughput.field, f"does not follow from sizes and latency, which give {implied:g}")
