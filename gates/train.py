"""gate_train: did the training end, did it learn, and is what it exported its last state?

Reads regression_check.json (the training) and export_check.json (the export). A loss that is fine by itself proves
little: trainers write the running mean where a step's loss was NaN, an empty loss mask shows as an accuracy of one, and
an export that failed leaves the one of an earlier checkpoint. So the log is read as well as the summary.

There is no common bar on loss or accuracy: healthy losses differ twofold between targets. Bars are set by whoever
knows the target, in the file or for the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gates.drafter_config import ARCHITECTURES
from gates.expectations import Kind, setting
from gates.export import ExportExpected, judge_algorithm, judge_export_record
from gates.header import exactly, judge_header, judge_problems, judge_status, same_path
from gates.reading import ResultBytes
from gates.record import Record, Sheet, is_count, is_number
from gates.verdict import FailureClass, Verdict

GATE: Final = "train"
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.TRAINING_REGRESSION,
    FailureClass.MODEL_UNSUPPORTED,
    FailureClass.EXPORT_INVALID,
)
PERFECT: Final = 0.999
"""An accuracy this high is not learnt: nothing was masked in, so nothing was asked."""

TRIVIAL: Final = 0.01
"""A drafter that starts or ends below this loss has had an empty loss mask; healthy ones stay above 2."""

LAST_STEPS: Final = 5
"""So many of the last log entries must have a finite gradient norm, and not all the same loss."""

_BARS: Final = ("max_final_loss", "min_final_accuracy")
_REGRESSION: Final = FailureClass.TRAINING_REGRESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainExpected(ExportExpected):
    """What a training is compared with; bars here and in the file both hold."""

    max_final_loss: float | None = setting(Kind.NUMBER, "largest final loss that passes", floor=0)
    min_final_accuracy: float | None = setting(
        Kind.NUMBER, "smallest final accuracy that passes, as a fraction", floor=0, ceiling=PERFECT
    )


def judge_train(
    regression_check: ResultBytes, export_check: ResultBytes, expected: TrainExpected | None = None
) -> Verdict:
    """Judge a training and its export.

    Args:
        regression_check: regression_check.json.
        export_check: export_check.json.
        expected: What to compare with.
    """
    expected = expected or TrainExpected()
    sheet = Sheet(GATE)
    judge_algorithm(sheet, expected.algorithm)
    trained = sheet.open(regression_check, unusable=_REGRESSION)
    exported = sheet.open(export_check, unusable=FailureClass.EXPORT_INVALID)
    meant = None
    if trained is not None:
        judge_header(trained, expected)
        meant = _judge_training(trained, expected)
    if exported is not None:
        judge_header(exported, expected)
        found = judge_export_record(exported, expected)
        if meant is not None and found is not None:
            same = same_path(found, meant)
            cls = FailureClass.MEASUREMENT_INVALID
            exported.check(
                "export_of_training", same, found, f"= {meant}, where it exported to", "export_path", cls=cls
            )
    return sheet.verdict(_REGRESSION, PRECEDENCE)


def _judge_training(record: Record, expected: TrainExpected) -> str | None:
    """Check regression_check.json; returns where the training says that it exported to."""
    algorithm = record.text("algorithm")
    if algorithm is not None:
        wanted = (expected.algorithm,) if expected.algorithm is not None else tuple(ARCHITECTURES)
        record.check("algorithm", algorithm in wanted, algorithm, f"= {' or '.join(wanted)}", "algorithm")
    judge_status(record, _REGRESSION)
    judge_problems(record, _REGRESSION, optional=True)
    _judge_finished(record)
    _judge_summary(record)
    _judge_log(record)
    _judge_bars(record, expected)
    written = record.flag("export_written_after_last_step")
    if written is not None:
        cls = FailureClass.EXPORT_INVALID
        words = "after the last step" if written else "not after the last step"
        record.check("export_is_last", written, words, "after", "export_written_after_last_step", cls=cls)
    return record.text("export_path")


def _judge_finished(record: Record) -> None:
    step, last = record.integer("global_step"), record.integer("max_steps", minimum=1)
    if step is not None and last is not None:
        record.check(
            "finished", step == last, step, f"= {last} max_steps", "global_step", unit="steps", cls=_REGRESSION
        )
        record.sheet.fact("steps", step)


def _judge_summary(record: Record) -> None:
    """First and last loss. What was not finite is written as null, so null is the training's fault."""
    first, final = _loss(record, "first_loss"), _loss(record, "final_loss")
    if first is not None and final is not None:
        record.check("loss_fell", final < first, final, f"< first_loss {first:g}", "final_loss", cls=_REGRESSION)
    _norm(record, "final_grad_norm")
    accuracy = _accuracy(record, "final_accuracy")
    sheet = record.sheet
    sheet.fact("first_loss", first)
    sheet.fact("final_loss", final)
    sheet.fact("final_accuracy", accuracy)


