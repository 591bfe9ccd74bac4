"""gate_smoke: does the exported drafter serve, and does the target accept what it drafts?

A broken draft head does not show in the text: speculative decoding keeps the target's output whatever is drafted. It
shows in the counters. So a smoke test that passes has served every prompt *and* accepted more than noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from gates.counters import (
    ACCEPTANCE_FLOOR,
    MIN_ACCEPTANCE_LENGTH,
    Counters,
    Work,
    check_real,
    judge_acceptance,
    judge_counters,
    judge_stated_length,
    read_counters,
    read_draft_tokens,
)
from gates.expectations import Expected, Kind, bar_below_ceiling, setting
from gates.header import IDENTITY_TOLERANCE, agree, judge_header, judge_problems, same_path
from gates.reading import ResultBytes
from gates.record import Record, Sheet
from gates.stages import judge_stage
from gates.verdict import FailureClass, Verdict

GATE: Final = "smoke"
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.CHECKPOINT_NOT_SERVABLE,
    FailureClass.ACCEPTANCE_REGRESSION,
)
DEGENERATE_FROM: Final = 4
"""An output of so many tokens that are all the same is degenerate; a shorter one may be an answer."""

FINISHED: Final = ("stop", "length")
"""How a request ends when nothing went wrong."""

_RATE_ROUNDING: Final = 0.0005
"""Rates may be printed with three decimals."""

_NOT_SERVABLE: Final = FailureClass.CHECKPOINT_NOT_SERVABLE
_LOW: Final = FailureClass.ACCEPTANCE_REGRESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeExpected(Expected):
    """What a smoke result is compared with."""

    model: str | None = setting(Kind.TEXT, "model id that the server must serve")
    drafter: str | None = setting(Kind.PATH, "folder of the drafter that must be served")
    draft_tokens: int | None = setting(Kind.COUNT, "proposed tokens a step")
    prompts: int | None = setting(Kind.COUNT, "number of prompts")
    min_drafts: int = setting(Kind.COUNT, "least number of verification steps", 32)
    min_acceptance_length: float = setting(
        Kind.NUMBER,
        "smallest acceptance length that passes, in tokens with the bonus token",
        MIN_ACCEPTANCE_LENGTH,
        floor=ACCEPTANCE_FLOOR,
    )


@dataclass(frozen=True, slots=True)
class _Outputs:
    """What the prompts were answered with: how many well, whether all of them, and with how many tokens in all."""

    passed: int
    complete: bool
    tokens: int
    identical: int | None


def judge_smoke(smoke: ResultBytes, expected: SmokeExpected | None = None) -> Verdict:
    """Judge a smoke test.

    Args:
        smoke: smoke.json.
        expected: What to compare with; None compares with nothing but the thresholds.
    """
    expected = expected or SmokeExpected()
    sheet = Sheet(GATE)
    record = sheet.open(smoke)
    if record is not None:
        judge_header(record, expected)
        if judge_stage(record):
            _judge_done(record, expected)
        else:
            _tell_server(record)
    return sheet.verdict(FailureClass.MEASUREMENT_INVALID, PRECEDENCE)


def _tell_server(record: Record) -> None:
    """Facts about a server that did not come as far as being measured; none of them has to be there."""
    server = record.values.get("server")
    if isinstance(server, dict):
        for key in ("exit_status", "started_in_s", "timeout_s", "version"):
            if isinstance(server.get(key), int | float | str):
                record.sheet.fact(f"server_{key}", server[key])


def _judge_done(record: Record, expected: SmokeExpected) -> None:
    judge_problems(record, record.sheet.malformed, optional=True)
    k = _judge_server(record, expected)
    outputs = _judge_prompts(record, expected)
    read = read_counters(record)
    length = record.number("acceptance_length", above=0)
    rate = record.number("acceptance_rate", minimum=0)
    rates = record.numbers("per_position_rates", empty=True)
    _tell(record, outputs, length, rate)
    if k is None or outputs is None or read is None:
        return
    counters, where = read
    bar_below_ceiling(record.sheet, "min_acceptance_length", expected.min_acceptance_length, k + 1, "draft tokens + 1")
    # Steps of a prompt that failed are in the counters, its tokens are not in the outputs: nothing to compare then.
    tokens = outputs.tokens if outputs.complete else None
    work = Work(k=k, requests=outputs.passed, output_tokens=tokens)
    if not judge_counters(counters, where.classed(_NOT_SERVABLE), work):
        return
    where.check(
        "samples",
        counters.drafts >= expected.min_drafts,
        counters.drafts,
        f">= {expected.min_drafts}",
        "drafts",
        unit="verification steps",
    )
    if length is not None:
        judge_stated_length(length, counters, record)
    _judge_rates(record, counters, rate, rates)
    judge_acceptance(counters.acceptance_length, record, "acceptance_length", k, expected.min_acceptance_length, _LOW)
    first = counters.per_position[0] if counters.per_position else 0
    where.check("first_position", first > 0, first, "> 0", "per_position", unit="accepted steps", cls=_LOW)


def _tell(record: Record, outputs: _Outputs | None, length: float | None, rate: float | None) -> None:
    """What a reader wants to know first, whatever the verdict."""
    sheet = record.sheet
    sheet.fact("acceptance_length", length)
    sheet.fact("acceptance_rate", rate)
    if outputs is not None:
        sheet.fact("prompts_passed", outputs.passed)
        sheet.fact("output_tokens", outputs.tokens)
        sheet.fact("reference_identical", outputs.identical)


def _judge_server(record: Record, expected: SmokeExpected) -> int | None:
    """Check that the server that answered is the one that was asked for; returns the draft tokens a step."""
    requested = record.record("requested")
    server = record.record("server")
    if requested is None or server is None:
        return None
    for key, wanted in (("model", expected.model), ("drafter", expected.drafter)):
        asked, served = requested.text(key), server.text(key)
        if asked is None or served is None:
            continue
        same = same_path if key == "drafter" else str.__eq__
        if wanted is not None:
            requested.check(f"{key}_requested", same(asked, wanted), asked, f"= {wanted}", key)
        server.check(f"{key}_served", same(served, asked), served, f"= {asked}", key)
    check_real(server)
    version = server.text("version")
    record.sheet.fact("server_version", version)
    asked_k, k = read_draft_tokens(requested), read_draft_tokens(server)
    if asked_k is None or k is None:
        return None
    if expected.draft_tokens is not None:
        wanted_k = expected.draft_tokens
        requested.check("draft_tokens_requested", asked_k == wanted_k, asked_k, f"= {wanted_k}", "num_draft_tokens")
    server.check("draft_tokens_served", k == asked_k, k, f"= {asked_k}", "num_draft_tokens")
    return k


def _judge_prompts(record: Record, expected: SmokeExpected) -> _Outputs | None:
    """Check that every prompt was answered, and with more than one token repeated."""
    total = record.integer("prompts_expected", minimum=1)
    passed = record.integer("prompts_passed")
    rows = record.records("outputs", empty=True)
    if total is None or passed is None or rows is None:
        return None
    if expected.prompts is not None:
        record.check("prompts_expected", total == expected.prompts, total, f"= {expected.prompts}", "prompts_expected")
    record.check(
        "prompts_passed", passed == total, passed, f"= {total}", "prompts_passed", unit="prompts", cls=_NOT_SERVABLE
    )
    record.check("outputs", len(rows) == total, len(rows), f"= {total}", "outputs", unit="outputs")
    names = [row.label("id") for row in rows]
    record.check("ids_differ", len(set(names)) == len(names), len(set(names)), f"= {len(names)}", "outputs", unit="ids")
    return _judge_outputs(record, rows, passed)


def _judge_outputs(record: Record, rows: Sequence[Record], stated: int) -> _Outputs:
    good = [row for row in rows if _answered(row)]
    record.check("passed_recounted", len(good) == stated, len(good), f"= {stated} stated", "outputs", unit="prompts")
    answers = [row.integers("token_ids") or () for row in good]
    references = [row.integers("reference_token_ids") if row.has("reference_token_ids") else None for row in good]
    dull = [
        row
        for row, answer, reference in zip(good, answers, references, strict=True)
        if len(answer) >= DEGENERATE_FROM and len(set(answer)) == 1 and answer != reference
    ]
    where, field = (dull[0], "token_ids") if dull else (record, "outputs")
    where.check(
        "outputs_vary",
        not dull,
        len(dull),
        "= 0, except where the target alone says the same",
        field,
        unit="outputs of one token repeated",
        cls=_NOT_SERVABLE,
    )
    identical = _identical(record, answers, references)
    return _Outputs(len(good), len(good) == len(rows), sum(map(len, answers)), identical)


def _answered(row: Record) -> bool:
    """Whether a prompt was answered: tokens, an orderly end, no error. What is not so is a failing check."""
    error = row.text("error", optional=True, empty=True)
    if error:
        row.check("answered", False, f"error: {error}", "an output without error", "error", cls=_NOT_SERVABLE)
        return False
    end = row.text("finish_reason")
    ids = row.classed(_NOT_SERVABLE).integers("token_ids")
    if end is not None and end not in FINISHED:
        row.check("answered", False, end, f"= {' or '.join(FINISHED)}", "finish_reason", cls=_NOT_SERVABLE)
    return bool(ids) and end in FINISHED


def _identical(
    record: Record, answers: Sequence[tuple[int, ...]], references: Sequence[tuple[int, ...] | None]
) -> int | None:
    """How many outputs the target alone gives too, counted again; None where it was not asked."""
    stated = record.integer("reference_identical", optional=True)
    if all(reference is None for reference in references):
        if stated is not None:
            record.check("reference_recounted", False, stated, "null without reference outputs", "reference_identical")
        return None
    counted = sum(answer == reference for answer, reference in zip(answers, references, strict=True))
    record.check("reference_recounted", stated == counted, stated, f"= {counted} counted", "reference_identical")
    return counted


def _judge_rates(record: Record, counters: Counters, rate: float | None, rates: tuple[float, ...] | None) -> None:
    """Check the stated rates against the counters."""
    if rate is not None:
        computed = float(counters.acceptance_rate)
        record.check(
            "rate_identity",
            agree(rate, computed, absolute=_RATE_ROUNDING),
            rate,
            f"= {counters.accepted} accepted / {counters.draft_tokens} drafted = {computed:.4f}, "
            f"within {IDENTITY_TOLERANCE:.0%}",
            "acceptance_rate",
            unit="fraction 0-1",
        )
    if rates is None:
        return
    shares = [count / counters.drafts for count in counters.per_position]
    # A position that is not listed is 0: engines leave out what never happened.
    pairs = zip_longest(rates, shares, fillvalue=0.0)
    same = all(agree(one, other, absolute=_RATE_ROUNDING) for one, other in pairs)
    record.check(
        "position_rates",
        same,
        ", ".join(f"{one:.4g}" for one in rates),
        f"= {', '.join(f'{one:.4g}' for one in shares)}, within {IDENTITY_TOLERANCE:.0%}",
        "per_position_rates",
        unit="fraction 0-1",
    )
