"""The accuracy probe: what is asked, how answers are read, and that nothing passes that was not all answered."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from backends.payloads import gsm8k
from gates.registry import run as run_gate
from tests.payloads.running import TOKEN, K, processes_in, result, run

SERVER = Path(__file__).parent / "answering_server.py"
RIGHT = "It is 3 + 4 = 7.\n#### 7"


def write_questions(folder: Path, count: int = 14) -> Path:
    path = folder / "gsm8k.jsonl"
    lines = [{"question": f"How many are {i} and 1?", "answer": f"One more.\n#### {i + 1:,}"} for i in range(count)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def measure(folder: Path, answers: dict[str, str], *more: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the probe over a server that says what it is told; gives its result, and what the server was asked."""
    (folder / "answers.json").write_text(json.dumps(answers))
    command = (
        f"exec '{sys.executable}' '{SERVER}' --port {{port}} --answers '{folder}/answers.json' "
        f"--seen '{folder}/seen.jsonl' --drafter '{folder}/draft'"
    )
    arguments = [
        "--server-command", command, "--model", "m", "--drafter", folder / "draft", "--draft-tokens", K,
        "--questions", folder / "gsm8k.jsonl", "--samples", 8, "--shots", 3, "--server-timeout", 30, *more,
    ]  # fmt: skip
    done = run("accuracy.py", *arguments, cwd=folder)
    document = result(folder / "accuracy.json")
    assert done.returncode == (0 if document["stage"] == "done" else 1), done.stdout + done.stderr
    assert not processes_in(folder)
    seen = folder / "seen.jsonl"
    return document, [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []


def judge(folder: Path, bar: float) -> Any:
    entry = {
        "model": "m",
        "drafter": "d",
        "draft_tokens": K,
        "bars": {
            "acceptance_length": {"bar": 1.8, "source": "these tests", "date": "2026-12-01"},
            "accuracy": {"bar": bar, "task": "gsm8k", "samples": 8, "shots": 3, "source": "t", "date": "2026-12-01"},
        },
    }
    catalog = json.dumps({"schema_version": 1, "entries": [entry]}).encode()
    files = {"accuracy": (folder / "accuracy.json").read_bytes(), "catalog": catalog}
    return run_gate("accuracy", files, {"token": TOKEN, "model": "m"})


def test_both_rules_are_counted_over_exactly_these_questions(tmp_path: Path) -> None:
    problems = gsm8k.read_problems(str(write_questions(tmp_path)))
    shots, asked = gsm8k.choose(problems, 3, 8, 0)
    answers = {problem.question: f" So it is {problem.number}.\n#### {problem.number}" for problem in problems}
    answers[asked[0].question] = f" It is {asked[0].number}."  # right, but not in the form
    answers[asked[1].question] = " It is 99999"
    answers[asked[2].question] += "\n\nQuestion: How many are 5 and 5?\nAnswer: #### 10"
    done, seen = measure(tmp_path, answers)
    assert (done["stage"], done["answered"]) == ("done", 8)
    assert (done["correct_strict"], done["correct_flexible"]) == (6, 7)
    assert done["counters"]["drafts"] == 8 * 10
    assert done["acceptance_length"] == pytest.approx(1.8)
    assert done["output_tokens"] == 8 * 18
    assert sorted(row["prompt"] for row in seen) == sorted(gsm8k.prompt(shots, problem) for problem in asked)
    assert all(row["temperature"] == 0 for row in seen)
    verdict = judge(tmp_path, 0.875)
    assert verdict.passed, verdict.detail
    assert judge(tmp_path, 0.876).failure_class == "ACCURACY_REGRESSION"


def test_a_question_without_an_answer_is_no_measurement(tmp_path: Path) -> None:
    problems = gsm8k.read_problems(str(write_questions(tmp_path)))
    answers = {problem.question: f"#### {problem.number}" for problem in problems}
    answers[gsm8k.choose(problems, 3, 8, 0)[1][4].question] = "FAIL"
    done, _ = measure(tmp_path, answers)
    assert (done["stage"], done["answered"]) == ("generation_failed", 7)
    assert "HTTP 500" in done["detail"]
    verdict = judge(tmp_path, 0.5)
    assert not verdict.passed
    assert "generation_failed" in verdict.detail


@pytest.mark.parametrize(
    ("more", "stage", "words"),
    [
        (("--samples", 12), "unexpected", "3 examples and 12 questions are asked for, and there are 14"),
        (("--questions", "none.jsonl"), "unexpected", "No such file"),
        (("--model", "other"), "model_mismatch", "served is m, not other"),
        (("--draft-tokens", 3), "model_mismatch", "it drafts 4 tokens a step, not 3"),
    ],
)
def test_what_keeps_it_from_measuring_is_in_the_result(
    tmp_path: Path, more: tuple[object, ...], stage: str, words: str
) -> None:
    write_questions(tmp_path)
    done, seen = measure(tmp_path, {}, *more)
    assert done["stage"] == stage
    assert words in done["detail"]
    assert seen == []
    assert not judge(tmp_path, 0.5).passed


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    path = write_questions(tmp_path)
    path.write_text(path.read_text() + '{"question": "How many?", "answer": "seven"}\n')
    with pytest.raises(ValueError, match=r"gsm8k.jsonl:15: answer: expected #### NUMBER at its end"):
        gsm8k.read_problems(str(path))


def test_the_seed_chooses_the_same_questions_everywhere(tmp_path: Path) -> None:
    problems = gsm8k.read_problems(str(write_questions(tmp_path)))
    chosen = [[one.line for one in part] for part in gsm8k.choose(problems, 3, 8, 0)]
    # The order of the digests of "0:1" to "0:14", as sha256sum gives them.
    assert chosen == [[7, 4, 9], [10, 14, 3, 8, 2, 12, 6, 5]]
    assert chosen != [[one.line for one in part] for part in gsm8k.choose(problems, 3, 8, 1)]


@pytest.mark.parametrize(
    ("output", "strict", "flexible"),
    [
        (RIGHT, "7", "7"),
        ("so 1,234 in all\n#### $1,234.", "1234", "1234"),
        ("The answer is 18.", None, "18"),
        ("#### 18 apples, not 20", "18", "20"),
        ("#### -3", "-3", "-3"),
        ("#### -$3.50", "-3.50", "-3.50"),
        ("#### seven", None, None),
        ("no number", None, None),
        ("#### 5\n\nQuestion: what is 6?\nAnswer: #### 6", "5", "5"),
        ("a range of 10-12", None, "-12"),
        ("", None, None),
    ],
)
def test_how_a_number_is_read_out_of_an_answer(output: str, strict: str | None, flexible: str | None) -> None:
    assert (gsm8k.strict(output), gsm8k.flexible(output)) == (strict, flexible)
