"""ATOM's files: one name in two units, three formulas, a colon in a key, and a script instead of JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from gates.results import atom_accuracy, atom_dashboard, atom_serving
from gates.results.meaning import Bonus, Scope, Unit
from tests.results.foreign_files import (
    atom,
    atom_dashboard_data,
    atom_native,
    atom_oot,
    atom_sglang,
    drop,
    file,
    put,
    refusal,
    script,
)
from tests.results.foreign_files import (
    atom_serving as serving,
)

META = "atom_ci_metadata"


def faults(made: Any) -> list[str]:
    return [remark.field for remark in made.remarks if remark.unusable]


def test_the_native_rate_is_in_per_cent() -> None:
    made = atom_accuracy.read_native(file(atom_native()))
    assert made.usable
    assert (made.rate.written, made.rate.exact, made.rate.meaning.unit) == (62.5, Fraction(5, 8), Unit.FRACTION)
    assert made.rate.meaning.scope is Scope.SERVER
    assert made.length is not None
    assert made.length.meaning.bonus is Bonus.WITH
    assert made.machine.gpu_memory is not None
    assert made.machine.gpu_memory.value == 288
    score = made.evaluation.tasks[0].score("exact_match", "flexible-extract")
    assert score is not None
    assert score.value.value == 0.9431


def test_the_other_rate_is_a_fraction() -> None:
    made = atom_accuracy.read_oot(file(atom_oot()))
    assert made.usable
    assert (made.rate.value, made.rate.meaning.unit) == (0.25, Unit.FRACTION)
    assert made.positions.values == (0.5, 0.15, 0.1)
    error = refusal(atom_accuracy.read_oot, atom(mtp_acceptance_overall=25.0, mtp_per_pos_acceptance=[]))
    assert "mtp_acceptance_overall: expected from 0 to 1 (acceptance rate); found 25" in str(error)


def test_the_sglang_rate_is_computed_from_the_length() -> None:
    made = atom_accuracy.read_sglang(file(atom_sglang()))
    assert made.usable
    assert made.rate.value == 0.625
    assert "(length - 1)" in made.rate.meaning.formula
    assert made.length.meaning.scope is Scope.SERVER_OR_FLUSH


def test_a_rate_at_its_bar_is_compared_as_it_was_written() -> None:
    for written, reached in ((60.0, True), (59.99, False), (55.0, False)):
        rate = atom_accuracy.read_native(file(atom(mtp_acceptance_rate=written))).rate
        assert (rate.exact >= Fraction(6, 10)) is reached
    assert atom_accuracy.read_native(file(atom(mtp_acceptance_rate=55.0))).rate.exact == Fraction(55, 100)


@pytest.mark.parametrize("rate", [0.625, 6.25])
def test_a_fraction_in_the_field_of_a_percentage_contradicts_the_length(rate: float) -> None:
    made = atom_accuracy.read_native(file(put(atom_native(), (META, "mtp_acceptance_rate"), rate)))
    assert made.rate.value == rate / 100
    if rate < 1:
        assert faults(made) == [f"{META}.avg_tokens_per_forward"]


def test_tokens_per_forward_that_do_not_count_the_bonus_token() -> None:
    made = atom_accuracy.read_native(file(put(atom_native(), (META, "avg_tokens_per_forward"), 0.95)))
    assert "below 1" in made.remarks[-2].text
    assert not made.usable
    made = atom_accuracy.read_native(file(put(atom_native(), (META, "avg_tokens_per_forward"), 2.0)))
    assert not made.usable


def test_a_native_file_without_its_length_and_with_no_acceptance_at_all() -> None:
    made = atom_accuracy.read_native(file(atom(mtp_acceptance_rate=62.5)))
    assert made.length is None
    assert made.usable
    one = atom_accuracy.read_native(file(atom(mtp_acceptance_rate=0.0, avg_tokens_per_forward=1.0)))
    assert one.usable
    assert any("exactly 1" in remark.text for remark in one.remarks)


def test_two_lengths_in_one_file_must_agree() -> None:
    made = atom_accuracy.read_sglang(file(put(atom_sglang(), (META, "avg_tokens_per_forward"), 2.5)))
    assert faults(made) == [f"{META}.avg_tokens_per_forward"]


@pytest.mark.parametrize("positions", [[0.5, 0.1, 0.15], [0.5, 0.2, 0.2]])
def test_positions_that_cannot_be(positions: list[float]) -> None:
    made = atom_accuracy.read_oot(file(put(atom_oot(), (META, "mtp_per_pos_acceptance"), positions)))
    assert f"{META}.mtp_per_pos_acceptance" in faults(made)


def test_positions_that_look_simulated() -> None:
    made = atom_accuracy.read_oot(file(atom(mtp_acceptance_overall=0.5, mtp_per_pos_acceptance=[1.0, 0.5, 0.0])))
    assert faults(made) == [f"{META}.mtp_per_pos_acceptance"]


def test_positions_that_the_script_left_out_and_a_server_without_them() -> None:
    made = atom_accuracy.read_oot(file(atom(mtp_acceptance_overall=0.125, mtp_per_pos_acceptance=[0.5, 0.25])))
    assert made.usable, "k = 6, of which two positions have a counter"
    assert atom_accuracy.read_oot(file(atom(mtp_acceptance_overall=0.1, mtp_per_pos_acceptance=[]))).usable


def test_a_file_that_states_no_acceptance() -> None:
    made = atom_accuracy.read(file(atom()))
    assert made.usable
    assert any("no acceptance" in remark.text for remark in made.remarks)
    refusal(atom_accuracy.read, drop(atom(), (META,)))


# benchmark_serving


def test_the_benchmark_writes_a_fraction_under_another_name() -> None:
    made = atom_serving.read(file(serving()))
    assert made.usable
    assert made.rate is not None
    assert (made.rate.value, made.rate.meaning.unit) == (0.625, Unit.FRACTION)
    assert made.length is not None
    assert made.length.meaning.scope is Scope.SERVER
    assert len(made.latencies.written) == 16
    refusal(atom_serving.read, put(serving(), ("acceptance_rate",), 62.5))


def test_null_and_zero_are_no_lengths() -> None:
    both = put(put(serving(), ("accept_length",), None), ("acceptance_rate",), None)
    made = atom_serving.read(file(both))
    assert made.usable
    assert made.length is None
    assert made.rate is None
    assert faults(atom_serving.read(file(put(serving(), ("accept_length",), None)))) == ["accept_length"]
    zero = atom_serving.read(file(put(put(serving(), ("accept_length",), 0.0), ("acceptance_rate",), 0.0)))
    assert zero.length is None
    assert zero.rate is None
    assert not zero.usable
    assert not atom_serving.read(file(put(serving(), ("accept_length",), 0.5))).usable
    refusal(atom_serving.read, drop(serving(), ("accept_length",)))


def test_a_benchmark_that_lost_requests_or_contradicts_itself() -> None:
    made = atom_serving.read(file({**serving(), "completed": 40, "request_throughput": 2.0}))
    assert any("40 of 80 prompts" in remark.text for remark in made.remarks)
    assert faults(atom_serving.read(file(put(serving(), ("output_throughput",), 900.0)))) == ["output_throughput"]


# data.js


def test_a_script_is_read_as_one() -> None:
    made = atom_dashboard.read(file(script(atom_dashboard_data()), "data.js"))
    assert made.usable
    assert [(value.value.value, value.value.meaning.unit) for value in made.values] == [
        (0.9431, Unit.FRACTION),
        (0.625, Unit.FRACTION),
        (2.88, Unit.TOKENS_PER_STEP),
    ]
    assert made.values[1].value.field == "entries.Accuracy[0].benches[1].value"
    assert made.others == 1


@pytest.mark.parametrize("end", ["", ";", ";\n", "\n"])
def test_how_a_script_may_end(end: str) -> None:
    assert atom_dashboard.read(file(script(atom_dashboard_data()) + end)).usable


def test_other_scripts_and_plain_json_are_refused() -> None:
    assert "expected a JSON object in a script; found one JSON object" in str(
        refusal(atom_dashboard.read, atom_dashboard_data())
    )
    assert "window.OTHER" in str(refusal(atom_dashboard.read, script(atom_dashboard_data(), "OTHER")))
    assert "trailing text" in str(refusal(atom_dashboard.read, script(atom_dashboard_data()) + "; alert(1)"))
    assert "truncated" in str(refusal(atom_dashboard.read, script(atom_dashboard_data())[:-20]))
    refusal(atom_dashboard.read, "var x = " + json.dumps(atom_dashboard_data()))


def test_entries_that_are_not_what_their_unit_says() -> None:
    benches = ("entries", "Accuracy", 0, "benches")
    refusal(atom_dashboard.read, script(put(atom_dashboard_data(), (*benches, 0, "value"), 94.31)))
    refusal(atom_dashboard.read, script(put(atom_dashboard_data(), (*benches, 1, "value"), "62.5")))
    other = atom_dashboard.read(file(script(put(atom_dashboard_data(), (*benches, 1, "name"), "ATOM::R1 gain"))))
    assert other.others == 2
