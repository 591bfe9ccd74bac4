"""All gates by name: which files each one reads, what it can be told, and one way to run any of them.

The conductor and the command both come through `run`, so a verdict that was given inside a release can be had again
outside it from the same bytes and the same expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gates.acceptance import KINDS as ACCEPTANCE_KINDS
from gates.acceptance import AcceptanceExpected, judge_acceptance
from gates.accuracy import KINDS as ACCURACY_KINDS
from gates.accuracy import AccuracyExpected, judge_accuracy
from gates.bench import BenchExpected, judge_bench
from gates.correctness import CorrectnessExpected, judge_correctness
from gates.data import DataExpected, judge_data
from gates.expectations import Expected, settle
from gates.export import ExportExpected, judge_export
from gates.freeze import FreezeExpected, judge_freeze
from gates.reading import ResultBytes
from gates.record import Sheet
from gates.smoke import SmokeExpected, judge_smoke
from gates.target import TargetExpected, judge_target
from gates.train import TrainExpected, judge_train
from gates.verdict import FailureClass, Verdict


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate.

    Attributes:
        name: As the command and the log name it.
        about: One line for people.
        kinds: Kinds of result files that it reads.
        optional: Those of them that a run may lack; a file that is named but missing still fails.
        settings: Its dataclass of settings.
        judge: The gate itself: takes the files in the order of `kinds` and the settings as `expected`.
    """

    name: str
    about: str
    kinds: tuple[str, ...]
    settings: type[Expected]
    judge: Callable[..., Verdict]
    optional: frozenset[str] = frozenset()


GATES: Final[Mapping[str, Gate]] = {
    gate.name: gate
    for gate in (
        Gate(
            "target",
            "the target is on the cluster, whole, and the pinned one",
            ("target_check", "stage_target"),
            TargetExpected,
            judge_target,
            frozenset({"stage_target"}),
        ),
        Gate("data", "there is training data", ("data",), DataExpected, judge_data),
        Gate(
            "train",
            "the training ended, learnt, and exported its last state",
            ("regression_check", "export_check"),
            TrainExpected,
            judge_train,
        ),
        Gate("export", "the export can be what it claims to be", ("export_check",), ExportExpected, judge_export),
        Gate("smoke", "the drafter serves, and is accepted", ("smoke",), SmokeExpected, judge_smoke),
        Gate("freeze", "exactly the judged export was frozen", ("freeze",), FreezeExpected, judge_freeze),
        Gate("bench", "the A|B measurement is valid", ("bench",), BenchExpected, judge_bench),
        Gate(
            "correctness",
            "greedy outputs are the same with the drafter as without",
            ("exact_match",),
            CorrectnessExpected,
            judge_correctness,
        ),
        Gate(
            "acceptance",
            "the target takes as many of the drafter's tokens as the catalog asks for",
            ACCEPTANCE_KINDS,
            AcceptanceExpected,
            judge_acceptance,
            frozenset(ACCEPTANCE_KINDS[1:]),
        ),
        Gate(
            "accuracy",
            "the server is the one that was asked for, and its answers are as right as the catalog asks for",
            ACCURACY_KINDS,
            AccuracyExpected,
            judge_accuracy,
            frozenset(ACCURACY_KINDS[1:]),
        ),
    )
}


def file_name(kind: str) -> str:
    """The usual name of a kind of result file."""
    return f"{kind}.json"


def run(
    name: str,
    files: Mapping[str, bytes | None] | Mapping[str, ResultBytes],
    expected: Mapping[str, Any] | None = None,
) -> Verdict:
    """Run a gate.

    Args:
        name: Which gate; one of `GATES`.
        files: The bytes of its result files by kind, None for one that should be there and is not. An optional kind
            that was never to be written is left out. Values of type `ResultBytes` bring their own names.
        expected: Settings by name; see the gate's dataclass. A setting that the gate does not know, that is null, or
            that lies outside its bounds is a USER_CONFIG_ERROR.

    Returns:
        The verdict. Nothing is raised for any content of the files or any value of a setting.

    Raises:
        KeyError: When there is no gate of that name.
    """
    gate = GATES[name]
    sheet = Sheet(name)
    settings = settle(gate.settings, expected or {}, sheet)
    unknown = [kind for kind in files if kind not in gate.kinds]
    for kind in unknown:
        wanted = f"one of: {', '.join(gate.kinds)}"
        sheet.check("kind_of_file", False, kind, wanted, file=kind, cls=FailureClass.USER_CONFIG_ERROR)
    if settings is None or unknown:
        sheet.readable = False
        return sheet.verdict(FailureClass.USER_CONFIG_ERROR)
    given: list[ResultBytes | None] = []
    for kind in gate.kinds:
        data = files.get(kind)
        if kind in gate.optional and kind not in files:
            given.append(None)
        else:
            given.append(data if isinstance(data, ResultBytes) else ResultBytes(file_name(kind), data))
    return gate.judge(*given, expected=settings)
