"""Who may decide and for how long: what counts, what is refused, and what a stranger sees afterwards."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.cli import main
from console.plain import waiting_line
from console.release import deciding, opening, queue, rules, taking
from console.release.errors import InputError
from console.release.queue import APPROVED, EXPIRED, FIRST, REJECTED, AlreadyDecided, QueueError
from console.release.spec import load_release
from console.release.state import Outcome
from console.release.verify.facts import Word
from console.release.verify.whole import verify
from console.release.writer import RunWriter
from tests.release.making import UPLOADS, decision, make_job, new_run

NAME = "001-train-1"
IN_TIME, TOO_LATE = "2026-01-02T03:05:00Z", "2026-01-02T12:00:00Z"


class Accounts:
    """The accounts of a machine: who acts now, and whom each file belongs to."""

    def __init__(self) -> None:
        self.now = 1000
        self.owners: dict[Path, int] = {}

    def act(self, account: int) -> None:
        self.now = account

    def owner(self, path: Path) -> int:
        return self.owners.setdefault(path, self.now) if path.exists() else -1


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch) -> Accounts:
    made = Accounts()
    monkeypatch.setattr(rules, "owner", made.owner)
    monkeypatch.setattr(deciding.os, "geteuid", lambda: made.now)
    return made


class At:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def release(path: Path, **inputs: Any) -> tuple[RunWriter, At]:
    clock = At()
    writer = new_run(path, **inputs)
    writer.clock = clock
    return writer, clock


def conducting(writer: RunWriter) -> Any:
    return cast(Any, SimpleNamespace(writer=writer, signers=None))


def proposed(writer: RunWriter, accounts: Accounts | None = None) -> queue.Proposal:
    job = make_job()
    proposal = queue.propose(writer.run_dir, NAME, job, UPLOADS, proposer="conductor", time=writer.clock())
    taking.log_proposal(writer, proposal, job, f"Proposed {NAME}")
    if accounts is not None:
        accounts.owner(proposal.folder / "proposal.json")
    return proposal


def take(writer: RunWriter) -> Outcome:
    """What the conductor makes of what lies there."""
    attempt = writer.state.attempt(NAME)
    assert attempt is not None
    asyncio.run(taking.take_decision(conducting(writer), attempt))
    after = writer.state.attempt(NAME)
    assert after is not None
    return after.outcome


def approve(writer: RunWriter, proposal: queue.Proposal, accounts: Accounts, who: str, number: int) -> bool:
    accounts.act(number)
    final = deciding.decide(writer.run_dir, decision(proposal, operator=who, time=IN_TIME))
    accounts.owner(proposal.folder / ("decision.json" if final else FIRST))
    return final


def wrong(run_dir: Path) -> list[str]:
    """What a stranger finds wrong with the decisions."""
    return [
        f"{fact.about}: {fact.text}"
        for fact in verify(run_dir)
        if fact.word is Word.WRONG and fact.about.startswith("submissions/")
    ]


# The time for a decision.


def test_a_job_that_nobody_decides_on_in_time_expires_and_is_neither_approved_nor_rejected(tmp_path: Path) -> None:
    writer, clock = release(tmp_path / "run", decide_within="8h")
    proposal = proposed(writer)
    attempt = writer.state.attempt(NAME)
    assert attempt is not None
    assert attempt.expires_at == "2026-01-02T11:04:05.000000Z"
    clock.now = datetime(2026, 1, 2, 11, 4, 4, tzinfo=UTC)
    assert take(writer) is Outcome.PROPOSED, "a second before, it still waits"
    clock.now = datetime(2026, 1, 2, 11, 4, 5, tzinfo=UTC)
    assert take(writer) is Outcome.EXPIRED
    found = queue.decision_of(proposal)
    assert found is not None
    assert (found.decision, found.operator) == (EXPIRED, "conductor")
    assert writer.state.interventions == 0
    with pytest.raises(AlreadyDecided, match="nobody can any more"):
        deciding.decide(writer.run_dir, decision(proposal, time=IN_TIME))
    assert wrong(writer.run_dir) == []
    assert f"{NAME} is expired" in waiting_line(writer.state, writer.run_dir), "the operator is asked"


@pytest.mark.parametrize("word", [APPROVED, REJECTED])
def test_a_decision_after_the_time_was_up_is_refused(tmp_path: Path, word: str) -> None:
    writer, _ = release(tmp_path / "run", decide_within="8h")
    proposal = proposed(writer)
    with pytest.raises(QueueError, match="its time was up at 2026-01-02T11:04:05"):
        deciding.decide(writer.run_dir, decision(proposal, word, time=TOO_LATE))
    assert queue.decision_of(proposal) is None


def test_a_late_decision_that_was_written_by_hand_counts_as_expired(tmp_path: Path) -> None:
    writer, clock = release(tmp_path / "run", decide_within="8h")
    proposal = proposed(writer)
    late = decision(proposal, time=TOO_LATE)
    deciding._create(proposal, late)
    clock.now = datetime(2026, 1, 2, 12, 0, 1, tzinfo=UTC)
    assert take(writer) is Outcome.EXPIRED


def test_a_decision_made_in_time_counts_although_the_conductor_sees_it_later(tmp_path: Path) -> None:
    writer, clock = release(tmp_path / "run", decide_within="8h")
    proposal = proposed(writer)
    deciding.decide(writer.run_dir, decision(proposal, time=IN_TIME))
    clock.now = datetime(2026, 1, 3, tzinfo=UTC)
    assert take(writer) is Outcome.APPROVED


def test_an_approval_after_the_time_was_up_is_named_by_verify(tmp_path: Path) -> None:
    writer, _ = release(tmp_path / "run", decide_within="8h")
    proposal = proposed(writer)
    late = decision(proposal, time=TOO_LATE)
    deciding._create(proposal, late)
    logged(writer, proposal, late)
    assert [text for text in wrong(writer.run_dir) if "after its time was up" in text]


def logged(writer: RunWriter, proposal: queue.Proposal, made: queue.Decision, **data: Any) -> None:
    """Log an approval as a conductor would that does not look at the rules."""
    writer.record(
        "job_decided",
        f"{proposal.id} approved",
        stage="train",
        id=proposal.id,
        digest=proposal.digest,
        decision=APPROVED,
        by=f"operator:{made.operator}",
        reason="",
        receipt=made.to_json(),
        **data,
    )


# Two people.


@pytest.fixture
def two(tmp_path: Path, accounts: Accounts) -> tuple[RunWriter, queue.Proposal]:
    writer, _ = release(tmp_path / "run", approvals=2)
    return writer, proposed(writer, accounts)


Two = tuple[RunWriter, queue.Proposal]


def test_two_accounts_approve_and_both_stand_in_the_log(two: Two, accounts: Accounts) -> None:
    writer, proposal = two
    assert not approve(writer, proposal, accounts, "alice", 1000)
    assert take(writer) is Outcome.PROPOSED, "one approval decides nothing"
    assert "approved by alice, one more account must approve" in waiting_line(writer.state, writer.run_dir)
    assert approve(writer, proposal, accounts, "bob", 1001)
    assert take(writer) is Outcome.APPROVED
    assert "approved by operator:bob after alice" in writer.entries[-1].text
    assert wrong(writer.run_dir) == []


@pytest.mark.parametrize(("who", "number"), [("alice", 1000), ("bob", 1000), ("alice", 1001)])
def test_one_account_cannot_approve_twice_by_whatever_name(two: Two, accounts: Accounts, who: str, number: int) -> None:
    writer, proposal = two
    approve(writer, proposal, accounts, "alice", 1000)
    with pytest.raises(QueueError, match=r"alice approved it already.*another account"):
        approve(writer, proposal, accounts, who, number)
    assert queue.decision_of(proposal) is None
    assert take(writer) is Outcome.PROPOSED


def test_the_second_can_still_reject_after_a_first_approval(two: Two, accounts: Accounts) -> None:
    writer, proposal = two
    approve(writer, proposal, accounts, "alice", 1000)
    accounts.act(1001)
    deciding.decide(writer.run_dir, decision(proposal, REJECTED, operator="bob"))
    assert take(writer) is Outcome.REJECTED


def test_a_decision_written_past_the_rules_counts_for_nothing(two: Two, accounts: Accounts) -> None:
    writer, proposal = two
    deciding._create(proposal, decision(proposal))
    assert take(writer) is Outcome.INVALIDATED
    assert "ask for two approvals, and there is one" in writer.entries[-1].text


def test_a_first_approval_of_other_bytes_counts_for_nothing(two: Two, accounts: Accounts) -> None:
    writer, proposal = two
    approve(writer, proposal, accounts, "alice", 1000)
    path = proposal.folder / FIRST
    path.write_bytes(path.read_bytes().replace(proposal.digest.encode(), b"0" * 64))
    with pytest.raises(QueueError, match="names digest 0000"):
        approve(writer, proposal, accounts, "bob", 1001)


@pytest.mark.parametrize("data", [b"", b"{}", b"yes", b"[]"])
def test_a_broken_first_approval_counts_for_nothing_and_does_not_stop_a_rejection(
    two: Two, accounts: Accounts, data: bytes
) -> None:
    writer, proposal = two
    (proposal.folder / FIRST).write_bytes(data)
    with pytest.raises(QueueError, match=r"first\.json .*decides nothing"):
        approve(writer, proposal, accounts, "bob", 1001)
    deciding.decide(writer.run_dir, decision(proposal, REJECTED))
    assert take(writer) is Outcome.REJECTED


def test_verify_names_a_missing_first_approval(two: Two, accounts: Accounts) -> None:
    writer, proposal = two
    approve(writer, proposal, accounts, "alice", 1000)
    take(writer)
    approve(writer, proposal, accounts, "bob", 1001)
    take(writer)
    (proposal.folder / FIRST).unlink()
    assert any("first.json: the log says that it was written" in text for text in wrong(writer.run_dir))


@pytest.mark.parametrize(
    ("first", "seen"), [("alice", {"first": 1, "decision": 2}), ("bob", {"first": 1, "decision": 1}), ("bob", {})]
)
def test_verify_names_two_approvals_by_one_account(two: Two, first: str, seen: dict[str, int]) -> None:
    writer, proposal = two
    one, other = decision(proposal, operator=first), decision(proposal, operator="alice")
    writer.record("first_approved", "first", stage="train", id=NAME, by=first, account=1, receipt=one.to_json())
    logged(writer, proposal, other, accounts=seen)
    assert any("the rules ask for two accounts" in text for text in wrong(writer.run_dir))


def test_verify_names_one_approval_where_two_were_asked_for(two: Two) -> None:
    writer, proposal = two
    logged(writer, proposal, decision(proposal), accounts={"decision": 1})
    assert any("the log has only one" in text for text in wrong(writer.run_dir))


def test_the_list_and_the_job_say_who_approved_first_and_what_is_needed(
    two: Two, accounts: Accounts, capsys: pytest.CaptureFixture[str]
) -> None:
    writer, proposal = two
    approve(writer, proposal, accounts, "alice", 1000)
    assert main(["queue", "list", str(writer.run_dir)]) == 0
    assert "[first approval by alice, one more is needed]" in capsys.readouterr().out
    assert main(["queue", "show", str(writer.run_dir), NAME]) == 0
    shown = capsys.readouterr().out
    assert "2 different accounts must approve the same digest" in shown
    assert "approved by alice at" in shown
    assert main(["queue", "list", str(writer.run_dir), "--json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)
    assert (item["state"], item["first_by"]) == ("pending", "alice")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two accounts")
def test_two_real_accounts_approve_in_a_folder_that_their_group_shares(tmp_path: Path) -> None:
    for place in (tmp_path, *list(tmp_path.parents)[:3]):
        if place.stat().st_uid == os.geteuid() and place != Path("/tmp"):
            place.chmod(place.stat().st_mode | 0o055)
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chown(shared, 0, 61000)
    shared.chmod(0o2770)
    writer, _ = release(shared / "run", approvals=2)
    proposal = proposed(writer)

    def act(account: int, name: str) -> int:
        child = os.fork()
        if child == 0:
            os.setgroups([61000])
            os.setgid(account)
            os.setuid(account)
            try:
                os._exit(0 if deciding.decide(writer.run_dir, decision(proposal, operator=name)) else 3)
            except BaseException:
                os._exit(4)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert act(61001, "alice") == 3, "the first of two"
    assert act(61001, "mallory") == 4, "the same account under another name"
    assert act(61002, "bob") == 0
    assert take(writer) is Outcome.APPROVED
    assert wrong(writer.run_dir) == []


# Who proposed it cannot approve it.


def test_who_proposed_cannot_approve_but_can_reject(tmp_path: Path, accounts: Accounts) -> None:
    writer, _ = release(tmp_path / "run", proposer_may_approve=False)
    proposal = proposed(writer, accounts)
    with pytest.raises(QueueError, match="alice proposed it"):
        approve(writer, proposal, accounts, "alice", 1000)
    assert approve(writer, proposal, accounts, "bob", 1001)
    assert take(writer) is Outcome.APPROVED
    assert wrong(writer.run_dir) == []


def test_verify_names_an_approval_by_the_proposer(tmp_path: Path) -> None:
    writer, _ = release(tmp_path / "run", proposer_may_approve=False)
    proposal = proposed(writer)
    logged(writer, proposal, decision(proposal), accounts={"proposer": 5, "decision": 5})
    assert any("the rules let the proposer not approve" in text for text in wrong(writer.run_dir))


def test_no_policy_approves_in_the_place_of_people(tmp_path: Path) -> None:
    writer, _ = release(tmp_path / "run", proposer_may_approve=False)
    proposal = proposed(writer)
    with pytest.raises(QueueError, match="no policy approves in their place"):
        deciding.decide(writer.run_dir, decision(proposal, operator="policy"))


# What is written in release.yaml.

PLAIN = "target: /models/tiny\nalgorithm: dflash2\nbudget: dev\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "decide_within: 8",
            "decide_within: expected a whole number and a unit, such as 30m, 8h or 2d, and at most 365d, found 8",
        ),
        ("decide_within: 0h", "decide_within: expected a whole number and a unit"),
        ("decide_within: 8 hours", "decide_within: expected a whole number and a unit"),
        ("decide_within: 999999999d", "decide_within: expected a whole number and a unit"),
        ("approvals: 0", "approvals: expected 1 or 2, found 0"),
        ("approvals: 3", "approvals: expected 1 or 2, found 3"),
        ("approvals: true", "approvals: expected 1 or 2, found true"),
        ("approvals: '2'", "approvals: expected 1 or 2"),
        ("proposer_may_approve: maybe", "proposer_may_approve: expected true or false"),
        ("approvals: 2\napprove_submissions: none", "approve_submissions: expected each"),
        ("approve_submissions: none\nproposer_may_approve: false", "proposer_may_approve is false"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_file_and_field(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "release.yaml"
    path.write_text(f"{PLAIN}{line}\n")
    with pytest.raises(InputError) as fault:
        load_release(path)
    (said,) = str(fault.value).split("\n")
    assert said.startswith(str(path))
    assert words in said


def test_the_rules_of_a_release_come_back_from_its_log(tmp_path: Path) -> None:
    path = tmp_path / "release.yaml"
    path.write_text(f"{PLAIN}decide_within: 90m\napprovals: 2\nproposer_may_approve: false\n")
    wanted = rules.Rules(2, False, 5400)
    spec = load_release(path)
    assert spec.rules == wanted
    assert rules.rules_of(spec.rules.inputs()) == wanted
    path.write_text(PLAIN)
    assert load_release(path).rules.inputs() == {}, "a log without rules stays what it was"


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    """A release file and a clusters file; nothing is ever connected to."""
    clusters, release = tmp_path / "clusters.yaml", tmp_path / "release.yaml"
    entry = {"login_node": "login.example.org", "user": "alice", "workspace": "/work/alice"}
    clusters.write_text(json.dumps({"clusters": {"gpu": entry}}))
    release.write_text(f"{PLAIN}recipe: demo\n")
    return release, clusters


@pytest.mark.parametrize("rule", ["approvals: 2", "proposer_may_approve: false"])
def test_a_policy_beside_rules_for_people_is_refused_at_the_start_and_on_resume(
    tmp_path: Path, inputs: tuple[Path, Path], rule: str
) -> None:
    file, clusters = inputs
    file.write_text(f"{file.read_text()}{rule}\ndecide_within: 2d\n")
    run_dir, clock = tmp_path / "run", At()
    with pytest.raises(InputError, match="approve_submissions: expected each, since") as fault:
        opening.start_run(file, run_dir=run_dir, clusters_file=clusters, approve="none", clock=clock)
    assert "\n" not in str(fault.value)
    assert not run_dir.exists(), "nothing was made"
    opened = opening.start_run(file, run_dir=run_dir, clusters_file=clusters, approve=None, clock=clock)
    opened.lock.close()
    assert rules.rules_of(opened.writer.state.inputs) == load_release(file).rules
    assert rules.rules_of(opened.writer.state.inputs).decide_within_s == 2 * 86400
    with pytest.raises(InputError, match="approve_submissions: expected each, since"):
        opening.resume_run(run_dir, approve="none", clock=clock)
    opening.resume_run(run_dir, approve=None, clock=clock).lock.close()


def test_of_two_first_approvals_at_once_one_is_first_and_the_other_completes_it(two: Two, accounts: Accounts) -> None:
    writer, proposal = two
    looked = queue.first_of(proposal)
    assert looked is None, "both have looked, and neither saw the other"
    approve(writer, proposal, accounts, "alice", 1000)
    accounts.act(1001)
    one = deciding._is_first(rules.Rules(approvals=2), proposal, decision(proposal, operator="bob"))
    assert not one, "there is a first approval, and its bytes stay"
    found = queue.first_of(proposal)
    assert found is not None
    assert found.operator == "alice"
    assert approve(writer, proposal, accounts, "bob", 1001)
    with pytest.raises(AlreadyDecided, match="approved by bob"):
        approve(writer, proposal, accounts, "carol", 1002)
