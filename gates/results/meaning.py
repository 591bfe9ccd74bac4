"""What a number of a foreign file means: its unit, its formula, what it was counted over.

The tools of this field use one word for several things. An acceptance length may or may not count the bonus token (the
target's own token, which every step emits); a rate is written as a fraction by one script and in per cent by its
neighbour, and one tool does both in a single file; counters may cover one request, one run, or everything since the
server started. None of this can be seen from the size of a number. So a number is never passed on without its
`Meaning`, and the meaning follows from who wrote the file and in which field, from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from gates.header import exactly


class Unit(StrEnum):
    """Unit of a number as it is handed on; what was written in another unit has been converted."""

    TOKENS_PER_STEP = "tokens per target step"
    FRACTION = "fraction 0-1"
    TOKENS = "tokens"
    STEPS = "steps"
    REQUESTS = "requests"
    EXAMPLES = "examples"
    COUNT = "count"
    SECONDS = "s"
    MILLISECONDS = "ms"
    TOKENS_PER_SECOND = "tokens/s"
    REQUESTS_PER_SECOND = "requests/s"
    BYTES = "bytes"
    GIB = "GB as the driver counts them"
    NONE = ""


class Bonus(StrEnum):
    """Whether an acceptance length counts the token that the target adds in every step."""

    WITH = "with the bonus token"
    WITHOUT = "without the bonus token"


class Scope(StrEnum):
    """What a number was counted over."""

    RUN = "this run"
    WINDOW = "all traffic of the server between two readings, before and after this run"
    SERVER = "all traffic since the server started"
    SERVER_OR_FLUSH = "all traffic since the server started or its cache was flushed"
    REQUEST = "one request"
    STEP = "one logged step"
    MOMENT = "one moment"
    SETTING = "a setting, not a measurement"


PER_CENT: Final = Fraction(1, 100)
"""Scale of what is written in per cent and handed on as a fraction."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the numbers of one field of one producer mean.

    Attributes:
        name: What is measured, in words.
        unit: Unit of `Number.value`.
        scope: What it was counted over.
        formula: How the producer computes it; "" where the name says it all.
        bonus: For acceptance lengths, whether the bonus token counts.
        scale: What a number is multiplied by to be in `unit`.
    """

    name: str
    unit: Unit
    scope: Scope
    formula: str = ""
    bonus: Bonus | None = None
    scale: Fraction = Fraction(1)

    @property
    def words(self) -> str:
        """All but the unit, in one line."""
        parts = [self.name, self.bonus or "", self.formula and f"= {self.formula}", f"over {self.scope}"]
        if self.scope is Scope.SETTING:
            parts[-1] = self.scope
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a foreign file: finite, within the bounds of its meaning, never a stand-in for nothing.

    Attributes:
        written: As the file writes it, in the file's unit.
        meaning: What it means.
        field: Where it is in the file (`[0].Average_AL`).
    """

    written: float
    meaning: Meaning
    field: str

    @property
    def value(self) -> float:
        """The number in `meaning.unit`."""
        return self.written if self.meaning.scale == 1 else float(self.exact)

    @property
    def exact(self) -> Fraction:
        """The decimal that the file wrote, in `meaning.unit`: 60.0 per cent is exactly three fifths."""
        return exactly(self.written) * self.meaning.scale


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers of one meaning in order, the first for the first draft position (or the first request).

    Attributes:
        written: As the file writes them.
        meaning: What each means.
        field: Where the list is in the file.
    """

    written: tuple[float, ...]
    meaning: Meaning
    field: str

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers in `meaning.unit`."""
        scale = self.meaning.scale
        return self.written if scale == 1 else tuple(float(exactly(number) * scale) for number in self.written)


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers of one meaning by name, in the order of the file.

    Attributes:
        written: Name and number as the file writes them.
        meaning: What each number means.
        field: Where the object is in the file.
    """

    written: tuple[tuple[str, float], ...]
    meaning: Meaning
    field: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many steps emitted so and so many tokens.

    Attributes:
        counts: (tokens, steps), by rising number of tokens; what is not listed is 0.
        meaning: `bonus` says whether `tokens` counts the bonus token.
        field: Where it is in the file.
    """

    counts: tuple[tuple[int, int], ...]
    meaning: Meaning
    field: str

    @property
    def steps(self) -> int:
        """All steps."""
        return sum(count for _, count in self.counts)

    @property
    def mean(self) -> Fraction | None:
        """Tokens a step, every step weighing the same, counted as `meaning.bonus` says; None without steps."""
        return Fraction(sum(tokens * count for tokens, count in self.counts), self.steps) if self.steps else None

    def reached(self, tokens: int) -> Fraction | None:
        """Share of the steps that emitted at least so many tokens; None without steps."""
        return Fraction(sum(c for t, c in self.counts if t >= tokens), self.steps) if self.steps else None
