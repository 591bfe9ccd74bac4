"""Is a target whole? Checks its index, every shard that the index names, and every shard's size against its header.

    python3 check_target.py DIR [--output target_check.json]

A file of its own, without anything beside it, so that it can be sent over a connection and run as it is. Exit status:
0 whole, 1 not; the result file is written in both cases.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from typing import Any, BinaryIO, Dict, List, Mapping, NamedTuple, Optional, Tuple

PRODUCER = "check_target"
SCHEMA_VERSION = 1
CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

TYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "BOOL": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1,
}  # fmt: skip
_LARGEST_HEADER = 100_000_000
_LARGEST_JSON = 64 << 20
_POINTER = b"version https://git-lfs"
_NUMBERED = re.compile(r"(.+)-(\d+)-of-(\d+)\.safetensors")
_TOLD = 5


class Tensor(NamedTuple):
    """A tensor as a header describes it; `begin` and `end` count from the header's end, in bytes."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a safetensors file says of itself.

    Attributes:
        tensors: In the order of their bytes.
        start: Where their bytes begin in the file.
        expected_size: Size of the whole file that follows from it, in bytes; None when it is not sound.
        problem: What is wrong with it; empty when nothing is.
    """

    tensors: Tuple[Tensor, ...] = ()
    start: int = 0
    expected_size: Optional[int] = None
    problem: str = ""


def read_header(stream: BinaryIO) -> Header:
    """Read the header of a safetensors file: 8 bytes of length, then JSON.

    Raises:
        OSError: When the file cannot be read.
    """
    size = os.fstat(stream.fileno()).st_size
    first = stream.read(8)
    length = int.from_bytes(first, "little")
    if is_pointer(first + stream.read(len(_POINTER) - 8)):
        return Header(problem="a Git LFS pointer, not weights")
    if len(first) < 8 or length > min(size - 8, _LARGEST_HEADER):
        kind = "text" if first[:1] in (b"<", b"{") else "no safetensors file"
        return Header(problem=f"{size} bytes of {kind}, or cut off within its header")
    stream.seek(8)
    try:
        described = json.loads(stream.read(length).decode("utf-8"))
        tensors = sorted(
            (_tensor(name, entry) for name, entry in described.items() if name != "__metadata__"), key=lambda t: t.begin
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Header(problem=f"its header is not sound: {type(error).__name__}: {error}")
    end = 0
    for tensor in tensors:
        if tensor.begin != end:
            return Header(problem=f"its header is not sound: {tensor.name} begins at {tensor.begin}, not at {end}")
        end = tensor.end
    if not tensors:
        return Header(problem="it has no tensors")
    return Header(tuple(tensors), 8 + length, 8 + length + end)


def is_pointer(beginning: bytes) -> bool:
    """Whether a file begins like a Git LFS pointer."""
    return beginning.startswith(_POINTER)


def _tensor(name: str, entry: Mapping[str, Any]) -> Tensor:
    begin, end = entry["data_offsets"]
    numbers = [begin, end, *entry["shape"]]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"{name}: shape and offsets are no counts")
    count = 1
    for number in entry["shape"]:
        count *= number
    if end - begin != count * TYPE_BYTES[entry["dtype"]]:
        raise ValueError(f"{name}: {end - begin} bytes are not what type and shape say")
    return Tensor(name, entry["dtype"], tuple(entry["shape"]), begin, end)


def read_json(path: str) -> Dict[str, Any]:
    """Read a JSON object.

    Raises:
        OSError: When it cannot be read.
        ValueError: When it is no JSON object.
    """
    with open(path, "rb") as stream:
        data = stream.read(_LARGEST_JSON + 1)
    try:
        document = json.loads(data.decode("utf-8"))
    except RecursionError:
        document = None
    if len(data) > _LARGEST_JSON or not isinstance(document, dict):
        raise ValueError("no JSON object")
    return document


def stays_inside(path: Any) -> bool:
    """Whether a path is relative and has no part that leads out of its folder."""
    return isinstance(path, str) and not any(part in ("", ".", "..") for part in path.split("/")) and "\0" not in path


def check(folder: str) -> Dict[str, Any]:
    """Look at a target.

    Returns:
        What the result file says about it, without its header.
    """
    problems: List[str] = []
    config = _read(folder, CONFIG, problems)
    index: Optional[Dict[str, Any]] = None
    name: Optional[str] = None
    if os.path.lexists(os.path.join(folder, INDEX)) or not os.path.lexists(os.path.join(folder, SINGLE)):
        index, name = _read(folder, INDEX, problems), INDEX
    weight_map = _weight_map(index, problems) if index is not None else {}
    shards, tensors = [], {}
    for file in sorted(set(weight_map.values())) if name else [SINGLE]:
        shard, header = _check_shard(folder, file, problems)
        shards.append(shard)
        tensors.update({tensor.name: (file, tensor.end - tensor.begin) for tensor in header.tensors})
    total = sum(size for _, size in tensors.values())
    if index is not None:
        _compare(index, weight_map, tensors, total, problems)
    problems += _missing_numbers([shard["path"] for shard in shards])
    return {
        "status": "error" if problems else "ok",
        "problems": problems,
        "path": os.path.abspath(folder),
        "config": config or {},
        "index_file": name,
        "shards": shards,
        "total_size": total,
    }


def _read(folder: str, name: str, problems: List[str]) -> Optional[Dict[str, Any]]:
    try:
        return read_json(os.path.join(folder, name))
    except (OSError, ValueError) as error:
        problems.append(f"{name}: {error.strerror if isinstance(error, OSError) else error}")
        return None


def _weight_map(index: Mapping[str, Any], problems: List[str]) -> Dict[str, str]:
    """Which file holds which tensor, as far as these are files of the folder."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        problems.append(f"{INDEX}: weight_map names no tensors")
        return {}
    outside = sorted({str(file) for file in weight_map.values() if not stays_inside(file)})
    problems += [f"{INDEX}: names {file!r}, which is no file of this folder" for file in outside[:_TOLD]]
    return {tensor: file for tensor, file in weight_map.items() if stays_inside(file)}


