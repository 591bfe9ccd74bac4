"""Who wrote a file? Told from its shape alone; where several could have, or none, that is the answer.

A file's name proves nothing, and neither does the size of a number in it. What tells is which keys are there and how
the objects are laid out. Each reader says whether a file has its shape; shapes are so narrow that a file which has two
of them is a mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gates.reading import ResultBytes, Unread
from gates.results import (
    atom_accuracy,
    atom_dashboard,
    atom_serving,
    golden_lengths,
    lm_eval,
    sglang_eval,
    sglang_one_batch,
    sglang_server,
    sglang_serving,
    specdec_acceptance,
    specdec_configuration,
    specdec_timing,
    speculation_profile,
    trainer_state,
    vllm_bench,
    vllm_metrics,
    vllm_request,
)
from gates.results.documents import Layout, Loaded, load, stands_in
from gates.results.fields import Reading


@dataclass(frozen=True, slots=True)
class Producer:
    """One kind of file.

    Attributes:
        name: Short name, as people type it.
        written_by: The program and its file, in words.
        looks: Whether a file has this shape.
        read: Reads it; raises `ResultError`.
    """

    name: str
    written_by: str
    looks: Callable[[Loaded], bool]
    read: Callable[[ResultBytes], Reading]


@dataclass(frozen=True, slots=True)
class Detected:
    """What a file may be.

    Attributes:
        producers: Those whose shape it has.
        layout: How it holds its objects; None where it could not be taken apart.
        objects: How many objects it holds.
        unread: Why it could not be taken apart.
        hint: What an unknown file looks like, "" where nothing can be said.
    """

    producers: tuple[Producer, ...]
    layout: Layout | None
    objects: int = 0
    unread: Unread | None = None
    hint: str = ""


def _producer(
    name: str, record: type[Reading], looks: Callable[[Loaded], bool], read: Callable[[ResultBytes], Reading]
) -> Producer:
    return Producer(name, record.WRITTEN_BY, looks, read)


PRODUCERS: Final = (
    _producer("trainer-state", trainer_state.TrainerState, trainer_state.looks, trainer_state.read),
    _producer(
        "specdec-acceptance",
        specdec_acceptance.SpecdecAcceptance,
        specdec_acceptance.looks,
        specdec_acceptance.read,
    ),
    _producer("specdec-timing", specdec_timing.SpecdecTiming, specdec_timing.looks, specdec_timing.read),
    _producer("specdec-aa-timing", specdec_timing.SpecdecAaTiming, specdec_timing.looks_aa, specdec_timing.read_aa),
    _producer(
        "specdec-configuration",
        specdec_configuration.SpecdecConfiguration,
        specdec_configuration.looks,
        specdec_configuration.read,
    ),
    _producer(
        "speculation-profile",
        speculation_profile.SpeculationProfile,
        speculation_profile.looks,
        speculation_profile.read,
    ),
    _producer("vllm-bench", vllm_bench.VllmBench, vllm_bench.looks, vllm_bench.read),
    _producer("vllm-metrics", vllm_metrics.VllmMetrics, vllm_metrics.looks, vllm_metrics.read),
    _producer("vllm-request", vllm_request.VllmRequest, vllm_request.looks, vllm_request.read),
    _producer("sglang-server", sglang_server.SglangServer, sglang_server.looks, sglang_server.read),
    _producer("sglang-serving", sglang_serving.SglangServing, sglang_serving.looks, sglang_serving.read),
    _producer("sglang-one-batch", sglang_one_batch.SglangOneBatch, sglang_one_batch.looks, sglang_one_batch.read),
    _producer("sglang-eval", sglang_eval.SglangEval, sglang_eval.looks, sglang_eval.read),
    _producer("sgl-eval", sglang_eval.SglEval, sglang_eval.looks_sgl, sglang_eval.read_sgl),
    _producer("atom-accuracy", atom_accuracy.AtomAccuracy, atom_accuracy.looks, atom_accuracy.read),
    _producer("atom-native", atom_accuracy.AtomNative, atom_accuracy.looks_native, atom_accuracy.read_native),
    _producer("atom-oot", atom_accuracy.AtomOot, atom_accuracy.looks_oot, atom_accuracy.read_oot),
    _producer("atom-sglang", atom_accuracy.AtomSglang, atom_accuracy.looks_sglang, atom_accuracy.read_sglang),
    _producer("atom-serving", atom_serving.AtomServing, atom_serving.looks, atom_serving.read),
    _producer("atom-dashboard", atom_dashboard.AtomDashboard, atom_dashboard.looks, atom_dashboard.read),
    _producer("lm-eval", lm_eval.LmEval, lm_eval.looks, lm_eval.read),
    _producer("golden-lengths", golden_lengths.GoldenLengths, golden_lengths.looks, golden_lengths.read),
)
BY_NAME: Final = {producer.name: producer for producer in PRODUCERS}


def detect(file: ResultBytes) -> Detected:
    """Tell who may have written a file. Never raises.

    Args:
        file: The file.

    Returns:
        Every producer whose shape the file has: exactly one is an answer, any other number is not.
    """
    loaded = load(file)
    if isinstance(loaded, Unread):
        return Detected((), None, unread=loaded, hint=stands_in(file.data))
    found = tuple(producer for producer in PRODUCERS if producer.looks(loaded))
    hint = "" if found else stands_in(file.data) or _own(loaded)
    return Detected(found, loaded.layout, len(loaded.parts), hint=hint)


def _own(loaded: Loaded) -> str:
    root = loaded.parts[0].root if len(loaded.parts) == 1 else {}
    if type(root.get("schema_version")) is int and isinstance(root.get("producer"), str):
        return "a result file of this project: `gonogo gate` judges those"
    return ""
