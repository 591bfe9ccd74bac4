"""What does an exported drafter hold? Reads its configuration, the header of its weights, and a sample of each tensor.

    python3 check_export.py EXPORT_DIR --target TARGET_DIR [--output export_check.json]

Needs `check_target.py` beside it. It reports what it finds, and as problems what is broken in itself; whether drafter
and target fit together is for the gate to decide. Exit status: 0 nothing broken, 1 something; the result file is
written in both cases.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, List, Optional

if TYPE_CHECKING:
    from backends.payloads.check_target import (
        CONFIG,
        SINGLE,
        TYPE_BYTES,
        Header,
        Tensor,
        is_pointer,
        read_header,
        read_json,
        write_result,
    )
else:
    from check_target import (
        CONFIG,
        SINGLE,
        TYPE_BYTES,
        Header,
        Tensor,
        is_pointer,
        read_header,
        read_json,
        write_result,
    )

PRODUCER = "check_export"

_EXPONENTS = {
    "F64": 0x7FF0000000000000, "F32": 0x7F800000, "F16": 0x7C00, "BF16": 0x7F80,
    "F8_E4M3": 0x7F, "F8_E5M2": 0x7C, "F8_E8M0": 0xFF,
}  # fmt: skip
"""Bits that are all set in what is infinite or not a number, and in nothing else."""

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_PIECE = 16 * 1024
_CHUNK = 1 << 20


def check(folder: str, target: str) -> Dict[str, Any]:
    """Look at an export.

    Args:
        folder: The export.
        target: The target that it was trained for.

    Returns:
        What the result file says about it, without its header.
    """
    problems: List[str] = []
    config = _config(folder, "", problems)
    target_config = _config(target, "target: ", problems)
    name = _weights(folder, problems)
    weights = _Weights() if name is None else _read_weights(folder, name, problems)
    files = _files(folder, problems)
    return {
        "status": "error" if problems else "ok",
        "problems": problems,
        "export_path": os.path.abspath(folder),
        "config": config,
        "target_config": target_config,
        "tensors": weights.tensors,
        "file": {
            "name": name or SINGLE,
            "size": weights.size,
            "expected_size": weights.header.expected_size,
            "header_ok": weights.header.expected_size is not None,
        },
        "lfs_pointer": weights.pointer,
        "files": files,
    }


class _Weights:
    """What was found in the weights file."""

    def __init__(self) -> None:
        self.size = 0
        self.header = Header()
        self.pointer = False
        self.tensors: List[Dict[str, Any]] = []


def _config(folder: str, prefix: str, problems: List[str]) -> Dict[str, Any]:
    try:
        return read_json(os.path.join(folder, CONFIG))
    except (OSError, ValueError) as error:
        problems.append(f"{prefix}{CONFIG}: {error.strerror if isinstance(error, OSError) else error}")
        return {}


def _weights(folder: str, problems: List[str]) -> Optional[str]:
    """Name of the weights file: `model.safetensors`, or the only one of its kind."""
    try:
        found = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    except OSError as error:
        problems.append(f"{folder}: {error.strerror}")
        return None
    if SINGLE in found or len(found) == 1:
        return SINGLE if SINGLE in found else found[0]
    problems.append(f"{len(found)} weights files, none of them {SINGLE}" if found else f"no {SINGLE}")
    return None


def _read_weights(folder: str, name: str, problems: List[str]) -> _Weights:
    weights = _Weights()
    try:
        with open(os.path.join(folder, name), "rb") as stream:
            weights.size = os.fstat(stream.fileno()).st_size
            weights.pointer = is_pointer(stream.read(64))
            stream.seek(0)
            weights.header = read_header(stream)
            weights.tensors = [sample(stream, weights.header.start, tensor) for tensor in weights.header.tensors]
    except OSError as error:
        problems.append(f"{name}: {error.strerror}")
        return weights
    expected = weights.header.expected_size
    if weights.header.problem:
        problems.append(f"{name}: {weights.header.problem}")
    elif expected != weights.size:
        problems.append(f"{name}: {weights.size} bytes, and {expected} by its header")
    broken = [tensor["name"] for tensor in weights.tensors if tensor["non_finite"]]
    if broken:
        problems.append(f"{name}: {len(broken)} tensors hold numbers that are not finite, such as {broken[0]}")
    return weights


def sample(stream: BinaryIO, start: int, tensor: Tensor) -> Dict[str, Any]:
    """Look at numbers from the beginning, the middle and the end of a tensor; at all of a small one.

    Args:
        stream: The weights file.
        start: Where its tensors begin, in bytes.
        tensor: Which tensor.

    Raises:
        OSError: When the file cannot be read.
    """
    width = TYPE_BYTES[tensor.dtype]
    size = tensor.end - tensor.begin
    if size <= 3 * _PIECE:
        spans = [(0, size)]
    else:
        middle = size // 2 // width * width
        spans = [(0, _PIECE), (middle, middle + _PIECE), (size - _PIECE, size)]
    data = b""
    for begin, end in spans:
        stream.seek(start + tensor.begin + begin)
        piece = stream.read(end - begin)
        data += piece[: len(piece) // width * width]
    if sys.byteorder == "big":
        data = data[::-1]
    numbers = memoryview(data).cast(_CODES[width])  # type: ignore[call-overload]
    mask = _EXPONENTS.get(tensor.dtype)
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "sampled": len(numbers),
        "non_finite": sum(number & mask == mask for number in numbers) if mask else 0,
        "constant": len(numbers) > 0 and data == data[:width] * len(numbers),
    }


def _files(folder: str, problems: List[str]) -> List[Dict[str, Any]]:
    """Everything in the folder, with size and digest; links to files are read as the files that they lead to."""
    found: List[Dict[str, Any]] = []

    def failed(error: OSError) -> None:
        problems.append(f"{error.filename}: {error.strerror}")

    for parent, folders, names in os.walk(folder, onerror=failed):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        problems += [f"{os.path.relpath(os.path.join(parent, name), folder)}: a link to a folder" for name in links]
        for name in names:
            path = os.path.join(parent, name)
            shown = os.path.relpath(path, folder)
            if not os.path.isfile(path):
                problems.append(f"{shown}: not a file, or a link to nothing")
                continue
            try:
                found.append({"path": shown, **_digest(path)})
            except OSError as error:
                problems.append(f"{shown}: {error.strerror}")
    return sorted(found, key=lambda file: os.fsencode(file["path"]))


def _digest(path: str) -> Dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(_CHUNK), b""):
            digest.update(chunk)
            size += len(chunk)
    return {"size": size, "sha256": digest.hexdigest()}


def main() -> int:
    """Check the export that the command line names."""
    parser = argparse.ArgumentParser(description="Report what an exported drafter holds.")
    parser.add_argument("folder", help="folder of the export")
    parser.add_argument("--target", required=True, help="folder of the target")
    parser.add_argument("--output", default="export_check.json")
    args = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # names of files may be any bytes
    body = write_result(args.output, PRODUCER, check(args.folder, args.target))
    print(f"{args.folder}: {len(body['tensors'])} tensors in {len(body['files'])} files:", body["status"])
    for problem in body["problems"]:
        print(f"  {problem}")
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
