"""From a failure to the one next step: a table over the closed list of failure classes.

The step is written into the log before it is taken, and a retry is a new job that needs a new OK, so the
operator always sees what is about to be done and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from console.release.state import GateRecord, ReleaseVerdict, Stage, Triage
from gates.verdict import FailureClass

RETRY, VERDICT, ASK, SYSTEMIC = "retry", "verdict", "ask the operator", "stop"

SERVER_TIMEOUT = "server_timeout"
"""Recipe value, and the stage word of a smoke result, for a server that did not come up in time."""

MEASURE_AGAIN = "measure_again"
"""Fact of a gate of the catalog: how many more measurements its entry may take before it is decided."""

TIMEOUT_FACTOR = 2
"""By how much a retry raises the server's time limit."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from one failure class.

    Attributes:
        retries: How often the same task is proposed again.
        verdict: The verdict when no retry is left; None where a person must act first.
        words: Why, for people.
    """

    retries: int
    verdict: ReleaseVerdict | None
    words: str


_INFEASIBLE, _ANOMALOUS = ReleaseVerdict.INFEASIBLE, ReleaseVerdict.ANOMALOUS

RULES: Mapping[FailureClass, Rule] = {
    FailureClass.INFRA_TRANSIENT: Rule(1, None, "the cluster disturbed the job; the same job again may work"),
    FailureClass.USER_CONFIG_ERROR: Rule(0, None, "an input or a permission is wrong; correct it, then retry"),
    FailureClass.MODEL_UNSUPPORTED: Rule(0, _INFEASIBLE, "the engine does not support this model"),
    FailureClass.TRAINING_REGRESSION: Rule(0, _INFEASIBLE, "training did not produce a usable drafter"),
    FailureClass.EXPORT_INVALID: Rule(0, _INFEASIBLE, "the exported drafter is not valid"),
    FailureClass.CHECKPOINT_NOT_SERVABLE: Rule(0, _INFEASIBLE, "the drafter cannot be served"),
    FailureClass.ACCEPTANCE_REGRESSION: Rule(0, _INFEASIBLE, "the target accepts too few drafted tokens"),
    FailureClass.ACCURACY_REGRESSION: Rule(0, _INFEASIBLE, "accuracy with the drafter is under its bar"),
    FailureClass.CORRECTNESS_MISMATCH: Rule(0, _INFEASIBLE, "outputs with the drafter differ from those without"),
    FailureClass.MEASUREMENT_INVALID: Rule(1, _ANOMALOUS, "the measurement is not valid"),
    FailureClass.FREEZE_FAILED: Rule(0, _ANOMALOUS, "the drafter could not be frozen as it was checked"),
    FailureClass.RESULT_MISSING: Rule(1, _ANOMALOUS, "the job ended without a readable result"),
    FailureClass.UNKNOWN: Rule(0, _ANOMALOUS, "nobody can say what went wrong"),
    FailureClass.SYSTEMIC: Rule(0, None, "the cluster or the credentials are down"),
}

# A smoke test that ended here is tried again with a longer limit; any other stage word is final.
_TIMEOUT_RETRIES = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one attempt.

    Attributes:
        id: The attempt, or the stage where there was no job.
        task: Its task.
        failure_class: From the gate, or RESULT_MISSING where no gate could read anything.
        detail: The gate's words.
        facts: The gate's facts; `stage` is the smoke result's own word for where it ended.
        values: The recipe values that the attempt ran with.
    """

    id: str
    task: str
    failure_class: FailureClass
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def failure_of(gate: GateRecord, task: str, values: Mapping[str, Any]) -> Failure:
    """The failure that a gate's record states; a class that nobody knows is UNKNOWN."""
    try:
        failure_class = FailureClass(gate.failure_class or "")
    except ValueError:
        failure_class = FailureClass.UNKNOWN
    return Failure(gate.id, task, failure_class, gate.detail, gate.facts, values)


def triage(failure: Failure, stage: Stage, max_retries: int | None = None) -> Triage:
    """Decide what follows.

    Args:
        failure: What went wrong.
        stage: The stage so far; its earlier triage entries count the retries that were used.
        max_retries: Most retries that the recipe grants this task, None for what the table says; it never adds any.
    """
    rule = RULES[failure.failure_class]
    if max_retries is not None:
        rule = replace(rule, retries=min(rule.retries, max_retries))
    ids = {attempt.id for attempt in stage.attempts if attempt.task == failure.task}
    used = sum(1 for item in stage.triage if item.step == RETRY and item.id in ids)
    timeout = (
        failure.failure_class is FailureClass.CHECKPOINT_NOT_SERVABLE and failure.facts.get("stage") == SERVER_TIMEOUT
    )
    if timeout and used < min(_TIMEOUT_RETRIES, _TIMEOUT_RETRIES if max_retries is None else max_retries):
        return _longer_timeout(failure)
    more = failure.facts.get(MEASURE_AGAIN)
    if failure.failure_class is FailureClass.MEASUREMENT_INVALID and more:
        # It ends: every such measurement counts, and the gate says how many are left.
        words = f"the catalog wants more than one measurement, {more} more at most: the same job again"
        return Triage(failure.id, failure.failure_class, RETRY, words, {})
    if used < rule.retries:
        return Triage(
            failure.id, failure.failure_class, RETRY, f"{rule.words} (retry {used + 1} of {rule.retries})", {}
        )
    if failure.failure_class is FailureClass.SYSTEMIC or failure.failure_class is FailureClass.INFRA_TRANSIENT:
        return Triage(failure.id, failure.failure_class, SYSTEMIC, rule.words, {})
    if rule.verdict is None:
        return Triage(failure.id, failure.failure_class, ASK, rule.words, {})
    after = f" after {used} retr{'y' if used == 1 else 'ies'}" if used else ""
    return Triage(failure.id, failure.failure_class, VERDICT, f"{rule.words}{after}", {"verdict": str(rule.verdict)})


def _longer_timeout(failure: Failure) -> Triage:
    before = failure.values.get(SERVER_TIMEOUT)
    if isinstance(before, bool) or not isinstance(before, int) or before <= 0:
        words = f"the server did not come up in time, and the recipe has no {SERVER_TIMEOUT} to raise"
        return Triage(failure.id, failure.failure_class, VERDICT, words, {"verdict": str(_INFEASIBLE)})
    after = before * TIMEOUT_FACTOR
    words = f"the server did not come up in {before} s: the same job with SERVER_TIMEOUT {after} s"
    return Triage(failure.id, failure.failure_class, RETRY, words, {SERVER_TIMEOUT: after})
