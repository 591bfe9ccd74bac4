"""The points of one arm of an A|B benchmark: one measurement for each concurrency, checked against itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gates.counters import Counters, read_counters
from gates.header import IDENTITY_TOLERANCE, agree
from gates.record import Record


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement whose fields are all there.

    Attributes:
        record: Where it was read.
        concurrency: Requests in flight at a time.
        requested: Requests sent.
        completed: Requests answered.
        duration_s: Wall time over all requests, in seconds.
        output_tokens: Tokens that came out.
    """

    record: Record
    concurrency: int
    requested: int
    completed: int
    duration_s: float
    output_tokens: int

    @property
    def tokens_per_s(self) -> float:
        """Throughput, computed from tokens and time."""
        return self.output_tokens / self.duration_s

    @property
    def mean_tokens(self) -> float:
        """Mean output length in tokens, computed; 0 where nothing was completed."""
        return self.output_tokens / self.completed if self.completed else 0.0


def judge_points(
    arm: Record, concurrency: Sequence[int], min_requests: int, max_tokens: int | None
) -> Mapping[int, Point]:
    """Check every point of an arm for itself.

    Args:
        arm: The arm.
        concurrency: The concurrencies that must be there, each once.
        min_requests: Least number of requests of a point; it must also reach the point's concurrency.
        max_tokens: Longest output in tokens, None where it is not known.

    Returns:
        The points that can be compared further, by concurrency.
    """
    rows = arm.records("points")
    if rows is None:
        return {}
    stated = [row.integer("concurrency", minimum=1) for row in rows]
    known = [one for one in stated if one is not None]
    right = sorted(known) == sorted(concurrency)
    arm.check("concurrency", right, known, f"exactly {', '.join(map(str, sorted(concurrency)))}", "points")
    points: dict[int, Point] = {}
    for row, level in zip(rows, stated, strict=True):
        if level not in concurrency or level in points:
            continue  # one too many is a failure already, however good it is
        point = _point(row, level)
        if point is not None:
            points[point.concurrency] = point
            _judge_requests(point, min_requests)
            _judge_tokens(point, max_tokens)
    return points


def judge_baseline_points(points: Mapping[int, Point]) -> None:
    """Check that a baseline's points carry no trace of a drafter."""
    for point in points.values():
        point.record.null("counters", "baseline_without_counters", "the baseline drafts nothing")
        point.record.null("acceptance_length", "baseline_without_acceptance", "the baseline drafts nothing")


def read_drafted(point: Point) -> tuple[float, Counters, Record] | None:
    """Acceptance length and counters of a point with a drafter; None when malformed."""
    length = point.record.number("acceptance_length", above=0)
    read = read_counters(point.record)
    return None if length is None or read is None else (length, *read)


def _point(row: Record, concurrency: int | None) -> Point | None:
    requested = row.integer("requested", minimum=1)
    completed = row.integer("completed")
    failed = row.integer("failed")
    duration = row.number("duration_s", above=0)
    tokens = row.integer("output_tokens", minimum=1)
    if requested is not None and failed is not None:
        row.check("failed", failed == 0, failed, "= 0", "failed", unit="requests")
    if concurrency is None or requested is None or completed is None or duration is None or tokens is None:
        return None
    return Point(row, concurrency, requested, completed, duration, tokens)


def _judge_requests(point: Point, min_requests: int) -> None:
    record = point.record
    record.check(
        "completed",
        point.completed == point.requested,
        point.completed,
        f"= {point.requested} requested",
        "completed",
        unit="requests",
    )
    # With fewer requests than its concurrency a point never reaches it.
    least = max(min_requests, point.concurrency)
    record.check("samples", point.requested >= least, point.requested, f">= {least}", "requested", unit="requests")


def _judge_tokens(point: Point, max_tokens: int | None) -> None:
    record = point.record
    rate = record.number("output_tokens_per_s", above=0)
    if rate is not None:
        record.check(
            "throughput_identity",
            agree(rate, point.tokens_per_s),
            rate,
            f"= {point.output_tokens} tokens / {point.duration_s:g} s = {point.tokens_per_s:.6g}, "
            f"within {IDENTITY_TOLERANCE:.0%}",
            "output_tokens_per_s",
            unit="tokens/s",
        )
    mean = record.number("mean_output_tokens", above=0)
    if mean is not None:
        record.check(
            "mean_length_identity",
            agree(mean, point.mean_tokens),
            mean,
            f"= {point.output_tokens} tokens / {point.completed} requests = {point.mean_tokens:.6g}, "
            f"within {IDENTITY_TOLERANCE:.0%}",
            "mean_output_tokens",
            unit="tokens",
        )
    if max_tokens is not None:
        most = max_tokens * point.completed
        record.check(
            "length_within_limit",
            point.output_tokens <= most,
            point.output_tokens,
            f"<= {max_tokens} x {point.completed} requests = {most}",
            "output_tokens",
            unit="tokens",
        )
    ttft = record.number("mean_ttft_s", above=0, optional=True)
    if ttft is not None:
        record.check(
            "ttft_within_duration", ttft <= point.duration_s, ttft, f"<= {point.duration_s:g}", "mean_ttft_s", unit="s"
        )
