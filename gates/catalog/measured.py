"""What one result file of any known producer says about acceptance and accuracy, in one shape for the gates.

Who wrote a file is told by its shape, and what a number means by (producer, field): the readers in `gates.results` know
that. Nothing here looks at how large a number is. A field that a producer writes and this file lacks is told apart from
a field that this producer never writes: the first is how a dead drafter looks, the second is the wrong kind of file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from gates.catalog.decimals import decimal
from gates.results.meaning import Number, Series, Unit

RATE_UNIT: Final = Unit.FRACTION.value
LENGTH_UNIT: Final = Unit.TOKENS_PER_STEP.value


@dataclass(frozen=True, slots=True)
class Value:
    """A measured number, exact, in the unit of its bar.

    Attributes:
        value: The decimal as written, converted to the unit of bars.
        field: Where it is in its file.
        file: The file, where it is another than the measurement's own; else "".
    """

    value: Fraction
    field: str
    file: str = ""


def value_of(number: Number | None, *, file: str = "") -> Value | None:
    """A reader's number."""
    return None if number is None else Value(number.exact, number.field, file)


def values_of(series: Series | None) -> tuple[Value, ...] | None:
    """A reader's numbers in order."""
    if series is None:
        return None
    scale = series.meaning.scale
    return tuple(Value(decimal(one) * scale, f"{series.field}[{i}]") for i, one in enumerate(series.written))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measurement.

    Attributes:
        file: Name of the file.
        producer: Who wrote it, in words.
        rate: Acceptance rate.
        length: Acceptance length, bonus token counted.
        positions: Acceptance by draft position.
        draft_tokens: Draft tokens a step, where the file states them.
        steps: Verification steps that had draft tokens, where the file counts them.
        chained: Whether AL = 1 + k x rate is how this producer's own numbers hang together, so that it must hold.
        accuracy: By rule: "strict", "flexible"; "" where the producer knows one rule only.
        samples: Number of questions.
        shots: Examples before each question.
        server: What the server says of itself, by its own names; None where the file has nothing of the kind.
        drafter: The drafter that was served, a folder or a name on the hub; None where the file does not say.
        fields: Where each of the above stands when this producer writes it, by attribute; what is not named here, it
            never writes.
        token: Whether the file carries the token of its attempt, which was compared.
        model: The model as the file names it, where it does.
        task: What the accuracy was measured on, where the file says it.
    """

    file: str
    producer: str
    rate: Value | None = None
    length: Value | None = None
    positions: tuple[Value, ...] | None = None
    draft_tokens: Value | None = None
    steps: Value | None = None
    chained: bool = False
    accuracy: Mapping[str, Value] = field(default_factory=dict)
    samples: Value | None = None
    shots: Value | None = None
    server: Mapping[str, Any] | None = None
    drafter: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    token: bool = False
    model: str | None = None
    task: str | None = None
