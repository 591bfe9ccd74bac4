"""What all gates stand on: verdicts, settings, typed fields, the registry, and what is imported."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

from gates.expectations import Described, Kind, described, parse, settle
from gates.header import agree, exactly, plain_relative, same_path
from gates.reading import ResultBytes
from gates.record import MOST_ALIKE, Sheet, same_value, shown
from gates.registry import GATES, file_name, run
from gates.smoke import SmokeExpected
from gates.verdict import DETAILED, Check, FailureClass, decide
from tests.gates import passing

INVALID = FailureClass.MEASUREMENT_INVALID
UNKNOWN = FailureClass.UNKNOWN


def check(ok: bool, failure_class: FailureClass | None = None, name: str = "check") -> Check:
    return Check(name, ok, 1, "= 1", failure_class=failure_class)


# Verdicts -----------------------------------------------------------------------------------------------------------


def test_no_checks_are_no_pass() -> None:
    verdict = decide("g", [], UNKNOWN)
    assert not verdict.passed
    assert verdict.failure_class is UNKNOWN


def test_an_unreadable_input_is_no_pass_even_when_all_checks_held() -> None:
    verdict = decide("g", [check(True)], UNKNOWN, readable=False)
    assert not verdict.passed
    assert not verdict.readable
    assert verdict.failure_class is UNKNOWN


def test_precedence_decides_between_classes_whatever_their_order() -> None:
    low, bad = check(False, FailureClass.ACCEPTANCE_REGRESSION, "low"), check(False, INVALID, "bad")
    for checks in ([low, bad], [bad, low]):
        verdict = decide("g", checks, UNKNOWN, precedence=(INVALID, FailureClass.ACCEPTANCE_REGRESSION))
        assert verdict.failure_class is INVALID
        assert verdict.detail.startswith("bad is 1")
    assert decide("g", [low, bad], UNKNOWN).failure_class is FailureClass.ACCEPTANCE_REGRESSION
    assert decide("g", [check(False)], UNKNOWN, precedence=(INVALID,)).failure_class is UNKNOWN


def test_the_detail_is_one_line_that_ends_and_the_checks_are_all_there() -> None:
    verdict = decide("g", [check(False, name=f"c{i}") for i in range(50)], UNKNOWN)
    assert f"and {50 - DETAILED} more" in verdict.detail
    assert "\n" not in verdict.detail
    assert len(passing.failing(verdict)) == 50


def test_foreign_text_stays_on_its_line_in_a_verdict() -> None:
    odd = "a\nb\x1b[31m\ud800"
    stopped = passing.judge("smoke", {"smoke": {**passing.head(), "stage": "server_died", "detail": odd}})
    other = passing.judge("smoke", {"smoke": passing.change(passing.smoke(), {"requested.model": odd})})
    for verdict in (stopped, other):
        assert verdict.detail.isprintable()
        verdict.detail.encode()


# Settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", sorted(GATES))
def test_a_setting_that_a_gate_does_not_know_is_refused(gate: str) -> None:
    verdict = passing.judge(gate, expected={"tokens": "x"})
    passing.assert_fails(verdict, FailureClass.USER_CONFIG_ERROR, "setting")
    assert not verdict.readable
    assert passing.the(verdict, "setting").field == "tokens"


@pytest.mark.parametrize("gate", sorted(GATES))
@pytest.mark.parametrize("value", [None, 5, "", [], True, 1.5])
def test_a_token_that_is_no_text_is_refused(gate: str, value: object) -> None:
    assert passing.judge(gate, expected={"token": value}).failure_class is FailureClass.USER_CONFIG_ERROR


@pytest.mark.parametrize("gate", sorted(GATES))
def test_every_setting_is_described_and_its_default_fits(gate: str) -> None:
    for one in fields(GATES[gate].settings):
        what = described(one)
        assert what.about
        if one.default is not None:
            sheet = Sheet("g")
            assert settle(GATES[gate].settings, {one.name: one.default}, sheet) is not None, one.name
            assert not sheet.checks


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.NUMBER, "0.9", 0.9),
        (Kind.NUMBER, "1e-2", 0.01),
        (Kind.COUNT, "12", 12),
        (Kind.COUNTS, "1,8,32", (1, 8, 32)),
        (Kind.COUNTS, " 1, 8 ", (1, 8)),
        (Kind.TEXT, "x", "x"),
        (Kind.DIGEST, "a" * 64, "a" * 64),
    ],
)
def test_settings_from_a_command_line(kind: Kind, text: str, value: object) -> None:
    assert parse(Described(kind, "about"), text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.NUMBER, "nan"),
        (Kind.NUMBER, "inf"),
        (Kind.NUMBER, "x"),
        (Kind.NUMBER, ""),
        (Kind.COUNT, "0"),
        (Kind.COUNT, "-1"),
        (Kind.COUNT, "1.0"),
        (Kind.COUNT, "9" * 5000),
        (Kind.COUNT, "٣"),
        (Kind.COUNTS, "1,,2"),
        (Kind.COUNTS, "1,1"),
        (Kind.TEXT, ""),
        (Kind.DIGEST, "A" * 64),
    ],
)
def test_settings_that_a_command_line_cannot_give(kind: Kind, text: str) -> None:
    with pytest.raises(ValueError):
        parse(Described(kind, "about"), text)


def test_a_refused_setting_names_its_bounds() -> None:
    sheet = Sheet("g")
    assert settle(SmokeExpected, {"min_acceptance_length": 1.0}, sheet) is None
    (refused,) = sheet.checks
    assert refused.limit == "number > 1.04"
    assert refused.measured == 1.0


# Typed fields -------------------------------------------------------------------------------------------------------


def test_what_a_field_is_and_what_it_should_be() -> None:
    sheet = Sheet("g", UNKNOWN)
    data = b'{"a": {"b": [1, "2", true, 3.0]}, "t": "5", "f": true, "n": null}'
    record = sheet.open(ResultBytes("f.json", data))
    assert record is not None
    inner = record.record("a")
    assert inner is not None
    assert inner.integers("b") is None
    assert record.number("t") is None
    assert record.integer("f") is None
    assert record.text("n") is None
    assert record.number("gone") is None
    assert record.text("gone", optional=True) is None
    assert [(one.field, one.measured, one.limit) for one in sheet.checks] == [
        ("a.b[1]", 'text "2"', "a list of whole numbers >= 0"),
        ("a.b[2]", "true", "a list of whole numbers >= 0"),
        ("a.b[3]", "3.0", "a list of whole numbers >= 0"),
        ("t", 'text "5"', "a finite number"),
        ("f", "true", "a whole number >= 0"),
        ("n", "null", "text that is not empty"),
        ("gone", "nothing", "a finite number"),
    ]
    assert all(one.file == "f.json" and one.failure_class is UNKNOWN for one in sheet.checks)


@pytest.mark.parametrize("text", ["1000000000000000", "-1000000000000000", "1e15", "1e300", "9" * 4000])
def test_numbers_too_large_to_be_any_are_refused(text: str) -> None:
    sheet = Sheet("g")
    record = sheet.open(ResultBytes("f.json", f'{{"a": {text}}}'.encode()))
    assert record is not None
    assert record.number("a") is None
    assert passing.names(sheet.verdict(UNKNOWN)) == {"field"}


def test_thousands_of_malformed_fields_are_counted_not_listed() -> None:
    sheet = Sheet("g")
    record = sheet.open(ResultBytes("f.json", json.dumps({"a": ["x"] * 5000}).encode()))
    assert record is not None
    assert record.integers("a") is None
    verdict = sheet.verdict(UNKNOWN)
    assert len(verdict.checks) == MOST_ALIKE + 1
    further = passing.the(verdict, "further")
    assert further.measured == 5000 - MOST_ALIKE
    assert further.file == "f.json"
    assert further.failure_class is INVALID


@pytest.mark.parametrize(
    ("value", "as_shown"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (10**30, "a number too large"),
        (math.inf, "inf"),
        (math.nan, "nan"),
        ("x" * 300, "x" * 200 + "…"),
        (["a", 1], "a, 1"),
        ([{}], "a list of 1"),
        ({}, "an object"),
        ("ä\ud800", "ä\\ud800"),
    ],
)
def test_what_is_measured_can_always_be_written_as_json(value: object, as_shown: object) -> None:
    assert shown(value) == as_shown
    json.dumps(shown(value), allow_nan=False)


# Comparing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (100, 99, True),
        (100, 98.99, False),
        (0.3, 0.1 + 0.2, True),
        (0, 0, True),
        (0, 1e-12, False),
        (1, math.inf, False),
        (math.inf, math.inf, False),
        (math.nan, math.nan, False),
        (-1, 1, False),
    ],
)
def test_agreement_within_a_tolerance(one: float, other: float, same: bool) -> None:
    assert agree(one, other) is same
    assert agree(other, one) is same


def test_a_number_is_the_decimal_that_was_written() -> None:
    assert exactly(0.6) * 10 == 6
    assert exactly(0.1) + exactly(0.2) == exactly(0.3)


@pytest.mark.parametrize(
    ("one", "other", "same"), [(1, True, False), (1, 1.0, False), (0, False, False), ({"a": 1}, {"a": 1}, True)]
)
def test_equal_values_of_other_types_are_not_the_same(one: object, other: object, same: bool) -> None:
    assert same_value(one, other) is same


def test_paths() -> None:
    assert same_path("/a/b/", "/a//b/.")
    assert not same_path("/a/b", "/a/b/c")
    assert not same_path("a/b", "/a/b")
    assert [plain_relative(path) for path in ("a", "a/b", "", "/a", "a/", "../a", "a/./b", "a\0b")] == [
        True,
        True,
        *[False] * 6,
    ]


# The registry -------------------------------------------------------------------------------------------------------


def test_a_gate_that_is_not_there_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        run("no such gate", {})


def test_a_kind_of_file_that_a_gate_does_not_read_is_refused() -> None:
    verdict = run("smoke", {"smoke": passing.encode(passing.smoke()), "bench": b"{}"})
    passing.assert_fails(verdict, FailureClass.USER_CONFIG_ERROR, "kind_of_file")


@pytest.mark.parametrize("gate", sorted(GATES))
def test_no_files_at_all_are_no_pass(gate: str) -> None:
    verdict = run(gate, {})
    assert not verdict.passed
    assert not verdict.readable


def test_files_may_bring_their_own_names() -> None:
    data = passing.encode({**passing.smoke(), "token": 5})
    verdict = run("smoke", {"smoke": ResultBytes("of last night.json", data)})
    assert passing.the(verdict, "field").file == "of last night.json"
    assert file_name("smoke") == "smoke.json"


@pytest.mark.parametrize("gate", sorted(GATES))
def test_the_same_input_gives_the_same_verdict(gate: str) -> None:
    assert passing.judge(gate) == passing.judge(gate)


def test_the_json_of_a_verdict_is_the_contract() -> None:
    record: dict[str, Any] = passing.judge("bench", {"bench": {**passing.bench(), "token": "x"}}).to_json()
    assert {"pass", "failure_class", "detail", "checks"} <= record.keys()
    assert record["pass"] is False
    assert record["failure_class"] == "MEASUREMENT_INVALID"
    for one in record["checks"]:
        assert {"name", "ok", "measured", "limit", "unit", "file", "field"} <= one.keys()


def test_gates_import_the_standard_library_only() -> None:
    program = (
        "import sys; before = set(sys.modules); import gates.registry, gates.export_folder; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(made.stdout.split()) - {"gates"}
    assert loaded <= set(sys.stdlib_module_names), loaded - set(sys.stdlib_module_names)
    assert not loaded & {"socket", "ssl", "http", "urllib", "asyncio", "subprocess", "sqlite3"}
