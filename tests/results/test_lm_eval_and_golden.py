"""lm-evaluation-harness with its texts for numbers, and golden lengths in YAML with whole numbers as keys."""

from __future__ import annotations

from typing import Any

import pytest

from gates.results import golden_lengths, lm_eval
from gates.results.meaning import Bonus, Scope, Unit
from tests.results.foreign_files import GOLDEN, drop, file, put, refusal
from tests.results.foreign_files import lm_eval as valid


def read(document: Any) -> lm_eval.LmEval:
    return lm_eval.read(file(document))


def faults(made: Any) -> list[str]:
    return [remark.field for remark in made.remarks if remark.unusable]


def test_scores_are_fractions_by_metric_and_filter() -> None:
    made = read(valid())
    assert made.usable
    assert made.remarks == ()
    task = made.evaluation.tasks[0]
    strict, flexible = task.score("exact_match", "strict-match"), task.score("exact_match", "flexible-extract")
    assert strict is not None
    assert flexible is not None
    assert (strict.value.value, strict.value.meaning.unit) == (0.9401, Unit.FRACTION)
    assert strict.error is not None
    assert strict.error.value == 0.0065
    assert flexible.error is None
    assert task.score("exact_match", "other") is None
    assert task.shots is not None
    assert task.shots.value == 3
    assert made.evaluation.model_arguments == "model=/models/m,num_concurrent=65"


def test_the_time_is_a_text_and_a_score_is_none() -> None:
    duration = read(valid()).evaluation.duration
    assert duration is not None
    assert (duration.value, duration.meaning.unit) == (181.25, Unit.SECONDS)
    refusal(lm_eval.read, put(valid(), ("total_evaluation_time_seconds",), 181.25))
    key = ("results", "gsm8k", "exact_match,strict-match")
    for value in ("0.94", "N/A", None, True, float("nan"), 94.01, -0.1):
        assert key[2] in str(refusal(lm_eval.read, put(valid(), key, value)))


def test_how_many_examples_were_asked() -> None:
    made = read(put(valid(), ("n-samples", "gsm8k", "effective"), 200))
    assert made.usable
    assert "200 of the task's 1319 examples" in made.remarks[0].text
    assert faults(read(put(valid(), ("n-samples", "gsm8k", "effective"), 0))) == ["n-samples.gsm8k.effective"]
    assert faults(read(put(valid(), ("n-samples", "gsm8k", "effective"), 1400))) == ["n-samples.gsm8k.effective"]
    made = read(drop(valid(), ("n-samples",)))
    assert made.evaluation.tasks[0].examples is None
    assert "not stated" in made.remarks[0].text


def test_tasks_without_a_score() -> None:
    refusal(lm_eval.read, put(valid(), ("results",), {}))
    refusal(lm_eval.read, put(valid(), ("results", "gsm8k"), {"alias": "gsm8k"}))
    made = read({**valid(), "results": {"group": {"alias": "group"}, **valid()["results"]}})
    assert made.usable
    assert made.remarks[0].field == "results.group"


def test_metrics_of_other_kinds_have_no_unit_of_ours() -> None:
    document = put(valid(), ("results", "gsm8k"), {"perplexity,none": 12.5, "perplexity_stderr,none": 0.5})
    score = read(document).evaluation.tasks[0].scores[0]
    assert (score.value.value, score.value.meaning.unit) == (12.5, Unit.NONE)


# Golden lengths


def golden(text: str) -> golden_lengths.GoldenLengths:
    return golden_lengths.read(file(text, "golden.yaml"))


def test_keys_are_whole_numbers() -> None:
    made = golden(GOLDEN)
    assert made.usable
    found = made.find("minimax-m3", "thinking_on", 3)
    assert found is not None
    assert (found.value, found.field) == (2.83, "minimax-m3.thinking_on.3")
    assert (found.meaning.bonus, found.meaning.scope) == (Bonus.WITH, Scope.SETTING)
    assert made.find("minimax-m3", "thinking_on", 2) is None
    assert len(made.lengths) == 3


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("    3: 2.83", "    1: 2.83", "there twice"),
        ("    3: 2.83", "    '3': 2.83", "expected a number of draft tokens"),
        ("    3: 2.83", "    true: 2.83", "there twice"),
        ("    3: 2.83", "    false: 2.83", "expected a number of draft tokens"),
        ("    3: 2.83", "    3.0: 2.83", "expected a number of draft tokens"),
        ("    3: 2.83", "    0: 1.0", "expected a number of draft tokens"),
        ("    3: 2.83", "    03: 2.83", "not a plain decimal"),
        ("    3: 2.83", "    1:30: 2.83", "not a plain decimal"),
        ("    3: 2.83", "    3: '2.83'", "expected a number"),
        ("    3: 2.83", "    3: .nan", "not a plain decimal"),
        ("    3: 2.83", "    3: .inf", "not a plain decimal"),
        ("    3: 2.83", "    3:", "expected a number; found None"),
        ("    3: 2.83", "    3: 4.1", "from 1 to 4"),
        ("    3: 2.83", "    3: 0.83", "from 1 to 4"),
        ("    3: 2.83", "    3: &a 2.83\n    4: *a", "anchors"),
        ("  thinking_off:", "  sleeping:", "thinking_on or thinking_off"),
        ("minimax-m3:", "5:", "the name of a model"),
        ("    1: 1.78", "   1: 1.78", "plain YAML"),
        ("    1: 1.78", "    !!python/object/apply:os.system ['x']: 1", "plain YAML"),
    ],
)
def test_golden_lengths_that_are_refused(old: str, new: str, found: str) -> None:
    assert old in GOLDEN
    assert found in str(refusal(golden_lengths.read, GOLDEN.replace(old, new)))


def test_other_yaml_and_json_are_refused() -> None:
    refusal(golden_lengths.read, "a: 1\n")
    refusal(golden_lengths.read, "just text\n")
    refusal(golden_lengths.read, "# nothing\n")
    refusal(golden_lengths.read, {"m": {"thinking_on": {"3": 2.0}}})
    refusal(golden_lengths.read, "- " * 3000 + "a\n")
