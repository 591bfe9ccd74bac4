"""The catalog as a file: read strictly, its schema shipped, and what guards nothing found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.release.catalog_file import catalog_bytes, from_yaml
from gates.catalog import schema
from gates.catalog.check import check_catalog, errors
from gates.catalog.decimals import decimal, text, thousandths
from gates.catalog.model import entry_to_json, read_catalog, shipped, to_json
from gates.reading import ResultBytes
from gates.results.fields import ResultError
from tests.catalog.catalogs import bar, catalog, encode, entry, read
from tests.catalog.test_gates import GEMMA, SEED

ROOT = Path(__file__).parents[2]


def found(*entries: dict[str, Any]) -> set[str]:
    return {finding.field for finding in errors(check_catalog(read(*entries)))}


def test_the_shipped_catalog_has_the_ten_models_and_their_minima_and_no_errors() -> None:
    made = read_catalog(shipped())
    assert errors(check_catalog(made)) == []
    entries = {one.model: one for one in made.entries if one.model in SEED}
    assert set(entries) == set(SEED)
    for model, (minimum, threshold) in SEED.items():
        one = entries[model].bars["acceptance_rate"]
        assert one.bars == (threshold,)
        assert decimal(one.minimum[0]) * 100 == decimal(minimum)
        assert one.margin == 0.015
        assert thousandths(decimal(one.minimum[0]) - decimal(0.015)) == threshold
        assert one.source
        assert one.date
    gemma = {(one.model, one.topk): one.bars["accuracy"].bars[0] for one in made.entries if one.model in GEMMA}
    assert gemma == {(model, topk): at for model, at in GEMMA.items() for topk in (1, 3)}


def test_a_catalog_is_written_as_it_was_read() -> None:
    raw = json.loads(shipped().data or b"")
    assert to_json(read_catalog(shipped())) == raw
    full = entry(
        topk=1,
        path="o/m",
        note="n",
        server={"a": 1},
        repeat={"runs": 3, "passes": 2},
        bars={"per_position": bar([0.5])},
    )
    assert entry_to_json(read(full).entries[0]) == full


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ([entry(), entry(model="other"), entry()], "entries[2]"),
        ([entry(bars={})], "entries[0].bars"),
        ([entry(bars={"accuracy": bar(0.9)})], "entries[0].bars"),
        ([entry(drafter=None, draft_tokens=...)], "entries[0].bars.acceptance_rate"),
        ([entry(drafter=None, bars={"accuracy": bar(0.9)})], "entries[0].draft_tokens"),
        ([entry(bars={"acceptance_rate": bar(0)})], "entries[0].bars.acceptance_rate.bar"),
        ([entry(bars={"acceptance_rate": bar(0.04)})], "entries[0].bars.acceptance_rate.bar"),
        ([entry(bars={"acceptance_rate": bar(1)})], "entries[0].bars.acceptance_rate.bar"),
        ([entry(bars={"acceptance_length": bar(1.0)})], "entries[0].bars.acceptance_length.bar"),
        ([entry(bars={"acceptance_length": bar(1.04)})], "entries[0].bars.acceptance_length.bar"),
        ([entry(bars={"acceptance_length": bar(4)})], "entries[0].bars.acceptance_length.bar"),
        ([entry(bars={"per_position": bar([0.5, 0.6])})], "entries[0].bars.per_position.bar"),
        ([entry(bars={"per_position": bar([0.5, 0.4, 0.3, 0.2])})], "entries[0].bars.per_position.bar"),
        ([entry(bars={"per_position": bar([0.04])})], "entries[0].bars.per_position.bar[0]"),
        ([entry(bars={"per_position": bar([0.5, 0.0])})], "entries[0].bars.per_position.bar[1]"),
        ([entry(bars={"acceptance_rate": bar(0.62, minimum=0.61)})], "entries[0].bars.acceptance_rate.bar"),
        ([entry(repeat={"runs": 2, "passes": 3})], "entries[0].repeat.passes"),
        ([entry(repeat={"runs": 3, "passes": 1})], "entries[0].repeat.passes"),
        ([entry(repeat={"runs": 2, "passes": 1})], "entries[0].repeat.passes"),
    ],
)
def test_what_guards_nothing_is_an_error(entries: list[Any], field: str) -> None:
    assert found(*entries) == {field}


def test_what_is_only_odd_is_a_warning() -> None:
    odd = read(entry(draft_tokens=...), entry(bars={"acceptance_rate": bar(0.5, minimum=0.61, margin=0.015)}))
    assert [(one.error, one.field) for one in check_catalog(odd)] == [
        (False, "entries[0].draft_tokens"),
        (False, "entries[1].bars.acceptance_rate.bar"),
    ]
    assert found(entry(bars={"per_position": bar([0.38, 0.1, 0.01])})) == set()
    assert found(entry(repeat={"runs": 3, "passes": 2})) == set()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"model": ""}, "entries[0].model"),
        ({"model": ...}, "entries[0].model"),
        ({"drafter": ...}, "entries[0].drafter"),
        ({"drafter": ""}, "entries[0].drafter"),
        ({"draft_tokens": 3.0}, "entries[0].draft_tokens"),
        ({"draft_tokens": 0}, "entries[0].draft_tokens"),
        ({"draft_tokens": True}, "entries[0].draft_tokens"),
        ({"bars": {"acceptance_rate": bar("0.6")}}, "entries[0].bars.acceptance_rate.bar"),
        ({"bars": {"acceptance_rate": bar(60.0)}}, "entries[0].bars.acceptance_rate.bar"),
        ({"bars": {"acceptance_rate": {"bar": 0.6, "date": "2026-07-20"}}}, "entries[0].bars.acceptance_rate.source"),
        ({"bars": {"acceptance_rate": {"bar": 0.6, "source": "x"}}}, "entries[0].bars.acceptance_rate.date"),
        ({"bars": {"acceptance_rate": bar(0.6) | {"date": "20.7.2026"}}}, "entries[0].bars.acceptance_rate.date"),
        ({"bars": {"acceptance_rate": bar(0.6) | {"date": "2026-02-30"}}}, "entries[0].bars.acceptance_rate.date"),
        ({"bars": {"acceptance": bar(0.6)}}, "entries[0].bars.acceptance"),
        ({"bars": {"per_position": bar([])}}, "entries[0].bars.per_position.bar"),
        ({"threshold": 0.6}, "entries[0].threshold"),
        ({"repeat": {"runs": 6, "passes": 4}}, "entries[0].repeat.runs"),
        ({"server": {"topk": [1]}}, "entries[0].server.topk"),
    ],
)
def test_what_the_schema_does_not_allow_names_file_field_and_what_was_expected(
    changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(ResultError) as caught:
        read(entry(**changed))
    assert [one.field for one in caught.value.problems] == [field]
    assert f"catalog.json: {field}: expected " in str(caught.value)


def test_all_problems_are_named_at_once_and_their_number_is_bounded() -> None:
    many = [entry(model=5, drafter=6) for _ in range(30)]
    with pytest.raises(ResultError) as caught:
        read(*many)
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1].found == "40 more"


def test_duplicate_keys_and_other_json_that_is_none() -> None:
    for data in (b'{"schema_version": 1, "schema_version": 1, "entries": []}', b"", b"[]", b'{"schema_version": 2}'):
        with pytest.raises(ResultError):
            read_catalog(ResultBytes("c.json", data))


def test_the_schema_uses_nothing_that_is_not_understood() -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            list(schema.problems("text", {key: item for key, item in value.items() if key != "$ref"}, value))
            for key in ("properties", "$defs"):
                for item in value.get(key, {}).values():
                    walk(item)
            for key in ("items", "additionalProperties"):
                if isinstance(value.get(key), dict):
                    walk(value[key])

    walk(schema.shipped())
    with pytest.raises(ValueError, match="oneOf"):
        list(schema.problems(1, {"oneOf": []}, {}))


def test_yaml_is_the_same_catalog(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(
        """
