"""Counters of speculative decoding, and the identities that true ones keep.

`drafts` is the number of verification steps, `draft_tokens` what was proposed in them, `accepted_tokens` what the
target took of that, and `per_position[i]` in how many steps the token at position i was taken. Every such step emits
the accepted tokens and one of the target's own (the bonus token), so

    acceptance length = 1 + accepted_tokens / drafts          tokens per target step, from 1 to k + 1
    acceptance rate   = accepted_tokens / draft_tokens        fraction of the proposed tokens

with k proposed tokens a step at most. Positions are taken in order, so their counts never increase, and they add up to
the accepted tokens. The definitions are those of vLLM's `vllm:spec_decode_*` counters.

Counters that break one of these come from more than one server, from a change of definition or from a fault of the
measurement: nothing follows from them, least of all a verdict on the drafter.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from gates.header import IDENTITY_TOLERANCE, agree, exactly
from gates.record import Record
from gates.simulated import simulated_settings
from gates.verdict import FailureClass

ACCEPTANCE_FLOOR: Final = 1.04
"""Acceptance length of a drafter that drafts at random: 1.0 and a little noise. A bar must be higher."""

MIN_ACCEPTANCE_LENGTH: Final = 1.05
"""The default bar, in tokens: just above the noise. It separates working from broken, not good from better."""

MIN_DRAFTED_SHARE: Final = 0.5
"""At least this share of the output tokens must come from steps that drafted, or the drafter was mostly off."""

MOST_DRAFT_TOKENS: Final = 256
"""No drafter proposes more tokens a step; a larger number is not a number of draft tokens."""

FINGERPRINT_EXPECTED: Final = 10
"""A distribution counts as made up when so many steps should have fallen where not a single one did."""

_INVALID: Final = FailureClass.MEASUREMENT_INVALID


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts over one measurement (differences of two readings).

    Attributes:
        drafts: Verification steps that had proposed tokens.
        draft_tokens: Proposed tokens.
        accepted: Proposed tokens that the target took.
        per_position: Steps in which the token at each position was taken; positions that are not listed are 0.
    """

    drafts: int
    draft_tokens: int
    accepted: int
    per_position: tuple[int, ...]

    @property
    def acceptance_length(self) -> Fraction:
        """Tokens per verification step, bonus token included; 1 where there were no steps."""
        return 1 + Fraction(self.accepted, self.drafts) if self.drafts else Fraction(1)

    @property
    def acceptance_rate(self) -> Fraction:
        """Accepted share of the proposed tokens, 0 to 1; 0 where nothing was proposed."""
        return Fraction(self.accepted, self.draft_tokens) if self.draft_tokens else Fraction(0)

    def histogram(self, k: int) -> tuple[int, ...]:
        """In how many steps exactly 0, 1, ... k proposed tokens were taken."""
        reached = [self.drafts, *self.per_position[:k], *[0] * (k - len(self.per_position)), 0]
        return tuple(reached[i] - reached[i + 1] for i in range(k + 1))


@dataclass(frozen=True, slots=True)
class Work:
    """What the counters were counted over.

    Attributes:
        k: Proposed tokens a step, at most.
        requests: Completed requests.
        output_tokens: Tokens that these requests got; None where that is not known of every request.
    """

    k: int
    requests: int
    output_tokens: int | None


def read_draft_tokens(record: Record, key: str = "num_draft_tokens") -> int | None:
    """A number of proposed tokens a step, from 1 to `MOST_DRAFT_TOKENS`."""
    k = record.integer(key, minimum=1)
    if k is None or not record.check("draft_tokens", k <= MOST_DRAFT_TOKENS, k, f"<= {MOST_DRAFT_TOKENS}", key):
        return None
    return k


def read_counters(parent: Record) -> tuple[Counters, Record] | None:
    """The `counters` of an object, and the record they were read from; None when any of them is malformed."""
    record = parent.record("counters")
    if record is None:
        return None
    drafts = record.integer("drafts")
    draft_tokens = record.integer("draft_tokens")
    accepted = record.integer("accepted_tokens")
    per_position = record.integers("per_position", empty=True)
    if drafts is None or draft_tokens is None or accepted is None or per_position is None:
        return None
    return Counters(drafts, draft_tokens, accepted, per_position), record


def judge_counters(counters: Counters, record: Record, work: Work) -> bool:
    """Check the identities of counters.

    Returns:
        Whether the counters say that anything was drafted; the identities mean nothing otherwise.
    """
    drafted = counters.drafts > 0 and counters.draft_tokens > 0
    record.check("drafter_active", counters.drafts > 0, counters.drafts, "> 0", "drafts", unit="verification steps")
    record.check("tokens_drafted", counters.draft_tokens > 0, counters.draft_tokens, "> 0", "draft_tokens")
    if not drafted:
        return False
    record = record.classed(_INVALID)
    _judge_totals(counters, record, work.k)
    if work.output_tokens is not None:
        _judge_output(counters, record, work, work.output_tokens)
    _judge_positions(counters, record, work.k)
    if len(counters.per_position) <= work.k:
        _judge_fingerprint(counters, record, work.k)
    return True


