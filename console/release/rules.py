"""Who may decide on the jobs of a release, and for how long: set in release.yaml, the same for every job of it.

The rules are inputs of the run, so the log holds them and nobody can loosen them while a job waits. They are checked
where a decision is written, so that an operator learns at once, and again by the conductor, which alone acts on one.
Accounts are told apart by what the operating system says of the files (their owner), not only by the names in them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from console.release.queue import APPROVED, EXPIRED, FIRST, Decision, Proposal, QueueError, first_of

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(r"([1-9]\d{0,8})([smhd])")
SPAN = "a whole number and a unit, such as 30m, 8h or 2d, and at most 365d"
_LONGEST = 365 * 86400


@dataclass(frozen=True, slots=True)
class Rules:
    """What must hold before an OK counts.

    Attributes:
        approvals: So many different accounts must approve the same digest: 1 or 2.
        proposer_may_approve: Whether the account that laid a job into the queue may approve it.
        decide_within_s: So many seconds after the proposal it expires; None for never.
        signed: Whether every decision must be signed with the operator's SSH key.
        bounds: Within which bounds a policy may be proposed, in words; empty for none.
    """

    approvals: int = 1
    proposer_may_approve: bool = True
    decide_within_s: int | None = None
    signed: bool = False
    bounds: str = ""

    @property
    def of_people(self) -> bool:
        """Whether only people can follow them: a policy is no account, and has a signature only if it has bounds."""
        return self.about_accounts or (self.signed and not self.bounds)

    @property
    def about_accounts(self) -> bool:
        """Whether it matters which account approves."""
        return self.approvals > 1 or not self.proposer_may_approve

    def asks_for_people(self) -> str:
        """The rules that only people can follow, as fields of release.yaml; empty where there is none."""
        found = [f"approvals is {self.approvals}"] if self.approvals > 1 else []
        found += [] if self.proposer_may_approve else ["proposer_may_approve is false"]
        found += ["signed_decisions is true without bounds"] if self.signed and not self.bounds else []
        return " and ".join(found)

    def inputs(self) -> dict[str, Any]:
        """The rules as inputs of a run; nothing where there is none, as in the logs from before there were rules."""
        found: dict[str, Any] = {}
        if self.approvals > 1:
            found["approvals"] = self.approvals
        if not self.proposer_may_approve:
            found["proposer_may_approve"] = False
        if self.decide_within_s is not None:
            found["decide_within"] = f"{self.decide_within_s}s"
        if self.signed:
            found["signed_decisions"] = True
        if self.bounds:
            found["bounds"] = self.bounds
        return found

    def words(self) -> tuple[str, ...]:
        """The rules in words, for whoever decides; nothing where there is none."""
        found = []
        if self.approvals > 1:
            found.append(f"{self.approvals} different accounts must approve the same digest")
        if not self.proposer_may_approve:
            found.append("the account that proposed a job cannot approve it")
        if self.signed:
            found.append("every decision must be signed with the operator's SSH key")
        if self.decide_within_s is not None:
            found.append(f"a job that nobody decides on within {span_words(self.decide_within_s)} expires")
        return tuple(found)


def rules_of(inputs: Mapping[str, Any]) -> Rules:
    """The rules that the log holds of a run; without any, one OK of anybody."""
    within = inputs.get("decide_within")
    return Rules(
        int(inputs.get("approvals", 1)),
        bool(inputs.get("proposer_may_approve", True)),
        None if within is None else seconds_of_span(str(within)),
        bool(inputs.get("signed_decisions", False)),
        str(inputs.get("bounds", "")),
    )


def seconds_of_span(text: str) -> int:
    """A span of time ("30m", "8h", "2d") in seconds.

    Raises:
        ValueError: When it is none.
    """
    found = _SPAN.fullmatch(text)
    if found is None or int(found[1]) * _UNITS[found[2]] > _LONGEST:
        raise ValueError(f"expected {SPAN}, found {text[:40]!r}")
    return int(found[1]) * _UNITS[found[2]]


def span_words(seconds: int) -> str:
    """Seconds in the largest unit that holds them exactly ("8 hours")."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} seconds"


def stamp(time: datetime) -> str:
    """A time as it stands in proposals and in the log."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def deadline(start: datetime, *spans: int | None) -> str:
    """The earliest end of some spans (seconds) from a time on; empty where there is none."""
    known = [span for span in spans if span is not None]
    return stamp(start + timedelta(seconds=min(known))) if known else ""


def read_time(text: str) -> datetime:
    """A time with its zone.

    Raises:
        ValueError: When it is none.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"expected a time in UTC, found {text[:40]!r}")
    return time


def is_past(expires_at: str, time: datetime) -> bool:
    """Whether a proposal's time is over; one without a limit never is, one whose limit is no time always is."""
    if not expires_at:
        return False
    try:
        return time >= read_time(expires_at)
    except ValueError:
        return True


def decided_in_time(decision: Decision, expires_at: str) -> bool:
    """Whether a decision says that it was made before the proposal expired."""
    try:
        return not is_past(expires_at, read_time(decision.time))
    except ValueError:
        return not expires_at


def owner(path: Path) -> int:
    """The account that a file belongs to, by its number; -1 where nobody can say."""
    try:
        return os.lstat(path).st_uid
    except OSError:
        return -1


def unsigned(rules: Rules, decision: Decision) -> str:
    """Why a decision does not count for want of a signature; empty when it has one or needs none."""
    if not rules.signed or decision.signature or decision.decision == EXPIRED:
        return ""
    if decision.operator == "policy" and rules.bounds:
        return ""  # the policy itself was signed, and what it covers is counted afresh before it counts
    return f"the rules of this release ask for signed decisions, and that of {decision.operator} is not signed"


def against(rules: Rules, proposal: Proposal, decision: Decision, account: int, *, last: bool = True) -> str:
    """Why an OK does not count under the rules; empty when it does.

    Args:
        rules: The rules.
        proposal: What it is about.
        decision: The OK; anything else is free to everybody.
        account: Number of the account that gives it.
        last: Whether it is the one that makes the job go; the first of two needs no other before it.
    """
    if decision.decision != APPROVED:
        return ""
    if rules.of_people and decision.operator == "policy":
        return "the rules of this release ask for people, and no policy approves in their place"
    if not rules.proposer_may_approve and account in (owner(proposal.folder / "proposal.json"), -1):
        return f"{decision.operator} proposed it, and the rules of this release let only another account approve it"
    if rules.approvals < 2 or not last:
        return ""
    try:
        first = first_of(proposal)
    except QueueError as error:
        return str(error)
    if first is None:
        return "the rules of this release ask for two approvals, and there is one"
    earlier = owner(proposal.folder / FIRST)
    if first.digest != proposal.digest:
        return f"the first approval, of {first.operator}, names digest {first.digest}, which is not this job's"
    if first.operator == decision.operator or earlier in (account, -1) or account == -1:
        return f"{first.operator} approved it already, and the rules of this release ask for another account, too"
    return against(rules, proposal, first, earlier, last=False)
