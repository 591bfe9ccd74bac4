"""Checks that acceptance numbers of any producer must stand, when they are counted in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from gates.header import IDENTITY_TOLERANCE, agree
from gates.results.fields import Fields, Notes
from gates.results.meaning import Number, Series
from gates.simulated import simulated_settings

ENOUGH_STEPS: Final = 100
"""From so many steps on, a distribution that only simulation gives is no accident."""

EXACT: Final = 1e-6
"""Two forms of one number that a program computed from the same counts."""


def check_length(notes: Notes, length: Number, drafts: Number, accepted: Number, relative: float = EXACT) -> None:
    """Check that an acceptance length with the bonus token is 1 + accepted / drafts."""
    if length.value < 1:
        notes.fault(length.field, "below 1: a length that counts the bonus token cannot be")
        return
    if drafts.value <= 0:
        return
    implied = 1 + accepted.value / drafts.value
    if not agree(length.value, implied, relative):
        notes.fault(length.field, f"is {length.value:g}, and 1 + accepted / drafts is {implied:g}")
    remark_on_one(notes, length)


def remark_on_one(notes: Notes, length: Number) -> None:
    """Remark on an acceptance length of exactly one."""
    if length.value == 1:
        notes.remark(length.field, "exactly 1: not one drafted token was taken")


def check_rate(notes: Notes, rate: Number, draft_tokens: Number, accepted: Number, relative: float = EXACT) -> None:
    """Check that an acceptance rate is accepted / draft tokens."""
    if draft_tokens.value > 0:
        implied = accepted.value / draft_tokens.value
        if not agree(rate.value, implied, relative, absolute=relative):
            notes.fault(rate.field, f"stands for {rate.value:g}, and accepted / draft tokens is {implied:g}")


def check_counts(notes: Notes, drafts: Number, draft_tokens: Number, accepted: Number) -> None:
    """Check counts of steps and tokens against each other."""
    if accepted.value > draft_tokens.value:
        notes.fault(accepted.field, f"{accepted.value:g} accepted of {draft_tokens.value:g} draft tokens")
    if draft_tokens.value < drafts.value:
        notes.fault(draft_tokens.field, f"{draft_tokens.value:g} draft tokens in {drafts.value:g} steps that had some")


def check_positions(notes: Notes, positions: Series, mean: float | None, what: str) -> None:
    """Check shares by draft position: they never rise, and add up to the accepted tokens a step.

    Args:
        notes: Where to write.
        positions: Share of the steps in which each position was taken.
        mean: Accepted tokens a step; None where that is not known.
        what: What `mean` was computed from, in words.
    """
    if rises(positions.values):
        notes.fault(positions.field, "rises: a position cannot be taken more often than the one before it")
    total = sum(positions.values)
    if mean is not None and not agree(total, mean, IDENTITY_TOLERANCE, absolute=EXACT):
        notes.fault(positions.field, f"adds up to {total:g}, and {what} is {mean:g}")


def check_simulated(notes: Notes, place: str, steps: Sequence[float], enough: bool = True) -> None:
    """Check that acceptance does not look simulated.

    Engines that simulate an acceptance length let every step take n or n + 1 draft tokens. A drafter that always has
    its first token taken and never has more than two results does not exist; one whose first token is often refused,
    or that drafts one token only, is left alone.

    Args:
        notes: Where to write.
        place: The field.
        steps: Steps (or their share) in which exactly 0, 1, 2, ... draft tokens were taken.
        enough: Whether there were steps enough for this to say anything.
    """
    taken = [count for count, number in enumerate(steps) if number > EXACT]
    if enough and len(taken) == 2 and taken[0] >= 1 and taken[1] == taken[0] + 1:
        words = f"every step took {taken[0]} or {taken[1]} draft tokens: simulated acceptance looks like that"
        notes.fault(place, words)


def exactly_taken(shares: Sequence[float]) -> list[float]:
    """Share of the steps that took exactly 0, 1, 2, ... draft tokens, from the share that took each position."""
    reached = [1.0, *shares, 0.0]
    return [one - other for one, other in pairwise(reached)]


def check_settings(fields: Fields) -> None:
    """Check that no setting that the file repeats, however deep, simulates acceptance."""
    for place in simulated_settings(fields.values, fields.path):
        fields.notes.fault(place, "acceptance is simulated: it says nothing of a drafter")


def rises(values: Sequence[float]) -> bool:
    """Whether any value is larger than the one before it."""
    return any(other > one * (1 + EXACT) + EXACT for one, other in pairwise(values))
