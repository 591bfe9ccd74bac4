"""Safetensors files with numpy: eight bytes of header length, a JSON header, then the tensors without gaps.

The layout is that of the safetensors format; writing the same tensors gives the same bytes.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence

import numpy as np

if TYPE_CHECKING:
    from backends.payloads.results import write_by_rename
else:
    from results import write_by_rename

INDEX = "model.safetensors.index.json"
_TYPES: Dict[str, Any] = {name: np.dtype(code) for name, code in (("F32", "<f4"), ("F16", "<f2"), ("U16", "<u2"))}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_ALIGNMENT = 8

Tensors = Dict[str, "np.ndarray"]


def encode(tensors: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a safetensors file.

    Args:
        tensors: Arrays of float32, float16 or uint16, by name.

    Raises:
        KeyError: When an array is of another type.
    """
    header: Dict[str, object] = {"__metadata__": {"format": "np"}}
    parts: List[bytes] = []
    at = 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % _ALIGNMENT)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def save(path: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a safetensors file by rename.

    Raises:
        OSError: When it cannot be written.
    """
    write_by_rename(path, encode(tensors))


def load(path: str) -> Tensors:
    """Read a safetensors file.

    Raises:
        OSError: When it cannot be read.
        ValueError: When it is not a sound safetensors file of types that are known here.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    length = int.from_bytes(data[:8], "little")
    if not 8 < 8 + length <= len(data):
        raise ValueError(f"{path}: no safetensors file")
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    header.pop("__metadata__", None)
    tensors: Tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = _TYPES.get(entry["dtype"])
        if dtype is None or end > len(data):
            raise ValueError(f"{path}: tensor {name}: of type {entry['dtype']}, or cut off")
        tensors[name] = np.frombuffer(data[begin:end], dtype).reshape(entry["shape"]).copy()
    return tensors


def save_shards(folder: str, tensors: Mapping[str, np.ndarray], shards: Sequence[Sequence[str]]) -> None:
    """Write numbered shards and the index that says which tensor lies in which.

    Args:
        folder: Where to.
        tensors: All arrays, by name.
        shards: The names that go into each shard; together all names, each once.

    Raises:
        OSError: When they cannot be written.
    """
    weight_map: Dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save(os.path.join(folder, file), {name: tensors[name] for name in names})
        weight_map.update(dict.fromkeys(names, file))
    total = sum(array.nbytes for array in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    write_by_rename(os.path.join(folder, INDEX), (json.dumps(index, indent=1) + "\n").encode("ascii"))


def load_shards(folder: str) -> Tensors:
    """Read all tensors of a folder with an index.

    Raises:
        OSError: When a file cannot be read.
        ValueError: When a shard is not sound, or lacks what the index says it has.
        KeyError: When the index is not one.
    """
    with open(os.path.join(folder, INDEX), encoding="utf-8") as stream:
        weight_map: Dict[str, str] = json.load(stream)["weight_map"]
    tensors: Tensors = {}
    for file in sorted(set(weight_map.values())):
        tensors.update(load(os.path.join(folder, file)))
    missing = sorted(set(weight_map) - set(tensors))
    if missing:
        raise ValueError(f"{folder}: the shards lack {', '.join(missing[:3])}")
    return tensors
