"""The approvals of a release against its rules: in time, by so many accounts, by the accounts that may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from console.release.canonical import canonical
from console.release.queue import FIRST
from console.release.rules import Rules, is_past, read_time
from console.release.state import Attempt
from console.release.verify.facts import Fact, Facts, kept, told

Logged = Mapping[str, Sequence[Mapping[str, Any]]]


def check_rules(place: Path, attempt: Attempt, logged: Logged, rules: Rules) -> Facts:
    """Whether what approved a job was allowed to, by the log and by the files that lie there.

    Accounts are those that the conductor saw as owners of the files: a copy of the folder has others.

    Args:
        place: Folder of the proposal.
        attempt: The attempt.
        logged: Its records, by event.
        rules: The rules of the release.
    """
    about = f"submissions/{attempt.id}"
    firsts = [item["receipt"] for item in logged.get("first_approved", [])]
    first: Mapping[str, Any] | None = firsts[0] if firsts else None
    if first is not None or rules.approvals > 1:
        yield kept(f"{about}/{FIRST}", place / FIRST, None if first is None else canonical(dict(first)))
    for item in logged.get("job_decided", []):
        if item["decision"] != "approved":
            continue
        receipt = item.get("receipt") or {}
        if attempt.expires_at:
            yield _in_time(about, str(receipt.get("time", "")), attempt.expires_at)
        if not rules.about_accounts:
            continue
        accounts = item.get("accounts") or {}
        by = str(receipt.get("operator", ""))
        if rules.approvals > 1:
            yield from _two(about, attempt, first, by, accounts)
        if not rules.proposer_may_approve:
            yield _not_the_proposer(about, accounts)


def _in_time(about: str, time: str, expires_at: str) -> Fact:
    try:
        late = is_past(expires_at, read_time(time))
    except ValueError:
        late = True
    otherwise = f"approved at {time or 'no time'}, after its time was up at {expires_at}"
    return told(not late, about, f"approved before its time was up at {expires_at}", otherwise)


def _two(about: str, attempt: Attempt, first: Mapping[str, Any] | None, by: str, accounts: Mapping[str, Any]) -> Facts:
    if first is None:
        yield told(False, f"{about}/{FIRST}", "", "the rules ask for two approvals, and the log has only one")
        return
    yield told(
        first.get("digest") == attempt.digest,
        f"{about}/{FIRST}",
        "the first approval names this digest",
        f"the first approval names digest {first.get('digest')}, approved was {attempt.digest}",
    )
    numbers = (accounts.get("first"), accounts.get("decision"))
    known = all(type(number) is int and number >= 0 for number in numbers)
    two = first.get("operator") != by and known and numbers[0] != numbers[1]
    yield told(
        two,
        about,
        f"approved by two accounts, {first.get('operator')} and {by}",
        f"the rules ask for two accounts; approved by {first.get('operator')} and {by}, accounts {numbers}",
    )


def _not_the_proposer(about: str, accounts: Mapping[str, Any]) -> Fact:
    proposer = accounts.get("proposer")
    others = [accounts[who] for who in ("first", "decision") if who in accounts]
    known = type(proposer) is int and proposer >= 0 and bool(others)
    fine = known and all(type(item) is int and item >= 0 and item != proposer for item in others)
    return told(
        fine,
        about,
        "approved by another account than the one that proposed it",
        f"the rules let the proposer not approve; proposed by account {proposer}, approved by {others}",
    )
