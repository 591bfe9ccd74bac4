"""No change of a passing file that removes, retypes or spoils a needed field can pass, and none makes a gate raise.

`tests/gates/test_gate_mutations.py` does this for gonogo's own files; here are other producers' files and the catalog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.reading import ResultBytes
from gates.verdict import Verdict
from tests.catalog.catalogs import MODEL, atom, bar, catalog, encode, entry, judge, score, server_info, vllm
from tests.gates.test_gate_mutations import SPOILT, changes, put, values, walk

BARS = {"acceptance_rate": bar(0.6), "acceptance_length": bar(2.8), "per_position": bar([0.8, 0.6, 0.4])}
FULL = {"schema_version": 1, "entries": [entry(bars={**BARS, "accuracy": bar(0.9, task="gsm8k", samples=1319)})]}
RATED = entry(bars={"acceptance_rate": bar(0.6), "accuracy": bar(0.9, task="gsm8k", samples=1319)})
METADATA = "atom_ci_metadata"
SCORE = 'results.gsm8k["exact_match,flexible-extract"]'


def _atom(gate: str) -> Callable[[Any], Verdict]:
    return lambda value: judge(gate, value, using=catalog(RATED), model=MODEL)


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], Verdict], set[str]]] = {
    "rate in per cent": (
        atom,
        _atom("acceptance"),
        {"results", "results.gsm8k", METADATA, f"{METADATA}.mtp_acceptance_rate"},
    ),
    "accuracy": (
        atom,
        _atom("accuracy"),
        {"results", "results.gsm8k", SCORE, "n-samples", "n-samples.gsm8k", "n-samples.gsm8k.effective"}
        | {METADATA, f"{METADATA}.avg_tokens_per_forward"},
    ),
    "two units": (
        vllm,
        lambda value: judge("acceptance", value, using=ResultBytes("c.json", encode(FULL)), model=MODEL),
        {key for key in vllm() if key.startswith("spec_decode")}
        | {f"spec_decode_per_position_acceptance_rates[{i}]" for i in range(3)}
        | {"num_prompts", "completed", "duration", "total_output_tokens"},
    ),
    "score": (
        score,
        lambda value: judge("accuracy", value, server=server_info(3), model="gemma-4-31B", topk=3),
        {"score"},
    ),
    "server": (
        lambda: server_info(3),
        lambda value: judge("accuracy", score(0.8), server=value, model="gemma-4-31B", topk=3),
        {"speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens", "disable_cuda_graph"}
        | {"internal_states", "internal_states[0]", "internal_states[0].avg_spec_accept_length"}
        | {"internal_states[1].avg_spec_accept_length"},
    ),
}


def passing(case: str) -> Any:
    make, _, _ = CASES[case]
    return {**make(), "score": 0.8} if case == "score" else make()


@pytest.mark.parametrize("case", CASES)
def test_a_needed_field_cannot_be_removed_retyped_or_spoilt(case: str) -> None:
    _, verdict, needed = CASES[case]
    document = passing(case)
    assert verdict(document).passed, verdict(document).detail
    tried: set[str] = set()
    passed: list[tuple[str, str]] = []
    for path, keys, value in walk(document):
        for name, other in changes(value):
            changed = put(document, keys, other)
            if json.dumps(changed) == json.dumps(document):
                continue
            made = verdict(changed)
            json.dumps(made.to_json(), allow_nan=False)
            # One rank or one position less is another server, not a missing field.
            fewer = name == "removed" and path.endswith("]")
            if path in needed and not fewer:
                tried.add(path)
                if made.passed:
                    passed.append((path, name))
        for spoilt in SPOILT:
            text = json.dumps(put(document, keys, "@spoilt@")).replace('"@spoilt@"', spoilt)
            if verdict(text.encode()).passed and path in needed:
                passed.append((path, spoilt[:9]))
    assert passed == []
    assert tried == needed


@pytest.mark.parametrize("case", CASES)
def test_a_file_cut_off_anywhere_never_passes(case: str) -> None:
    data = json.dumps(passing(case)).encode()
    _, verdict, _ = CASES[case]
    for end in range(0, len(data), max(1, len(data) // 60)):
        assert not verdict(data[:end]).passed


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_key_that_comes_twice_never_passes(case: str, data: st.DataObject) -> None:
    text = json.dumps(passing(case))
    place = data.draw(st.sampled_from([found.start() for found in re.finditer(r'"[^"]*": ', text)]))
    key = text[place : text.index('": ', place) + 3]
    value = data.draw(st.sampled_from(["null", "1", "0.99", "true", '"text"', "[]", "{}"]))
    made = CASES[case][1](f"{text[:place]}{key}{value}, {text[place:]}".encode())
    assert not made.passed
    assert not made.readable


@pytest.mark.parametrize("case", CASES)
@given(choices=st.lists(st.tuples(st.integers(0, 10**6), values), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_values_in_any_fields_never_raise(case: str, choices: list[tuple[int, Any]]) -> None:
    document = passing(case)
    for number, value in choices:
        fields = list(walk(document))
        if fields:
            document = put(document, fields[number % len(fields)][1], value)
    made = CASES[case][1](document)
    json.dumps(made.to_json(), allow_nan=False)
    assert made.passed == (made.failure_class is None)


def test_no_change_of_a_catalog_raises_and_none_disarms_its_bars() -> None:
    broken = vllm(40.0)

    def verdict(text: bytes) -> Verdict:
        return judge("acceptance", broken, using=ResultBytes("catalog.json", text), model=MODEL)

    def lowered(path: str) -> bool:
        """Bars that are lowered, or taken out beside others, are a decision; reading them wrongly would not be."""
        return ".bars" in path

    tried = 0
    for path, keys, value in walk(FULL):
        for name, other in changes(value):
            made = verdict(json.dumps(put(FULL, keys, other)).encode())
            json.dumps(made.to_json(), allow_nan=False)
            tried += 1
            assert not made.passed or (lowered(path) and name == "removed"), (path, name)
        for spoilt in SPOILT:
            text = json.dumps(put(FULL, keys, "@spoilt@")).replace('"@spoilt@"', spoilt)
            assert not verdict(text.encode()).passed, (path, spoilt)
    assert tried > 150


@given(
    data=st.binary(max_size=120) | st.text(max_size=80).map(str.encode) | values.map(lambda v: json.dumps(v).encode())
)
@settings(max_examples=150, deadline=None)
def test_any_bytes_as_catalog_or_measurement_never_raise_and_never_pass(data: bytes) -> None:
    for gate, good in (("acceptance", vllm()), ("accuracy", atom())):
        assert not judge(gate, good, using=ResultBytes("catalog.json", data), model=MODEL).passed
        assert not judge(gate, data, using=catalog(RATED), model=MODEL).passed
        assert not judge(gate, good, server=data, using=catalog(RATED), model=MODEL).passed or gate == "acceptance"
