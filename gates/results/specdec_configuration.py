"""`configuration.json` of specdec_bench (NVIDIA Model-Optimizer, examples/specdec_bench).

What was asked for, written before the run: that the file is there says nothing about whether the run ended. Values
whose key holds "token", "key", "secret" or "password" are replaced by a mark, `num_speculative_tokens` among them. The
drafter is named by its path only; there is no checksum of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Fields, Reading, open_object
from gates.results.meaning import Meaning, Number, Scope, Unit
from gates.results.speculation import check_settings

REDACTED: Final = "***REDACTED***"


def _setting(name: str, unit: Unit = Unit.COUNT) -> Meaning:
    return Meaning(name, unit, Scope.SETTING)


DRAFT_LENGTH: Final = _setting("tokens to draft a step; DFLASH ignores it and drafts by block size", Unit.TOKENS)
BLOCK_SIZE: Final = _setting("block size, anchor token included; passed on as the number of draft tokens", Unit.TOKENS)
TP_SIZE: Final = _setting("GPUs of a tensor-parallel group")
EP_SIZE: Final = _setting("GPUs of an expert-parallel group")
CONCURRENCY: Final = _setting("requests at a time", Unit.REQUESTS)
OUTPUT_LENGTH: Final = _setting("most output tokens of a request", Unit.TOKENS)
NUM_REQUESTS: Final = _setting("requests to send", Unit.REQUESTS)
TEMPERATURE: Final = _setting("sampling temperature", Unit.NONE)
CHECKPOINT_SIZE: Final = _setting("size of the checkpoint", Unit.BYTES)

_UNRESOLVED: Final = re.compile(r"<<[A-Za-z0-9_.]+>>")
_KEYS: Final = (
    "model_dir",
    "draft_model_dir",
    "speculative_algorithm",
    "draft_length",
    "specdec_bench_version",
    "argv",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecdecConfiguration(Reading):
    """The settings that say whether two runs may be compared.

    Attributes:
        engine: VLLM, TRTLLM, SGLANG and others.
        algorithm: `speculative_algorithm`; NONE is a run without a drafter.
        model_dir: Path or name of the target.
        draft_model_dir: Path or name of the drafter; None without one.
        temperature: None where the file says null, which is greedy decoding.
        redacted: Fields whose value was replaced by a mark, so that it is not known.
    """

    WRITTEN_BY: ClassVar[str] = "specdec_bench of NVIDIA Model-Optimizer (configuration.json)"

    engine: str
    algorithm: str
    model_dir: str
    draft_model_dir: str | None
    dataset: str | None
    engine_version: str | None
    gpu: str | None
    container_image: str | None
    specdec_bench_version: str | None
    specdec_bench_sha: str | None
    modelopt_version: str | None
    modelopt_sha: str | None
    timestamp: str | None
    draft_length: Number | None
    block_size: Number | None
    tp_size: Number | None
    ep_size: Number | None
    concurrency: Number | None
    output_length: Number | None
    num_requests: Number | None
    temperature: Number | None
    checkpoint_size: Number | None
    redacted: tuple[str, ...]


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    return len(loaded.parts) == 1 and sum(key in loaded.parts[0].root for key in _KEYS) >= 4


def read(file: ResultBytes) -> SpecdecConfiguration:
    """Read the file.

    Raises:
        ResultError: When engine, algorithm or target are missing, or a setting is not what it must be.
    """
    part, fields = open_object(file)
    redacted = _without_marks(fields)
    engine = fields.text("engine", need=True) or ""
    algorithm = fields.text("speculative_algorithm", need=True) or ""
    model = fields.text("model_dir", need=True) or ""
    checkpoint = fields.part("checkpoint")
    numbers = {
        "draft_length": fields.count("draft_length", DRAFT_LENGTH),
        "block_size": fields.count("block_size", BLOCK_SIZE),
        "tp_size": fields.count("tp_size", TP_SIZE, low=1),
        "ep_size": fields.count("ep_size", EP_SIZE, low=1),
        "concurrency": fields.count("concurrency", CONCURRENCY, low=1),
        "output_length": fields.count("output_length", OUTPUT_LENGTH),
        "num_requests": fields.count("num_requests", NUM_REQUESTS),
        "temperature": fields.number("temperature", TEMPERATURE),
        "checkpoint_size": checkpoint.count("size_bytes", CHECKPOINT_SIZE) if checkpoint is not None else None,
    }
    text = fields.text
    drafter = text("draft_model_dir")
    _remark(fields, algorithm, drafter, numbers, redacted)
    made = SpecdecConfiguration(
        file=file.name,
        remarks=(),
        engine=engine,
        algorithm=algorithm,
        model_dir=model,
        redacted=redacted,
        draft_model_dir=drafter,
        dataset=text("dataset"),
        engine_version=text("engine_version"),
        gpu=text("gpu"),
        container_image=text("container_image"),
        specdec_bench_version=text("specdec_bench_version"),
        specdec_bench_sha=text("specdec_bench_sha"),
        modelopt_version=text("modelopt_version"),
        modelopt_sha=text("modelopt_sha"),
        timestamp=text("timestamp"),
        draft_length=numbers["draft_length"],
        block_size=numbers["block_size"],
        tp_size=numbers["tp_size"],
        ep_size=numbers["ep_size"],
        concurrency=numbers["concurrency"],
        output_length=numbers["output_length"],
        num_requests=numbers["num_requests"],
        temperature=numbers["temperature"],
        checkpoint_size=numbers["checkpoint_size"],
    )
    return replace(made, remarks=fields.notes.close((part,)))


def _without_marks(fields: Fields) -> tuple[str, ...]:
    """Take the marks of redacted values for nothing; returns their paths."""
    found: list[str] = []
    waiting: list[tuple[Fields, dict[str, Any]]] = [(fields, fields.values)]
    while waiting:
        inside, values = waiting.pop()
        for key, value in list(values.items()):
            if value == REDACTED:
                found.append(inside.at(key))
                values[key] = None
            elif isinstance(value, dict):
                waiting.append((Fields(fields.notes, inside.at(key), value), value))
    return tuple(sorted(found))


def _remark(
    fields: Fields,
    algorithm: str,
    drafter: str | None,
    numbers: dict[str, Number | None],
    redacted: tuple[str, ...],
) -> None:
    notes = fields.notes
    notes.remark("", "written before the run: says what was asked for, not that the run ended")
    for place in redacted:
        notes.remark(place, "was redacted by the tool: its value is not known")
    for key in ("model_dir", "draft_model_dir", "dataset_path", "dataset", "save_dir"):
        value = fields.values.get(key)
        if isinstance(value, str) and _UNRESOLVED.search(value):
            notes.fault(fields.at(key), "holds a variable that was never filled in")
    if algorithm == "NONE" and drafter is not None:
        notes.fault(fields.at("draft_model_dir"), "names a drafter, with speculative_algorithm NONE")
    check_settings(fields)
    if algorithm == "DFLASH":
        if numbers["draft_length"] is not None:
            notes.remark(fields.at("draft_length"), "DFLASH ignores it and drafts by block_size (8 where not given)")
        notes.remark(fields.at("block_size"), "is passed on as the number of draft tokens, anchor token included")
