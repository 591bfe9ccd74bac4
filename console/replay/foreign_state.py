"""A `specdec_state.json` of another program, as far as it can be read.

What another program means by its keys is not known; the names that the convention has (`run_id`, `verdict`, `stages`
with a name and a status, `overrides`, `interventions`) are shown, each with what stands there. Nothing is inferred.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from console.release.folder import STATE_NAME
from console.safe_text import safe

LARGEST_BYTES = 32_000_000


class ForeignStage(NamedTuple):
    """What such a file says about a stage; the status in its own words."""

    name: str
    status: str
    detail: str


class ForeignState(NamedTuple):
    """What could be read of such a file.

    Attributes:
        found: Whether there is one.
        run_id: Name of the run, empty for none.
        verdict: The verdict in its own words, empty for none.
        stages: The stages in its order.
        facts: Other values that are no objects, for showing.
        problem: Why it cannot be read; empty where it could be.
    """

    found: bool = False
    run_id: str = ""
    verdict: str = ""
    stages: tuple[ForeignStage, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    problem: str = ""


def read(folder: Path) -> ForeignState:
    """The state file of a folder."""
    path = folder / STATE_NAME
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return ForeignState(True, problem=f"{STATE_NAME}: larger than {LARGEST_BYTES} bytes; it is not read")
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return ForeignState()
    except OSError as error:
        return ForeignState(True, problem=f"{STATE_NAME}: cannot be read ({error.strerror})")
    except (ValueError, RecursionError) as error:
        return ForeignState(True, problem=f"{STATE_NAME}: no JSON ({safe(str(error))})")
    if not isinstance(data, dict):
        return ForeignState(True, problem=f"{STATE_NAME}: not a JSON object")
    facts = tuple((key, _words(value)) for key, value in data.items() if not isinstance(value, dict | list))
    return ForeignState(
        found=True,
        run_id=_words(data.get("run_id", "")),
        verdict="" if data.get("verdict") is None else _words(data["verdict"]),
        stages=tuple(_stages(data.get("stages"))),
        facts=facts,
    )


def _stages(value: Any) -> Iterator[ForeignStage]:
    """Stages as a list of objects or names, or as an object from names to states."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield _stage(name, item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping) and isinstance(item.get("name", item.get("stage")), str):
                yield _stage(str(item.get("name", item.get("stage"))), item)
            elif isinstance(item, str):
                yield ForeignStage(item, "", "")


def _stage(name: str, item: Any) -> ForeignStage:
    if not isinstance(item, Mapping):
        return ForeignStage(name, _words(item), "")
    status = next((_words(item[key]) for key in ("status", "state", "verdict", "result") if key in item), "")
    simple = (f"{key}: {_words(value)}" for key, value in item.items() if not isinstance(value, dict | list))
    return ForeignStage(name, status, "; ".join(simple))


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
