"""From a file of a known producer to a `Measurement`; one small function for each producer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from gates.catalog.measured import Measurement, Value, value_of, values_of
from gates.header import agree
from gates.reading import ResultBytes, Unread
from gates.record import same_value
from gates.results import (
    atom_accuracy,
    atom_serving,
    lm_eval,
    sglang_eval,
    sglang_server,
    sglang_serving,
    specdec_acceptance,
    speculation_profile,
    vllm_bench,
)
from gates.results.documents import Loaded, load, stands_in
from gates.results.fields import Problem, Reading, Remark, ResultError
from gates.results.meaning import Number

Source = tuple[Callable[[Loaded], bool], Callable[[ResultBytes], tuple[Measurement, Reading]]]

_TASK: Final = "gsm8k"
_RULES: Final = {"strict": "strict-match", "flexible": "flexible-extract"}
_ATOM_KEYS: Final = {"rate": "mtp_acceptance_rate", "length": "avg_tokens_per_forward"}
_SGLANG_DRAFTER: Final = "speculative_draft_model_path"
_RANDOM: Final = ("random", "random-ids")


def measure(file: ResultBytes, sources: Sequence[Source]) -> tuple[Measurement, tuple[Remark, ...]]:
    """What a file measured, and what its reader found that keeps it from being a measurement.

    Raises:
        ResultError: When nobody known wrote it, or a needed field is not what it must be.
    """
    loaded = load(file)
    if isinstance(loaded, Unread):
        why = file.why if file.data is None and file.why else f"{loaded.fault}: {loaded.why}"
        raise ResultError(file.name, [Problem("", "a complete result file", why)], unread=True)
    for looks, read in sources:
        if looks(loaded):
            measured, reading = read(file)
            return measured, tuple(remark for remark in reading.remarks if remark.unusable)
    other = stands_in(file.data)
    found = other or "another shape of file"
    raise ResultError(file.name, [Problem("", "a result file of a known producer", found)], unread=bool(other))


def _vllm(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = vllm_bench.read(file)
    run = _only(reading.runs, file)
    spoken = run.speculation
    _answered(file, run.completed, run.prompts, run.failed)
    root = _root(file)
    for key in ("dataset", "dataset_name"):  # in no file, unless somebody put it there
        _real_text(file, key, root.get(key))
    measured = Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        rate=value_of(spoken and spoken.rate),
        length=value_of(spoken and spoken.length),
        positions=values_of(spoken and spoken.positions),
        draft_tokens=_drafted(spoken),
        steps=value_of(spoken and spoken.drafts),
        chained=True,
        fields={
            "rate": vllm_bench.SPECULATION[0],
            "length": vllm_bench.SPECULATION[1],
            "positions": vllm_bench.SPECULATION[5],
        },
    )
    return measured, reading


def _drafted(spoken: vllm_bench.Speculation | None) -> Value | None:
    """Draft tokens a step, where every step had as many; the file does not state the setting."""
    if spoken is None or not spoken.drafts.value:
        return None
    each = spoken.draft_tokens.exact / spoken.drafts.exact
    return Value(each, spoken.draft_tokens.field) if each.denominator == 1 else None


def _answered(file: ResultBytes, completed: Number, asked: Number, failed: Number | None) -> None:
    """Requests that failed drop out of every mean, so a measurement with failures is none."""
    if failed is not None and failed.value:
        raise ResultError(file.name, [Problem(failed.field, "0", f"{failed.value:g}")])
    if completed.value != asked.value:
        raise ResultError(file.name, [Problem(completed.field, f"all {asked.value:g}", f"{completed.value:g}")])


def _real_text(file: ResultBytes, field: str, dataset: object) -> None:
    if isinstance(dataset, str) and dataset in _RANDOM:
        found = f"{dataset!r}: on random text, acceptance says nothing of the drafter"
        raise ResultError(file.name, [Problem(field, "a data set of real text", found)])


def _sglang_serving(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = sglang_serving.read(file)
    run = _only(reading.runs, file)
    _real_text(file, "dataset_name", run.dataset)
    root = _root(file)
    info = root.get("server_info")
    steps = run.server.steps if run.server is not None else None
    states = run.server.states if run.server is not None else ()
    ranks = [state.length for state in states if state.length is not None]
    # The file takes the first rank's length for the server's; the worst one counts, as in the server's own account. One
    # that states none beside others that do is how a rank looks whose drafter is dead.
    silent = next((state.field for state in states if state.length is None), "") if ranks else ""
    worst = min((run.length, *ranks), key=lambda length: length.exact) if run.length and not silent else None
    place = f"{silent}.avg_spec_accept_length" if silent else "accept_length"
    measured = Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        length=value_of(worst),
        draft_tokens=value_of(steps),
        server=info if isinstance(info, dict) else None,
        drafter=run.server.draft_model if run.server is not None else None,
        fields={"length": place, "drafter": f"server_info.{_SGLANG_DRAFTER}"},
    )
    return measured, reading


def _sglang_server(file: ResultBytes) -> tuple[Measurement, Reading]:
    """The ranks are averaged nowhere: the worst one counts, since a mean hides a rank whose drafter is dead."""
    reading = sglang_server.read(file)
    facts = reading.facts
    lengths = [state.length for state in facts.states]
    stated = [length for length in lengths if length is not None]
    worst = min(stated, key=lambda length: length.exact) if stated and len(stated) == len(lengths) else None
    settings = settings_of(_root(file))
    drafter = settings.get(_SGLANG_DRAFTER)  # of every decode server, where there are several
    silent = next((state.field for state in facts.states if state.length is None), "internal_states[0]")
    measured = Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        length=value_of(worst, file=file.name),
        draft_tokens=value_of(facts.steps, file=file.name),
        server=settings,
        drafter=drafter if isinstance(drafter, str) else None,
        fields={"length": f"{silent}.avg_spec_accept_length", "drafter": _SGLANG_DRAFTER},
    )
    return measured, reading


def settings_of(root: dict[str, Any]) -> dict[str, Any]:
    """The settings in a server's answer; where prefill is apart, those in which all decode servers agree."""
    decode = root.get("decode")
    if not isinstance(decode, list) or not decode or not isinstance(decode[0], dict) or "model_path" in root:
        return root
    inner: dict[str, Any] = dict(decode[0])
    for other in decode[1:]:
        # Where servers do not agree, no one value is that of the whole: what is asked for is held against all of them.
        for key, value in list(inner.items()):
            said = other.get(key) if isinstance(other, dict) else None
            if not same_value(said, value):
                inner[key] = f"{value} in one decode server, {said} in another"
    return inner


