"""Result of `vllm bench serve --save-result` (vllm/benchmarks/serve.py).

One file states acceptance in two units: `spec_decode_acceptance_rate` is in per cent,
`spec_decode_per_position_acceptance_rates` are fractions. Both come from the difference of two readings of the server's
counters, so they cover whatever traffic the server had meanwhile, not only this client's. The keys are there only when
something was drafted: a file without them cannot tell "off" from "did not draft" and "the counters could not be read".

`--append-result` writes documents one after the other. Values from `--metadata` are texts, and may stand in for
`num_prompts`. Neither data set nor temperature are in the file, unless somebody put them there.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Layout, Loaded
from gates.results.fields import Fields, Notes, Problem, Reading, ResultError, open_file
from gates.results.meaning import PER_CENT, Bonus, Meaning, Number, Scope, Series, Table, Unit
from gates.results.serving import check_answers, check_per_second, read_latencies
from gates.results.speculation import (
    ENOUGH_STEPS,
    check_counts,
    check_length,
    check_positions,
    check_rate,
    check_settings,
    check_simulated,
    exactly_taken,
)

PROMPTS: Final = Meaning("prompts to send", Unit.REQUESTS, Scope.SETTING)
CONCURRENCY: Final = Meaning("most requests at a time", Unit.REQUESTS, Scope.SETTING)
REQUEST_RATE: Final = Meaning("requests a second to send", Unit.REQUESTS_PER_SECOND, Scope.SETTING)
OBSERVED: Final = Meaning("most requests at a time that were seen", Unit.REQUESTS, Scope.RUN)
DURATION: Final = Meaning("time of the run", Unit.SECONDS, Scope.RUN)
COMPLETED: Final = Meaning("requests that were answered", Unit.REQUESTS, Scope.RUN)
FAILED: Final = Meaning("requests that failed", Unit.REQUESTS, Scope.RUN)
INPUT: Final = Meaning("prompt tokens of the answered requests", Unit.TOKENS, Scope.RUN)
OUTPUT: Final = Meaning("output tokens of the answered requests", Unit.TOKENS, Scope.RUN)
REQUESTS_A_SECOND: Final = Meaning("answered requests a second", Unit.REQUESTS_PER_SECOND, Scope.RUN)
THROUGHPUT: Final = Meaning("output throughput", Unit.TOKENS_PER_SECOND, Scope.RUN, "output tokens / duration")
TOTAL_THROUGHPUT: Final = Meaning(
    "throughput of prompt and output tokens", Unit.TOKENS_PER_SECOND, Scope.RUN, "(input + output tokens) / duration"
)
PEAK: Final = Meaning("most output tokens in one second", Unit.TOKENS_PER_SECOND, Scope.RUN)
LATENCY: Final = Meaning(
    "latencies: ttft to the first token, tpot for each token behind it, itl between chunks (a chunk may hold several "
    "tokens), e2el of the whole request",
    Unit.MILLISECONDS,
    Scope.RUN,
)
RATE: Final = Meaning(
    "acceptance rate, written in per cent",
    Unit.FRACTION,
    Scope.WINDOW,
    "accepted / draft tokens",
    scale=PER_CENT,
)
LENGTH: Final = Meaning("acceptance length", Unit.TOKENS_PER_STEP, Scope.WINDOW, "1 + accepted / drafts", Bonus.WITH)
DRAFTS: Final = Meaning("steps that had draft tokens", Unit.STEPS, Scope.WINDOW)
DRAFT_TOKENS: Final = Meaning("draft tokens", Unit.TOKENS, Scope.WINDOW)
ACCEPTED: Final = Meaning("draft tokens that were taken", Unit.TOKENS, Scope.WINDOW)
POSITIONS: Final = Meaning(
    "by draft position: share of the steps in which it was taken",
    Unit.FRACTION,
    Scope.WINDOW,
    "accepted at the position / drafts",
)

SPECULATION: Final = (
    "spec_decode_acceptance_rate",
    "spec_decode_acceptance_length",
    "spec_decode_num_drafts",
    "spec_decode_draft_tokens",
    "spec_decode_accepted_tokens",
    "spec_decode_per_position_acceptance_rates",
)
_LATENCIES: Final = re.compile(r"(?:mean|median|std|p[0-9]{1,2}(?:\.[0-9]+)?)_(?:ttft|tpot|itl|e2el)_ms")
_MOST: Final = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Speculation:
    """What the server's counters said of the time of the run.

    Attributes:
        rate: Accepted share of the draft tokens.
        length: None where the file writes 0.0, which stands for "no drafts".
        drafts: Steps that had draft tokens.
        draft_tokens: Draft tokens.
        accepted: Those that were taken.
        positions: Share by position; empty where the server has no such counters.
    """

    rate: Number
    length: Number | None
    drafts: Number
    draft_tokens: Number
    accepted: Number
    positions: Series


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One document of the file.

    Attributes:
        date: When it was written, in the client's own time zone.
        backend: Kind of server API.
        model: `model_id`.
        prompts: Requests to send.
        concurrency: `max_concurrency`; None is without limit.
        request_rate: None where the file says "inf", and where it says nothing.
        unlimited: Whether it says "inf".
        observed: `max_concurrent_requests`, where the version writes it.
        completed: Answered requests.
        failed: Failed requests; None where the version does not write it.
        speculation: None where the file has no such keys, for whatever reason.
    """

    date: str | None
    backend: str | None
    model: str
    prompts: Number
    concurrency: Number | None
    request_rate: Number | None
    unlimited: bool
    observed: Number | None
    duration: Number
    completed: Number
    failed: Number | None
    input_tokens: Number
    output_tokens: Number
    request_throughput: Number
    output_throughput: Number
    total_throughput: Number | None
    peak: Number | None
    latencies: Table
    speculation: Speculation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmBench(Reading):
    """A whole file: its runs, the oldest first."""

    WRITTEN_BY: ClassVar[str] = "vllm bench serve"

    runs: tuple[BenchRun, ...]

    def at(self, concurrency: int) -> BenchRun:
        """The run at one concurrency.

        Raises:
            ResultError: When there is none, or more than one.
        """
        found = [run for run in self.runs if run.concurrency is not None and run.concurrency.value == concurrency]
        if len(found) == 1:
            return found[0]
        problem = Problem("max_concurrency", f"exactly one run with {concurrency}", f"{len(found)}")
        raise ResultError(self.file, [problem])


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    own = ("endpoint_type", "total_token_throughput", "tokenizer_id", "num_prompts", "burstiness", *SPECULATION)
    foreign = ("accept_length", "acceptance_rate", "request_goodput:", "best_of", "server_info")
    return bool(loaded.parts) and all(
        sum(key in part.root for key in own) >= 3
        and ("endpoint_type" in part.root or not any(key in part.root for key in foreign))
        for part in loaded.parts
    )


