"""Accuracy results of ATOM's CI (ROCm): those of lm-evaluation-harness with `atom_ci_metadata` added.

Three scripts add acceptance, in different units and with different formulas:

* the native one (`atom_test.sh`): `mtp_acceptance_rate` in **per cent** and `avg_tokens_per_forward`, from the last
  cumulative line of the server's log, which comes every 1000 steps;
* the one for vLLM with ATOM's plugin (`atom_oot_test.sh`): `mtp_acceptance_overall` as a **fraction** and
  `mtp_per_pos_acceptance`, from the server's counters;
* the one for SGLang (`atom_sglang_test.sh`): `mtp_acceptance_rate` in **per cent**, but computed from the length, and
  `mtp_accept_length` and `avg_tokens_per_forward`.

All cover everything since the server's start, warm-up included. Without any of the keys the file states no acceptance:
speculation was off, or the log had no such line. Which of the three wrote it cannot be seen then, and does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.header import agree
from gates.reading import ResultBytes, kind_of
from gates.results.documents import Loaded, Part
from gates.results.fields import Fields, Notes, Reading, open_object, sure
from gates.results.lm_eval import Evaluation, looks_evaluated, read_evaluation
from gates.results.meaning import PER_CENT, Bonus, Meaning, Number, Scope, Series, Unit
from gates.results.speculation import check_positions, check_simulated, exactly_taken, remark_on_one

RATE: Final = Meaning(
    "acceptance rate, written in per cent", Unit.FRACTION, Scope.SERVER, "accepted / draft tokens", scale=PER_CENT
)
LENGTH: Final = Meaning(
    "acceptance length (tokens per forward)", Unit.TOKENS_PER_STEP, Scope.SERVER, "1 + accepted / steps", Bonus.WITH
)
OOT_RATE: Final = Meaning("acceptance rate", Unit.FRACTION, Scope.SERVER, "accepted / draft tokens")
OOT_POSITIONS: Final = Meaning(
    "by draft position, positions without a counter left out: share of the steps in which it was taken",
    Unit.FRACTION,
    Scope.SERVER,
    "accepted at the position / drafts",
)
SGLANG_RATE: Final = Meaning(
    "acceptance rate, written in per cent, computed from the length",
    Unit.FRACTION,
    Scope.SERVER_OR_FLUSH,
    "(length - 1) / (draft tokens - 1), or / draft steps",
    scale=PER_CENT,
)
SGLANG_LENGTH: Final = Meaning(
    "acceptance length, mean over data-parallel ranks, each weighing the same",
    Unit.TOKENS_PER_STEP,
    Scope.SERVER_OR_FLUSH,
    "mean over ranks of (tokens accepted, the bonus token among them / verify steps)",
    Bonus.WITH,
)
VRAM: Final = Meaning("memory of a GPU", Unit.GIB, Scope.SETTING)

METADATA: Final = "atom_ci_metadata"
NATIVE_KEYS: Final = ("mtp_acceptance_rate", "avg_tokens_per_forward")
OOT_KEYS: Final = ("mtp_acceptance_overall", "mtp_per_pos_acceptance")
SGLANG_KEY: Final = "mtp_accept_length"

_MOST_K: Final = 64
_PRINTED: Final = 0.005
"""Lengths and rates in per cent are printed with two decimals."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the evaluation ran on."""

    docker_image: str | None
    gpu_name: str | None
    gpu_memory: Number | None
    rocm_version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomAccuracy(Reading):
    """What all three have; by itself, a file without acceptance."""

    WRITTEN_BY: ClassVar[str] = "ATOM accuracy test, without acceptance"

    evaluation: Evaluation
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomNative(AtomAccuracy):
    """A file of the native script; `length` is None where it has none."""

    WRITTEN_BY: ClassVar[str] = "ATOM accuracy test, native (atom_test.sh)"

    rate: Number
    length: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomOot(AtomAccuracy):
    """A file of the script for vLLM. The script leaves out positions without a counter: `positions` may be shifted."""

    WRITTEN_BY: ClassVar[str] = "ATOM accuracy test, vLLM plugin (atom_oot_test.sh)"

    rate: Number
    positions: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomSglang(AtomAccuracy):
    """A file of the script for SGLang."""

    WRITTEN_BY: ClassVar[str] = "ATOM accuracy test, SGLang (atom_sglang_test.sh)"

    rate: Number
    length: Number
    forward: Number | None


def _keys(loaded: Loaded) -> set[str] | None:
    if not looks_evaluated(loaded):
        return None
    metadata = loaded.parts[0].root.get(METADATA)
    return set(metadata) if isinstance(metadata, dict) else None


def looks(loaded: Loaded) -> bool:
    """Whether the shape is that of a file without acceptance."""
    keys = _keys(loaded)
    return keys is not None and not keys.intersection((*NATIVE_KEYS, *OOT_KEYS, SGLANG_KEY))


def looks_native(loaded: Loaded) -> bool:
    """Whether the shape is that of the native script."""
    keys = _keys(loaded)
    return keys is not None and SGLANG_KEY not in keys and bool(keys.intersection(NATIVE_KEYS))


def looks_oot(loaded: Loaded) -> bool:
    """Whether the shape is that of the script for vLLM."""
    keys = _keys(loaded)
    return keys is not None and bool(keys.intersection(OOT_KEYS))


