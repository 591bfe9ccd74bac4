"""Looks at an export folder on this machine, and writes down what it sees in the form of export_check.json.

The only module of the gates that reads files. What it makes goes through the same judgement as a record that a program
on the cluster wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from gates.export import GATE, PRECEDENCE, ExportExpected, judge_algorithm, judge_export_record
from gates.header import judge_header
from gates.reading import ResultBytes, Unread, Unusable, read_json
from gates.record import Sheet
from gates.safetensors import Header, read_header, sample
from gates.verdict import FailureClass, Verdict

PRODUCER: Final = "gonogo gate"
CONFIG: Final = "config.json"
WEIGHTS: Final = "model.safetensors"
_CHUNK: Final = 1024 * 1024


def judge_folder(
    folder: Path, target_config: ResultBytes | None = None, expected: ExportExpected | None = None
) -> Verdict:
    """Judge an export that lies in a folder on this machine.

    Args:
        folder: The export.
        target_config: config.json of its target; None leaves out what is compared with the target.
        expected: What to compare with.

    Returns:
        The verdict; not readable when the folder or the target's configuration cannot be read.
    """
    expected = expected or ExportExpected()
    sheet = Sheet(GATE)
    judge_algorithm(sheet, expected.algorithm)
    target: dict[str, Any] | None = None
    if target_config is not None:
        opened = sheet.open(target_config, unread=FailureClass.USER_CONFIG_ERROR)
        target = None if opened is None else opened.values
    try:
        data = json.dumps(inspect(folder, target)).encode("ascii")
    except (OSError, RecursionError) as error:
        why = f"{error.filename or folder}: {error.strerror}" if isinstance(error, OSError) else "nested too deeply"
        wanted = "a folder that can be read"
        sheet.check("readable", False, why, wanted, file=str(folder), cls=FailureClass.RESULT_MISSING)
        sheet.readable = False
        return sheet.verdict(FailureClass.RESULT_MISSING, PRECEDENCE)
    record = sheet.open(ResultBytes(folder.name or str(folder), data), unusable=FailureClass.EXPORT_INVALID)
    if record is not None:
        judge_header(record, expected)
        judge_export_record(record, expected, with_target=target_config is not None)
    return sheet.verdict(FailureClass.EXPORT_INVALID, PRECEDENCE)


def inspect(folder: Path, target_config: dict[str, Any] | None) -> dict[str, Any]:
    """What an export folder holds, with the keys of export_check.json.

    Args:
        folder: The export.
        target_config: The target's configuration, put in as it is.

    Raises:
        OSError: When the folder, or a file in it, cannot be read.
    """
    problems: list[str] = []
    files = [{"path": path, "size": size, "sha256": digest} for path, size, digest in sorted(_listed(folder, problems))]
    config = _config(folder, problems)
    name = _weights(folder, problems)
    header, file, tensors = Header(), None, []
    if name is not None:
        with open(folder / name, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header = read_header(stream, size)
            tensors = _tensors(stream, header)
        file = {"name": name, "size": size, "expected_size": header.expected_size, "header_ok": not header.problems}
        problems += [f"{name}: {problem}" for problem in header.problems]
    return {
        "schema_version": 1,
        "producer": PRODUCER,
        "token": "",
        "status": "error" if problems else "ok",
        "problems": problems,
        "export_path": str(folder),
        "config": config,
        "target_config": _plain(target_config),
        "tensors": tensors,
        "file": file,
        "lfs_pointer": header.lfs_pointer,
        "files": files,
    }


def _config(folder: Path, problems: list[str]) -> Any:
    path = folder / CONFIG
    document = read_json(path.read_bytes() if path.is_file() else None)
    if isinstance(document, Unread):
        problems.append(f"{CONFIG}: {document.fault}: {document.why}")
        return None
    problems += [f"{CONFIG}: {odd.path}: {odd.text} is not a finite number" for odd in document.unusable]
    return _plain(document.root)


def _weights(folder: Path, problems: list[str]) -> str | None:
    """Name of the one weights file."""
    found = sorted(entry.name for entry in folder.glob("*.safetensors") if entry.is_file())
    if WEIGHTS in found or len(found) == 1:
        return WEIGHTS if WEIGHTS in found else found[0]
    problems.append(f"{len(found)} *.safetensors files and no {WEIGHTS}" if found else f"no {WEIGHTS}")
    return None


def _tensors(stream: BinaryIO, header: Header) -> list[dict[str, Any]]:
    tensors = []
    for tensor in header.tensors:
        seen = sample(stream, header.start, tensor)
        tensors.append(
            {
                "name": tensor.name,
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "sampled": seen.sampled,
                "non_finite": seen.non_finite,
                "constant": seen.constant,
            }
        )
    return tensors


def _listed(folder: Path, problems: list[str]) -> Iterator[tuple[str, int, str]]:
    """Path, size and SHA-256 of every file below the folder."""

    def unreadable(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=unreadable):
        for name in names:
            path = Path(parent, name)
            shown = path.relative_to(folder).as_posix()
            if not path.is_file():
                problems.append(f"{shown}: not a regular file, or a link to nothing")
                continue
            with open(path, "rb") as stream:
                digest, size = hashlib.sha256(), 0
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
            yield shown, size, digest.hexdigest()


def _plain(value: Any) -> Any:
    """A configuration that JSON can hold: what was no usable number becomes null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, Unusable) else value
