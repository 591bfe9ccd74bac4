"""Bars from a history: the smallest healthy value less 1.5 points, and a regression is never baked in."""

from __future__ import annotations

import random

import pytest

from gates.catalog.check import check_catalog, errors
from gates.catalog.decimals import decimal
from gates.catalog.levels import best_level, shifts
from gates.catalog.model import Catalog
from gates.catalog.propose import Run, propose
from tests.catalog.catalogs import DAY
from tests.catalog.test_gates import FP4, SEED


def run(i: int, rate: float | None, **more: object) -> Run:
    values = {} if rate is None else {"acceptance_rate": decimal(rate)}
    made: dict[str, object] = {"id": f"run-{i:03d}", "day": f"2026-06-{i + 1:02d}", "model": "m", "drafter": "mtp"}
    return Run(**{**made, "draft_tokens": 3, "values": values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("model", SEED)
def test_the_seeds_thresholds_follow_from_their_minima(model: str) -> None:
    minimum, threshold = SEED[model]
    noise = random.Random(model)
    rates = [round(minimum / 100 + noise.uniform(0, 0.01), 4) for _ in range(20)]
    rates[noise.randrange(20)] = round(minimum / 100, 4)
    made = propose([run(i, rate, model=model) for i, rate in enumerate(rates)], day=DAY)
    (entry,) = made.entries
    assert entry.bars["acceptance_rate"].bars == (threshold,)
    assert entry.bars["acceptance_rate"].minimum == (round(minimum / 100, 4),)
    assert made.left_out == ()
    assert errors(check_catalog(Catalog("c", "c", made.entries))) == []


def test_the_drop_is_caught_rather_than_baked_in_however_long_it_lasted() -> None:
    healthy = [0.6102, 0.6115, 0.6084, 0.6131, 0.6120]
    broken = [0.3602, 0.3588, 0.3611] * 5
    runs = [run(i, rate, model=FP4) for i, rate in enumerate([*healthy, *broken])]
    made = propose(runs, day=DAY)
    assert made.entries[0].bars["acceptance_rate"].bars == (0.593,)
    assert [one.run for one in made.left_out] == [one.id for one in runs[5:]]
    assert "0.3602 lies 0.2518 under the level 0.612 of" in made.left_out[0].why
    assert made.used == {(made.entries[0].words, "acceptance_rate"): 5}


def test_runs_that_failed_that_state_nothing_and_of_other_draft_tokens_do_not_count() -> None:
    runs = [run(i, 0.61) for i in range(3)]
    runs += [run(3, 0.59, healthy=False, why="its verdict is ANOMALOUS"), run(4, None), run(5, 0.8, draft_tokens=1)]
    made = propose(runs, day=DAY)
    assert made.entries[0].bars["acceptance_rate"].bars == (0.595,)
    assert {(one.run, one.why) for one in made.left_out} == {
        ("run-003", "its verdict is ANOMALOUS"),
        ("run-004", "states no acceptance_rate"),
    }
    assert made.refused == (
        "m, drafter mtp, 1 draft tokens: no bar on acceptance_rate: 1 runs count, at least 3 are needed",
    )


def test_one_odd_run_moves_no_level() -> None:
    made = propose([run(i, rate) for i, rate in enumerate([0.61, 0.612, 0.99, 0.611, 0.613])], day=DAY)
    assert made.entries[0].bars["acceptance_rate"].minimum == (0.61,)


def test_lengths_and_accuracies_have_margins_of_their_own() -> None:
    values = {"acceptance_length": decimal(2.83), "accuracy": decimal(0.95)}
    made = propose([run(i, None, values=values) for i in range(3)], day=DAY)
    bars = made.entries[0].bars
    assert bars["acceptance_length"].bars == (2.785,)
    assert bars["accuracy"].bars == (0.92,)
    unknown = propose([run(i, None, values=values, draft_tokens=None) for i in range(3)], day=DAY)
    assert "acceptance_length" not in unknown.entries[0].bars
    assert "cannot be compared" in unknown.refused[0]


def test_a_level_of_noise_gives_no_bar() -> None:
    made = propose([run(i, 0.05) for i in range(3)], day=DAY)
    assert made.entries == ()
    assert "what guessing reaches" in made.refused[0]


def test_levels_and_shifts() -> None:
    values = [decimal(one) for one in (0.61, 0.612, 0.608, 0.36, 0.361, 0.359, 0.6)]
    assert best_level(values) == decimal(0.61)
    assert best_level(values[:2]) is None
    moved = shifts(values)
    assert [i for i, one in enumerate(moved) if one is not None] == [3, 6]
    assert moved[3] == decimal(0.36) - decimal(0.61)
    assert shifts([None, values[0], None, values[3]])[3] == decimal(0.36) - decimal(0.61)
