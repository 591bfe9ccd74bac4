"""`trainer_state.json` of a Hugging Face training (transformers `Trainer`).

The file is Python's dialect of JSON: `NaN` and `Infinity` stand bare. A loss is rarely among them, since the trainer by
default (`logging_nan_inf_filter`) writes the running mean where a step's loss was not finite, and 0.0 where all of them
were. What shows a masked loss is its neighbour: a gradient norm that is NaN, or absent where other entries have one.
`train_loss` of the last entry is the mean over the run, deflated after a resume, and no final loss. Accuracies that
Model-Optimizer's callback prints never reach this file.

Three kinds of entries are in `log_history`: training steps (`loss`), evaluations (`eval_*`), and the summary at the end
(`train_runtime`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Fields, Reading, open_object, sure
from gates.results.meaning import Meaning, Number, Scope, Table, Unit

STEP: Final = Meaning("optimizer step", Unit.STEPS, Scope.STEP)
GLOBAL_STEP: Final = Meaning("optimizer steps done when the file was written", Unit.STEPS, Scope.RUN)
MAX_STEPS: Final = Meaning("optimizer steps that the run was to do", Unit.STEPS, Scope.SETTING)
EPOCH: Final = Meaning("epochs done; may lie just under a whole number", Unit.NONE, Scope.RUN)
EPOCHS: Final = Meaning("epochs that the run was to do", Unit.NONE, Scope.SETTING)
LOSS: Final = Meaning(
    "training loss, mean since the entry before; the running mean where a step's loss was not finite",
    Unit.NONE,
    Scope.STEP,
)
GRAD_NORM: Final = Meaning("norm of the gradient", Unit.NONE, Scope.STEP)
LEARNING_RATE: Final = Meaning("learning rate", Unit.NONE, Scope.STEP)
EVALUATION: Final = Meaning("what an evaluation logged, in the units of whoever logged it", Unit.NONE, Scope.STEP)
TRAIN_LOSS: Final = Meaning(
    "training loss, mean over the run (over all steps, after a resume too): not a final loss", Unit.NONE, Scope.RUN
)
RUNTIME: Final = Meaning("time of the training", Unit.SECONDS, Scope.RUN)
FLOPS: Final = Meaning("floating-point operations; 0 says that nothing ran", Unit.COUNT, Scope.RUN)

LAST: Final = 5
"""So many of the last training entries show whether the end of a run was sound."""

_KEYS: Final = ("log_history", "global_step", "max_steps", "is_local_process_zero", "trial_params", "total_flos")


@dataclass(frozen=True, slots=True)
class TrainingEntry:
    """One logged training step; a loss or norm that is not finite is None."""

    step: Number
    loss: Number | None
    grad_norm: Number | None
    learning_rate: Number | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation."""

    step: Number
    metrics: Table


@dataclass(frozen=True, slots=True)
class Summary:
    """The entry that a training writes at its end."""

    train_loss: Number | None
    runtime: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerState(Reading):
    """How far a training came, and its log.

    Attributes:
        global_step: Steps done.
        max_steps: Steps to do.
        finished: Whether they are the same. A run that was stopped early on purpose is not finished either.
        stopping: `should_training_stop` of the trainer's control, where the file has it.
        entries: Training steps in the order of the log.
        evaluations: Evaluations.
        summaries: End-of-training entries; more than one after a resume.
    """

    WRITTEN_BY: ClassVar[str] = "transformers Trainer (trainer_state.json)"

    global_step: Number
    max_steps: Number
    epoch: Number | None
    epochs: Number | None
    flops: Number | None
    finished: bool
    stopping: bool | None
    entries: tuple[TrainingEntry, ...]
    evaluations: tuple[Evaluation, ...]
    summaries: tuple[Summary, ...]

    @property
    def final_loss(self) -> Number | None:
        """Loss of the last training entry; None where that entry has none that is finite."""
        return self.entries[-1].loss if self.entries else None


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    return len(loaded.parts) == 1 and sum(key in loaded.parts[0].root for key in _KEYS) >= 3


