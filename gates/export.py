"""gate export: can the exported drafter be what it claims to be?

Reads export_check.json, in which a program on the cluster wrote down what it found in the folder: the configuration,
the header of the weights file, and a sample of every tensor. `gates.export_folder` makes the same record of a folder on
this machine, so that an export is judged in one way wherever it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from gates.drafter_config import ARCHITECTURES, Wanted, judge_config
from gates.expectations import FILE, SHA256, Expected, Kind, setting
from gates.header import judge_header, judge_problems, judge_status, plain_relative, same_path
from gates.reading import ResultBytes
from gates.record import Record, Sheet
from gates.safetensors import MOST_DIMENSIONS
from gates.verdict import FailureClass, Verdict

GATE: Final = "export"
PRECEDENCE: Final = (
    FailureClass.USER_CONFIG_ERROR,
    FailureClass.RESULT_MISSING,
    FailureClass.MEASUREMENT_INVALID,
    FailureClass.MODEL_UNSUPPORTED,
    FailureClass.EXPORT_INVALID,
)
_INVALID: Final = FailureClass.EXPORT_INVALID
_LAYOUT_PREFIX: Final = "dflash_module."
_SELECTOR: Final = "candidate_selector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportExpected(Expected):
    """What an export is compared with."""

    algorithm: str | None = setting(Kind.TEXT, f"{' or '.join(ARCHITECTURES)}")
    draft_tokens: int | None = setting(Kind.COUNT, "proposed tokens a step that it will be served with")
    export_path: str | None = setting(Kind.PATH, "folder of the export")


def judge_export(export_check: ResultBytes, expected: ExportExpected | None = None) -> Verdict:
    """Judge an export for itself and against its target.

    Args:
        export_check: export_check.json.
        expected: What to compare with; None compares with the target only.
    """
    expected = expected or ExportExpected()
    sheet = Sheet(GATE)
    judge_algorithm(sheet, expected.algorithm)
    record = sheet.open(export_check, unusable=_INVALID)
    if record is not None:
        judge_header(record, expected)
        judge_export_record(record, expected)
    return sheet.verdict(_INVALID, PRECEDENCE)


def judge_algorithm(sheet: Sheet, algorithm: str | None) -> None:
    """Check that the algorithm that is asked for is one whose exports are known here."""
    if algorithm is not None and algorithm not in ARCHITECTURES:
        wanted = f"one of {', '.join(ARCHITECTURES)}"
        sheet.check(
            "setting", False, algorithm, wanted, file=FILE, field="algorithm", cls=FailureClass.USER_CONFIG_ERROR
        )


def judge_export_record(record: Record, expected: ExportExpected, *, with_target: bool = True) -> str | None:
    """Check everything but the header of export_check.json.

    Args:
        record: The document.
        expected: What to compare with.
        with_target: Whether there must be a target's configuration to compare with.

    Returns:
        The path of the export, as the file states it.
    """
    record = record.classed(_INVALID)
    judge_status(record, _INVALID)
    judge_problems(record, _INVALID)
    path = record.text("export_path")
    if path is not None and expected.export_path is not None:
        same = same_path(path, expected.export_path)
        cls = FailureClass.MEASUREMENT_INVALID
        record.check("export_path", same, path, f"= {expected.export_path}", "export_path", cls=cls)
    pointer = record.flag("lfs_pointer")
    if pointer is not None:
        words = "a Git LFS pointer" if pointer else "weights"
        record.check("weights_present", not pointer, words, "weights, not a pointer to them", "lfs_pointer")
    _judge_file(record)
    config = record.record("config")
    target = record.record("target_config") if with_target else None
    algorithm = None
    if config is not None:
        algorithm = judge_config(config, Wanted(expected.algorithm, expected.draft_tokens), target)
    tensors = record.records("tensors")
    if tensors is not None:
        _judge_tensors(record, tensors, algorithm)
    return path


def _judge_file(record: Record) -> None:
    """The weights file against its own header, and the list of files."""
    file = record.record("file")
    name = size = None
    if file is not None:
        name, size = file.text("name"), file.integer("size", minimum=1)
        expected_size, header_ok = file.integer("expected_size", minimum=1), file.flag("header_ok")
        if header_ok is not None:
            file.check(
                "header", header_ok, "sound" if header_ok else "broken", "a sound safetensors header", "header_ok"
            )
        if size is not None and expected_size is not None:
            same = size == expected_size
            file.check("file_size", same, size, f"= {expected_size} by its header", "size", unit="bytes")
    files = record.records("files")
    if files is None:
        return
    sizes = judge_files(record, files)
    record.check("config_listed", "config.json" in sizes, sorted(sizes)[:10], "config.json among them", "files")
    if name is not None and size is not None:
        found = sizes.get(name)
        record.check("weights_listed", found == size, found, f"= {size} for {name}", "files", unit="bytes")
    record.sheet.fact("export_bytes", sum(sizes.values()))


def judge_files(record: Record, files: Sequence[Record], cls: FailureClass = _INVALID) -> dict[str, int]:
    """Check a list of files, each with path, size in bytes and SHA-256; returns the sizes by path."""
    sizes: dict[str, int] = {}
    for file in files:
        path, size, digest = file.text("path"), file.integer("size"), file.text("sha256")
        if digest is not None and not SHA256.fullmatch(digest):
            file.malformed("sha256", Kind.DIGEST)
        if path is None or size is None:
            continue
        if not plain_relative(path):
            file.check("path_inside", False, path, "a relative path that stays inside the folder", "path", cls=cls)
        if path in sizes:
            file.check("path_once", False, path, "each path once", "path", cls=cls)
        sizes[path] = size
    return sizes


def _judge_tensors(record: Record, tensors: Sequence[Record], algorithm: str | None) -> None:
    """Every tensor was looked at, is finite, and no matrix is one number repeated."""
    names: list[str] = []
    unseen: list[str] = []
    broken: list[str] = []
    flat: list[str] = []
    for tensor in tensors:
        name, shape = tensor.text("name"), tensor.integers("shape", empty=True)
        sampled, bad = tensor.integer("sampled"), tensor.integer("non_finite")
        constant = tensor.flag("constant")
        tensor.text("dtype")
        if name is None or shape is None or sampled is None or bad is None or constant is None:
            continue
        names.append(name)
        size = _elements(shape)
        if not min(1, size) <= sampled <= size:
            unseen.append(f"{name} ({sampled} of {size})")
        if bad > 0:
            broken.append(f"{name} ({bad} of {sampled})")
        # A norm may well be all ones and a bias all zeros; a matrix that is one number was never trained.
        if constant and len(shape) > 1 and size > 1:
            flat.append(name)
    record.check("tensors_once", len(set(names)) == len(names), len(set(names)), f"= {len(names)}", "tensors")
    record.check(
        "tensors_sampled", not unseen, unseen or "all", "every tensor looked at, none beyond its size", "tensors"
    )
    record.check("tensors_finite", not broken, broken or "all", "all finite", "tensors")
    record.check("tensors_vary", not flat, flat or "none", "no constant matrix", "tensors")
    prefixed = [name for name in names if name.startswith(_LAYOUT_PREFIX)]
    limit = f"none that begins with {_LAYOUT_PREFIX}"
    record.check("tensor_names", not prefixed, prefixed[:3] or "none", limit, "tensors")
    if algorithm == "dflash":
        selectors = [name for name in names if _SELECTOR in name]
        limit = "none: an engine would leave the selector of DFlash2 out"
        record.check("no_selector", not selectors, selectors[:3] or "none", limit, "tensors")
    elif algorithm == "dflash2":
        has = any("selector" in name for name in names)
        limit = "the tensors of a selector: without them this is the older head under the newer name"
        record.check("has_selector", has, "there" if has else "none", limit, "tensors")
    if algorithm is not None:
        borrowed = [name for name in names if name.split(".")[-2:-1] in (["lm_head"], ["embed_tokens"])]
        limit = "none: embedding and output head are those of the target, and a copy may stand in for them"
        record.check("target_tensors", not borrowed, borrowed[:3] or "none", limit, "tensors")
    record.sheet.fact("tensors", len(names))


def _elements(shape: Sequence[int]) -> int:
    """How many numbers a tensor of this shape holds, as far as that can be counted."""
    return prod(shape) if len(shape) <= MOST_DIMENSIONS else 0