def _check_shard(folder: str, file: str, problems: List[str]) -> Tuple[Dict[str, Any], Header]:
    path = os.path.join(folder, file)
    size, header = 0, Header()
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header = read_header(stream)
        problem = header.problem
        if header.expected_size is not None and header.expected_size != size:
            problem = f"{size} bytes, and {header.expected_size} by its header"
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        problems.append(f"{file}: {problem}")
    return {"path": file, "size": size, "expected_size": header.expected_size, "ok": not problem}, header


def _compare(
    index: Mapping[str, Any],
    weight_map: Mapping[str, str],
    tensors: Mapping[str, Tuple[str, int]],
    total: int,
    problems: List[str],
) -> None:
    """The index against what the shards' headers say."""
    lost = sorted(name for name, file in weight_map.items() if tensors.get(name, ("", 0))[0] != file)
    unknown = sorted(set(tensors) - set(weight_map))
    if lost:
        problems.append(f"{INDEX}: {len(lost)} tensors are not where it says, such as {', '.join(lost[:_TOLD])}")
    if unknown:
        problems.append(f"{INDEX}: does not name {len(unknown)} tensors, such as {', '.join(unknown[:_TOLD])}")
    metadata = index.get("metadata")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    if stated is not None and stated != total:
        problems.append(f"{INDEX}: states a total_size of {stated}, the shards hold {total} bytes of tensors")


def _missing_numbers(files: List[str]) -> List[str]:
    """What a numbered series of shards lacks (`model-00001-of-00002.safetensors`)."""
    found = [match for match in map(_NUMBERED.fullmatch, files) if match]
    series = {(match.group(1), int(match.group(3))) for match in found}
    problems = []
    for stem, count in sorted(series):
        have = {int(match.group(2)) for match in found if (match.group(1), int(match.group(3))) == (stem, count)}
        if len(have) != count or have != set(range(1, count + 1)):
            problems.append(f"{stem}: {len(have)} of {count} shards are there")
    return problems


def write_result(path: str, producer: str, body: Mapping[str, Any]) -> Dict[str, Any]:
    """Write a result file by rename; numbers that are not finite become null and a problem.

    Returns:
        What was written.

    Raises:
        OSError: When it cannot be written.
    """
    odd: List[str] = []
    clean = _finite(dict(body), "", odd)
    if odd:
        clean["problems"] += [f"{place} is not a finite number" for place in odd]
        clean["status"] = "error"
    head = {"schema_version": SCHEMA_VERSION, "producer": producer, "token": os.environ.get("GONOGO_TOKEN", "")}
    document: Dict[str, Any] = {**head, **clean}
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="ascii") as stream:
        json.dump(document, stream, indent=1, allow_nan=False)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)
    return document


def _finite(value: Any, place: str, odd: List[str]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        odd.append(place)
        return None
    if isinstance(value, dict):
        return {key: _finite(item, f"{place}.{key}" if place else key, odd) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item, f"{place}[{i}]", odd) for i, item in enumerate(value)]
    return value


def main() -> int:
    """Check the target that the command line names."""
    parser = argparse.ArgumentParser(description="Check that a target is whole.")
    parser.add_argument("folder", help="folder of the target")
    parser.add_argument("--output", default="target_check.json")
    args = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # names of files may be any bytes
    body = write_result(args.output, PRODUCER, check(args.folder))
    print(f"{args.folder}: {len(body['shards'])} shards, {body['total_size']} bytes of tensors:", body["status"])
    for problem in body["problems"]:
        print(f"  {problem}")
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