def _specdec(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = specdec_acceptance.read(file)
    run = reading.only()
    place = run.histogram.field
    longest = max(length for length, count in run.histogram.counts if count)
    shares = run.positions(max(longest - 1, 1))
    reached = [run.histogram.reached(position + 2) for position in range(len(shares))]
    measured = Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        length=value_of(run.average),
        steps=Value(Fraction(run.histogram.steps), place),
        positions=tuple(Value(share, place) for share in reached if share is not None),
        fields={"length": run.average.field, "positions": place},
    )
    return measured, reading


def _profile(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = speculation_profile.read(file)
    measured = Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        length=value_of(reading.per_step),
        positions=values_of(reading.marginal),
        draft_tokens=value_of(reading.k),
        fields={"length": reading.per_step.field, "positions": reading.marginal.field},
    )
    return measured, reading


def _run_eval(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = sglang_eval.read(file)
    return _scored(file, reading, reading.score), reading


def _sgl_eval(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = sglang_eval.read_sgl(file)
    return _scored(file, reading, reading.score), reading


def _scored(file: ResultBytes, reading: Reading, score: Number) -> Measurement:
    found = Value(score.exact, score.field)
    return Measurement(
        file=file.name, producer=reading.WRITTEN_BY, accuracy={"": found}, fields={"accuracy": score.field}
    )


def _atom_silent(file: ResultBytes) -> tuple[Measurement, Reading]:
    """A file without acceptance: so it looks when the server's log never said anything of it."""
    reading = atom_accuracy.read(file)
    return _atom(file, reading, {name: f"{atom_accuracy.METADATA}.{key}" for name, key in _ATOM_KEYS.items()}), reading


def _atom_native(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = atom_accuracy.read_native(file)
    places = {"rate": reading.rate.field, "length": f"{atom_accuracy.METADATA}.{_ATOM_KEYS['length']}"}
    return _atom(file, reading, places, rate=reading.rate, length=reading.length), reading


def _atom_oot(file: ResultBytes) -> tuple[Measurement, Reading]:
    """Positions without a counter are left out of the file, so the others may stand for another position each."""
    reading = atom_accuracy.read_oot(file)
    measured = _atom(file, reading, {"rate": reading.rate.field}, rate=reading.rate)
    total, rate = sum(reading.positions.values), reading.rate.value
    k = round(total / rate) if rate else 0
    # All positions together are k x rate, whichever of them are left out.
    if k and agree(total, k * rate):
        measured = replace(measured, draft_tokens=Value(Fraction(k), reading.positions.field))
    return measured, reading


def _atom_sglang(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = atom_accuracy.read_sglang(file)
    places = {"rate": reading.rate.field, "length": reading.length.field}
    return _atom(file, reading, places, rate=reading.rate, length=reading.length), reading


def _atom(
    file: ResultBytes,
    reading: atom_accuracy.AtomAccuracy,
    places: dict[str, str],
    *,
    rate: Number | None = None,
    length: Number | None = None,
) -> Measurement:
    made = _evaluated(file, reading, reading.evaluation)
    fields = {**made.fields, **places}
    return replace(made, rate=value_of(rate), length=value_of(length), chained=True, fields=fields)


def _lm_eval(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = lm_eval.read(file)
    return _evaluated(file, reading, reading.evaluation), reading


def _evaluated(file: ResultBytes, reading: Reading, evaluation: lm_eval.Evaluation) -> Measurement:
    """The accuracy of the only task; where there are several, of GSM8K."""
    tasks = evaluation.tasks if len(evaluation.tasks) == 1 else [one for one in evaluation.tasks if one.name == _TASK]
    if len(tasks) != 1:
        names = ", ".join(one.name for one in evaluation.tasks)
        raise ResultError(file.name, [Problem("results", f"one task, or {_TASK} among several", names[:200])])
    task = tasks[0]
    scores = {rule: task.score("exact_match", filter_) for rule, filter_ in _RULES.items()}
    return Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        accuracy={rule: Value(one.value.exact, one.value.field) for rule, one in scores.items() if one is not None},
        samples=value_of(task.examples),
        shots=value_of(task.shots),
        fields={
            "accuracy": f'results.{task.name}["exact_match,{_RULES["flexible"]}"]',
            "samples": f"n-samples.{task.name}.effective",
            "shots": f"n-shot.{task.name}",
        },
        task=task.name,
    )


def _atom_serving(file: ResultBytes) -> tuple[Measurement, Reading]:
    reading = atom_serving.read(file)
    _answered(file, reading.completed, reading.prompts, None)
    measured = Measurement(
        file=file.name,
        producer=reading.WRITTEN_BY,
        rate=value_of(reading.rate),
        length=value_of(reading.length),
        chained=True,
        fields={"rate": "acceptance_rate", "length": "accept_length"},
    )
    return measured, reading


def _only(runs: Sequence[Any], file: ResultBytes) -> Any:
    if len(runs) == 1:
        return runs[0]
    raise ResultError(file.name, [Problem("", "exactly one run", f"{len(runs)} runs, appended")])


def _root(file: ResultBytes) -> dict[str, Any]:
    loaded = load(file)
    return {} if isinstance(loaded, Unread) or not loaded.parts else loaded.parts[0].root


SGLANG_SERVER: Final[Source] = (sglang_server.looks, _sglang_server)

ATOM: Final[tuple[Source, ...]] = (
    (atom_accuracy.looks, _atom_silent),
    (atom_accuracy.looks_oot, _atom_oot),
    (atom_accuracy.looks_sglang, _atom_sglang),
    (atom_accuracy.looks_native, _atom_native),
)
"""ATOM's three scripts, which give one quantity two units; and what each leaves when it found no acceptance."""

ACCEPTANCE: Final[tuple[Source, ...]] = (
    *ATOM,
    (vllm_bench.looks, _vllm),
    (sglang_serving.looks, _sglang_serving),
    SGLANG_SERVER,
    (specdec_acceptance.looks, _specdec),
    (speculation_profile.looks, _profile),
    (atom_serving.looks, _atom_serving),
)
"""Producers whose files state acceptance."""

ACCURACY: Final[tuple[Source, ...]] = (
    *ATOM,
    (lm_eval.looks, _lm_eval),
    (sglang_eval.looks, _run_eval),
    (sglang_eval.looks_sgl, _sgl_eval),
)
"""Producers whose files state an accuracy."""
