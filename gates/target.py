"""gate target: is the target on the cluster, whole, and the pinned one?

Reads target_check.json, and stage_target.json too where a job downloaded it. What is wrong with a copy that was found
on the cluster is for its owner to mend (USER_CONFIG_ERROR); a download that came out incomplete is worth one more try
(INFRA_TRANSIENT), unless the hub refused it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gates.drafter_config import rope_thetas, text_part
from gates.expectations import Expected, Kind, setting
from gates.header import judge_header, judge_problems, judge_status, plain_relative, same_path
from gates.hub import judge_http
from gates.reading import ResultBytes
from gates.record import Record, Sheet
from gates.verdict import FailureClass, Verdict

GATE: Final = "target"
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.INFRA_TRANSIENT,
)
_TOLD: Final = 5
_NUMBERED: Final = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.[A-Za-z0-9.]+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetExpected(Expected):
    """What a target is compared with."""

    target: str | None = setting(Kind.TEXT, "hub id or path of the target")
    revision: str | None = setting(Kind.REVISION, "pinned revision; compared where a job downloaded the target")
    path: str | None = setting(Kind.PATH, "folder of the target")


def judge_target(
    target_check: ResultBytes, stage_target: ResultBytes | None = None, expected: TargetExpected | None = None
) -> Verdict:
    """Judge the target on the cluster.

    Args:
        target_check: target_check.json.
        stage_target: stage_target.json; None where no job downloaded the target.
        expected: What to compare with.
    """
    expected = expected or TargetExpected()
    sheet = Sheet(GATE)
    broken = FailureClass.USER_CONFIG_ERROR if stage_target is None else FailureClass.INFRA_TRANSIENT
    sizes: Mapping[str, int] | None = {}
    if stage_target is not None:
        sizes = _judge_staging(sheet, stage_target, expected)
    # After a download that failed there is nothing to check, and the check may not even have run.
    if sizes is not None:
        record = sheet.open(target_check)
        if record is not None:
            judge_header(record, expected)
            _judge_check(record.classed(broken), expected, broken, sizes)
    return sheet.verdict(broken, PRECEDENCE)


def _judge_staging(sheet: Sheet, stage_target: ResultBytes, expected: TargetExpected) -> Mapping[str, int] | None:
    """Check a download; returns the sizes of its files by path, None when it failed."""
    record = sheet.open(stage_target)
    if record is None:
        return {}
    judge_header(record, expected)
    transient = FailureClass.INFRA_TRANSIENT
    judge_http(record, expected.target or "the target")
    status = judge_status(record, transient)
    if status == "error":
        return None
    judge_problems(record, transient, optional=True)
    for key, wanted in (("target", expected.target), ("revision", expected.revision)):
        value = record.text(key)
        if value is not None and wanted:
            record.check(key, value == wanted, value, f"= {wanted}", key)
    _judge_path(record, expected)
    sizes: dict[str, int] = {}
    for file in record.records("files") or ():
        path, size = file.text("path"), file.integer("size")
        if path is not None and size is not None:
            sizes[path] = size
    return sizes


def _judge_path(record: Record, expected: TargetExpected) -> None:
    path = record.text("path")
    if path is not None and expected.path is not None:
        cls = FailureClass.MEASUREMENT_INVALID
        record.check("path", same_path(path, expected.path), path, f"= {expected.path}", "path", cls=cls)


def _judge_check(record: Record, expected: TargetExpected, broken: FailureClass, staged: Mapping[str, int]) -> None:
    judge_status(record, broken)
    judge_problems(record, broken)
    _judge_path(record, expected)
    config = record.record("config")
    if config is not None:
        config.texts("architectures")
        for key in ("hidden_size", "vocab_size", "num_hidden_layers"):
            record.sheet.fact(key, text_part(config, key))
        thetas = sorted(rope_thetas(config.values))
        config.check("rope_theta", bool(thetas), thetas, "at least one number", "rope_theta")
    record.text("index_file", optional=True)
    total = record.integer("total_size", minimum=1)
    record.sheet.fact("total_size", total)
    shards = record.records("shards")
    if shards is not None:
        _judge_shards(record, shards, staged)


def _judge_shards(record: Record, shards: Sequence[Record], staged: Mapping[str, int]) -> None:
    names = [path for shard in shards if (path := shard.text("path")) is not None]
    sound = sum(_sound(shard, staged) for shard in shards)
    record.check("shards_sound", sound == len(shards), sound, f"= {len(shards)}", "shards", unit="shards")
    once = len(set(names)) == len(names)
    record.check("shards_once", once, len(set(names)), f"= {len(names)}, each once", "shards", unit="shards")
    missing = list(islice(_missing_numbers(names), _TOLD))
    record.check("shards_complete", not missing, missing or "all", "every shard of the numbered series", "shards")


def _sound(shard: Record, staged: Mapping[str, int]) -> bool:
    """Whether one shard is there, whole, and as it was downloaded; everything that is not so is a failing check."""
    path, ok = shard.values.get("path"), shard.flag("ok")
    size, expected_size = shard.integer("size"), shard.integer("expected_size", minimum=1)
    held = ok is not None and size is not None and expected_size is not None
    if ok is False:
        held = shard.check("shard_ok", False, "broken or missing", "sound", "ok")
    if size is not None and expected_size is not None and size != expected_size:
        held = shard.check("shard_size", False, size, f"= {expected_size} by its header", "size", unit="bytes")
    if isinstance(path, str) and path and not plain_relative(path):
        held = shard.check("path_inside", False, path, "a relative path that stays inside the folder", "path")
    if size is not None and isinstance(path, str) and size != staged.get(path, size):
        limit = f"= {staged[path]} as downloaded"
        held = shard.check("shard_as_downloaded", False, size, limit, "size", unit="bytes")
    return held


def _missing_numbers(names: Sequence[str]) -> Iterator[str]:
    """Names that a numbered series (`model-00001-of-00004.safetensors`) should have and has not."""
    series: dict[tuple[str, str, str], set[int]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match:
            stem, number, count, suffix = match.groups()
            series.setdefault((stem, count, suffix), set()).add(int(number))
    for (stem, count, suffix), numbers in series.items():
        for number in range(1, int(count) + 1):
            if number not in numbers:
                yield f"{stem}-{number:05d}-of-{count}{suffix}"
