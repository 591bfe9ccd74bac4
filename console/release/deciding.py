"""Writing decisions, and using an OK up: what whoever only proposes or looks must never reach.

These are the only functions that create `decision.json`, `first.json` and `used.json`. They are a module of their own
so that the import contract can keep everything that speaks for other programs away from them.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from console.release import effects, folder
from console.release.canonical import canonical
from console.release.queue import (
    APPROVED,
    EXPIRED,
    FIRST,
    REJECTED,
    AlreadyDecided,
    Decision,
    Proposal,
    QueueError,
    decision_of,
    first_of,
    load,
    used_bytes,
)
from console.release.rules import Rules, against, decided_in_time, rules_of, stamp, unsigned


def decide(run_dir: Path, decision: Decision) -> bool:
    """Write a decision. The first one stands.

    Returns:
        True when it decides; False when it is the first of two approvals, and another account must approve, too.

    Raises:
        AlreadyDecided: When there is one, or the time for one was up.
        QueueError: When the proposal or a file of it is gone or is not the one that was shown, its time is up, a
            rejection gives no reason, the rules of the release let this account not approve it or ask for a signature
            that is not there, or nobody can say what they are.
    """
    proposal = load(run_dir, decision.id)
    standing = decision_of(proposal)
    if standing is not None:
        raise AlreadyDecided(decision.id, standing)
    if decision.digest != proposal.digest:
        raise QueueError(
            f"{decision.id}: the job is not the one that was shown: it has digest {proposal.digest}, "
            f"the decision names {decision.digest}; look at it again"
        )
    if decision.decision not in (APPROVED, REJECTED):
        raise QueueError(f"{decision.id}: {decision.decision!r} is no decision; it is approved or rejected")
    if decision.decision == REJECTED and not decision.reason.strip():
        raise QueueError(f"{decision.id}: a rejection needs a reason, which goes back to the proposer")
    if decision.decision == APPROVED:
        _require_files(proposal)
    rules, expires_at = _terms(run_dir, proposal)
    if not decided_in_time(decision, expires_at):
        raise QueueError(f"{decision.id}: its time was up at {expires_at}; it expires, and nobody can decide on it")
    problem = unsigned(rules, decision)
    if problem:
        raise QueueError(f"{decision.id}: {problem}")
    if rules.approvals > 1 and decision.decision == APPROVED and _is_first(rules, proposal, decision):
        return False
    problem = against(rules, proposal, decision, os.geteuid())
    if problem:
        raise QueueError(f"{decision.id}: {problem}")
    _create(proposal, decision)
    return True


def _require_files(proposal: Proposal) -> None:
    """Make sure that the job is one and that what travels along is what it names: an OK covers that, too."""
    from console.release.job import JobError

    try:
        proposal.uploads()
    except JobError as error:
        raise QueueError(f"{proposal.id}: {error}") from None


def _terms(run_dir: Path, proposal: Proposal) -> tuple[Rules, str]:
    """The rules of the release, and when the time for a decision is up: what the log says, else the proposal."""
    try:
        state = folder.read_state(run_dir)
    except folder.FolderError as error:
        raise QueueError(f"{proposal.id}: the rules of the release are not known: {error}") from None
    if state is None:
        return Rules(), proposal.expires_at
    if proposal.id in state.refused:
        raise QueueError(f"{proposal.id}: the conductor refused it, so there is nothing to decide on; the log says why")
    attempt = state.attempt(proposal.id)
    return rules_of(state.inputs), proposal.expires_at if attempt is None else attempt.expires_at


def _is_first(rules: Rules, proposal: Proposal, decision: Decision) -> bool:
    """Write the first of two approvals, if it is that."""
    if first_of(proposal) is not None:
        return False
    problem = against(rules, proposal, decision, os.geteuid(), last=False)
    if problem:
        raise QueueError(f"{decision.id}: {problem}")
    try:
        effects.create(proposal.folder / FIRST, canonical(decision.to_json()), f"first approval {decision.id}")
    except FileExistsError:
        return False
    return True


def _create(proposal: Proposal, decision: Decision) -> None:
    try:
        effects.create(proposal.folder / "decision.json", canonical(decision.to_json()), f"decision {decision.id}")
    except FileExistsError:
        standing = decision_of(proposal)
        assert standing is not None, "a decision that exists can be read: it appears whole"
        raise AlreadyDecided(decision.id, standing) from None


def expire(proposal: Proposal, digest: str, expires_at: str, now: datetime) -> Decision:
    """Let the time for a decision be up: it takes the place of one, and only where there is none.

    Args:
        proposal: What nobody decided on.
        digest: The digest that was proposed.
        expires_at: When its time was up.
        now: Now.

    Returns:
        What stands: the end of its time, or the decision of whoever was faster.

    Raises:
        QueueError: When there is a file that is no decision.
    """
    reason = f"nobody decided before {expires_at}"
    over = Decision(proposal.id, digest, EXPIRED, "conductor", reason, stamp(now), "conductor")
    try:
        _create(proposal, over)
    except AlreadyDecided as error:
        return error.decision
    return over


def use(proposal: Proposal, time: datetime) -> bool:
    """Use an OK up. True the first time, False ever after."""
    data = used_bytes(proposal.id, proposal.digest, time)
    try:
        effects.create(proposal.folder / "used.json", data, f"use {proposal.id}")
    except FileExistsError:
        return False
    return True
