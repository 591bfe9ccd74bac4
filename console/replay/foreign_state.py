"""A `specdec_state.json` of another program, as far as it can be read.

What another program means by its keys is not known; the names that the convention has (`run_id`, `verdict`, `stages`
with a name and a status) are shown, each with what stands there, and so is every other value, under the keys that lead
to it. Nothing is inferred, and nothing is left out without saying so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from console.release.folder import STATE_NAME
from console.safe_text import safe

LARGEST_BYTES = 32_000_000

MOST_VALUES = 400
"""So many values of a stage, or of the rest of the file, are shown."""

Said = tuple[tuple[str, str], ...]
"""Values by the keys that lead to them, such as ("gates[0].pass", "true")."""


class ForeignStage(NamedTuple):
    """What such a file says about a stage.

    Attributes:
        name: Its name.
        status: Its status in the file's own words, empty where none is given.
        said: Every other value.
    """

    name: str
    status: str
    said: Said = ()


class ForeignState(NamedTuple):
    """What could be read of such a file.

    Attributes:
        found: Whether there is one.
        run_id: Name of the run, empty for none.
        verdict: The verdict in its own words, empty for none.
        stages: The stages in its order.
        facts: Every value outside the stages.
        problem: Why it cannot be read; empty where it could be.
        unplaced: What stands among the stages and is none, one line each.
    """

    found: bool = False
    run_id: str = ""
    verdict: str = ""
    stages: tuple[ForeignStage, ...] = ()
    facts: Said = ()
    problem: str = ""
    unplaced: tuple[str, ...] = ()


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
    stages, unplaced = _stages(data.get("stages"))
    return ForeignState(
        found=True,
        run_id="" if data.get("run_id") is None else _words(data["run_id"]),
        verdict="" if data.get("verdict") is None else _words(data["verdict"]),
        stages=tuple(stages),
        facts=_said({key: value for key, value in data.items() if key != "stages"}),
        unplaced=tuple(unplaced),
    )


def _stages(value: Any) -> tuple[list[ForeignStage], list[str]]:
    """Stages as a list of objects or names, or as an object from names to states; and what is none of these."""
    stages, unplaced = list[ForeignStage](), list[str]()
    if isinstance(value, Mapping):
        stages = [_stage(name, item) for name, item in value.items()]
    elif isinstance(value, list):
        for place, item in enumerate(value):
            name = _name(item)
            if name:
                stages.append(_stage(name, item if isinstance(item, Mapping) else {}))
            else:
                unplaced.append(f"{STATE_NAME}: stages[{place}]: no name: {_words(item)[:200]}")
    elif value is not None:
        unplaced.append(f"{STATE_NAME}: stages: neither a list nor an object: {_words(value)[:200]}")
    names = [stage.name for stage in stages]
    unplaced += [f"{STATE_NAME}: stage {name}: named more than once" for name in dict.fromkeys(names)
                 if names.count(name) > 1]  # fmt: skip
    return stages, unplaced


def _name(item: Any) -> str:
    if isinstance(item, Mapping):
        item = item.get("name", item.get("stage"))
    return item if isinstance(item, str) else ""


_STATUS = ("status", "state", "verdict", "result")


def _stage(name: str, item: Any) -> ForeignStage:
    if not isinstance(item, Mapping):
        return ForeignStage(name, _words(item))
    key = next((key for key in _STATUS if isinstance(item.get(key), str | bool)), "")
    return ForeignStage(name, _words(item[key]) if key else "", _said(item))


def _said(value: Any) -> Said:
    """All values in an object, up to a number; how many more there are stands last."""
    leaves = _leaves(value, "") if value else iter(())
    found = list(islice(leaves, MOST_VALUES))
    more = sum(1 for _ in leaves)
    return (*found, *((("and", f"{more} more values"),) if more else ()))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}[{place}]")
    else:
        yield path, _words(value)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
