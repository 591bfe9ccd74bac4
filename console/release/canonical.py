"""Canonical JSON and its digest: the bytes that approvals and the log's hash chain are bound to."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any, *, floats: bool = False) -> bytes:
    """JSON with sorted keys and no spaces, in ASCII, so that no byte of it can act on a terminal.

    Args:
        value: None, bool, int, str, and lists and string-keyed mappings of them.
        floats: Also take finite floats (measured values in the log), spelled as Python's shortest repr.

    Raises:
        TypeError: For anything else.
        ValueError: For a float that is not finite.
    """
    _check(value, floats)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def _check(value: Any, floats: bool) -> None:
    if isinstance(value, float) and not floats:
        raise TypeError(f"a float ({value!r}) has no canonical form")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"key {key!r} is not text")
            _check(item, floats)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, floats)


def sha256(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