def looks_sglang(loaded: Loaded) -> bool:
    """Whether the shape is that of the script for SGLang."""
    keys = _keys(loaded)
    return keys is not None and SGLANG_KEY in keys


def read(file: ResultBytes) -> AtomAccuracy:
    """Read a file without acceptance.

    Raises:
        ResultError: When it has no score or no metadata, or a field is not what it must be.
    """
    part, fields, evaluation, metadata = _open(file, (*NATIVE_KEYS, *OOT_KEYS, SGLANG_KEY))
    machine = _machine(metadata)
    fields.notes.remark(
        metadata.path, "no acceptance: speculation was off, or the script found nothing to read it from"
    )
    return AtomAccuracy(file=file.name, remarks=fields.notes.close((part,)), evaluation=evaluation, machine=machine)


def read_native(file: ResultBytes) -> AtomNative:
    """Read a file of the native script.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    part, fields, evaluation, metadata = _open(file, (*OOT_KEYS, SGLANG_KEY))
    machine = _machine(metadata)
    rate = metadata.number("mtp_acceptance_rate", RATE, need=True, high=100)
    length = metadata.number("avg_tokens_per_forward", LENGTH)
    notes = fields.notes
    if rate is not None:
        _check_length(notes, rate, length)
        notes.remark(rate.field, "from the last log line, one every 1000 steps: the end of the run is not in it")
    remarks = notes.close((part,))
    return AtomNative(
        file=file.name, remarks=remarks, evaluation=evaluation, machine=machine, rate=sure(rate), length=length
    )


def read_oot(file: ResultBytes) -> AtomOot:
    """Read a file of the script for vLLM.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    part, fields, evaluation, metadata = _open(file, (*NATIVE_KEYS, SGLANG_KEY))
    machine = _machine(metadata)
    rate = metadata.number("mtp_acceptance_overall", OOT_RATE, need=True, high=1)
    positions = metadata.series("mtp_per_pos_acceptance", OOT_POSITIONS, need=True, high=1)
    notes = fields.notes
    if rate is not None and positions is not None:
        if not positions.written:
            notes.remark(positions.field, "is empty: the server has no counters by position")
        else:
            check_positions(notes, positions, None, "")
            check_simulated(notes, positions.field, exactly_taken(positions.values))
            total = sum(positions.values)
            least = len(positions.written)
            if not any(agree(total, k * rate.value, absolute=1e-9) for k in range(least, _MOST_K + 1)):
                notes.fault(positions.field, f"adds up to {total:g}, no whole number of times the rate {rate.value:g}")
    remarks = notes.close((part,))
    return AtomOot(
        file=file.name,
        remarks=remarks,
        evaluation=evaluation,
        machine=machine,
        rate=sure(rate),
        positions=sure(positions),
    )


def read_sglang(file: ResultBytes) -> AtomSglang:
    """Read a file of the script for SGLang.

    Raises:
        ResultError: When a needed field is missing or is not what it must be.
    """
    part, fields, evaluation, metadata = _open(file, OOT_KEYS)
    machine = _machine(metadata)
    rate = metadata.number("mtp_acceptance_rate", SGLANG_RATE, need=True, high=100)
    length = metadata.number(SGLANG_KEY, SGLANG_LENGTH, need=True)
    forward = metadata.number("avg_tokens_per_forward", SGLANG_LENGTH)
    notes = fields.notes
    if rate is not None and length is not None:
        _check_length(notes, rate, length)
        if forward is not None and not agree(forward.value, length.value, absolute=_PRINTED):
            notes.fault(forward.field, f"is {forward.value:g}, and {length.field} is {length.value:g}")
    remarks = notes.close((part,))
    return AtomSglang(
        file=file.name,
        remarks=remarks,
        evaluation=evaluation,
        machine=machine,
        rate=sure(rate),
        length=sure(length),
        forward=forward,
    )


def _open(file: ResultBytes, foreign: tuple[str, ...]) -> tuple[Part, Fields, Evaluation, Fields]:
    """Read what all have. A key of another script would be read with the wrong unit or formula, and is refused."""
    part, fields = open_object(file)
    evaluation = read_evaluation(fields)
    metadata = fields.part(METADATA, need=True)
    if metadata is None:
        fields.notes.refuse()
    for key in foreign:
        if key in metadata.values:
            fields.notes.problem(
                metadata.at(key), "nothing, since another script writes it", kind_of(metadata.values[key])
            )
    return part, fields, evaluation, metadata


def _machine(metadata: Fields) -> Machine:
    return Machine(
        metadata.text("docker_image"),
        metadata.text("gpu_name"),
        metadata.count("gpu_vram_gb", VRAM),
        metadata.text("rocm_version"),
    )


def _check_length(notes: Notes, rate: Number, length: Number | None) -> None:
    """Check that length = 1 + k x rate for some whole k, which the file does not say."""
    notes.remark(rate.field, "k is not in the file: a rate falls with k, compare only equal k")
    if length is None:
        notes.remark(rate.field, "without a length beside it")
        return
    if length.value < 1:
        notes.fault(length.field, "below 1: a length that counts the bonus token cannot be")
        return
    remark_on_one(notes, length)
    slack = _PRINTED * (1 + _MOST_K / 100)
    if not any(agree(length.value, 1 + k * rate.value, absolute=slack) for k in range(1, _MOST_K + 1)):
        words = f"{length.value:g} is 1 + k x {rate.value:g} for no whole k: not the definition of before"
        notes.fault(length.field, words)
