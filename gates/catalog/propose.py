"""Proposes bars from what was measured before: the smallest healthy value less a margin, and which runs do not count.

A bar made from every run would bake a regression in. So a run counts only when it passed its own gates, was measured
with the same number of draft tokens, and lies on the best level that the model has held (see `gates.catalog.levels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from gates.catalog.check import bounds
from gates.catalog.decimals import text, thousandths
from gates.catalog.levels import NEIGHBOURS, SHIFT, best_level
from gates.catalog.model import Bar, Entry, Task

MARGINS: Final = {
    "acceptance_rate": Fraction(15, 1000),
    "acceptance_length": Fraction(15, 1000),  # for each draft token, since a length is 1 + k x rate
    "accuracy": Fraction(30, 1000),
}
"""How far a bar lies under the smallest healthy value. Rates jitter by less than a point between runs."""

MEASURES: Final = tuple(MARGINS)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the past.

    Attributes:
        id: Name of the run.
        day: When it was, in an order that sorts ("2026-07-08").
        model: What was measured.
        drafter: With which drafter or method.
        draft_tokens: Draft tokens a step; None where that is not known.
        topk: Branches of the draft tree; None where that is not known.
        healthy: Whether its own gates let it pass; None where nobody judged it.
        why: Why not.
        values: What it measured, by the names of `MEASURES`, as exact decimals.
    """

    id: str
    day: str
    model: str
    drafter: str | None
    draft_tokens: int | None = None
    topk: int | None = None
    healthy: bool | None = None
    why: str = ""
    values: dict[str, Fraction] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str | None, int | None, int | None]:
        """What has to be the same for two runs to be compared."""
        return self.model, self.drafter, self.draft_tokens, self.topk


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that did not count for a bar, and why."""

    run: str
    day: str
    entry: str
    measure: str
    why: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Entries with bars, and everything that did not count.

    Attributes:
        entries: Those entries for which there is at least one bar.
        used: How many runs each bar was made from, by (entry in words, measure).
        left_out: The runs that did not count.
        refused: Why an entry got no bar on something, in words.
    """

    entries: tuple[Entry, ...]
    used: dict[tuple[str, str], int]
    left_out: tuple[LeftOut, ...]
    refused: tuple[str, ...]


def propose(runs: Sequence[Run], *, day: str, least: int = NEIGHBOURS) -> Proposal:
    """Propose entries of a catalog.

    Args:
        runs: The runs, in any order; sorted by day here.
        day: Date that the bars get.
        least: Fewest healthy runs that make a bar.
    """
    groups: dict[tuple[str, str | None, int | None, int | None], list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.day, run.id)):
        groups.setdefault(run.key, []).append(run)
    entries: list[Entry] = []
    used: dict[tuple[str, str], int] = {}
    left_out: list[LeftOut] = []
    refused: list[str] = []
    for (model, drafter, draft_tokens, topk), group in sorted(groups.items(), key=lambda item: str(item[0])):
        blank = Entry(model, drafter, draft_tokens, topk)
        bars: dict[str, Bar] = {}
        for measure in MEASURES:
            made = _bar(blank, measure, group, day, max(least, NEIGHBOURS), left_out)
            if isinstance(made, str):
                refused.append(f"{blank.words}: no bar on {measure}: {made}")
            elif made is not None:
                bars[measure], used[blank.words, measure] = made
        if bars:
            task = Task("gsm8k") if "accuracy" in bars else Task()
            entries.append(Entry(model, drafter, draft_tokens, topk, bars, task))
    return Proposal(tuple(entries), used, tuple(left_out), tuple(refused))


def _bar(
    entry: Entry, measure: str, group: Sequence[Run], day: str, least: int, left_out: list[LeftOut]
) -> tuple[Bar, int] | str | None:
    """A bar and the number of runs behind it; why there is none; or None where nobody ever measured this."""
    if not any(measure in run.values for run in group):
        return None
    if measure == "acceptance_length" and entry.draft_tokens is None:
        return "a length cannot be compared without the number of draft tokens"
    scale = entry.draft_tokens or 1 if measure == "acceptance_length" else 1

    def leave(run: Run, why: str) -> None:
        left_out.append(LeftOut(run.id, run.day, entry.words, measure, why))

    sound: list[tuple[Run, Fraction]] = []
    for run in group:
        value = run.values.get(measure)
        if run.healthy is False:
            leave(run, run.why or "it did not pass its own gates")
        elif value is None:
            leave(run, f"states no {measure}")
        else:
            sound.append((run, value))
    level = best_level([value for _, value in sound])
    if level is None:
        return f"{len(sound)} runs count, at least {least} are needed"
    healthy: list[Fraction] = []
    for run, value in sound:
        if level - value >= SHIFT * scale:
            leave(run, f"{text(value)} lies {text(level - value)} under the level {text(level)} of the healthy runs")
        else:
            healthy.append(value)
    if len(healthy) < least:
        return f"{len(healthy)} healthy runs, at least {least} are needed"
    smallest, margin = min(healthy), MARGINS[measure] * scale
    bar = thousandths(smallest - margin)
    floor, _ = bounds(entry, measure)
    if bar <= floor:
        return f"{bar:g} would be at or under {floor:g}, what guessing reaches"
    source = f"smallest of {len(healthy)} healthy runs less {text(margin)}"
    return Bar((bar,), source, day, (float(smallest),), float(margin)), len(healthy)
