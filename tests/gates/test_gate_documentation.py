"""docs/results.md names every check, every setting and every stage word that the gates have."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from gates.counters import MIN_ACCEPTANCE_LENGTH
from gates.registry import GATES
from gates.stages import STAGE_CLASSES
from tests.gates import passing

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "results.md").read_text()
SHARED_SETTINGS = {"token", "target", "revision", "path", "model", "drafter", "manifest_sha256", "prompts_sha256"}
CALL = re.compile(r'\b(?:check|null)\(\s*(?:"[a-z_0-9]+", (?="))?f?"([a-z_{}]+)"')


def emitted() -> set[str]:
    """Names of all checks in the gates' sources; where a name is built, every name that it can become."""
    found: set[str] = set()
    for module in (ROOT / "gates").glob("*.py"):
        found |= set(CALL.findall(module.read_text()))
    parts = {"{arm}": ("a", "control", "b"), "{key}": ()}
    built = {name for name in found if "{" in name}
    whole = {name.replace("{arm}", arm) for name in built if "{arm}" in name for arm in parts["{arm}"]}
    whole |= {f"{what}_{end}" for what in ("model", "drafter") for end in ("requested", "served")}
    whole |= {"exact_match_identity", "control_exact_match_identity", "vocab_size_of_target", "hidden_size_of_target"}
    return (found - built) | whole


def test_the_sources_have_as_many_names_as_a_reader_would_find() -> None:
    assert len(emitted()) > 110
    assert {"stage", "speedup_possible", "length_b", "baseline_without_counters", "control"} <= emitted()


@pytest.mark.parametrize("name", sorted(emitted()))
def test_every_check_is_documented(name: str) -> None:
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("gate", sorted(GATES))
def test_every_gate_its_files_and_its_thresholds_are_documented(gate: str) -> None:
    assert f"\n## {gate}\n" in TEXT
    for kind in GATES[gate].kinds:
        assert f"`{kind}.json`" in TEXT
    for setting in fields(GATES[gate].settings):
        if isinstance(setting.default, float) and setting.default:
            assert f"`{setting.name}`" in TEXT


@pytest.mark.parametrize("stage", [*STAGE_CLASSES, "done"])
def test_every_stage_word_is_documented_with_its_class(stage: str) -> None:
    (row,) = [line for line in TEXT.splitlines() if line.startswith("| `") and f"`{stage}`" in line.split("|")[1]]
    if stage in STAGE_CLASSES:
        assert f"`{STAGE_CLASSES[stage]}`" in row


@pytest.mark.parametrize("gate", sorted(passing.FILES))
def test_every_field_of_a_passing_file_is_documented(gate: str) -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {key for item in value.values() for key in keys(item)}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    free = {"model_type", "dtype", "max_num_seqs", "threads"}
    for make in passing.FILES[gate].values():
        assert {key for key in keys(make()) - free if f"`{key}`" not in TEXT} == set()


def test_defaults_are_those_of_the_code() -> None:
    assert f"default {MIN_ACCEPTANCE_LENGTH:g}" in TEXT
    for name in ("bench", "correctness"):
        for setting in fields(GATES[name].settings):
            if setting.name in ("min_requests", "min_prompts", "min_mean_tokens", "min_control", "min_exact_match"):
                assert f"`{setting.name}` ({setting.default:g})" in TEXT
