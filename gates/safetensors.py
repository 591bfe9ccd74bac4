"""Reading a safetensors file without a framework: its header, and a sample of each tensor's numbers.

A file is eight bytes of little-endian header length, a JSON header `{name: {dtype, shape, data_offsets}}`, and the
tensors, one after another without gaps. So its right size follows from its header, and a file cut off in transit, a Git
LFS pointer or a saved error page all show without reading the weights.

Samples are taken at the beginning, the middle and the end of each tensor; a tensor that fits into a sample is read
whole. Numbers are decoded by their bits: a number of a floating-point type is infinite or not a number exactly when
all bits of its exponent are set (in F8_E4M3: when all bits but the sign are).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal, TypeGuard

from gates.reading import Unread, read_json
from gates.record import LARGEST, is_count

MAX_HEADER: Final = 100_000_000
"""The format's own limit on the header, in bytes."""

SAMPLE_BYTES: Final = 48 * 1024
"""How much of a tensor is looked at, in bytes."""

MOST_DIMENSIONS: Final = 16
"""No tensor of a model has more dimensions."""

_LENGTH_BYTES: Final = 8
_LFS: Final = b"version https://git-lfs"
_PIECES: Final = 3


@dataclass(frozen=True, slots=True)
class NumberType:
    """How numbers of one dtype are stored.

    Attributes:
        size: Bytes of a number.
        exponent: Mask over the bits that are all set in infinities and not-a-numbers; 0 where every number is finite.
    """

    size: int
    exponent: int = 0


TYPES: Final = {
    "F64": NumberType(8, 0x7FF0_0000_0000_0000),
    "F32": NumberType(4, 0x7F80_0000),
    "F16": NumberType(2, 0x7C00),
    "BF16": NumberType(2, 0x7F80),
    "F8_E4M3": NumberType(1, 0x7F),
    "F8_E5M2": NumberType(1, 0x7C),
    "F8_E8M0": NumberType(1, 0xFF),
    **{name: NumberType(size) for size in (1, 2, 4, 8) for name in (f"I{size * 8}", f"U{size * 8}")},
    "BOOL": NumberType(1),
}
_VIEWS: Final[Mapping[int, Literal["B", "H", "I", "Q"]]] = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as the header describes it; `begin` and `end` are bytes after the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """What the beginning of a file says.

    Attributes:
        tensors: Its tensors in the order of their bytes; empty when the header is not sound.
        start: Where the tensors' bytes begin.
        expected_size: Size that the whole file must have, in bytes; 0 when the header is not sound.
        lfs_pointer: Whether the file is a Git LFS pointer instead of weights.
        problems: What is wrong, in words; sound when empty.
    """

    tensors: tuple[Tensor, ...] = ()
    start: int = 0
    expected_size: int = 0
    lfs_pointer: bool = False
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sample of a tensor shows: how many numbers were looked at, how many are not finite, all the same?"""

    sampled: int
    non_finite: int
    constant: bool


def read_header(stream: BinaryIO, size: int) -> Header:
    """Read the header of a file.

    Args:
        stream: The file, at its beginning.
        size: Its size in bytes.

    Raises:
        OSError: When the file cannot be read.
    """
    start = stream.read(_LENGTH_BYTES)
    if len(start) < _LENGTH_BYTES:
        return Header(problems=(f"{size} bytes are no safetensors file",))
    length = int.from_bytes(start, "little")
    if start + stream.read(len(_LFS) - _LENGTH_BYTES) == _LFS:
        return Header(lfs_pointer=True, problems=("a Git LFS pointer, not weights",))
    if length > min(MAX_HEADER, size - _LENGTH_BYTES):
        kind = " (text, not a safetensors file)" if start.strip()[:1] in (b"<", b"{") else ""
        return Header(problems=(f"the header's length, {length}, does not fit a file of {size} bytes{kind}",))
    stream.seek(_LENGTH_BYTES)
    document = read_json(stream.read(length), limit=MAX_HEADER)
    if isinstance(document, Unread):
        return Header(problems=(f"the header cannot be read: {document.fault}: {document.why}",))
    tensors: list[Tensor] = []
    problems: list[str] = []
    for name, entry in document.root.items():
        if name != "__metadata__":
            made = _tensor(name, entry)
            if isinstance(made, str):
                problems.append(made)
            else:
                tensors.append(made)
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end))
    problems += _gaps(tensors)
    if not tensors and not problems:
        problems.append("no tensors")
    if problems:
        return Header(problems=tuple(problems))
    begin = _LENGTH_BYTES + length
    return Header(tuple(tensors), begin, begin + tensors[-1].end)


def sample(stream: BinaryIO, start: int, tensor: Tensor) -> Sample:
    """Look at some numbers of a tensor.

    Args:
        stream: The file.
        start: Where the tensors' bytes begin in it.
        tensor: Which tensor.

    Returns:
        What was seen; what a file that ends too early lacks was not sampled.

    Raises:
        OSError: When the file cannot be read.
    """
    kind = TYPES[tensor.dtype]
    pieces = []
    for begin, end in _spans(tensor.end - tensor.begin, kind.size):
        stream.seek(start + tensor.begin + begin)
        data = stream.read(end - begin)
        pieces.append(data[: len(data) - len(data) % kind.size])
    data = b"".join(pieces)
    if sys.byteorder == "big":
        data = data[::-1]
    numbers = memoryview(data).cast(_VIEWS[kind.size])
    mask = kind.exponent
    bad = sum(1 for number in numbers if number & mask == mask) if mask else 0
    return Sample(len(numbers), bad, len(numbers) > 0 and data == data[: kind.size] * len(numbers))


def _spans(size: int, unit: int) -> Sequence[tuple[int, int]]:
    """Which bytes of a tensor to read: all, or three pieces that begin at whole numbers."""
    if size <= SAMPLE_BYTES:
        return [(0, size)]
    piece = SAMPLE_BYTES // _PIECES // unit * unit
    middle = size // 2 // unit * unit
    return [(0, piece), (middle, middle + piece), (size - piece, size)]


def _tensor(name: str, entry: Any) -> Tensor | str:
    """A tensor, or what is wrong with its entry."""
    if not isinstance(entry, dict):
        return f"tensor {name!r} has no description"
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in TYPES:
        return f"tensor {name!r} has a dtype that is not known here"
    if not _sizes(shape) or len(shape) > MOST_DIMENSIONS or not _sizes(offsets) or len(offsets) != 2:
        return f"tensor {name!r} has no sound shape and offsets"
    count = 1
    for dimension in shape:
        count *= dimension
    begin, end = offsets
    if end - begin != count * TYPES[dtype].size:
        return f"tensor {name!r} takes {end - begin} bytes, its shape {count * TYPES[dtype].size}"
    return Tensor(name, dtype, tuple(shape), begin, end)


def _sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(is_count(item) and 0 <= item < LARGEST for item in value)


def _gaps(tensors: Sequence[Tensor]) -> list[str]:
    """Tensors lie one after another, from the first byte on."""
    at = 0
    for tensor in tensors:
        if tensor.begin != at:
            return [f"tensor {tensor.name!r} begins at {tensor.begin}, not at {at}"]
        at = tensor.end
    return []
