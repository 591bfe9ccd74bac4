"""gate_correctness: is the target's greedy output the same with the drafter as without?

Speculative decoding promises it, up to the arithmetic: verifying several tokens at once takes other kernels than
decoding one by one, and a near tie may fall the other way. A server without any drafter shows the same effect against
itself when the batch differs. So the share of identical outputs (A against B) is never read alone, but beside a
control: A against a second run of A at another concurrency.

The rule, all shares recomputed from the token ids, exact, in fractions:

* `control >= min_control`, or greedy decoding on this server is no reference and nothing was measured
  (MEASUREMENT_INVALID, whatever A against B says);
* `exact_match >= min(min_exact_match, control - control_slack)`, or the drafter changes the output
  (CORRECTNESS_MISMATCH). The control can lower the bar, since what the server does to itself is not the drafter's
  doing; it never raises it.

Arms that agree in everything are fine: with deterministic kernels they must. Arms that agree because nothing was
generated are not, so the outputs have to be there, long enough, and different from prompt to prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from gates.expectations import FILE, SHA256, Expected, Kind, setting
from gates.header import exactly, judge_header, judge_problems, same_path
from gates.reading import ResultBytes
from gates.record import Record, Sheet
from gates.stages import judge_stage
from gates.verdict import FailureClass, Verdict

GATE: Final = "correctness"
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.CORRECTNESS_MISMATCH,
)
SHARE_ROUNDING: Final = 0.001
"""A stated share may be rounded to three decimals."""

_FLOOR: Final = 0.5
_ARMS: Final = ("a", "control", "b")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectnessExpected(Expected):
    """What an exact-match result is compared with."""

    drafter: str | None = setting(Kind.PATH, "folder of the frozen drafter; compared where the file states it")
    manifest_sha256: str | None = setting(Kind.DIGEST, "digest of its manifest; compared where the file states it")
    draft_tokens: int | None = setting(Kind.COUNT, "proposed tokens a step; compared where the file states it")
    min_exact_match: float = setting(
        Kind.NUMBER, "share of prompts with identical outputs that always passes", 0.9, floor=_FLOOR, ceiling=1
    )
    control_slack: float = setting(
        Kind.NUMBER, "by how much A against B may stay under A against A", 0.05, floor=0, ceiling=0.5
    )
    min_control: float = setting(
        Kind.NUMBER,
        "share of identical outputs of A against A that makes it a reference",
        0.75,
        floor=_FLOOR,
        ceiling=1,
    )
    min_prompts: int = setting(Kind.COUNT, "least number of prompts", 16)
    min_mean_tokens: int = setting(Kind.COUNT, "least mean output length of each arm, in tokens", 8)


@dataclass(frozen=True, slots=True)
class _Row:
    """The three outputs of one prompt, as token ids."""

    record: Record
    a: tuple[int, ...]
    control: tuple[int, ...]
    b: tuple[int, ...]


def judge_correctness(exact_match: ResultBytes, expected: CorrectnessExpected | None = None) -> Verdict:
    """Judge a greedy exact match with a control.

    Args:
        exact_match: exact_match.json.
        expected: What to compare with; None compares with nothing but the thresholds.
    """
    expected = expected or CorrectnessExpected()
    sheet = Sheet(GATE)
    _judge_bar(sheet, expected)
    record = sheet.open(exact_match)
    if record is not None:
        judge_header(record, expected)
        if judge_stage(record):
            _judge_done(record, expected)
    return sheet.verdict(FailureClass.MEASUREMENT_INVALID, PRECEDENCE)


def _judge_bar(sheet: Sheet, expected: CorrectnessExpected) -> None:
    """A bar that even a perfect control would lower is not the bar that was asked for."""
    highest = 1 - exactly(expected.control_slack)
    if exactly(expected.min_exact_match) > highest:
        sheet.check(
            "setting",
            False,
            expected.min_exact_match,
            f"<= {float(highest):g} = 1 - control_slack; ask for a smaller control_slack as well",
            file=FILE,
            field="min_exact_match",
            cls=FailureClass.USER_CONFIG_ERROR,
        )


def _judge_done(record: Record, expected: CorrectnessExpected) -> None:
    judge_problems(record, record.sheet.malformed, optional=True)
    _judge_drafter(record, expected)
    compared = record.text("compared")
    if compared is not None:
        record.check("compared", compared == "token_ids", compared, "= token_ids, never text", "compared")
    prompts = record.integer("prompts")
    max_tokens = record.integer("max_tokens", minimum=1)
    records = record.records("outputs", empty=True)
    if records is None:
        return
    _judge_prompts(record, records, prompts, expected.min_prompts)
    rows = [row for row in map(_row, records) if row is not None]
    if len(rows) != len(records) or not rows:
        return
    _judge_outputs(record, rows, max_tokens, expected.min_mean_tokens)
    _judge_match(record, rows, expected)


def _judge_drafter(record: Record, expected: CorrectnessExpected) -> None:
    """The benchmark states what it served; where this file repeats that, it must be the same."""
    drafter = record.text("drafter", optional=True)
    if drafter is not None and expected.drafter is not None:
        record.check("drafter", same_path(drafter, expected.drafter), drafter, f"= {expected.drafter}", "drafter")
    manifest = record.text("drafter_manifest_sha256", optional=True)
    if manifest is not None and expected.manifest_sha256 is not None:
        same = manifest == expected.manifest_sha256
        record.check("manifest", same, manifest, f"= {expected.manifest_sha256}", "drafter_manifest_sha256")
    k = record.integer("num_draft_tokens", optional=True)
    if k is not None and expected.draft_tokens is not None:
        same = k == expected.draft_tokens
        record.check("draft_tokens_served", same, k, f"= {expected.draft_tokens}", "num_draft_tokens")


def _judge_prompts(record: Record, rows: Sequence[Record], stated: int | None, least: int) -> None:
    """Check that enough different prompts were compared, each once."""
    record.check("samples", len(rows) >= least, len(rows), f">= {least}", "outputs", unit="prompts")
    if stated is not None:
        record.check("prompts", stated == len(rows), stated, f"= {len(rows)} outputs", "prompts", unit="prompts")
    ids, digests = [row.label("id") for row in rows], [row.text("prompt_sha256") for row in rows]
    for name, found in (("ids_differ", ids), ("prompts_differ", digests)):
        record.check(name, len(set(found)) == len(found), len(set(found)), f"= {len(found)}, all different", "outputs")
    for row, digest in zip(rows, digests, strict=True):
        if digest is not None and not SHA256.fullmatch(digest):
            row.malformed("prompt_sha256", Kind.DIGEST)


def _row(record: Record) -> _Row | None:
    """The outputs of one prompt; None when any arm has none, which is a failing check."""
    error = record.text("error", optional=True, empty=True)
    if error:
        record.check("answered", False, f"error: {error}", "outputs without error", "error")
    a, control, b = (record.integers(arm) for arm in _ARMS)
    return None if error or a is None or control is None or b is None else _Row(record, a, control, b)


def _judge_outputs(record: Record, rows: Sequence[_Row], max_tokens: int | None, least: int) -> None:
    """Check that there was something to compare."""
    for arm in _ARMS:
        outputs: list[tuple[int, ...]] = [getattr(row, arm) for row in rows]
        lengths = [len(output) for output in outputs]
        total = sum(lengths)
        record.check(
            f"length_{arm}",
            total >= least * len(rows),
            total / len(rows),
            f">= {least} on average",
            "outputs",
            unit="tokens",
        )
        if max_tokens is not None:
            longest = max(lengths)
            record.check(
                f"length_limit_{arm}", longest <= max_tokens, longest, f"<= {max_tokens}", "outputs", unit="tokens"
            )
    distinct = len({row.a for row in rows})
    record.check("outputs_differ", distinct > 1, distinct, "> 1", "outputs", unit="different outputs of A")
    dull = sum(len(row.a) > 1 and len(set(row.a)) == 1 for row in rows)
    record.check(
        "outputs_vary",
        2 * dull <= len(rows),
        dull,
        f"<= half of {len(rows)}",
        "outputs",
        unit="outputs of A with one token repeated",
    )


def _judge_match(record: Record, rows: Sequence[_Row], expected: CorrectnessExpected) -> None:
    """Apply the rule; see the module's own text."""
    total = len(rows)
    same_b = [row for row in rows if row.a == row.b]
    same_control = [row for row in rows if row.a == row.control]
    match, control = Fraction(len(same_b), total), Fraction(len(same_control), total)
    _judge_stated(record, "exact_match", match)
    _judge_stated(record, "control_exact_match", control)
    record.check(
        "control",
        control >= exactly(expected.min_control),
        float(control),
        f">= {expected.min_control:g} ({len(same_control)} of {total} outputs of A come out the same again)",
        "control_exact_match",
        unit="fraction 0-1",
        cls=FailureClass.MEASUREMENT_INVALID,
    )
    allowed = control - exactly(expected.control_slack)
    required = min(exactly(expected.min_exact_match), allowed)
    why = f"min({expected.min_exact_match:g}, control {float(control):.4f} - {expected.control_slack:g})"
    record.check(
        "exact_match",
        match >= required,
        float(match),
        f">= {float(required):.4f} = {why} ({len(same_b)} of {total} prompts)",
        "exact_match",
        unit="fraction 0-1",
        cls=FailureClass.CORRECTNESS_MISMATCH,
    )
    sheet = record.sheet
    sheet.fact("exact_match", float(match))
    sheet.fact("control_exact_match", float(control))
    sheet.fact("required", float(required))
    sheet.fact("prompts", total)
    sheet.fact("first_difference", _first_difference(rows, "b"))
    sheet.fact("control_first_difference", _first_difference(rows, "control"))


def _judge_stated(record: Record, key: str, computed: Fraction) -> None:
    stated = record.number(key, minimum=0)
    if stated is not None:
        record.check(
            f"{key}_identity",
            abs(exactly(stated) - computed) <= exactly(SHARE_ROUNDING),
            stated,
            f"= {float(computed):.4f}, recomputed from the token ids, within {SHARE_ROUNDING:g}",
            key,
            unit="fraction 0-1",
        )


def _first_difference(rows: Sequence[_Row], arm: str) -> int | None:
    """The earliest token, counted from 0, at which an output of A and of another arm differ; None when none does.

    Rounding parts outputs late, after a near tie; a drafter that is wired up wrongly parts them at once.
    """
    earliest: int | None = None
    for row in rows:
        other: tuple[int, ...] = getattr(row, arm)
        if row.a != other:
            shared = next((i for i, (x, y) in enumerate(zip(row.a, other, strict=False)) if x != y), None)
            place = min(len(row.a), len(other)) if shared is None else shared
            earliest = place if earliest is None else min(earliest, place)
    return earliest
