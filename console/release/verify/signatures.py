"""Each decision of an operator: whether it is signed, and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from console.release import signing
from console.release.queue import Decision
from console.release.rules import Rules, unsigned
from console.release.signing import Signers
from console.release.state import Attempt
from console.release.verify.facts import Fact, Facts, not_checked, ok, wrong

Logged = Mapping[str, Sequence[Mapping[str, Any]]]


def check_signatures(attempt: Attempt, logged: Logged, rules: Rules, signers: Signers | None, run_id: str) -> Facts:
    """One fact for each decision that counted.

    Args:
        attempt: The attempt.
        logged: Its records, by event, each with its time.
        rules: The rules of the release.
        signers: Whose signatures count, None where nobody said.
        run_id: The release.
    """
    about = f"submissions/{attempt.id}"
    decided = [item for item in logged.get("job_decided", []) if item["decision"] in ("approved", "rejected")]
    for item in (*logged.get("first_approved", []), *decided):
        receipt = item.get("receipt")
        decision = _read(receipt)
        if decision is None:
            if receipt is not None:
                yield wrong(about, "the log holds a decision that is none")
        else:
            yield _one(about, decision, rules, signers, run_id, datetime.fromisoformat(str(item["time"])))


def _read(receipt: Any) -> Decision | None:
    try:
        return Decision(**{key: value for key, value in receipt.items() if key != "schema_version"})
    except (TypeError, AttributeError):
        return None


def _one(about: str, decision: Decision, rules: Rules, signers: Signers | None, run_id: str, at: datetime) -> Fact:
    who = f"{decision.decision} by {decision.operator} at {decision.time}"
    missing = unsigned(rules, decision)
    if missing:
        return wrong(about, f"{who}: {missing}")
    if not decision.signature:
        return ok(about, f"{who}: not signed, and the release asks for no signature")
    problem = signing.against_one(rules, None, decision, run_id, at) if decision.run_id != run_id else ""
    if problem:
        return wrong(about, f"{who}: {problem}")
    found = signing.check_bytes(decision) if signers is None else signers.check(decision, at)
    if found.good is None:
        return not_checked(about, f"{who}: its signature could not be checked: {found.text}")
    if found.good is False:
        return wrong(about, f"{who}: its signature is not one of theirs over these bytes: {found.text}")
    if signers is None:
        text = f"signed with {found.text}; whose key that is nobody can say: name a file with --allowed-signers"
        return not_checked(about, f"{who}: {text}")
    return ok(about, f"{who}: signed with {found.text}")
