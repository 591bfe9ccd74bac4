"""A catalog that cannot decide is refused before anything is submitted, in one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.release.errors import InputError
from console.release.recipe_task import Task
from console.release.spec import ReleaseSpec
from console.release.thresholds import choose_thresholds

BENCH = Task(
    stage="bench", task="bench", summary="Measure", script="b.sh", results={"bench": "bench.json"}, time="00:05:00"
)
BAR = {"bar": 0.6, "source": "these tests", "date": "2026-12-01"}


def entry(**changes: Any) -> dict[str, Any]:
    base = {"model": "o/m", "drafter": "dflash2", "draft_tokens": 4, "bars": {"acceptance_rate": BAR}}
    return {key: value for key, value in (base | changes).items() if value is not ...}


def chosen(folder: Path, *entries: dict[str, Any], file: str = "bars.json", **choice: str) -> Any:
    (folder / "bars.json").write_text(json.dumps({"schema_version": 1, "entries": entries}))
    spec = ReleaseSpec(
        target="o/m",
        revision="a" * 40,
        algorithm="dflash2",
        budget="dev",
        catalog={"file": file, **choice},  # type: ignore[arg-type]
    )
    return choose_thresholds(spec, folder / "release.yaml", folder / "run" / "catalog.json", (BENCH,), 4)


def test_the_only_entry_that_fits_is_what_the_gate_is_told(tmp_path: Path) -> None:
    others = (entry(draft_tokens=8), entry(model="o/other"), entry(drafter="mtp"))
    found = chosen(tmp_path, *others, entry())
    assert found.gates == ("acceptance",)
    assert found.expected() == {"model": "o/m", "drafter": "dflash2", "draft_tokens": 4}


def test_another_name_of_model_and_drafter_can_be_asked_for(tmp_path: Path) -> None:
    found = chosen(tmp_path, entry(model="M", drafter="d", draft_tokens=...), model="M", drafter="d")
    assert found.expected() == {"model": "M", "drafter": "d"}


@pytest.mark.parametrize(
    ("entries", "choice", "words"),
    [
        (
            [entry()],
            {"model": "o/n"},
            'catalog.model: expected the name of a model in bars.json (o/m), found "o/n"; did',
        ),
        ([entry()], {"file": "none.json"}, 'catalog.file: expected a readable catalog of thresholds, or "builtin"'),
        ([entry()], {"file": "builtin"}, "catalog.model: expected the name of a model in threshold_catalog.json"),
        ([entry(draft_tokens=8)], {}, "for o/m with drafter dflash2 and 4 draft tokens, found 0, it has: o/m, drafter"),
        ([entry(), entry(draft_tokens=...)], {}, "exactly one entry of bars.json for o/m with drafter dflash2 and 4"),
        ([entry(draft_tokens=...), entry(draft_tokens=8)], {}, "exactly one entry of bars.json"),
        ([entry(bars={"acceptance_rate": BAR | {"bar": 0.01}})], {}, "expected an entry without errors"),
        (
            [entry(bars={"acceptance_rate": BAR, "accuracy": BAR | {"task": "gsm8k"}})],
            {},
            "no job that writes accuracy",
        ),
        ([entry(bars={"acceptance_rate": {"bar": "0.6"}})], {}, "bars.acceptance_rate"),
    ],
)
def test_what_cannot_decide_is_refused(tmp_path: Path, entries: list[Any], choice: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as refused:
        chosen(tmp_path, *entries, **choice)
    assert words in str(refused.value)