def read(file: ResultBytes) -> TrainerState:
    """Read the file.

    Raises:
        ResultError: When it does not say how far the run came, or its log is not one.
    """
    part, fields = open_object(file)
    done = fields.count("global_step", GLOBAL_STEP, need=True)
    goal = fields.count("max_steps", MAX_STEPS, need=True)
    rows = fields.parts("log_history", need=True)
    entries, evaluations, summaries = _sort(rows)
    epoch, epochs = fields.number("epoch", EPOCH), fields.number("num_train_epochs", EPOCHS)
    flops = _flops(fields)
    stopping = _stopping(fields)
    if done is not None and goal is not None:
        _remark(fields, done, goal, entries)
    return TrainerState(
        file=file.name,
        remarks=fields.notes.close((part,)),
        global_step=sure(done),
        max_steps=sure(goal),
        epoch=epoch,
        epochs=epochs,
        flops=flops,
        finished=sure(done).value == sure(goal).value,
        stopping=stopping,
        entries=tuple(entry for _, entry in entries),
        evaluations=tuple(evaluations),
        summaries=tuple(summaries),
    )


def _flops(fields: Fields) -> Number | None:
    """`total_flos`, which no bound on other numbers fits."""
    value = fields.values.get("total_flos")
    if isinstance(value, int | float) and not isinstance(value, bool) and 10**15 <= value < 10**40:
        return Number(float(value), FLOPS, fields.at("total_flos"))
    return fields.number("total_flos", FLOPS)


def _stopping(fields: Fields) -> bool | None:
    inside: Fields | None = fields
    for key in ("stateful_callbacks", "TrainerControl", "args"):
        inside = inside.part(key) if inside is not None else None
    return inside.flag("should_training_stop") if inside is not None else None


_Row = tuple[Fields, TrainingEntry]


def _sort(rows: Sequence[Fields]) -> tuple[list[_Row], list[Evaluation], list[Summary]]:
    entries: list[_Row] = []
    evaluations: list[Evaluation] = []
    summaries: list[Summary] = []
    for row in rows:
        step = row.count("step", STEP, need=True)
        if "loss" in row.values:
            loss = row.number("loss", LOSS, low=float("-inf"))
            norm = row.number("grad_norm", GRAD_NORM)
            rate = row.number("learning_rate", LEARNING_RATE)
            if step is not None:
                entries.append((row, TrainingEntry(step, loss, norm, rate)))
        elif any(key.startswith("eval_") for key in row.values):
            metrics = _metrics(row)
            if step is not None:
                evaluations.append(Evaluation(step, metrics))
        elif "train_runtime" in row.values or "train_loss" in row.values:
            mean = row.number("train_loss", TRAIN_LOSS, low=float("-inf"))
            summaries.append(Summary(mean, row.number("train_runtime", RUNTIME)))
        else:
            row.notes.remark(row.path, "an entry of no known kind: no loss, no eval_, no train_runtime")
    return entries, evaluations, summaries


def _metrics(row: Fields) -> Table:
    found = [(key, row.number(key, EVALUATION, low=float("-inf"))) for key in row.values if key.startswith("eval_")]
    return Table(tuple((key, number.written) for key, number in found if number is not None), EVALUATION, row.path)


def _remark(fields: Fields, done: Number, goal: Number, rows: Sequence[_Row]) -> None:
    notes = fields.notes
    log = fields.at("log_history")
    if done.value > goal.value:
        notes.fault(done.field, f"{done.value:g} steps done of {goal.value:g}")
    elif done.value < goal.value:
        notes.remark(done.field, f"not finished: {done.value:g} of {goal.value:g} steps")
    if not rows:
        notes.fault(log, "has no training entry: there is no loss in this file")
        return
    steps = [entry.step for _, entry in rows]
    if any(one.value >= other.value for one, other in pairwise(steps)):
        notes.fault(log, "the steps of its training entries do not rise")
    if steps[-1].value > done.value:
        notes.fault(steps[-1].field, f"lies behind global_step {done.value:g}")
    normed = any(entry.grad_norm is not None for _, entry in rows)
    for row, entry in rows:
        norm = entry.grad_norm
        if entry.loss is not None and entry.loss.value == 0 and (norm is None or norm.value == 0):
            notes.fault(row.at("loss"), "0 without a gradient: how a trainer writes a loss that was never finite")
        elif not row.has("grad_norm") and normed:
            notes.remark(row.at("grad_norm"), "nothing here and a number elsewhere: the step may have been skipped")
    tail = [entry.loss.value for _, entry in rows[-LAST:] if entry.loss is not None]
    if len(tail) == LAST and len(set(tail)) == 1:
        notes.fault(log, f"its last {LAST} losses are all {tail[0]:g}: a mean that is repeated")
