"""ATOM's catalogs: read, checked for what their validator lets through, and taken over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.catalog.atom import drafting_of, read_atom
from gates.catalog.check import errors
from gates.reading import ResultBytes
from gates.results.fields import Notes, ResultError
from tests.catalog.catalogs import DAY


def atom_entry(**more: Any) -> dict[str, Any]:
    made = {
        "model_name": "tiny MTP",
        "model_path": "o/tiny",
        "extraArgs": "-tp 4 --method mtp --num-speculative-tokens 3",
        "env_vars": "",
        "runner": "r",
        "test_level": "pr",
        "accuracy_threshold": 0.93,
        "mtp_accept_threshold": 0.593,
        **more,
    }
    return {key: value for key, value in made.items() if value is not ...}


PLAIN = {"extraArgs": "-tp 4", "mtp_accept_threshold": ...}


def read(*entries: dict[str, Any]) -> Any:
    return read_atom(ResultBytes("models_accuracy.json", json.dumps(list(entries)).encode()), day=DAY)


def test_an_entry_is_taken_over_with_its_draft_tokens_and_where_its_bars_come_from() -> None:
    made, findings = read(atom_entry(), atom_entry(model_name="tiny", lm_eval_num_fewshot=5, **PLAIN))
    assert findings == []
    drafting, plain = made.entries
    assert drafting.key == ("tiny MTP", "mtp", 3, None)
    assert drafting.bars["acceptance_rate"].bars == (0.593,)
    assert drafting.bars["acceptance_rate"].source == "models_accuracy.json: mtp_accept_threshold"
    assert drafting.bars["accuracy"].bars == (0.93,)
    assert plain.key == ("tiny", None, None, None)
    assert plain.task.shots == 5


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mtp_accept_threshold": ...}, "holds no bar on acceptance"),
        ({"extraArgs": "-tp 4"}, "no drafter"),
        ({"mtp_accept_threshold": 0}, "at or under 0.04"),
        ({"mtp_accept_threshold": 0}, "takes for no threshold at all"),
        ({"accuracy_threshold": 0}, "takes for no threshold at all"),
        ({"mtp_accept_threshold": 1}, "at or over 1"),
        ({"mtp_per_pos_threshold": "0.6,0.8"}, "rises"),
        ({"mtp_per_pos_threshold": "0.8,0.6,0.4,0.2"}, "more than the draft tokens"),
        ({"extra_args": "-tp 8"}, "which of them counts?"),
        ({"extraArgs": "--method mtp --num-speculative-tokens 3 --spec-decode-acceptance-rate 0.6"}, "made up"),
        ({"env_vars": "A=1\nATOM_ENABLE_RELAXED_MTP=1"}, "wrong drafts are taken too"),
    ],
)
def test_what_their_validator_lets_through_is_an_error_here(changed: dict[str, Any], words: str) -> None:
    _, findings = read(atom_entry(**changed))
    assert any(words in one.text for one in errors(findings)), findings


def test_a_name_twice_is_an_error_whatever_the_drafter() -> None:
    same = errors(read(atom_entry(), atom_entry())[1])
    assert [one.field for one in same] == ["entries[1]"]
    other = errors(read(atom_entry(), atom_entry(extraArgs="--method eagle3 --num-speculative-tokens 3"))[1])
    assert [one.field for one in other] == ["entries[1]"]
    assert "is that of entries[0] too" in other[0].text


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"mtp_per_pos_threshold": "0.8;0.6"}, "[0].mtp_per_pos_threshold"),
        ({"mtp_per_pos_threshold": "nan"}, "[0].mtp_per_pos_threshold"),
        ({"mtp_per_pos_threshold": 0.8}, "[0].mtp_per_pos_threshold"),
        ({"mtp_accept_threshold": 59.3}, "[0].mtp_accept_threshold"),
        ({"mtp_accept_threshold": "0.593"}, "[0].mtp_accept_threshold"),
        ({"mtp_accept_threshold": True}, "[0].mtp_accept_threshold"),
        ({"accuracy_test_threshold": 0.9}, "[0].accuracy_threshold"),
        ({"accuracy_threshold": ...}, "[0].accuracy_threshold"),
        ({"model_name": ...}, "[0].model_name"),
        ({"model_path": 5}, "[0].model_path"),
        ({"extraArgs": "--method 'mtp"}, "[0].extraArgs"),
        ({"extraArgs": "--speculative-config '{'"}, "[0].extraArgs"),
        ({"lm_eval_num_fewshot": "5"}, "[0].lm_eval_num_fewshot"),
    ],
)
def test_what_cannot_be_read_names_the_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(ResultError) as caught:
        read(atom_entry(**changed))
    assert [one.field for one in caught.value.problems] == [field]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-tp 8 --kv_cache_dtype fp8", None),
        ("--method mtp --num-speculative-tokens 3", ("mtp", 3, None)),
        ("--method=mtp --num-speculative-tokens=1", ("mtp", 1, None)),
        ("--method eagle3 --draft-model o/e --num-speculative-tokens 3", ("eagle3 o/e", 3, None)),
        (
            "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 4",
            ("eagle", 3, 1),
        ),
        ('--speculative-config \'{"method": "mtp", "num_speculative_tokens": 3}\'', ("mtp", 3, None)),
        ('--speculative-config \'{"method": "mtp"}\'', ("mtp", None, None)),
        ("--method mtp --num-speculative-tokens x", ("mtp", None, None)),
    ],
)
def test_what_the_arguments_say_about_drafting(arguments: str, expected: Any) -> None:
    notes = Notes("f")
    made = drafting_of(arguments, notes, "extraArgs")
    assert notes.problems == []
    assert (None if made is None else (made.method, made.draft_tokens, made.topk)) == expected
