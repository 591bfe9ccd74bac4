"""Writing decisions, and using an OK up: what whoever only proposes or looks must never reach.

These are the only functions that create `decision.json` and `used.json`. They are a module of their own so that the
import contract can keep everything that speaks for other programs away from them.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from console.release import effects
from console.release.canonical import canonical
from console.release.queue import (
    APPROVED,
    REJECTED,
    AlreadyDecided,
    Decision,
    Proposal,
    QueueError,
    decision_of,
    load,
    used_bytes,
)


def decide(run_dir: Path, decision: Decision) -> None:
    """Write a decision. The first one stands.

    Raises:
        AlreadyDecided: When there is one.
        QueueError: When the proposal is gone or is not the one that was shown, or a rejection gives no reason.
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
    try:
        effects.create(proposal.folder / "decision.json", canonical(decision.to_json()), f"decision {decision.id}")
    except FileExistsError:
        standing = decision_of(proposal)
        assert standing is not None, "a decision that exists can be read: it appears whole"
        raise AlreadyDecided(decision.id, standing) from None


def use(proposal: Proposal, time: datetime) -> bool:
    """Use an OK up. True the first time, False ever after."""
    data = used_bytes(proposal.id, proposal.digest, time)
    try:
        effects.create(proposal.folder / "used.json", data, f"use {proposal.id}")
    except FileExistsError:
        return False
    return True