schema_version: 1
entries:
  - model: tiny MTP
    drafter: mtp
    draft_tokens: 3
    bars:
      acceptance_rate: {bar: 0.6, source: a test, date: 2026-07-20}
"""
    )
    assert read_catalog(catalog_bytes(path)).entries == read().entries
    path.write_text(path.read_text().replace("0.6", ".nan"))
    with pytest.raises(ResultError, match="NaN"):
        read_catalog(catalog_bytes(path))
    for broken in (b"a: 1\na: 2\n", b"entries: [", b"\xff", b"- 1\n", b"a: !!python/object:x {}\n"):
        with pytest.raises(ResultError):
            from_yaml(broken, "c.yaml")
    missing = catalog_bytes(tmp_path / "none.json")
    with pytest.raises(ResultError, match="No such file"):
        read_catalog(missing)
    assert catalog().data == encode(json.loads(catalog().data or b""))


def test_decimals() -> None:
    assert text(decimal(0.593)) == "0.593"
    assert text(decimal(0.5999)) == "0.5999"
    assert text(decimal(1e-9)) == "0.000000001"
    assert thousandths(decimal(0.8439) - decimal(0.015)) == 0.829


@pytest.mark.parametrize("name", ["threshold_catalog.schema.json", "threshold_catalog.json"])
def test_schema_and_catalog_are_package_data(name: str) -> None:
    assert (ROOT / "gates" / name).is_file()
    assert 'gates = ["*.json"]' in (ROOT / "pyproject.toml").read_text()


def test_the_example_in_the_documentation_is_a_catalog_without_errors() -> None:
    text_ = (ROOT / "docs" / "catalog.md").read_text()
    example = text_.partition("### Format")[2].split("```yaml\n")[1].split("```")[0]
    made = read_catalog(ResultBytes("example.json", from_yaml(example.encode(), "example.yaml")))
    assert check_catalog(made) == []
    assert set(made.entries[0].bars) == {"acceptance_rate", "per_position", "acceptance_length", "accuracy"}
    runs = json.loads(text_.split("```json\n")[1].split("```")[0])
    assert {"run", "day", "model", "drafter", "acceptance_rate"} <= set(runs)
