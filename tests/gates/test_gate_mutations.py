"""No change of a passing file that removes, retypes or spoils a needed field can pass, and no bytes make a gate raise.

Every field of every passing file is changed in every way, one at a time: the fields that a gate may do without are
listed here, all others are needed.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.reading import step
from gates.registry import GATES, run
from gates.verdict import FailureClass
from tests.gates import passing

UNREAD = {
    "smoke": r"server\.(base_url|command|exit_status|log_tail|started_in_s|timeout_s)",
    "export": r"config\.model_type|target_config\.architectures.*",
    "train": r"config\.model_type|target_config\.architectures.*|detail",
    "freeze": r"detail",
    "target": r"error",
    "acceptance": r"server\.version",
    "accuracy": r"server\.version",
}
"""Fields that the gate does not look at; only a number that is not finite matters there."""

OPTIONAL = {
    "smoke": r"detail|outputs\[\d+\]\.error",
    "bench": r"detail|sampling\.seed|arms\.[AB]\.points\[\d+\]\.mean_ttft_s|arms\.A\.num_draft_tokens",
    "correctness": r"detail",
    "export": r"config\.(block_size|num_target_layers)|config\.dflash_config\.(block_size|projector_type)",
    "train": r"config\.(block_size|num_target_layers)|config\.dflash_config\.(block_size|projector_type)|final_accuracy"
    r"|thresholds(\..*)?|log\[\d+\]\.accuracy|log\[[0-2]\]\.grad_norm",
    "freeze": r"failure",
    "target": r"http_status|index_file",
    "acceptance": r"detail",
    "accuracy": r"detail",
}
"""Fields that may be null or absent, but are not allowed to be of another type."""

ANY_NUMBER = {
    "target": r"files\[\d+\]",
    "export": r"tensors\[\d+\]|config\.dflash_config\.target_layer_ids\[\d+\]",
    "train": r"tensors\[\d+\]|config\.dflash_config\.target_layer_ids\[\d+\]|log\[\d+\]",
    "correctness": r"outputs\[\d+\]\.(a|b|control)\[\d+\]",
}
"""Items of lists of any length: one less is another list that is as good. An id may be text or a number."""

SPOILT = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000)
_ABSENT = object()


def walk(value: Any, path: str = "", keys: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Every field, however deep: its path, how to get there, and its value. Of long lists of numbers the first few."""
    if keys:
        yield path, keys, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, step(path, key), (*keys, key))
    elif isinstance(value, list):
        items = value[:2] if len(value) > 8 else value
        for i, item in enumerate(items):
            yield from walk(item, step(path, i), (*keys, i))


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Names of changes and what stands in the field's place."""
    yield "removed", _ABSENT
    yield "null", None
    yield from (("text", str(value)), ("true", True), ("list", [value]), ("object", {"value": value}))
    if isinstance(value, str):
        yield "number", 5
        yield "empty text", ""
    if isinstance(value, list):
        yield "empty list", []
        yield "list of texts", [str(item) for item in value]
    if isinstance(value, dict):
        yield "empty object", {}
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield "huge", 10**16
        yield "negative", -1 - abs(value)


