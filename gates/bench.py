"""gate_bench: is the A|B measurement valid?

A is the target alone, B the target with the frozen drafter. The gate sets no bar on speed: a drafter that does not pay
is a finding, reported as such. It decides whether the numbers are about what they claim to be about: the same work in
both arms, all of it done, the frozen drafter really drafting, and every number in accord with the others. A fault here
is never the drafter's: the class is always MEASUREMENT_INVALID, unless the program says that it did not get that far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gates.bench_points import Point, judge_baseline_points, judge_points, read_drafted
from gates.counters import (
    ACCEPTANCE_FLOOR,
    MIN_ACCEPTANCE_LENGTH,
    Work,
    check_real,
    judge_acceptance,
    judge_counters,
    judge_stated_length,
    read_draft_tokens,
)
from gates.expectations import SHA256, Expected, Kind, bar_below_ceiling, setting
from gates.header import IDENTITY_TOLERANCE, agree, judge_header, judge_problems, same_path
from gates.reading import ResultBytes
from gates.record import Record, Sheet, same_value
from gates.stages import judge_stage
from gates.verdict import FailureClass, Verdict

GATE: Final = "bench"
CONCURRENCY: Final = (1, 8, 32)
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
)
_INVALID: Final = FailureClass.MEASUREMENT_INVALID
_OFF: Final = (None, False, 0, "", "none", "NONE", "None")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchExpected(Expected):
    """What an A|B result is compared with."""

    model: str | None = setting(Kind.TEXT, "model id of the target")
    drafter: str | None = setting(Kind.PATH, "folder of the frozen drafter")
    manifest_sha256: str | None = setting(Kind.DIGEST, "digest of the frozen drafter's manifest")
    draft_tokens: int | None = setting(Kind.COUNT, "proposed tokens a step")
    prompts_sha256: str | None = setting(Kind.DIGEST, "digest of the prompts")
    concurrency: tuple[int, ...] = setting(Kind.COUNTS, "concurrencies, each measured in both arms", CONCURRENCY)
    temperature: float = setting(Kind.NUMBER, "sampling temperature; 0 is greedy", 0.0)
    min_requests: int = setting(Kind.COUNT, "least number of requests of a point", 8)
    min_acceptance_length: float = setting(
        Kind.NUMBER,
        "smallest acceptance length that counts as drafting, in tokens with the bonus token",
        MIN_ACCEPTANCE_LENGTH,
        floor=ACCEPTANCE_FLOOR,
    )
    length_tolerance: float = setting(
        Kind.NUMBER, "largest difference of the arms' mean output lengths, as a fraction", 0.02, floor=0, ceiling=0.5
    )
    acceptance_spread: float = setting(
        Kind.NUMBER,
        "largest distance of an acceptance length from the mean over concurrencies, as a fraction",
        0.05,
        floor=0,
        ceiling=0.5,
    )
    speedup_slack: float = setting(
        Kind.NUMBER,
        "by how much the speedup at concurrency 1 may exceed the acceptance length, as a fraction",
        0.1,
        floor=0,
        ceiling=1,
    )


def judge_bench(bench: ResultBytes, expected: BenchExpected | None = None) -> Verdict:
    """Judge an A|B benchmark.

    Args:
        bench: bench.json.
        expected: What to compare with; None compares with nothing but the thresholds.
    """
    expected = expected or BenchExpected()
    sheet = Sheet(GATE)
    record = sheet.open(bench)
    if record is not None:
        judge_header(record, expected)
        if judge_stage(record):
            judge_problems(record, _INVALID, optional=True)
            _judge_arms(record, expected, _judge_conditions(record, expected))
    return sheet.verdict(_INVALID, PRECEDENCE)


def _judge_conditions(record: Record, expected: BenchExpected) -> int | None:
    """Check prompts, sampling and warm-up, which both arms share; returns the longest output in tokens."""
    prompts = _digest(record, "prompts_sha256")
    if prompts is not None and expected.prompts_sha256 is not None:
        same = prompts == expected.prompts_sha256
        record.check("prompts", same, prompts, f"= {expected.prompts_sha256}", "prompts_sha256")
    warmup = record.integer("warmup_requests")
    if warmup is not None:
        record.check("warmup", warmup >= 1, warmup, ">= 1 before anything is timed", "warmup_requests", unit="requests")
    sampling = record.record("sampling")
    if sampling is None:
        return None
    temperature = sampling.number("temperature", minimum=0)
    if temperature is not None:
        same = temperature == expected.temperature
        sampling.check("temperature", same, temperature, f"= {expected.temperature:g}", "temperature")
    sampling.integer("seed", optional=True)
    sampling.flag("ignore_eos")
    return sampling.integer("max_tokens", minimum=1)


def _judge_arms(record: Record, expected: BenchExpected, max_tokens: int | None) -> None:
    arms = record.record("arms")
    if arms is None:
        return
    arm_a, arm_b = arms.record("A"), arms.record("B")
    if arm_a is None or arm_b is None:
        return
    _judge_same_server(arm_a, arm_b, expected)
    _judge_baseline(arm_a)
    k = _judge_drafter(arm_b, expected)
    if k is not None:
        bar = expected.min_acceptance_length
        bar_below_ceiling(record.sheet, "min_acceptance_length", bar, k + 1, "draft tokens + 1")
    points_a = judge_points(arm_a, expected.concurrency, expected.min_requests, max_tokens)
    points_b = judge_points(arm_b, expected.concurrency, expected.min_requests, max_tokens)
    judge_baseline_points(points_a)
    lengths = _judge_acceptance(points_b, k, expected)
    pairs = {level: (points_a[level], points_b[level]) for level in sorted(points_a.keys() & points_b.keys())}
    _judge_pairs(arm_b, pairs, expected)
    _judge_speedup(record, pairs, lengths, expected)
    _judge_spread(arm_b, lengths, expected)


def _judge_same_server(arm_a: Record, arm_b: Record, expected: BenchExpected) -> None:
    """Check that the servers differ in nothing but the drafter."""
    model_a, model_b = arm_a.text("model"), arm_b.text("model")
    if model_a is not None and model_b is not None:
        wanted = expected.model or model_a
        arm_a.check("model", model_a == wanted, model_a, f"= {wanted}", "model")
        arm_b.check("model", model_b == wanted, model_b, f"= {wanted}", "model")
    config_a, config_b = arm_a.record("server_config"), arm_b.record("server_config")
    if config_a is None or config_b is None:
        return
    keys = sorted(config_a.values.keys() | config_b.values.keys())
    config_b.check("server_config_stated", bool(keys), len(keys), ">= 1", unit="settings")
    absent = object()
    differ = [
        key
        for key in keys
        if not same_value(config_a.values.get(key, absent), config_b.values.get(key, absent))
        or (key in config_a.values) != (key in config_b.values)
    ]
    config_b.check("same_server_config", not differ, differ or "the same", "the same settings in A and B")
    drafting = [key for key in keys if _names_a_drafter(key, config_a.values.get(key))]
    config_a.check("baseline_config", not drafting, drafting or "no drafter", "no setting of a drafter")
    for config in (config_a, config_b):
        check_real(config)


def _names_a_drafter(key: str, value: Any) -> bool:
    word = key.lower()
    return ("specul" in word or "draft" in word) and not any(value is off or value == off for off in _OFF)


def _judge_baseline(arm: Record) -> None:
    """Check that A is the target alone."""
    arm.null("drafter", "baseline_without_drafter", "A is the target alone")
    arm.null("drafter_manifest_sha256", "baseline_without_manifest", "A is the target alone")
    if "num_draft_tokens" not in arm.values:
        arm.malformed("num_draft_tokens", "null or 0")
        return
    k = arm.values["num_draft_tokens"]
    nothing = k is None or (type(k) is int and k == 0)
    arm.check("baseline_draft_tokens", nothing, k, "null or 0 (A is the target alone)", "num_draft_tokens")


def _judge_drafter(arm: Record, expected: BenchExpected) -> int | None:
    """Check that B served the frozen drafter; returns its draft tokens a step."""
    drafter = arm.text("drafter")
    if drafter is not None and expected.drafter is not None:
        same = same_path(drafter, expected.drafter)
        arm.check("drafter", same, drafter, f"= {expected.drafter}, the frozen one", "drafter")
    manifest = _digest(arm, "drafter_manifest_sha256")
    if manifest is not None and expected.manifest_sha256 is not None:
        same = manifest == expected.manifest_sha256
        arm.check("manifest", same, manifest, f"= {expected.manifest_sha256}", "drafter_manifest_sha256")
    k = read_draft_tokens(arm)
    if k is not None and expected.draft_tokens is not None:
        arm.check(
            "draft_tokens_served", k == expected.draft_tokens, k, f"= {expected.draft_tokens}", "num_draft_tokens"
        )
    return k


def _judge_acceptance(points: Mapping[int, Point], k: int | None, expected: BenchExpected) -> dict[int, float]:
    """Check what was drafted and accepted at each concurrency; returns acceptance lengths in tokens."""
    lengths: dict[int, float] = {}
    for level, point in sorted(points.items()):
        read = read_drafted(point)
        if read is None or k is None:
            continue
        stated, counters, record = read
        if not judge_counters(counters, record, Work(k, point.completed, point.output_tokens)):
            continue
        judge_stated_length(stated, counters, point.record)
        bar = expected.min_acceptance_length
        judge_acceptance(counters.acceptance_length, point.record, "acceptance_length", k, bar, _INVALID)
        lengths[level] = float(counters.acceptance_length)
        point.record.sheet.fact(f"acceptance_length_c{level}", lengths[level])
        point.record.sheet.fact(f"acceptance_rate_c{level}", float(counters.acceptance_rate))
    return lengths


def _judge_pairs(arm_b: Record, pairs: Mapping[int, tuple[Point, Point]], expected: BenchExpected) -> None:
    """Check that both arms did the same work at each concurrency."""
    for a, b in pairs.values():
        same = a.requested == b.requested
        b.record.check("same_requests", same, b.requested, f"= {a.requested} as in A", "requested", unit="requests")
        if expected.temperature == 0:
            b.record.check(
                "same_length",
                agree(a.mean_tokens, b.mean_tokens, expected.length_tolerance),
                b.mean_tokens,
                f"= {a.mean_tokens:.6g} as in A, within {expected.length_tolerance:.1%}",
                "output_tokens",
                unit="tokens a request",
            )
    if pairs:
        copied = all(a.duration_s == b.duration_s for a, b in pairs.values())
        words = "every duration is that of A" if copied else "its own durations"
        arm_b.check("measured_apart", not copied, words, "arms that were both measured", "points")


def _judge_speedup(
    record: Record, pairs: Mapping[int, tuple[Point, Point]], lengths: Mapping[int, float], expected: BenchExpected
) -> None:
    """Compute the speedups again, and compare with what is stated and with what is possible."""
    rows = record.records("speedup")
    if rows is None:
        return
    levels = [row.integer("concurrency", minimum=1) for row in rows]
    stated = sorted(level for level in levels if level is not None)
    wanted = sorted(expected.concurrency)
    record.check("speedup_points", stated == wanted, stated, f"exactly {', '.join(map(str, wanted))}", "speedup")
    by_level = {level: row for row, level in zip(reversed(rows), reversed(levels), strict=True) if level is not None}
    for level, row in sorted(by_level.items()):
        value = row.number("value", above=0)
        if value is None or level not in pairs:
            continue
        a, b = pairs[level]
        computed = b.tokens_per_s / a.tokens_per_s
        row.check(
            "speedup_identity",
            agree(value, computed),
            value,
            f"= {b.tokens_per_s:.6g} / {a.tokens_per_s:.6g} tokens/s = {computed:.4f}, within {IDENTITY_TOLERANCE:.0%}",
            "value",
        )
        record.sheet.fact(f"speedup_c{level}", computed)
        record.sheet.fact(f"tokens_per_s_a_c{level}", a.tokens_per_s)
        record.sheet.fact(f"tokens_per_s_b_c{level}", b.tokens_per_s)
        if level == 1 and level in lengths and expected.temperature == 0:
            _judge_bound(row, computed, lengths[level], expected.speedup_slack)


def _judge_bound(row: Record, speedup: float, length: float, slack: float) -> None:
    """A step with a draft costs at least one of the target's own, so alone it cannot gain more than its tokens."""
    row.check(
        "speedup_possible",
        speedup <= length * (1 + slack),
        speedup,
        f"<= acceptance length {length:.4f} + {slack:.0%}",
        "value",
    )


def _judge_spread(arm: Record, lengths: Mapping[int, float], expected: BenchExpected) -> None:
    """Check that the acceptance length does not depend on the concurrency."""
    if not lengths:
        return
    mean = sum(lengths.values()) / len(lengths)
    farthest = max(lengths, key=lambda level: abs(lengths[level] - mean))
    distance = abs(lengths[farthest] - mean) / mean
    arm.check(
        "acceptance_stable",
        distance <= expected.acceptance_spread * (1 + 1e-9),
        distance,
        f"<= {expected.acceptance_spread:g} from the mean {mean:.4f} (farthest: concurrency {farthest})",
        "points",
        unit="fraction",
    )


def _digest(record: Record, key: str) -> str | None:
    value = record.text(key)
    if value is not None and not SHA256.fullmatch(value):
        record.malformed(key, Kind.DIGEST)
        return None
    return value
