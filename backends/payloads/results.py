"""How programs on the cluster write their results: one JSON document, by rename, also when they fail.

A number that is not finite has no place in JSON. It becomes null, and a line in `problems` says where it stood, so that
whoever reads the file sees a fault and not a gap.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Dict, List, Mapping, Tuple

SCHEMA_VERSION = 1


def write_result(path: str, producer: str, body: Mapping[str, Any]) -> Dict[str, Any]:
    """Write a result file: to a temporary sibling first, then renamed.

    Args:
        path: Where it goes; an older file there is replaced.
        producer: Name of the program.
        body: Everything but the header; `problems` gets a line for each number that is not finite.

    Returns:
        The document as it was written.

    Raises:
        OSError: When it cannot be written.
    """
    clean, odd = finite(dict(body))
    if odd:
        clean["problems"] = [*clean.get("problems", []), *(f"{place} is not a finite number" for place in odd)]
    head = {"schema_version": SCHEMA_VERSION, "producer": producer, "token": os.environ.get("GONOGO_TOKEN", "")}
    document = {**head, **clean}
    write_by_rename(path, (json.dumps(document, indent=1, allow_nan=False) + "\n").encode("ascii"))
    return document


def write_by_rename(path: str, data: bytes) -> None:
    """Write bytes so that a reader sees the old file or the new one, never half of one.

    Raises:
        OSError: When they cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def finite(value: Any, place: str = "") -> Tuple[Any, List[str]]:
    """A value without numbers that are not finite.

    Args:
        value: Anything that JSON can hold.
        place: Where it stands, for messages.

    Returns:
        The value with null in their place, and where they stood.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None, [place]
    if isinstance(value, dict):
        children = {key: finite(item, f"{place}.{key}" if place else str(key)) for key, item in value.items()}
        return {key: child for key, (child, _) in children.items()}, [p for _, odd in children.values() for p in odd]
    if isinstance(value, (list, tuple)):
        items = [finite(item, f"{place}[{index}]") for index, item in enumerate(value)]
        return [item for item, _ in items], [p for _, odd in items for p in odd]
    return value, []