def read(file: ResultBytes) -> VllmBench:
    """Read the file.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    loaded, notes = open_file(file, Layout.OBJECT, Layout.LINES, Layout.SEQUENCE)
    runs = [_run(Fields(notes, part.path, part.root)) for part in loaded.parts]
    made = tuple(run for run in runs if run is not None)
    _remark_runs(notes, made)
    return VllmBench(file=file.name, remarks=notes.close(loaded.parts), runs=made)


def _remark_runs(notes: Notes, runs: tuple[BenchRun, ...]) -> None:
    if len(runs) < 2:
        return
    notes.remark("", f"holds {len(runs)} runs, appended: each must be taken by its max_concurrency")
    levels = Counter(
        tuple(None if number is None else number.value for number in (run.concurrency, run.request_rate))
        for run in runs
    )
    for (concurrency, rate), count in levels.items():
        if count > 1:
            words = f"{count} runs with max_concurrency {_level(concurrency)} and request_rate {_level(rate)}"
            notes.fault("", f"{words}: nobody can tell which is the one that counts")


def _level(value: float | None) -> str:
    return "without limit" if value is None else f"{value:g}"


def _run(fields: Fields) -> BenchRun | None:
    fields.text("endpoint_type", need=True)  # what forks of the same program do not write
    model = fields.text("model_id", need=True)
    prompts = fields.count("num_prompts", PROMPTS, need=True)
    duration = fields.number("duration", DURATION, need=True)
    completed = fields.count("completed", COMPLETED, need=True)
    inputs = fields.count("total_input_tokens", INPUT, need=True)
    outputs = fields.count("total_output_tokens", OUTPUT, need=True)
    requests = fields.number("request_throughput", REQUESTS_A_SECOND, need=True)
    throughput = fields.number("output_throughput", THROUGHPUT, need=True)
    date, backend = fields.text("date"), fields.text("backend")
    concurrency, rate = fields.count("max_concurrency", CONCURRENCY, low=1), _request_rate(fields)
    observed = fields.number("max_concurrent_requests", OBSERVED)
    failed = fields.count("failed", FAILED)
    total = fields.number("total_token_throughput", TOTAL_THROUGHPUT)
    peak = fields.number("max_output_tokens_per_s", PEAK)
    latencies = read_latencies(fields, _LATENCIES, LATENCY)
    speculation = _speculation(fields)
    if (
        model is None
        or prompts is None
        or duration is None
        or completed is None
        or inputs is None
        or outputs is None
        or requests is None
        or throughput is None
    ):
        return None
    run = BenchRun(
        date=date,
        backend=backend,
        model=model,
        prompts=prompts,
        concurrency=concurrency,
        request_rate=rate,
        unlimited=fields.values.get("request_rate") == "inf",
        observed=observed,
        duration=duration,
        completed=completed,
        failed=failed,
        input_tokens=inputs,
        output_tokens=outputs,
        request_throughput=requests,
        output_throughput=throughput,
        total_throughput=total,
        peak=peak,
        latencies=latencies,
        speculation=speculation,
    )
    _remark(fields, run)
    return run


def _request_rate(fields: Fields) -> Number | None:
    """A number, or the text "inf", which is no limit."""
    return None if fields.values.get("request_rate") == "inf" else fields.number("request_rate", REQUEST_RATE)


def _speculation(fields: Fields) -> Speculation | None:
    """All of the keys, or none of them."""
    if not any(key in fields.values for key in SPECULATION):
        return None
    rate = fields.number(SPECULATION[0], RATE, need=True, high=100 * _MOST)
    length = fields.number(SPECULATION[1], LENGTH, need=True)
    drafts = fields.count(SPECULATION[2], DRAFTS, need=True)
    draft_tokens = fields.count(SPECULATION[3], DRAFT_TOKENS, need=True)
    accepted = fields.count(SPECULATION[4], ACCEPTED, need=True)
    positions = fields.series(SPECULATION[5], POSITIONS, need=True, high=_MOST)
    if rate is None or length is None or drafts is None or draft_tokens is None or accepted is None:
        return None
    if positions is None:
        return None
    notes = fields.notes
    check_counts(notes, drafts, draft_tokens, accepted)
    check_rate(notes, rate, draft_tokens, accepted)
    if drafts.value == 0:
        notes.fault(length.field, f"{length.value:g} stands for no length: there were no drafts")
        return Speculation(rate, None, drafts, draft_tokens, accepted, positions)
    check_length(notes, length, drafts, accepted)
    if positions.written:
        check_positions(notes, positions, accepted.value / drafts.value, "accepted / drafts")
        enough = drafts.value >= ENOUGH_STEPS
        check_simulated(notes, positions.field, exactly_taken(positions.values), enough)
    else:
        notes.remark(positions.field, "is empty: the server has no counters by position")
    return Speculation(rate, length, drafts, draft_tokens, accepted, positions)


def _remark(fields: Fields, run: BenchRun) -> None:
    notes = fields.notes
    if run.completed.value < run.prompts.value:
        notes.remark(run.completed.field, f"{run.completed.value:g} of {run.prompts.value:g} prompts were answered")
    if run.failed is None:
        notes.remark(fields.at("failed"), "not stated: an older version, which does not count failures")
    check_answers(fields, run.completed)
    check_per_second(notes, run.output_throughput, run.output_tokens, run.duration)
    check_per_second(notes, run.request_throughput, run.completed, run.duration)
    _remark_concurrency(fields, run)
    check_settings(fields)
    if run.speculation is None:
        words = "no speculation keys: off, nothing drafted, or counters that could not be read; the file cannot tell"
        notes.remark(fields.path, words)
    else:
        _check_traffic(notes, run, run.speculation)
        words = "acceptance covers all of the server's traffic meanwhile; temperature and data set are not in the file"
        notes.remark(fields.path, words)


def _check_traffic(notes: Notes, run: BenchRun, spoken: Speculation) -> None:
    """Check that the counted steps can be those of this run.

    A step with draft tokens emits what it accepts and one more; only the last step of a request may be cut short.
    """
    if spoken.drafts.value <= 0:
        return
    emitted = spoken.accepted.value + spoken.drafts.value
    cut = -(-spoken.draft_tokens.value // spoken.drafts.value) * run.completed.value
    if emitted > run.output_tokens.value + cut:
        words = f"{emitted:g} tokens from steps that drafted, and {run.output_tokens.value:g} in the answers"
        notes.fault(spoken.drafts.field, f"{words}: other traffic was counted too")


def _remark_concurrency(fields: Fields, run: BenchRun) -> None:
    if run.concurrency is None:
        return
    most = run.concurrency.value
    if run.prompts.value < most:
        fields.notes.fault(
            run.concurrency.field, f"{most:g} at a time was never reached by {run.prompts.value:g} prompts"
        )
    elif run.observed is not None and run.observed.value < most:
        fields.notes.fault(run.observed.field, f"{run.observed.value:g} at a time were seen, {most:g} were to be")
