"""What is changed on disk after a proposal, or after its OK, is not submitted; both digests are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.release import deciding, queue
from console.release.asking.building import propose, read_asked
from console.release.canonical import canonical, sha256
from console.release.queue_view import item
from console.release.state import Outcome
from tests.asking.desks import NOW, Desk
from tests.release.making import decision

WHAT = ("script", "upload", "environment")


def asked(desk: Desk) -> queue.Proposal:
    proposal = desk.ask("--export=MODE=safe", uploads={"tool.py": b"print('as shown')\n"})
    desk.look()
    return proposal


def change(proposal: queue.Proposal, what: str) -> tuple[str, str]:
    """Change one thing on disk.

    Returns:
        Two digests, of what was proposed and of what lies there now.
    """
    if what == "upload":
        file = proposal.folder / "uploads" / "tool.py"
        before = file.read_bytes()
        file.write_bytes(b"print('another')\n")
        return sha256(before), sha256(file.read_bytes())
    job: dict[str, Any] = json.loads(proposal.job_bytes)
    if what == "script":
        job["script"] += "true\n"
    else:
        job["environment"][-1][1] = "fast"
        job["options"] = [option.replace("MODE=safe", "MODE=fast") for option in job["options"]]
    file = proposal.folder / "job.json"
    file.write_bytes(canonical(job))
    return proposal.digest, sha256(file.read_bytes())


@pytest.mark.parametrize("what", WHAT)
def test_changed_between_proposal_and_decision_nobody_can_approve_it(desk: Desk, what: str) -> None:
    proposal = asked(desk)
    shown = decision(proposal)
    proposed, found = change(proposal, what)
    with pytest.raises(queue.QueueError) as caught:
        deciding.decide(desk.run_dir, shown)
    assert proposed in str(caught.value)
    assert found in str(caught.value)
    assert not (proposal.folder / "decision.json").exists()
    desk.look()
    assert (desk.cluster.asked, desk.asked[0].outcome) == (0, Outcome.PROPOSED)


@pytest.mark.parametrize("what", ["script", "environment"])
def test_an_ok_for_the_changed_bytes_is_none_for_the_proposal(desk: Desk, what: str) -> None:
    """As by somebody who looks at the files and not at the log."""
    proposal = asked(desk)
    proposed, found = change(proposal, what)
    deciding.decide(desk.run_dir, decision(queue.load(desk.run_dir, proposal.id)))
    desk.look()
    desk.look()
    assert (desk.cluster.asked, desk.asked[0].outcome) == (0, Outcome.INVALIDATED)
    assert proposed in desk.asked[0].said
    assert found in desk.asked[0].said


@pytest.mark.parametrize("logged", [False, True], ids=["before it was logged", "after it was logged"])
@pytest.mark.parametrize("what", WHAT)
def test_changed_between_decision_and_submission_it_is_not_submitted(desk: Desk, what: str, logged: bool) -> None:
    proposal = asked(desk)
    deciding.decide(desk.run_dir, decision(proposal))
    if logged:
        desk.look()
        assert desk.asked[0].outcome is Outcome.APPROVED
    proposed, found = change(proposal, what)
    for _ in range(3):
        desk.look()
    assert (desk.cluster.asked, desk.asked[0].outcome) == (0, Outcome.INVALIDATED)
    shown = item(desk.run_dir, desk.process.writer.state, proposal.id)
    assert shown.state == "invalidated"
    for digest in (proposed, found):
        assert digest in desk.process.writer.entries[-1].text
        assert digest in shown.reason


def test_the_program_s_own_files_are_copied_when_it_asks(desk: Desk, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho as shown\n")
    read = read_asked(["job.sh"], stdin=None, folder=tmp_path)
    proposal = propose(desk.run_dir, desk.process.writer.state, read, {}, proposer="robot", now=NOW)
    script.write_text("#!/bin/sh\necho another\n")
    desk.look()
    deciding.decide(desk.run_dir, decision(proposal))
    for _ in range(2):
        desk.look()
    ((_, request),) = desk.cluster.accepted
    assert request.script == b"#!/bin/sh\necho as shown\n"
