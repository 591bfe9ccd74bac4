"""What is wrong with an input file: one clear line for each problem, for people who wrote the file.

Nothing costly is imported here, so that a command can catch these errors without loading what raises them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from console.safe_text import cut, safe

_LONGEST_VALUE = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input.

    Attributes:
        file: The file, as the operator can open it.
        field: Where in it (`gonogo.port`, `tasks[2].time`), or what the file is where all of it is wrong.
        expected: What should stand there.
        found: What stands there, empty where that says nothing.
        advice: What to do about it, empty where `expected` says it all.
        line: Line of the field, from 1; None where it is not known.
    """

    file: str
    field: str
    expected: str
    found: str = ""
    advice: str = ""
    line: int | None = None

    def __str__(self) -> str:
        """One line of printable text, whatever the file held."""
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        text = f"{where}: {self.field}: expected {self.expected}"
        if self.found:
            text += f", found {self.found}"
        if self.advice:
            text += f"; {self.advice}"
        return safe(text)


class InputError(Exception):
    """An input cannot be used. Holds every problem that was found, so that one look is enough to mend a file.

    Attributes:
        problems: At least one, in the order of the file where lines are known.
    """

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("an InputError needs at least one problem")
        self.problems = tuple(sorted(problems, key=_line))
        super().__init__(*self.problems)

    def __str__(self) -> str:
        """One line for each problem."""
        return "\n".join(map(str, self.problems))

    @property
    def file(self) -> str:
        """File of the first problem."""
        return self.problems[0].file

    @property
    def field(self) -> str:
        """Field of the first problem."""
        return self.problems[0].field

    @property
    def expected(self) -> str:
        """What the first problem's field should hold."""
        return self.problems[0].expected

    @property
    def found(self) -> str:
        """What the first problem's field holds."""
        return self.problems[0].found

    @property
    def advice(self) -> str:
        """What to do about the first problem."""
        return self.problems[0].advice


def _line(problem: Problem) -> int:
    return problem.line or 0


def suggestion(word: str, known: Iterable[str]) -> str:
    """Advice that names the known words: the likely one first, else all of them.

    Args:
        word: What was written.
        known: What could have been meant.
    """
    words = sorted(known)
    plain = {name.lower().replace("-", "_"): name for name in reversed(words)}
    close = difflib.get_close_matches(word.lower().replace("-", "_"), plain, n=1, cutoff=0.6)
    if close:
        return f"did you mean {plain[close[0]]}?"
    return f"known: {', '.join(words)}" if words else ""


def shown(value: object, source: str | None = None) -> str:
    """A value as a message names it, with a hint where YAML reads something else than what is written.

    Args:
        value: What was read.
        source: How it is written in the file, where that is an unquoted word or number.
    """
    written = cut(source if source is not None else str(value), _LONGEST_VALUE)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        word = "true" if value else "false"
        return f"{word} (a boolean)" if written.lower() == word else f"{written} (YAML reads it as {word})"
    if isinstance(value, int | float):
        return f"{written} (a number)"
    if isinstance(value, str):
        return f'"{written}"' if value else "empty text"
    return "a list" if isinstance(value, list | tuple) else "a mapping"