def _judge_totals(counters: Counters, record: Record, k: int) -> None:
    """Totals against each other."""
    record.check(
        "drafted_within_k",
        counters.draft_tokens <= k * counters.drafts,
        counters.draft_tokens,
        f"<= {k} x {counters.drafts} drafts = {k * counters.drafts}",
        "draft_tokens",
        unit="tokens",
    )
    record.check(
        "accepted_within_drafted",
        counters.accepted <= counters.draft_tokens,
        counters.accepted,
        f"<= {counters.draft_tokens} drafted",
        "accepted_tokens",
        unit="tokens",
    )


def _judge_output(counters: Counters, record: Record, work: Work, output_tokens: int) -> None:
    """Totals against the tokens that came out."""
    emitted = counters.accepted + counters.drafts
    # Every step emits what it accepted and one token more; only each request's last step may be cut short.
    most = output_tokens + work.k * work.requests
    record.check(
        "tokens_accounted",
        emitted <= most,
        emitted,
        f"<= {output_tokens} output + {work.k} x {work.requests} requests = {most}",
        "accepted_tokens",
        unit="tokens",
    )
    # The first token of each request comes from its prompt, without a draft.
    later = max(output_tokens - work.requests, 1)
    record.check(
        "drafted_share",
        emitted >= MIN_DRAFTED_SHARE * later,
        emitted / later,
        f">= {MIN_DRAFTED_SHARE:g} of the output tokens",
        "drafts",
        unit="fraction 0-1",
    )


def _judge_positions(counters: Counters, record: Record, k: int) -> None:
    """Positions against each other and against the totals."""
    positions = counters.per_position
    record.check("positions", len(positions) <= k, len(positions), f"<= {k}", "per_position", unit="positions")
    rising = [i for i in range(1, len(positions)) if positions[i] > positions[i - 1]]
    record.check(
        "positions_fall",
        not rising,
        f"rises at position {rising[0]}" if rising else "never rises",
        "never rises",
        "per_position",
    )
    highest = max(positions, default=0)
    record.check(
        "positions_within_drafts",
        highest <= counters.drafts,
        highest,
        f"<= {counters.drafts} drafts",
        "per_position",
        unit="steps",
    )
    total = sum(positions)
    record.check(
        "positions_add_up",
        agree(total, counters.accepted),
        total,
        f"= {counters.accepted} accepted, within {IDENTITY_TOLERANCE:.0%}",
        "per_position",
        unit="tokens",
    )


def _judge_fingerprint(counters: Counters, record: Record, k: int) -> None:
    """Look for synthetic acceptance: every step accepts one of two neighbouring numbers of tokens.

    Engines can pretend a given acceptance length (for throughput tests). They then accept n or n + 1 tokens in every
    step. A real drafter of the same mean scatters: with a chance p of accepting each next token, a step accepts
    exactly j < k tokens in p^j (1 - p) of all cases. Where so many steps should have fallen outside the two that their
    absence cannot be luck, the acceptance was made up.
    """
    histogram = counters.histogram(k)
    if min(histogram) < 0:
        return  # positions that rise have their own check
    stopped = counters.drafts - histogram[k]
    taken = sum(j * count for j, count in enumerate(histogram))
    chance = taken / (taken + stopped) if taken + stopped else 0.0
    likely = [counters.drafts * chance**j * (1 - chance if j < k else 1.0) for j in range(k + 1)]
    low = next((j for j, count in enumerate(histogram) if count), 0)
    outside = sum(histogram) - sum(histogram[low : low + 2])
    expected = sum(likely) - sum(likely[low : low + 2])
    made_up = outside == 0 and expected >= FINGERPRINT_EXPECTED
    record.check(
        "not_synthetic",
        not made_up,
        f"{outside} of {counters.drafts} steps accept other than {low} or {low + 1} tokens",
        f"about {expected:.0f}, as with a real drafter" if made_up else "scattered, as with a real drafter",
        "per_position",
    )


def judge_acceptance(length: Fraction, record: Record, field: str, k: int, bar: float, low: FailureClass) -> None:
    """Check an acceptance length against its range and its bar.

    Args:
        length: Acceptance length in tokens, bonus token included.
        record: Where it was read.
        field: The field that states it.
        k: Proposed tokens a step.
        bar: Smallest length that passes, in tokens.
        low: Class of a length under the bar.
    """
    record.check(
        "acceptance_within_k", length <= k + 1, float(length), f"<= {k} + 1", field, unit="tokens", cls=_INVALID
    )
    record.check(
        "acceptance_length", length >= exactly(bar), float(length), f">= {bar:g}", field, unit="tokens", cls=low
    )


def judge_stated_length(stated: float, counters: Counters, record: Record) -> None:
    """Check a stated acceptance length against the counters it was made from."""
    computed = float(counters.acceptance_length)
    record.check(
        "acceptance_identity",
        agree(stated, computed),
        stated,
        f"= 1 + {counters.accepted} accepted / {counters.drafts} drafts = {computed:.4f}, "
        f"within {IDENTITY_TOLERANCE:.0%}",
        "acceptance_length",
        unit="tokens",
        cls=_INVALID,
    )


def check_real(server: Record) -> None:
    """Check that no setting of a server makes its engine pretend to accept draft tokens.

    Args:
        server: What the server said of its settings.
    """
    found = sorted(simulated_settings(server.values))
    server.check("not_simulated", not found, found or "none", "no setting that simulates acceptance", cls=_INVALID)
