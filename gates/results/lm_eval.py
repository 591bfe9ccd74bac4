"""Results of lm-evaluation-harness (`results_<time>.json`).

A task's scores have keys `<metric>,<filter>`, each with a `<metric>_stderr,<filter>` beside it, which may be the text
"N/A". Accuracies and exact matches are fractions; what other metrics are is theirs to say. `n-samples` says of how many
examples (`effective`) the score is, `n-shot` how many were shown. The time of the evaluation is written as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Fields, Reading, open_object
from gates.results.meaning import Meaning, Number, Scope, Unit

FRACTIONS: Final = frozenset({"acc", "acc_norm", "exact_match", "pass@1", "relaxed_accuracy"})
"""Metrics that are shares of the examples."""

ACCURACY: Final = Meaning("share of the examples that were answered rightly", Unit.FRACTION, Scope.RUN)
ACCURACY_ERROR: Final = Meaning("standard error of that share", Unit.FRACTION, Scope.RUN)
OTHER: Final = Meaning("a metric, in its own unit", Unit.NONE, Scope.RUN)
OTHER_ERROR: Final = Meaning("standard error of that metric", Unit.NONE, Scope.RUN)
SHOTS: Final = Meaning("examples that were shown", Unit.EXAMPLES, Scope.SETTING)
EXAMPLES: Final = Meaning("examples that were asked", Unit.EXAMPLES, Scope.RUN)
AVAILABLE: Final = Meaning("examples that the task has", Unit.EXAMPLES, Scope.SETTING)
DURATION: Final = Meaning("time of the evaluation", Unit.SECONDS, Scope.RUN)
LIMIT: Final = Meaning("limit on the examples: a count, or a share below 1", Unit.NONE, Scope.SETTING)

_KEYS: Final = ("results", "n-samples", "n-shot", "higher_is_better", "task_hashes", "versions", "configs")
_NO_ERROR: Final = "N/A"


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of a task; `error` is None where the file has "N/A" or nothing."""

    metric: str
    filter: str
    value: Number
    error: Number | None


@dataclass(frozen=True, slots=True)
class Task:
    """One task; `shots`, `examples` and `available` are None where the file does not say."""

    name: str
    scores: tuple[Score, ...]
    shots: Number | None
    examples: Number | None
    available: Number | None

    def score(self, metric: str, filter_: str) -> Score | None:
        """The score of one metric after one filter; None where there is none."""
        return next((one for one in self.scores if (one.metric, one.filter) == (metric, filter_)), None)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation states."""

    model: str | None
    model_arguments: str | None
    git_hash: str | None
    chat_template: str | None
    duration: Number | None
    limit: Number | None
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LmEval(Reading):
    """A whole file."""

    WRITTEN_BY: ClassVar[str] = "lm-evaluation-harness"

    evaluation: Evaluation


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one, without what ATOM adds."""
    return looks_evaluated(loaded) and "atom_ci_metadata" not in loaded.parts[0].root


def looks_evaluated(loaded: Loaded) -> bool:
    """Whether the shape is this one, whatever else is in the file."""
    return len(loaded.parts) == 1 and sum(key in loaded.parts[0].root for key in _KEYS) >= 3


def read(file: ResultBytes) -> LmEval:
    """Read the file.

    Raises:
        ResultError: When it has no score, or one that is none.
    """
    part, fields = open_object(file)
    evaluation = read_evaluation(fields)
    return LmEval(file=file.name, remarks=fields.notes.close((part,)), evaluation=evaluation)


def read_evaluation(fields: Fields) -> Evaluation:
    """Read the evaluation, also where another program added to the file."""
    nothing = Fields(fields.notes, fields.path, {})
    results = fields.part("results", need=True) or nothing
    if not results.values and fields.has("results"):
        fields.notes.problem(results.path, "at least one task", "none")
    shots = fields.part("n-shot") or nothing
    samples = fields.part("n-samples") or nothing
    config = fields.part("config") or nothing
    tasks = [task for name in results.values if (task := _task(results, name, shots, samples)) is not None]
    arguments = config.values.get("model_args")
    return Evaluation(
        model=fields.text("model_name"),
        model_arguments=arguments if isinstance(arguments, str) else _pairs(config),
        git_hash=fields.text("git_hash"),
        chat_template=fields.text("chat_template_sha"),
        duration=fields.number("total_evaluation_time_seconds", DURATION, as_text=True),
        limit=config.number("limit", LIMIT),
        tasks=tuple(tasks),
    )


def _pairs(config: Fields) -> str | None:
    """`model_args` where it is an object, as the text that it stands for."""
    inside = config.part("model_args")
    return None if inside is None else ",".join(f"{key}={value}" for key, value in inside.values.items())


def _task(results: Fields, name: str, shots: Fields, samples: Fields) -> Task | None:
    inside = results.part(name, need=True)
    if inside is None:
        return None
    scores = [score for key in inside.values if (score := _score(inside, key)) is not None]
    counted = samples.part(name)
    examples = counted.count("effective", EXAMPLES) if counted is not None else None
    available = counted.count("original", AVAILABLE) if counted is not None else None
    notes = inside.notes
    if not any(_named(key) for key in inside.values):
        # A group without scores of its own is a heading; what it groups has the scores.
        notes.remark(inside.path, "has no score")
        if len(results.values) == 1:
            notes.problem(inside.path, "a score: a key <metric>,<filter>", "none")
    elif examples is None:
        notes.remark(samples.at(name), "how many examples were asked is not stated")
    elif examples.value == 0:
        notes.fault(examples.field, "0: nothing was asked")
    elif available is not None and examples.value < available.value:
        notes.remark(examples.field, f"{examples.value:g} of the task's {available.value:g} examples")
    elif available is not None and examples.value > available.value:
        notes.fault(examples.field, f"{examples.value:g} of {available.value:g} examples")
    return Task(name, tuple(scores), shots.count(name, SHOTS), examples, available)


def _named(key: str) -> tuple[str, str] | None:
    """Metric and filter of a key of a score; None for other keys and for standard errors."""
    metric, comma, filter_ = key.partition(",")
    return None if not comma or not metric.strip() or metric.endswith("_stderr") else (metric, filter_)


def _score(inside: Fields, key: str) -> Score | None:
    named = _named(key)
    if named is None:
        return None
    metric, filter_ = named
    share = metric in FRACTIONS
    high = 1.0 if share else float("inf")
    low = 0.0 if share else float("-inf")
    value = inside.number(key, ACCURACY if share else OTHER, need=True, low=low, high=high)
    beside = f"{metric}_stderr,{filter_}"
    meaning = ACCURACY_ERROR if share else OTHER_ERROR
    error = None if inside.values.get(beside) == _NO_ERROR else inside.number(beside, meaning)
    return None if value is None else Score(metric, filter_, value, error)
