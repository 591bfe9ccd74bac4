"""acceptance_rate.json: two means, a bonus token that counts, appended runs, and lengths that never occurred."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from gates.results import specdec_acceptance
from gates.results.documents import load
from gates.results.fields import ResultError
from gates.results.meaning import Bonus, Scope, Unit
from tests.results.foreign_files import drop, file, put, refusal
from tests.results.foreign_files import specdec_acceptance as valid


def read(document: Any) -> specdec_acceptance.SpecdecAcceptance:
    return specdec_acceptance.read(file(document))


def test_each_number_says_what_it_is() -> None:
    made = read(valid())
    assert made.usable
    assert made.remarks == ()
    run = made.only()
    assert run.average.value == 2.0
    assert run.average.field == "[0].Average_AL"
    assert (run.average.meaning.unit, run.average.meaning.bonus) == (Unit.TOKENS_PER_STEP, Bonus.WITH)
    assert run.average.meaning.scope is Scope.RUN
    assert run.requests.written == (("0/0", 2.0), ("1/0", 2.5), ("1/1", 1.5))
    assert run.histogram.meaning.bonus is Bonus.WITH
    assert run.joint.meaning.unit is Unit.FRACTION


def test_the_mean_of_the_requests_is_not_the_mean_of_the_steps() -> None:
    run = read(valid()).only()
    assert run.histogram.mean == Fraction(22, 10)
    assert run.average.exact == 2


def test_a_length_that_never_occurred_was_passed_by_longer_ones() -> None:
    assert read(valid()).only().positions(4) == (0.6, 0.3, 0.3, 0.0)


def test_appended_runs_are_not_one_run() -> None:
    made = read(valid() + valid())
    assert not made.usable
    assert len(made.runs) == 2
    with pytest.raises(ResultError, match="exactly one run; found 2 runs"):
        made.only()


def test_questions_without_turns_and_categories() -> None:
    document = put(valid(), (0, "Request_AL"), {"81": 2.5, "82": 1.5})
    document[0]["Category_AL"] = {"writing": 2.0}
    run = read(document).only()
    assert run.requests.written == (("81", 2.5), ("82", 1.5))
    assert run.categories is not None
    assert run.categories.written == (("writing", 2.0),)


def test_one_is_remarked_on_and_less_than_one_cannot_be() -> None:
    def all_of(length: float) -> Any:
        return put(put(valid(), (0, "Average_AL"), length), (0, "Request_AL"), {"0": {"0": length}})

    assert [remark.field for remark in read(all_of(1.0)).remarks] == ["[0].Average_AL"]
    assert read(all_of(1.0)).usable
    assert not read(all_of(0.99)).usable


@pytest.mark.parametrize(
    ("keys", "value", "field"),
    [
        ((0, "Average_AL"), 2.1, "[0].Average_AL"),
        ((0, "Joint_Acceptance_Rate", "2"), 0.5, '[0].Joint_Acceptance_Rate["2"]'),
        ((0, "Joint_Acceptance_Rate"), {"two": 0.6}, "[0].Joint_Acceptance_Rate.two"),
    ],
)
def test_numbers_that_contradict_each_other(keys: Any, value: Any, field: str) -> None:
    made = read(put(valid(), keys, value))
    assert not made.usable
    assert [remark.field for remark in made.remarks] == [field]


def test_the_newer_definition_is_told_apart() -> None:
    document = valid()
    document[0]["Joint_Binned_Acceptance_Rate"] = {}
    made = read(document)
    assert made.only().trimmed
    assert "not comparable" in made.remarks[0].text


def of_lengths(lengths: dict[int, int]) -> Any:
    """A run of two requests with these lengths of chunks."""
    document = valid()
    steps, before = sum(lengths.values()), 1.0
    run = document[0]
    run["Acceptance_Length_Histogram"] = {str(length): count for length, count in lengths.items()}
    run["Joint_Acceptance_Rate"], run["Conditional_Acceptance_Rate"] = {}, {}
    for length in lengths:
        share = sum(count for other, count in lengths.items() if other >= length) / steps
        run["Joint_Acceptance_Rate"][str(length)] = share
        run["Conditional_Acceptance_Rate"][str(length)], before = share / before, share
    return document


@pytest.mark.parametrize(
    ("lengths", "simulated"),
    [
        ({1: 3, 3: 60, 4: 60}, True),  # three requests' first chunks have one token anyhow
        ({1: 4, 3: 60, 4: 60}, False),  # and one step more has one
        ({3: 60, 4: 60}, True),
        ({3: 40, 4: 40}, False),
        ({3: 60, 5: 60}, False),
        ({1: 60, 2: 60}, False),
        ({4: 120}, False),
        ({2: 50, 3: 50, 4: 20}, False),
    ],
)
def test_lengths_that_look_simulated(lengths: dict[int, int], simulated: bool) -> None:
    made = read(of_lengths(lengths))
    assert made.usable is not simulated
    assert any("simulated" in remark.text for remark in made.remarks) is simulated


def test_steps_without_a_token_are_remarked_on() -> None:
    document = put(valid(), (0, "Acceptance_Length_Histogram"), {"0": 0, "1": 4, "2": 3, "4": 3})
    assert [remark.text for remark in read(document).remarks] == ["has steps that emitted no token"]


def test_an_object_is_not_the_list_that_the_tool_writes() -> None:
    error = refusal(specdec_acceptance.read, valid()[0])
    assert str(error) == "result.json: expected a JSON list of objects; found one JSON object"


def test_a_refusal_names_file_and_field() -> None:
    document = put(drop(valid(), (0, "Average_AL")), (0, "Request_AL", "1", "0"), "2.5")
    error = refusal(specdec_acceptance.read, document)
    assert str(error) == (
        "result.json: [0].Average_AL: expected a number; found nothing; "
        """result.json: [0].Request_AL["1"]["0"]: expected a number; found text '2.5'"""
    )


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((0, "Acceptance_Length_Histogram"), {"one": 3}),
        ((0, "Acceptance_Length_Histogram"), {"1": 3.0}),
        ((0, "Acceptance_Length_Histogram"), {"1": 0}),
        ((0, "Acceptance_Length_Histogram"), {"01": 3}),
        ((0, "Acceptance_Length_Histogram"), {}),
        ((0, "Request_AL"), {}),
        ((0, "Average_AL"), float("nan")),
        ((0, "Average_AL"), float("inf")),
        ((0, "Average_AL"), -1),
        ((0, "Average_AL"), True),
        ((0, "Average_AL"), 1e15),
        ((0, "Average_AL"), 10**400),
        ((0, "Joint_Acceptance_Rate", "2"), 60.0),
    ],
)
def test_what_is_refused(keys: Any, value: Any) -> None:
    refusal(specdec_acceptance.read, put(valid(), keys, value))


def test_infinity_in_a_field_that_nobody_uses_is_named() -> None:
    document = valid()
    document[0]["Binned"] = {"x": float("inf")}
    made = read(document)
    assert ("[0].Binned.x", "Infinity is not a number; no reader uses this field") in [
        (remark.field, remark.text) for remark in made.remarks
    ]


def test_the_shape_is_known() -> None:
    loaded = load(file(valid()))
    assert specdec_acceptance.looks(loaded)  # type: ignore[arg-type]
