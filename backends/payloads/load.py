"""Sends completions to a server, a given number at a time, and keeps what came back."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable
    from backends.payloads.endpoint import Asked, Completion, Prompt, failed
    from backends.payloads.engines import Client
else:
    from counters import Unreadable
    from endpoint import Asked, Completion, failed


class Question(NamedTuple):
    """A prompt with its name.

    Attributes:
        id: Its name, unique in its file.
        prompt: Text or token ids.
    """

    id: str
    prompt: Prompt

    @property
    def sha256(self) -> str:
        """Digest of the prompt."""
        return hashlib.sha256(json.dumps(self.prompt).encode("ascii")).hexdigest()


class Sampling(NamedTuple):
    """How texts are gone on with, always with the likeliest token.

    Attributes:
        max_tokens: Most tokens to add.
        ignore_eos: Go on behind the end of the text, so that all outputs have one length.
    """

    max_tokens: int
    ignore_eos: bool


class Answers(NamedTuple):
    """What came back.

    Attributes:
        completions: In the order of the questions.
        duration_s: From the first request to the last answer, in seconds.
        latencies_s: How long each answer took, in the order of the questions.
    """

    completions: List[Completion]
    duration_s: float
    latencies_s: List[float]

    @property
    def good(self) -> List[Completion]:
        """The completions that did not fail."""
        return [completion for completion in self.completions if completion.error is None]

    @property
    def first_error(self) -> str:
        """What went wrong first, in the order of the questions; empty when nothing did."""
        return next((completion.error for completion in self.completions if completion.error is not None), "")

    @property
    def output_tokens(self) -> int:
        """Tokens that came back."""
        return sum(len(completion.token_ids) for completion in self.completions)


def read_questions(path: str, most: Optional[int] = None) -> List[Question]:
    """Read prompts: one JSON object a line, with `prompt` (text or token ids) and, if it has a name, `id`.

    Args:
        path: The file.
        most: How many to take from its beginning; None for all.

    Raises:
        OSError: When it cannot be read.
        ValueError: When a line is no prompt, two have one name, or there are none.
    """
    with open(path, encoding="utf-8") as stream:
        lines = [(number, line) for number, line in enumerate(stream, 1) if line.strip()]
    questions = [_question(line, number, path) for number, line in lines[:most]]
    if not questions:
        raise ValueError(f"{path}: no prompts")
    if len({question.id for question in questions}) < len(questions):
        raise ValueError(f"{path}: two prompts have one id")
    return questions


def _question(line: str, number: int, path: str) -> Question:
    document = json.loads(line)
    prompt = document.get("prompt") if isinstance(document, dict) else None
    ids = isinstance(prompt, list) and all(type(token) is int for token in prompt)
    if not prompt or not (isinstance(prompt, str) or ids):
        raise ValueError(f"{path}:{number}: no prompt: neither text nor token ids")
    return Question(str(document.get("id", f"line-{number}")), prompt)


def send(
    connect: Callable[[], Client], model: str, questions: List[Question], sampling: Sampling, concurrency: int
) -> Answers:
    """Send all questions, so many at a time, and wait for all answers.

    Args:
        connect: Makes a connection; each thread makes its own.
        model: Name of the model.
        questions: What to ask.
        sampling: How the answers are to be made.
        concurrency: How many questions are open at a time.
    """
    numbers = iter(range(len(questions)))
    lock = threading.Lock()
    completions: List[Completion] = [Completion([], "", "never sent")] * len(questions)
    latencies = [0.0] * len(questions)
    ready = threading.Barrier(min(concurrency, len(questions)) + 1)

    def work() -> None:
        endpoint = connect()
        ready.wait()
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                endpoint.close()
                return
            begun = time.perf_counter()
            prompt = questions[number].prompt
            completion = endpoint.complete(Asked(model, prompt, sampling.max_tokens, sampling.ignore_eos))
            latencies[number] = time.perf_counter() - begun
            if completion.error is None and not completion.token_ids:
                completion = failed("an answer without token ids")
            completions[number] = completion

    threads = [threading.Thread(target=work, daemon=True) for _ in range(ready.parties - 1)]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return Answers(completions, time.perf_counter() - begun, latencies)


def counted(before: Optional[Counters], after: Optional[Counters], answers: List[Completion]) -> Counters:
    """What was drafted for a measurement: the difference of two readings, else the sum over the answers.

    Args:
        before: A reading of the server's counters before it; None where the server has none.
        after: A reading behind it.
        answers: What was answered.

    Raises:
        Unreadable: When there is neither, or the counters were not of one server.
    """
    if before is not None and after is not None:
        return after.since(before)
    if before is not None or after is not None:
        raise Unreadable("the counters of speculative decoding are gone")
    total: Optional[Counters] = None
    for answer in answers:
        if answer.counters is None:
            raise Unreadable("an answer does not tell what was drafted for it")
        total = answer.counters if total is None else total.plus(answer.counters)
    if total is None:
        raise Unreadable("there are no answers that tell what was drafted")
    return total
