"""The verdict of a gate: pass or fail, why, and every check with what was measured against which limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class FailureClass(StrEnum):
    """Why a stage failed. A closed list: triage has exactly one next step for each."""

    INFRA_TRANSIENT = "INFRA_TRANSIENT"
    USER_CONFIG_ERROR = "USER_CONFIG_ERROR"
    MODEL_UNSUPPORTED = "MODEL_UNSUPPORTED"
    TRAINING_REGRESSION = "TRAINING_REGRESSION"
    EXPORT_INVALID = "EXPORT_INVALID"
    CHECKPOINT_NOT_SERVABLE = "CHECKPOINT_NOT_SERVABLE"
    ACCEPTANCE_REGRESSION = "ACCEPTANCE_REGRESSION"
    ACCURACY_REGRESSION = "ACCURACY_REGRESSION"
    CORRECTNESS_MISMATCH = "CORRECTNESS_MISMATCH"
    MEASUREMENT_INVALID = "MEASUREMENT_INVALID"
    FREEZE_FAILED = "FREEZE_FAILED"
    RESULT_MISSING = "RESULT_MISSING"
    UNKNOWN = "UNKNOWN"
    SYSTEMIC = "SYSTEMIC"


Measured = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison that a gate made.

    Attributes:
        name: Short name, lower case with underscores.
        ok: Whether it held.
        measured: What the file says; None where it says nothing.
        limit: What was required, as text for people ("> 1 and <= 5", "= 24").
        unit: Unit of both ("tokens", "fraction 0-1", "tokens/s", "s", "count", "").
        file: Name of the result file.
        field: Path of the field inside it ("arms.B.points[0].failed").
        failure_class: The class that the failure of this check stands for, None to take the gate's default; None
            where it held.
    """

    name: str
    ok: bool
    measured: Measured
    limit: str
    unit: str = ""
    file: str = ""
    field: str = ""
    failure_class: FailureClass | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate decided.

    Attributes:
        gate: Name of the gate ("train", "smoke", "bench", "correctness", "freeze").
        passed: True only when there is at least one check and every check held.
        failure_class: None exactly when passed.
        detail: One line for people: what failed, measured and limit, in which file and field.
        checks: Every check that was made, in the order in which a reader would want them.
        readable: False when an input could not be read at all (exit status 2 of the command).
        facts: Numbers worth showing that no check compares (loss, speedup by concurrency), by name.
    """

    gate: str
    passed: bool
    failure_class: FailureClass | None
    detail: str
    checks: tuple[Check, ...]
    readable: bool = True
    facts: tuple[tuple[str, Measured], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form (`pass`, `failure_class`, `detail`, `checks`, and more)."""
        return {
            "gate": self.gate,
            "pass": self.passed,
            "failure_class": self.failure_class,
            "detail": self.detail,
            "checks": [asdict(check) for check in self.checks],
            "readable": self.readable,
            "facts": dict(self.facts),
        }


DETAILED = 6
"""How many failing checks the one line of a verdict spells out; `checks` always holds all of them."""


def decide(
    gate: str,
    checks: Iterable[Check],
    default: FailureClass,
    *,
    facts: Iterable[tuple[str, Measured]] = (),
    precedence: Sequence[FailureClass] = (),
    readable: bool = True,
) -> Verdict:
    """Turn checks into a verdict: passes only when there is one or more, all held, and every input was readable.

    Args:
        gate: Name of the gate.
        checks: What was compared. An empty list fails, since nothing was looked at.
        default: Class of a failing check that names none.
        facts: Numbers worth showing.
        precedence: Which class wins when checks of several classes failed: the first of these that any of them
            stands for. Without it, or where none of them is listed, the first failing check decides.
        readable: False when an input could not be read; then the verdict is never a pass.
    """
    made = tuple(checks)
    failed = [check for check in made if not check.ok]
    if made and not failed and readable:
        return Verdict(gate, True, None, f"{len(made)} checks held", made, facts=tuple(facts))
    if not failed:
        return Verdict(gate, False, default, "nothing was checked", made, readable, tuple(facts))
    classes = [check.failure_class or default for check in failed]
    decided = next((one for one in precedence if one in classes), classes[0])
    # What decided comes first: the line is often cut, and a reader wants the cause before its consequences.
    told = sorted(failed, key=lambda check: (check.failure_class or default) is not decided)
    more = f"; and {len(told) - DETAILED} more" if len(told) > DETAILED else ""
    detail = "; ".join(describe(check) for check in told[:DETAILED]) + more
    return Verdict(gate, False, decided, detail, made, readable, tuple(facts))


def describe(check: Check) -> str:
    """One line about a check: where, measured, limit."""
    where = ": ".join(part for part in (check.file, check.field) if part)
    unit = f" {check.unit}" if check.unit else ""
    place = f"{where}: " if where else ""
    return f"{place}{check.name} is {check.measured!r}{unit}, wanted {check.limit}"
