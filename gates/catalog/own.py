"""gonogo's own result files as measurements: accuracy.json, and the counters of smoke.json and bench.json.

Counters are sums over everything that was measured, so rates come out exact, and their identities are checked here as
the smoke and bench gates do.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from gates.catalog.measured import Measurement, Value
from gates.counters import Counters, Work, judge_counters, judge_stated_length, read_counters, read_draft_tokens
from gates.expectations import Expected
from gates.header import judge_header, judge_problems, same_path
from gates.reading import Document, ResultBytes, read_json
from gates.record import Record, Sheet
from gates.stages import judge_stage
from gates.verdict import FailureClass

PRODUCER: Final = "gonogo"
_INVALID: Final = FailureClass.MEASUREMENT_INVALID


def looks(file: ResultBytes) -> bool:
    """Whether a file is one of gonogo's own: it says where its program stopped, under a schema version."""
    document = read_json(file.data)
    return isinstance(document, Document) and "stage" in document.root and "schema_version" in document.root


def measure(sheet: Sheet, file: ResultBytes, expected: Expected, *, accuracy: bool) -> Measurement | None:
    """Read one of gonogo's own files; what is wrong with it is written on the sheet.

    Args:
        sheet: Where checks are written down.
        file: The file.
        expected: For the token.
        accuracy: Whether an accuracy is what is asked for.
    """
    record = sheet.open(file)
    if record is None:
        return None
    judge_header(record, expected)
    if not judge_stage(record):
        return None
    judge_problems(record, _INVALID, optional=True)
    if "arms" in record.values and not accuracy:
        return _bench(record)
    if "prompts_expected" in record.values and not accuracy:
        return _smoke(record)
    return _accuracy(record)


def _smoke(record: Record) -> Measurement | None:
    server = record.record("server")
    k = None if server is None else read_draft_tokens(server)
    read = read_counters(record)
    if server is None or k is None or read is None:
        return None
    counters, where = read
    if not judge_counters(counters, where.classed(FailureClass.ACCEPTANCE_REGRESSION), Work(k, 0, None)):
        return None
    return _counted(record, counters, where.path, k, server, server.values)


def _bench(record: Record) -> Measurement | None:
    arms = record.record("arms")
    arm = None if arms is None else arms.record("B")
    if arm is None:
        return None
    k, points = read_draft_tokens(arm), arm.records("points")
    if k is None or points is None:
        return None
    read = [read_counters(point) for point in points]
    good = [one for one in read if one is not None]
    if len(good) != len(read):
        return None
    for counters, where in good:
        if not judge_counters(counters, where.classed(FailureClass.ACCEPTANCE_REGRESSION), Work(k, 0, None)):
            return None
    whole = _sum([counters for counters, _ in good])
    server = arm.values.get("server_config")
    settings = server if isinstance(server, dict) else None
    return _counted(record, whole, arm.at("points"), k, arm, settings)


def _sum(counted: Sequence[Counters]) -> Counters:
    longest = max((len(one.per_position) for one in counted), default=0)
    padded = [[*one.per_position, *[0] * (longest - len(one.per_position))] for one in counted]
    return Counters(
        sum(one.drafts for one in counted),
        sum(one.draft_tokens for one in counted),
        sum(one.accepted for one in counted),
        tuple(map(sum, zip(*padded, strict=True))),
    )


def _counted(
    record: Record, counters: Counters, path: str, k: int, served: Record, settings: dict[str, Any] | None
) -> Measurement:
    """A measurement by counters; `served` is the record that states the drafter and its number of draft tokens."""
    drafter = served.values.get("drafter")
    taken = [*counters.per_position, *[0] * (k - len(counters.per_position))]
    return Measurement(
        file=record.file,
        producer=PRODUCER,
        rate=Value(counters.acceptance_rate, path),
        length=Value(counters.acceptance_length, path),
        positions=tuple(Value(Fraction(count, counters.drafts), path) for count in taken),
        draft_tokens=Value(Fraction(k), served.at("num_draft_tokens")),
        steps=Value(Fraction(counters.drafts), path),
        server=settings,
        drafter=drafter if isinstance(drafter, str) else None,
        fields={"rate": path, "length": path, "positions": path, "drafter": served.at("drafter")},
        token=True,
    )


def _accuracy(record: Record) -> Measurement | None:
    """accuracy.json: questions, right answers by both rules, what was served, and the counters meanwhile."""
    task = record.text("task")
    samples, shots = record.integer("samples", minimum=1), record.integer("shots")
    record.integer("seed")
    answered = record.integer("answered")
    strict, flexible = record.integer("correct_strict"), record.integer("correct_flexible")
    tokens = record.integer("output_tokens", minimum=1)
    server = _served(record)
    k = None if server is None else read_draft_tokens(server)
    length = record.number("acceptance_length", above=0)
    read = read_counters(record)
    if samples is None or shots is None or answered is None or strict is None or flexible is None:
        return None
    if server is None or k is None or read is None or length is None or tokens is None:
        return None
    record.check("answered", answered == samples, answered, f"= {samples}", "answered", unit="questions", cls=_INVALID)
    for key, right in (("correct_strict", strict), ("correct_flexible", flexible)):
        record.check("right_within_asked", right <= samples, right, f"<= {samples}", key, cls=_INVALID)
    counters, where = read
    work = Work(k, samples, tokens)
    if not judge_counters(counters, where.classed(FailureClass.ACCEPTANCE_REGRESSION), work):
        return None
    judge_stated_length(length, counters, record)
    made = _counted(record, counters, where.path, k, server, server.values)
    return Measurement(
        file=record.file,
        producer=PRODUCER,
        rate=made.rate,
        length=made.length,
        positions=made.positions,
        draft_tokens=made.draft_tokens,
        accuracy={
            "strict": Value(Fraction(strict, samples), "correct_strict"),
            "flexible": Value(Fraction(flexible, samples), "correct_flexible"),
        },
        samples=Value(Fraction(samples), "samples"),
        shots=Value(Fraction(shots), "shots"),
        server=made.server,
        drafter=made.drafter,
        model=server.text("model"),
        task=task,
        fields={**made.fields, "accuracy": "correct_flexible", "samples": "samples", "shots": "shots"},
        token=True,
    )


def _served(record: Record) -> Record | None:
    """The server that answered, held against the one that was asked for; None when either is malformed."""
    requested, server = record.record("requested"), record.record("server")
    if requested is None or server is None:
        return None
    for key in ("model", "drafter"):
        asked, served = requested.text(key), server.text(key)
        if asked is None or served is None:
            return None
        same = same_path(asked, served) if key == "drafter" else asked == served
        server.check(f"{key}_served", same, served, f"= {asked}", key)
    asked_k, k = read_draft_tokens(requested), read_draft_tokens(server)
    if asked_k is None or k is None:
        return None
    server.check("draft_tokens_served", k == asked_k, k, f"= {asked_k}", "num_draft_tokens")
    return server
