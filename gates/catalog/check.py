"""What is wrong with a catalog that its schema allows: bars that can never fail or never pass, and entries unguarded.

A bar under the noise is worse than none, since it looks like a guard. So every bar has to lie strictly between what a
drafter that drafts at random reaches and what none can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gates.catalog.decimals import decimal, text
from gates.catalog.model import ACCEPTANCE, Bar, Catalog, Entry
from gates.counters import ACCEPTANCE_FLOOR

RATE_FLOOR: Final = 0.04
"""Acceptance rate of a drafter that drafts at random, with some noise (as `ACCEPTANCE_FLOOR` at one draft token)."""

ACCURACY_FLOOR: Final = 0.02
"""Accuracy that a model reaches by chance on a task whose answers are free numbers."""

ROUNDED: Final = 0.0005
"""Bars are written with three decimals."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check of a catalog found.

    Attributes:
        error: Whether the catalog must not be used as it is; otherwise it is a remark.
        field: Where ("entries[3].bars.acceptance_rate.bar").
        entry: The entry in words.
        text: What is wrong, and what would be right.
    """

    error: bool
    field: str
    entry: str
    text: str

    def to_json(self) -> dict[str, object]:
        """For programs."""
        level = "error" if self.error else "warning"
        return {"level": level, "field": self.field, "entry": self.entry, "text": self.text}


def check_catalog(catalog: Catalog) -> list[Finding]:
    """Everything that is wrong with a catalog, and what is odd, in the order of the file."""
    found: list[Finding] = []
    first: dict[object, int] = {}
    for i, entry in enumerate(catalog.entries):
        place = f"entries[{i}]"
        if entry.key in first:
            twice = f"is there twice (first as entries[{first[entry.key]}]); only one of them can count"
            found.append(Finding(True, place, entry.words, twice))
        first.setdefault(entry.key, i)
        found += check_entry(entry, place)
    return found


def check_entry(entry: Entry, place: str) -> Iterator[Finding]:
    """What is wrong or odd with one entry."""

    def error(field: str, words: str) -> Finding:
        return Finding(True, f"{place}.{field}" if field else place, entry.words, words)

    def warning(field: str, words: str) -> Finding:
        return Finding(False, f"{place}.{field}" if field else place, entry.words, words)

    yield from _guarded(entry, error)
    for name, bar in entry.bars.items():
        yield from _within(entry, name, bar, error)
        yield from _from_minimum(name, bar, error, warning)
    positions = entry.bars.get("per_position")
    if positions is not None:
        if any(later > earlier for earlier, later in pairwise(positions.bars)):
            yield error("bars.per_position.bar", "rises: a position is only taken when all before it were")
        if entry.draft_tokens is not None and len(positions.bars) > entry.draft_tokens:
            yield error("bars.per_position.bar", f"has {len(positions.bars)} positions, more than the draft tokens")
    repeat = entry.repeat
    if repeat.passes > repeat.runs:
        yield error("repeat.passes", f"{repeat.passes} of {repeat.runs} runs cannot pass")
    elif 2 * repeat.passes <= repeat.runs:
        words = f"{repeat.passes} of {repeat.runs} is no majority: a broken drafter would pass by trying often"
        yield error("repeat.passes", words)
    if entry.draft_tokens is None and {"acceptance_rate", "acceptance_length"} & set(entry.bars):
        words = "is not stated: rates fall and lengths rise with it, so other runs may not compare"
        yield warning("draft_tokens", words)


_Make = Callable[[str, str], Finding]


def _guarded(entry: Entry, error: _Make) -> Iterator[Finding]:
    """Whether what should be guarded is, and nothing else."""
    looked_at = [name for name in ACCEPTANCE if name in entry.bars]
    if not entry.bars:
        yield error("bars", "holds no bar: whatever was measured would pass")
    if entry.drafter is not None and not looked_at:
        words = "holds no bar on acceptance: accuracy stays the same when a drafter breaks"
        yield error("bars", words)
    if entry.drafter is None:
        for name in looked_at:
            yield error(f"bars.{name}", "is a bar on acceptance, but the entry has no drafter")
        for name in ("draft_tokens", "topk"):
            if getattr(entry, name) is not None:
                yield error(name, "is stated, but the entry has no drafter")


def _within(entry: Entry, name: str, bar: Bar, error: _Make) -> Iterator[Finding]:
    """Whether a bar lies between its floor and its ceiling."""
    floor, ceiling = bounds(entry, name)
    for i, one in enumerate(bar.bars):
        # Only the first position is far from noise: a good drafter may seldom get its last one right.
        low = 0.0 if name == "per_position" and i else floor
        field = f"bars.{name}.bar" + (f"[{i}]" if name == "per_position" else "")
        if decimal(one) <= decimal(low):
            why = "what guessing reaches" if low else "which nothing can be under"
            yield error(field, f"{one:g} is at or under {low:g}, {why}: it could never fail a broken drafter")
        if ceiling is not None and decimal(one) >= decimal(ceiling):
            yield error(field, f"{one:g} is at or over {ceiling:g}, the most there is: no run could be sure of it")


def bounds(entry: Entry, name: str) -> tuple[float, float | None]:
    """Floor and ceiling of a bar, both exclusive; no ceiling where it depends on unknown draft tokens."""
    if name == "acceptance_length":
        return ACCEPTANCE_FLOOR, None if entry.draft_tokens is None else entry.draft_tokens + 1
    return (ACCURACY_FLOOR if name == "accuracy" else RATE_FLOOR), 1.0


def _from_minimum(name: str, bar: Bar, error: _Make, warning: _Make) -> Iterator[Finding]:
    """Whether a bar follows from the smallest healthy value that it says it was made from."""
    if not bar.minimum:
        return
    if len(bar.minimum) != len(bar.bars):
        yield error(f"bars.{name}.minimum", f"states {len(bar.minimum)} values for {len(bar.bars)} bars")
        return
    for one, smallest in zip(bar.bars, bar.minimum, strict=True):
        if decimal(one) > decimal(smallest):
            words = f"{one:g} is over {smallest:g}, which a healthy run has reached: that run would fail"
            yield error(f"bars.{name}.bar", words)
        elif bar.margin is not None:
            wanted = decimal(smallest) - decimal(bar.margin)
            if abs(wanted - decimal(one)) > decimal(ROUNDED):
                words = f"{one:g} is not the minimum {smallest:g} less the margin {bar.margin:g}, {text(wanted)}"
                yield warning(f"bars.{name}.bar", words)


def errors(findings: list[Finding]) -> list[Finding]:
    """Those findings for which a catalog must not be used."""
    return [finding for finding in findings if finding.error]