def _judge_log(record: Record) -> None:
    rows = record.records("log")
    if rows is None:
        return
    steps = [row.integer("step") for row in rows]
    losses = [loss for row in rows if (loss := _loss(row, "loss")) is not None]
    for i, row in enumerate(rows):
        if i >= len(rows) - LAST_STEPS:
            _norm(row, "grad_norm")
        else:
            row.number("grad_norm", minimum=0, optional=True)  # a step that a loss scaler skipped has none
        _accuracy(row, "accuracy")
    counted = [step for step in steps if step is not None]
    if len(counted) == len(rows):
        _judge_steps(record, counted)
    if len(losses) == len(rows):
        _judge_curve(record, losses)


def _judge_steps(record: Record, steps: Sequence[int]) -> None:
    """The log goes forward, and as far as the run went: its last entry is not farther from the end than any other."""
    gaps = [other - one for one, other in pairwise((0, *steps))]
    rising = all(gap > 0 for gap in gaps[1:])
    record.check("steps_rise", rising, f"{len(steps)} entries", "steps that rise", "log")
    end = record.values.get("global_step")
    if is_count(end):
        least = end - max(gaps)
        reaches = least <= steps[-1] <= end
        record.check(
            "log_complete", reaches, steps[-1], f">= {least} and <= global_step {end}", "log", unit="last step"
        )


def _judge_curve(record: Record, losses: Sequence[float]) -> None:
    half = len(losses) // 2
    record.check("log_long_enough", half >= 1, len(losses), ">= 2", "log", unit="entries", cls=_REGRESSION)
    if half < 1:
        return
    early, late = sum(losses[:half]) / half, sum(losses[half:]) / (len(losses) - half)
    limit = f"< {early:g}, the mean of its first half"
    record.check("curve_fell", late < early, late, limit, "log", unit="mean loss of its second half", cls=_REGRESSION)
    tail = losses[-LAST_STEPS:]
    # Where a step's loss is NaN, trainers repeat the mean so far.
    stuck = len(losses) >= LAST_STEPS and len(set(tail)) == 1
    words = f"{tail[-1]:g} {len(tail)} times" if stuck else "moving"
    record.check("loss_moves", not stuck, words, "losses that are not all the same", "log", cls=_REGRESSION)


def _judge_bars(record: Record, expected: TrainExpected) -> None:
    """Apply the bars that the file declares and those that the gate was given."""
    declared = record.record("thresholds", optional=True)
    max_loss = min_accuracy = None
    if declared is not None:
        # A bar under a name that is not known here would never be applied.
        unknown = [key for key in declared.values if key not in _BARS and declared.has(key)]
        known = f"none but {' and '.join(_BARS)}"
        declared.check("bars_known", not unknown, unknown or "known", known, cls=FailureClass.USER_CONFIG_ERROR)
        max_loss = declared.number("max_final_loss", above=0, optional=True)
        min_accuracy = declared.number("min_final_accuracy", above=0, optional=True)
        if min_accuracy is not None:
            cls = FailureClass.USER_CONFIG_ERROR
            possible = min_accuracy < PERFECT
            declared.check("bar", possible, min_accuracy, f"< {PERFECT}", "min_final_accuracy", cls=cls)
    loss = record.values.get("final_loss")
    for bar in (max_loss, expected.max_final_loss):
        if bar is not None and is_number(loss):
            record.check("final_loss", loss <= bar, loss, f"<= {bar:g}", "final_loss", cls=_REGRESSION)
    for bar in (min_accuracy, expected.min_final_accuracy):
        if bar is None:
            continue
        accuracy = _measured(record, "final_accuracy").number("final_accuracy", minimum=0)  # a bar needs its number
        if accuracy is not None:
            reached = exactly(accuracy) >= exactly(bar)
            unit = "fraction 0-1"
            record.check(
                "final_accuracy", reached, accuracy, f">= {bar:g}", "final_accuracy", unit=unit, cls=_REGRESSION
            )


def _loss(record: Record, key: str) -> float | None:
    """A loss: finite and above zero. Zero is how trainers write a loss that was NaN all along."""
    value = _measured(record, key).number(key, above=0)
    if value is not None and value < TRIVIAL:
        limit = f">= {TRIVIAL}: lower means that hardly a token counted towards it"
        record.check("loss_possible", False, value, limit, key, cls=_REGRESSION)
    return value


def _norm(record: Record, key: str) -> float | None:
    return _measured(record, key).number(key, minimum=0)


def _accuracy(record: Record, key: str) -> float | None:
    """An accuracy, where there is one: a fraction that something could be learnt from."""
    value = record.number(key, minimum=0, optional=True)
    if value is not None and value >= PERFECT:
        limit = f"< {PERFECT}: higher means that no token was asked for"
        record.check("accuracy_possible", False, value, limit, key, unit="fraction 0-1", cls=_REGRESSION)
    return value


def _measured(record: Record, key: str) -> Record:
    """The record whose fault a number is: null and zero are what a training writes that went wrong."""
    value = record.values.get(key, "")
    went_wrong = value is None or is_number(value)
    return record.classed(_REGRESSION) if went_wrong else record
