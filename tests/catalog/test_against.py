"""A catalog beside an earlier state of it: what guards less than before needs a new source and a later date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from gates.catalog.against import check_against
from gates.catalog.check import errors
from gates.catalog.model import Catalog, read_catalog, shipped, to_json
from gates.reading import ResultBytes
from tests.catalog.catalogs import MODEL, bar, encode, entry
from tests.catalog.test_atom_catalogs import atom_entry

NEW: dict[str, Any] = {"source": "smallest of 9 runs after the new engine", "date": "2026-09-01"}
OLD_DAY: dict[str, Any] = {"source": NEW["source"], "date": "2026-07-20"}
OLD_SOURCE: dict[str, Any] = {"date": NEW["date"]}
GONE: dict[str, Any] = {"model": MODEL, "drafter": "mtp", "draft_tokens": 3, "bars": ["acceptance_rate"], **NEW}


def catalog(*entries: dict[str, Any], dropped: Any = ()) -> Catalog:
    document: dict[str, Any] = {"schema_version": 1, "entries": list(entries)}
    if dropped:
        document["dropped"] = list(dropped)
    return read_catalog(ResultBytes("catalog.json", encode(document)))


def rated(value: float = 0.6, **more: Any) -> dict[str, Any]:
    return entry(bars={"acceptance_rate": bar(value, **more)})


LENGTH = entry(bars={"acceptance_length": bar(2.5)})
POSITIONS = {"per_position": bar([0.8, 0.6, 0.4])}


def test_what_guards_as_much_or_more_is_nothing_to_tell() -> None:
    assert check_against(catalog(rated()), catalog(rated())) == []
    assert check_against(catalog(rated(0.61)), catalog(rated())) == []
    other = entry(model="another", bars={"acceptance_rate": bar(0.3)})
    assert check_against(catalog(rated(), other), catalog(rated())) == []
    strict = {**rated(), "repeat": {"runs": 3, "passes": 3}, "server": {"disable_cuda_graph": False}}
    assert check_against(catalog(strict), catalog(rated())) == []


LOOSENED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a rate": (rated(), rated(0.599)),
    "a length": (LENGTH, entry(bars={"acceptance_length": bar(2.49)})),
    "one position of three": (
        entry(bars=POSITIONS),
        entry(bars={"per_position": bar([0.9, 0.59, 0.4])}),
    ),
    "one position less": (entry(bars=POSITIONS), entry(bars={"per_position": bar([0.8, 0.6])})),
    "an accuracy": (
        entry(bars={"acceptance_rate": bar(0.6), "accuracy": bar(0.95)}),
        entry(bars={"acceptance_rate": bar(0.6), "accuracy": bar(0.94)}),
    ),
    "an accuracy on fewer questions": (
        entry(bars={"acceptance_rate": bar(0.6), "accuracy": bar(0.95, task="gsm8k", samples=1319)}),
        entry(bars={"acceptance_rate": bar(0.6), "accuracy": bar(0.95, task="gsm8k", samples=200)}),
    ),
}


@pytest.mark.parametrize(("before", "after"), LOOSENED.values(), ids=LOOSENED)
def test_a_bar_falls_only_with_a_new_source_and_a_later_date(before: dict[str, Any], after: dict[str, Any]) -> None:
    name = list(after["bars"])[-1]

    def found(**reason: Any) -> Any:
        now = {**after, "bars": {**after["bars"], name: {**after["bars"][name], **reason}}}
        (finding,) = check_against(catalog(now), catalog(before))
        assert finding.field == f"entries[0].bars.{name}"
        return finding

    for missing, words in (({}, "the source is still"), (OLD_DAY, "not later"), (OLD_SOURCE, "the source is still")):
        finding = found(**missing)
        assert finding.error
        assert words in finding.text
        assert "a new source and a later date" in finding.text
    told = found(**NEW)
    assert not told.error
    assert NEW["source"] in told.text


@pytest.mark.parametrize("after", [[LENGTH], [entry(model="another")]], ids=["the bar", "the whole entry"])
def test_a_bar_is_given_up_only_where_dropped_says_why_and_when(after: list[dict[str, Any]]) -> None:
    before = catalog(rated())
    (finding,) = check_against(catalog(*after), before)
    assert finding.error
    assert "0.6 since 2026-07-20, was given up" in finding.text
    for spoilt in (OLD_DAY, OLD_SOURCE | {"source": "a test"}):
        (finding,) = check_against(catalog(*after, dropped=[{**GONE, **spoilt}]), before)
        assert finding.error
        assert finding.field == "dropped[0]"
    for other in ({"bars": ["accuracy"]}, {"draft_tokens": 4}, {"drafter": None}):
        assert errors(check_against(catalog(*after, dropped=[{**GONE, **other}]), before))
    (finding,) = check_against(catalog(*after, dropped=[{**GONE, "date": "2026-07-01"}, GONE]), before)
    assert not finding.error
    assert (finding.field, NEW["source"] in finding.text) == ("dropped[1]", True)


def test_an_entry_for_another_number_of_draft_tokens_is_no_successor() -> None:
    assert errors(check_against(catalog({**rated(0.9), "draft_tokens": 1}), catalog(rated())))


def test_a_looser_repeat_policy_and_fewer_required_settings_are_told() -> None:
    before = {**rated(), "repeat": {"runs": 3, "passes": 3}, "server": {"disable_cuda_graph": False}}
    found = check_against(catalog({**rated(), "repeat": {"runs": 3, "passes": 2}}), catalog(before))
    assert [(one.error, one.field) for one in found] == [(False, "entries[0].repeat"), (False, "entries[0].server")]


def test_what_was_dropped_is_part_of_the_file(tmp_path: Path) -> None:
    made = catalog(LENGTH, dropped=[GONE])
    again = read_catalog(ResultBytes("catalog.json", json.dumps(to_json(made)).encode()))
    assert again.dropped == made.dropped
    file = tmp_path / "catalog.json"
    file.write_bytes(encode({"schema_version": 1, "entries": [LENGTH], "dropped": [{**GONE, "date": "2026-02-30"}]}))
    assert main(["catalog", "check", str(file)]) == 2


def test_the_command_compares_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier, now = tmp_path / "earlier.json", tmp_path / "now.json"
    earlier.write_bytes(shipped().data or b"")
    document = json.loads(shipped().data or b"")
    now.write_bytes(encode(document))
    assert main(["catalog", "check", str(now), "--against", str(earlier)]) == 0
    lowered = document["entries"][0]["bars"]["acceptance_rate"]
    lowered |= {"bar": round(lowered["bar"] - 0.1, 3), "minimum": lowered["minimum"] - 0.1}
    now.write_bytes(encode(document))
    assert main(["catalog", "check", str(now)]) == 0
    capsys.readouterr()
    assert main(["catalog", "check", str(now), "--against", str(earlier), "--json"]) == 1
    (finding,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["level"] == "error"]
    assert finding["field"] == "entries[0].bars.acceptance_rate"
    assert "was lowered" in finding["text"]
    lowered |= {**NEW, "date": "2027-01-01"}
    now.write_bytes(encode(document))
    assert main(["catalog", "check", str(now), "--against", str(earlier)]) == 0
    assert "was lowered" in capsys.readouterr().out
    assert main(["catalog", "check", str(now), "--against", str(tmp_path / "none.json")]) == 2


def test_a_catalog_that_states_no_dates_cannot_give_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier, now = tmp_path / "earlier.json", tmp_path / "now.json"
    earlier.write_bytes(encode([atom_entry()]))
    now.write_bytes(encode([atom_entry(mtp_accept_threshold=0.5)]))
    assert main(["catalog", "check", str(now), "--against", str(earlier)]) == 1
    assert "was lowered from" in capsys.readouterr().out
