"""Catalogs of thresholds as files that people write: YAML or JSON, handed to the gates as the JSON that they read.

The gates read strict JSON with the standard library alone. A YAML catalog is turned into it here, so that one reader
decides what a catalog may hold, whichever way it was written.
"""

from __future__ import annotations

import json
from pathlib import Path

from console.release.errors import InputError
from console.release.yaml_reading import parse_document
from gates.reading import MAX_BYTES, ResultBytes
from gates.results.fields import Problem, ResultError

YAML_NAMES = (".yaml", ".yml")


def catalog_bytes(path: Path) -> ResultBytes:
    """A catalog's bytes as JSON; where there are none, why.

    Raises:
        ResultError: When a file that is YAML by its name is none.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return ResultBytes(path.name or str(path), None, f"{path}: {error.strerror or error}")
    if path.suffix.lower() not in YAML_NAMES:
        return ResultBytes(path.name, data)
    return ResultBytes(path.name, from_yaml(data, path.name))


def from_yaml(data: bytes, name: str) -> bytes:
    """YAML as JSON. What YAML has and JSON has not (`.nan`) is written as Python writes it, for the reader to refuse.

    Raises:
        ResultError: When it is not one mapping of plain values.
    """
    try:
        document = parse_document(data.decode("utf-8-sig"), name, "catalog of thresholds")
    except UnicodeDecodeError:
        raise ResultError(name, [Problem("", "UTF-8 text", "other bytes")], unread=True) from None
    except InputError as error:
        found = [Problem(one.field, one.expected, one.found or "something else") for one in error.problems]
        raise ResultError(name, found, unread=True) from None
    return json.dumps(document.data, ensure_ascii=True).encode("ascii")
