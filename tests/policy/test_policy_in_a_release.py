"""A release within a policy: a person approves the policy, it approves what is inside, anything else waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from console.release import deciding, queue, submission
from console.release.canonical import canonical
from console.release.conductor import Conductor, Stop
from console.release.decisions import AwaitDecision, Plan, PlannedTask, ProposePolicy, Session, next_step
from console.release.errors import InputError
from console.release.journal import Entry
from console.release.policy import Policy, to_job
from console.release.policy_words import usage
from console.release.queue import Proposal, QueueError
from console.release.spec import load_release
from console.release.state import Attempt, Outcome
from console.release.taking import await_decision, log_proposal, take_decision
from console.release.verify.facts import Word
from console.release.verify.policies import check_policies
from console.release.writer import RunWriter
from tests.policy.test_within import IMAGE, policy
from tests.release.fake_cluster import FakeCluster
from tests.release.making import UPLOADS, decision, make_job, new_run

TOKEN = "fedcba9876543210"


class Flow:
    """A run whose conductor approves by policy, without a cluster."""

    def __init__(self, path: Path, **inputs: Any) -> None:
        self.writer: RunWriter = new_run(path, **{"bounds": "given", "approve_submissions": "none", **inputs})
        nobody = cast(Any, None)
        self.conductor = cast(Any, object.__new__(Conductor))
        self.conductor.writer = self.writer
        self.conductor.approve, self.conductor.wait_s, self.conductor.signers = "none", 0.0, nobody
        self.conductor.monotonic = lambda: 0.0
        self.conductor.live = cast(Any, type("Live", (), {"wait": lambda *args: None})())
        self.count = 0

    def put(self, job: Any, uploads: dict[str, bytes] | None = None) -> Proposal:
        self.count += 1
        name = f"{self.count:03d}-{job.task}-{job.attempt}"
        files = UPLOADS if uploads is None else uploads
        proposal = queue.propose(self.writer.run_dir, name, job, files, proposer="conductor", time=self.writer.clock())
        log_proposal(self.writer, proposal, job, f"Proposed {name}")
        return proposal

    def policy(self, made: Policy, word: str = queue.APPROVED) -> Proposal:
        """Propose a policy, and let a person decide on it."""
        proposal = self.put(to_job(made, 1, TOKEN), {})
        with pytest.raises(Stop):
            self.wait(proposal)
        deciding.decide(self.writer.run_dir, decision(proposal, word))
        self.wait(proposal)
        return proposal

    def job(self, number: int, **changes: Any) -> Attempt:
        """Propose a job, and let the policy look at it."""
        proposal = self.put(make_job(attempt=number, token=f"{number:016x}", image=IMAGE, **changes))
        with contextlib.suppress(Stop):
            self.wait(proposal)
        return self.attempt(proposal)

    def wait(self, proposal: Proposal) -> None:
        asyncio.run(await_decision(self.conductor, proposal.id))

    def attempt(self, proposal: Proposal) -> Attempt:
        found = self.writer.state.attempt(proposal.id)
        assert found is not None
        return found

    def wrong(self) -> list[str]:
        """What a stranger finds wrong with approvals by the policy."""
        facts = check_policies(self.writer.run_dir, self.writer.state, self.writer.entries)
        return [fact.text for fact in facts if fact.word is Word.WRONG]


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return Flow(tmp_path / "run")


def outside(flow: Flow) -> list[Entry]:
    return [entry for entry in flow.writer.entries if entry.data["event"] == "outside_policy"]


def test_a_policy_waits_for_a_person_and_then_approves_what_is_inside_and_nothing_else(flow: Flow) -> None:
    flow.policy(policy(jobs=2))
    assert usage(flow.writer.state.policy).startswith("0 of 2 jobs, 0.00 of 40.00 GPU hours, until 2026-01-05")
    first = flow.job(1)
    assert (first.outcome, first.decided_by) == (Outcome.APPROVED, "policy")
    assert "1 of 2 jobs, 12.00 of 40.00 GPU hours" in first.said
    assert flow.job(2).outcome is Outcome.APPROVED
    assert usage(flow.writer.state.policy).startswith("2 of 2 jobs, 24.00 of 40.00 GPU hours")
    third = flow.job(3)
    assert third.outcome is Outcome.PROPOSED, "it waits for a person"
    (entry,) = outside(flow)
    assert "it would be job 3 of at most 2" in entry.text
    proposal = queue.load(flow.writer.run_dir, third.id)
    deciding.decide(flow.writer.run_dir, decision(proposal))
    flow.wait(proposal)
    assert flow.attempt(proposal).decided_by == "operator:alice"
    assert flow.writer.state.policy["jobs"] == 2, "what a person approved takes nothing of it"
    assert len(outside(flow)) == 1
    assert flow.wrong() == []


def test_without_an_approved_policy_every_job_waits(flow: Flow) -> None:
    flow.policy(policy(), queue.REJECTED)
    assert flow.writer.state.policy == {}
    assert flow.job(1).outcome is Outcome.PROPOSED
    assert "no policy was approved" in outside(flow)[0].text


def test_a_policy_that_is_changed_after_its_approval_covers_nothing(flow: Flow) -> None:
    proposal = flow.policy(policy(jobs=1))
    file = proposal.folder / "job.json"
    file.chmod(0o600)
    file.write_bytes(to_job(policy(jobs=1000), 1, TOKEN).to_bytes())
    assert flow.job(1).outcome is Outcome.PROPOSED
    assert "was changed after it was approved" in outside(flow)[0].text


def test_what_is_approved_but_no_policy_in_its_exact_form_covers_nothing(flow: Flow) -> None:
    made = to_job(policy(), 1, TOKEN).model_copy(update={"summary": "Harmless"})
    proposal = flow.put(made, {})
    deciding.decide(flow.writer.run_dir, decision(proposal))
    flow.wait(proposal)
    assert flow.writer.state.policy == {}
    assert flow.job(1).outcome is Outcome.PROPOSED


def test_a_decision_that_only_names_the_policy_is_counted_afresh(flow: Flow) -> None:
    flow.policy(policy(jobs=1))
    assert flow.job(1).outcome is Outcome.APPROVED
    proposal = flow.put(make_job(attempt=2, token=f"{2:016x}", image=IMAGE))
    forged = decision(proposal, operator="policy")
    (proposal.folder / "decision.json").write_bytes(canonical(forged.to_json()))
    asyncio.run(take_decision(flow.conductor, flow.attempt(proposal)))
    after = flow.attempt(proposal)
    assert after.outcome is Outcome.INVALIDATED
    assert "it would be job 2 of at most 1" in after.said


def test_no_policy_approves_a_policy(flow: Flow) -> None:
    flow.policy(policy())
    proposal = flow.put(to_job(policy(jobs=1000), 2, "a" * 16), {})
    (proposal.folder / "decision.json").write_bytes(canonical(decision(proposal, operator="policy").to_json()))
    asyncio.run(take_decision(flow.conductor, flow.attempt(proposal)))
    assert flow.attempt(proposal).outcome is Outcome.INVALIDATED
    assert flow.writer.state.policy["max_jobs"] == 4


def test_a_policy_is_never_submitted(flow: Flow) -> None:
    proposal = flow.policy(policy())
    cluster = FakeCluster()
    asyncio.run(submission.submit(flow.writer, cast(Any, cluster), flow.attempt(proposal)))
    assert cluster.asked == 0
    assert "never submitted" in flow.attempt(proposal).said


def test_a_signed_release_takes_unsigned_approvals_of_a_policy_only_within_bounds(tmp_path: Path) -> None:
    flow = Flow(tmp_path / "run", signed_decisions=True)
    proposal = flow.put(to_job(policy(), 1, TOKEN), {})
    with pytest.raises(QueueError, match="is not signed"):
        deciding.decide(flow.writer.run_dir, decision(proposal))
    assert flow.job(1).outcome is Outcome.PROPOSED, "the policy itself is not approved"


def test_verify_names_what_was_outside_and_what_was_counted_otherwise(flow: Flow) -> None:
    flow.policy(policy(jobs=1))
    flow.job(1)
    assert flow.wrong() == []
    proposal = flow.put(make_job(attempt=2, token=f"{2:016x}", image=IMAGE))
    receipt = decision(proposal, operator="policy").to_json()
    flow.writer.record(
        "job_decided", "approved", stage="train", id=proposal.id, digest=proposal.digest, decision="approved",
        by="policy", reason="", receipt=receipt, takes={"policy": "001-policy-1", "jobs": 0, "gpu_seconds": 0},
    )  # fmt: skip
    (text,) = flow.wrong()
    assert "outside it: it would be job 2 of at most 1" in text


def test_verify_names_an_approval_by_a_policy_that_nobody_approved(flow: Flow) -> None:
    proposal = flow.put(make_job(image=IMAGE))
    receipt = decision(proposal, operator="policy").to_json()
    flow.writer.record(
        "job_decided", "approved", stage="train", id=proposal.id, digest=proposal.digest, decision="approved",
        by="policy", reason="", receipt=receipt,
    )  # fmt: skip
    assert flow.wrong() == ["it was approved by a policy, and none was approved before"]


# The flow.


def test_the_policy_comes_before_the_first_job_and_holds_nothing_up_once_it_is_decided_on(flow: Flow) -> None:
    plan = Plan((PlannedTask("train", "train", ()),), 0, policy=True)
    session = Session(probed=True)
    writer = flow.writer
    writer.record("stage_started", "setup", stage="setup")
    writer.record("setup_done", "answers", stage="setup", facts={"partition": "batch"})
    assert next_step(writer.state, plan, session) == ProposePolicy(1)
    assert not isinstance(next_step(writer.state, replace(plan, policy=False), session), ProposePolicy)
    proposal = flow.put(to_job(policy(), 1, TOKEN), {})
    assert next_step(writer.state, plan, session) == AwaitDecision(proposal.id)
    for word in ("approved", "rejected", "expired"):
        outcome = Outcome(word)
        attempt = replace(flow.attempt(proposal), outcome=outcome)
        setup = replace(writer.state.stage("setup"), attempts=(attempt,))
        state = replace(writer.state, stages=(setup, *writer.state.stages[1:]))
        assert type(next_step(state, plan, session)).__name__ == "PassStage"
    voids = tuple(replace(attempt, outcome=Outcome.INVALIDATED, attempt=number) for number in (1, 2, 3))
    for count, wanted in ((1, ProposePolicy), (3, None)):
        setup = replace(writer.state.stage("setup"), attempts=voids[:count])
        step = next_step(replace(writer.state, stages=(setup, *writer.state.stages[1:])), plan, session)
        assert isinstance(step, ProposePolicy) is (wanted is not None)


# The inputs.


PLAIN = {"target": "a/b", "revision": "0" * 40, "algorithm": "dflash2", "budget": "dev", "approve_submissions": "none"}
BOUNDS: dict[str, Any] = {"stages": ["train"], "partition": "batch", "jobs": 4, "gpu_hours": 40, "days": 3}


def spec(tmp_path: Path, **changes: Any) -> Any:
    path = tmp_path / "release.yaml"
    path.write_text(json.dumps({**PLAIN, "bounds": {**BOUNDS, **changes}}))
    return load_release(path)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"stages": []}, "bounds.stages"), ({"stages": ["setup"]}, "bounds.stages[0]"),
        ({"stages": ["asked"]}, "bounds.stages[0]"), ({"partition": ""}, "bounds.partition"),
        ({"image": "registry/image:latest"}, "bounds.image"), ({"image": "/images/x.sqsh"}, "bounds.image"),
        ({"jobs": 0}, "bounds.jobs"), ({"jobs": True}, "bounds.jobs"), ({"gpu_hours": -1}, "bounds.gpu_hours"),
        ({"days": 366}, "bounds.days"), ({"weeks": 1}, "bounds.weeks"),
    ],
)  # fmt: skip
def test_bounds_that_cannot_be_used_are_refused(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        spec(tmp_path, **change)
    assert caught.value.field == field


def test_bounds_are_part_of_the_rules_that_the_log_holds(tmp_path: Path) -> None:
    words = spec(tmp_path, image=IMAGE).rules.inputs()["bounds"]
    assert words == f"train on partition batch, image {IMAGE}: at most 4 jobs, 40 GPU hours, 3 days"
