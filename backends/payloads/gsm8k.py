"""GSM8K: which questions are asked after which examples, and how a number is read out of an answer.

The file is the data set's own form: one JSON object a line with `question` and `answer`, whose answer ends in
`#### NUMBER` (https://github.com/openai/grade-school-math). Examples and questions are chosen by a seed through a hash,
so that every machine and every version of Python chooses the same ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import List, NamedTuple, Optional, Tuple

TASK = "gsm8k"
MARK = "#### "
NEXT = "Question:"
"""Where a model that was shown examples begins the next one by itself."""

_NUMBER = re.compile(r"-?\$?-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


class Problem(NamedTuple):
    """One question of the data set.

    Attributes:
        line: Its line in the file, from 1.
        question: The question.
        answer: The worked answer.
        number: The number at the end of the answer, as it is compared.
    """

    line: int
    question: str
    answer: str
    number: str


def read_problems(path: str) -> List[Problem]:
    """Read the data set.

    Raises:
        OSError: When it cannot be read.
        ValueError: When a line is not in the format, naming it.
    """
    with open(path, encoding="utf-8") as stream:
        return [_problem(path, number, line) for number, line in enumerate(stream, 1) if line.strip()]


def _problem(path: str, number: int, line: str) -> Problem:
    document = json.loads(line)
    found = document if isinstance(document, dict) else {}
    question, answer = found.get("question"), found.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str) or not question.strip():
        raise ValueError(f"{path}:{number}: expected an object with the texts question and answer")
    told = answer.rpartition(MARK)
    value = _plain(told[2]) if told[1] else ""
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"{path}:{number}: answer: expected {MARK}NUMBER at its end")
    return Problem(number, question.strip(), answer.strip(), value)


def choose(problems: List[Problem], shots: int, samples: int, seed: int) -> Tuple[List[Problem], List[Problem]]:
    """The examples and the questions; no question is among the examples.

    Raises:
        ValueError: When there are not so many.
    """
    if len(problems) < shots + samples:
        raise ValueError(f"{shots} examples and {samples} questions are asked for, and there are {len(problems)}")
    order = sorted(problems, key=lambda one: hashlib.sha256(f"{seed}:{one.line}".encode("ascii")).digest())
    return order[:shots], order[shots : shots + samples]


def prompt(shots: List[Problem], problem: Problem) -> str:
    """The examples with their answers, and the question without one."""
    told = "".join(f"{NEXT} {one.question}\nAnswer: {one.answer}\n\n" for one in shots)
    return f"{told}{NEXT} {problem.question}\nAnswer:"


def strict(output: str) -> Optional[str]:
    """The number behind the first `#### ` of an output, as it is compared; None where there is none."""
    _, mark, rest = _own(output).partition(MARK)
    found = _NUMBER.match(rest.lstrip()) if mark else None
    return None if found is None else _plain(found.group())


def flexible(output: str) -> Optional[str]:
    """The last number of an output, as it is compared; None where there is none."""
    found = _NUMBER.findall(_own(output))
    return _plain(found[-1]) if found else None


def _own(output: str) -> str:
    """What answers this question: nothing of the next one, which the model made up."""
    return output.partition(NEXT)[0]


def _plain(number: str) -> str:
    """A number as it is compared: no commas, no dollar sign, no final full stop."""
    text = number.strip().replace(",", "").replace("$", "")
    return text[:-1] if text.endswith(".") else text
