"""gate data: is there training data, and how much?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gates.expectations import SHA256, Expected, Kind, setting
from gates.header import judge_header, judge_problems, judge_status
from gates.hub import judge_http
from gates.reading import ResultBytes
from gates.record import Sheet
from gates.verdict import FailureClass, Verdict

GATE: Final = "data"
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.INFRA_TRANSIENT,
    FailureClass.TRAINING_REGRESSION,
)
CONFIGURATION: Final = "configuration"
"""Cause of a failure, in the program's own word: what the operator wrote cannot be trained with."""

_FAILED: Final = FailureClass.TRAINING_REGRESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class DataExpected(Expected):
    """What the data's result is compared with."""

    min_sequences: int = setting(Kind.COUNT, "least number of sequences", 1)


def judge_data(data: ResultBytes, expected: DataExpected | None = None) -> Verdict:
    """Judge the training data.

    Args:
        data: data.json.
        expected: What to compare with.
    """
    expected = expected or DataExpected()
    sheet = Sheet(GATE)
    record = sheet.open(data)
    if record is not None:
        judge_header(record, expected)
        judge_http(record, "the data set")
        failed = _FAILED
        if record.text("cause", optional=True, empty=True) == CONFIGURATION:
            failed = FailureClass.USER_CONFIG_ERROR
        if judge_status(record, failed) == "ok":
            sequences, tokens = record.integer("sequences"), record.integer("tokens")
            if sequences is not None:
                least = expected.min_sequences
                enough = sequences >= least
                record.check("sequences", enough, sequences, f">= {least}", "sequences", unit="sequences", cls=_FAILED)
                sheet.fact("sequences", sequences)
            if sequences is not None and tokens is not None:
                enough = tokens >= max(sequences, 1)
                limit = f">= {sequences}, one for each sequence"
                record.check("tokens", enough, tokens, limit, "tokens", unit="tokens", cls=_FAILED)
                sheet.fact("tokens", tokens)
            record.text("path")
            digest = record.text("sha256")
            if digest is not None and not SHA256.fullmatch(digest):
                record.malformed("sha256", Kind.DIGEST)
        judge_problems(record, failed)
    return sheet.verdict(_FAILED, PRECEDENCE)