def put(document: dict[str, Any], keys: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place: Any = changed
    for key in keys[:-1]:
        place = place[key]
    if value is _ABSENT:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return changed


def may_pass(gate: str, path: str, name: str) -> bool:
    def listed(patterns: dict[str, str]) -> bool:
        return bool(re.fullmatch(patterns.get(gate, "(?!)"), path))

    if listed(UNREAD):
        return True
    if name == "removed" and listed(ANY_NUMBER):
        return True
    if name in ("removed", "null", "empty object") and listed(OPTIONAL):
        return True
    return (name == "number" and path.endswith(".id")) or (
        name == "empty text" and path in ("detail", "error", "failure")
    )


CASES = [(gate, kind) for gate, files in passing.FILES.items() for kind in files]


@pytest.mark.parametrize(("gate", "kind"), CASES)
def test_a_needed_field_cannot_be_removed_or_retyped(gate: str, kind: str) -> None:
    document = passing.FILES[gate][kind]()
    assert passing.judge(gate).passed
    passed = []
    tried = 0
    for path, keys, value in walk(document):
        for name, other in changes(value):
            changed = put(document, keys, other)
            if changed == document and json.dumps(changed) == json.dumps(document):
                continue
            tried += 1
            verdict = passing.judge(gate, {kind: changed})
            if verdict.passed and not may_pass(gate, path, name):
                passed.append((path, name))
            if not verdict.passed:
                assert verdict.failure_class is not None
                assert passing.failing(verdict)
                json.dumps(verdict.to_json(), allow_nan=False)
    assert passed == []
    assert tried > 20


@pytest.mark.parametrize(("gate", "kind"), CASES)
def test_a_number_that_is_not_finite_never_passes_and_is_named(gate: str, kind: str) -> None:
    document = passing.FILES[gate][kind]()
    for path, keys, _ in walk(document):
        for spoilt in SPOILT:
            text = json.dumps(put(document, keys, "@spoilt@")).replace('"@spoilt@"', spoilt)
            verdict = passing.judge(gate, {kind: text.encode()})
            assert not verdict.passed, path
            assert verdict.readable
            assert path in {check.field for check in passing.failing(verdict)}


@pytest.mark.parametrize(("gate", "kind"), CASES)
def test_a_file_cut_off_anywhere_is_not_readable(gate: str, kind: str) -> None:
    data = passing.encode(passing.FILES[gate][kind]())
    for end in range(0, len(data), max(1, len(data) // 200)):
        verdict = passing.judge(gate, {kind: data[:end]})
        assert not verdict.passed
        assert not verdict.readable


@pytest.mark.parametrize(("gate", "kind"), CASES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_key_that_comes_twice_is_not_readable_whichever_value_would_count(
    gate: str, kind: str, data: st.DataObject
) -> None:
    text = json.dumps(passing.FILES[gate][kind]())
    places = [found.start() for found in re.finditer(r'"[^"]*": ', text)]
    place = data.draw(st.sampled_from(places))
    key = text[place : text.index('": ', place) + 3]
    value = data.draw(st.sampled_from(["null", "1", "true", '"text"', "[]", "{}", "1e308", "-1"]))
    verdict = passing.judge(gate, {kind: f"{text[:place]}{key}{value}, {text[place:]}".encode()})
    assert not verdict.passed
    assert not verdict.readable


@pytest.mark.parametrize(("gate", "kind"), CASES)
def test_a_missing_file_and_a_foreign_token(gate: str, kind: str) -> None:
    missing = passing.judge(gate, {kind: None})
    assert not missing.passed
    assert not missing.readable
    assert missing.failure_class is (FailureClass.FREEZE_FAILED if gate == "freeze" else FailureClass.RESULT_MISSING)
    foreign = passing.judge(gate, {kind: {**passing.FILES[gate][kind](), "token": "f" * 16}})
    wanted = FailureClass.FREEZE_FAILED if gate == "freeze" else FailureClass.MEASUREMENT_INVALID
    passing.assert_fails(foreign, wanted, "token")
    assert passing.the(foreign, "token").measured == "f" * 16


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([10**400, -1, 0, 1e308, 5e-324, "\ud800", "done", [], {}])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@pytest.mark.parametrize(("gate", "kind"), CASES)
@given(choices=st.lists(st.tuples(st.integers(0, 10**6), values), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_values_in_any_fields_never_raise(gate: str, kind: str, choices: list[tuple[int, Any]]) -> None:
    document = passing.FILES[gate][kind]()
    for number, value in choices:
        fields = list(walk(document))
        if fields:
            _, keys, _ = fields[number % len(fields)]
            document = put(document, keys, value)
    verdict = passing.judge(gate, {kind: document})
    json.dumps(verdict.to_json(), allow_nan=False)
    assert verdict.passed == (verdict.failure_class is None)


@given(gate=st.sampled_from(sorted(GATES)), data=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_never_raise_and_never_pass(gate: str, data: bytes) -> None:
    verdict = run(gate, dict.fromkeys(GATES[gate].kinds, data), {})
    assert not verdict.passed
    json.dumps(verdict.to_json(), allow_nan=False)


@given(document=st.dictionaries(st.text(max_size=8), values, max_size=5))
@settings(max_examples=100, deadline=None)
def test_any_object_never_raises_and_never_passes(document: dict[str, Any]) -> None:
    for name, gate in GATES.items():
        data = json.dumps({**document, "schema_version": 1, "stage": "done", "status": "ok"}).encode()
        assert not run(name, dict.fromkeys(gate.kinds, data), {}).passed


@pytest.mark.parametrize("gate", sorted(GATES))
@pytest.mark.parametrize(
    "data",
    [b"[" * 10**5, b'{"a":' * 10**5, b'{"arms":' * 900 + b"1" + b"}" * 900],
    ids=["lists", "objects", "almost too deep"],
)
def test_deep_nesting_never_raises(gate: str, data: bytes) -> None:
    assert not run(gate, dict.fromkeys(GATES[gate].kinds, data), {}).passed


@pytest.mark.parametrize(("gate", "kind"), CASES)
def test_deep_nesting_in_any_field_never_raises(gate: str, kind: str) -> None:
    document = passing.FILES[gate][kind]()
    deep = '{"a":' * 700 + "1" + "}" * 700
    for _, keys, _ in walk(document):
        text = json.dumps(put(document, keys, "@deep@")).replace('"@deep@"', deep)
        json.dumps(passing.judge(gate, {kind: text.encode()}).to_json(), allow_nan=False)


@pytest.mark.parametrize(("gate", "kind"), CASES)
def test_extra_keys_are_welcome(gate: str, kind: str) -> None:
    def enriched(value: Any) -> Any:
        if isinstance(value, dict) and "max_final_loss" not in value:
            return {**{key: enriched(item) for key, item in value.items()}, "note of another tool": ["x", 1, None]}
        return [enriched(item) for item in value] if isinstance(value, list) else value

    assert passing.judge(gate, {kind: enriched(passing.FILES[gate][kind]())}).passed
