"""Changes one byte of a file, and puts it back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console.release.verify.folder import PASSING


def record_files(run_dir: Path) -> list[Path]:
    """Every file of a run folder that is part of the record."""
    return sorted(path for path in run_dir.rglob("*") if path.is_file() and path.name not in PASSING)


def positions(path: Path, count: int, chance: random.Random) -> list[int]:
    """So many positions of a file, first and last byte among them where there are more than two."""
    size = path.stat().st_size
    if size <= count:
        return list(range(size))
    inner = [chance.randrange(size) for _ in range(count - 2)] if count > 2 else []
    return [0, size - 1, *inner] if count > 2 else [chance.randrange(size) for _ in range(count)]


@contextmanager
def flips(path: Path, position: int, chance: random.Random) -> Iterator[None]:
    """The byte at a position is another one."""
    data = path.read_bytes()
    changed = bytearray(data)
    changed[position] ^= 1 << chance.randrange(8)
    path.chmod(0o600)
    path.write_bytes(changed)
    try:
        yield
    finally:
        path.write_bytes(data)
