"""The bytes of the state file, quickly: what has not changed since the last entry is not written out again.

The state is rewritten after each entry, and with many jobs nearly all of it is as it was. The records in it are
frozen, so one that is the same object has the same text. The bytes are those of `json.dumps(..., indent=1)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from console.release.state import SCHEMA_VERSION, Attempt, GateRecord, RunState, Stage

Texts = dict[int, tuple[object, str]]
"""By identity, records with their texts; holding them keeps an identity from being given again."""

_last: list[Texts] = [{}]
"""Those of the last state that was written."""


def state_bytes(state: RunState) -> bytes:
    """The bytes of `specdec_state.json`."""
    used: Texts = {}
    own = {field.name: getattr(state, field.name) for field in fields(state)}
    log = {"entries": own.pop("entries"), "head": own.pop("head")}
    texts = {name: _plain(value, 1) for name, value in own.items() if name not in ("stages", "asked")}
    texts["stages"] = _array((_stage(stage, used) for stage in state.stages), 1)
    texts["asked"] = _array((_record(attempt, used, 2) for attempt in state.asked), 1)
    ordered = {name: texts[name] for name in own}
    ordered["schema_version"] = str(SCHEMA_VERSION)
    ordered["log"] = _plain(log, 1)
    _last[0] = used
    return _object(ordered, 0).encode("ascii") + b"\n"


def _stage(stage: Stage, used: Texts) -> str:
    texts = {}
    for field in fields(stage):
        value = getattr(stage, field.name)
        if field.name in ("attempts", "gates"):
            texts[field.name] = _array((_record(item, used, 4) for item in value), 3)
        elif field.name == "triage":
            texts[field.name] = _plain([asdict(item) for item in value], 3)
        else:
            texts[field.name] = _plain(value, 3)
    return _object(texts, 2)


def _record(record: Attempt | GateRecord, used: Texts, level: int) -> str:
    known = _last[0].get(id(record))
    if known is None or known[0] is not record:
        data = asdict(record)
        if isinstance(record, GateRecord):
            data["pass"] = data.pop("passed")
        known = record, _plain(data, level)
    used[id(record)] = known
    return known[1]


def _plain(value: Any, level: int) -> str:
    """The text of a value; a line break in it is one of ours, since JSON escapes all others."""
    text = json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False)
    return text.replace("\n", "\n" + " " * level)


def _object(texts: Mapping[str, str], level: int) -> str:
    inner = ",".join(f"\n{' ' * (level + 1)}{json.dumps(key)}: {text}" for key, text in texts.items())
    return f"{{{inner}\n{' ' * level}}}" if inner else "{}"


def _array(texts: Iterable[str], level: int) -> str:
    inner = ",".join(f"\n{' ' * (level + 1)}{text}" for text in texts)
    return f"[{inner}\n{' ' * level}]" if inner else "[]"
