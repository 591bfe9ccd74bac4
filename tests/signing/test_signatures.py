"""Signed decisions, with real keys, a real agent and real ssh-keygen: which count, and which do not."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.release import deciding, queue, signing, submission, taking
from console.release.canonical import canonical
from console.release.queue import Decision, Proposal, QueueError
from console.release.rules import Rules
from console.release.signing import NAMESPACE, Signer, Signers, SigningError
from console.release.state import Outcome
from console.release.writer import RunWriter
from tests.release.fake_cluster import FakeCluster
from tests.release.making import RUN_ID, decision, make_job, new_run, propose
from tests.signing.conftest import People
from tests.signing.keys import OURS, add, agent, allow, make_key, signer

NAME = "001-train-1"
AT = datetime(2026, 1, 2, 3, 6, tzinfo=UTC)
SIGNED = Rules(signed=True)


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return new_run(tmp_path / "run", signed_decisions=cast(Any, True))


@pytest.fixture
def proposal(writer: RunWriter) -> Proposal:
    return propose(writer, NAME, make_job())


def signed(people: People, proposal: Proposal, key: Path | None = None, **changes: Any) -> Decision:
    made = decision(proposal, **changes)
    return signing.signed(proposal.folder.parent.parent, made, people.signer(key))


def problem(signers: Signers | None, decision: Decision, *, at: datetime = AT, rules: Rules = SIGNED) -> str:
    return signing.against_one(rules, signers, decision, RUN_ID, at)


def lay(proposal: Proposal, decision: Decision, name: str = "decision.json") -> None:
    """Put a decision there as somebody would who passes by all checks."""
    (proposal.folder / name).write_bytes(canonical(decision.to_json()))


def take(writer: RunWriter, signers: Signers | None) -> tuple[Outcome, str]:
    """What the conductor makes of what lies there."""
    attempt = writer.state.attempt(NAME)
    assert attempt is not None
    conductor = cast(Any, SimpleNamespace(writer=writer, signers=signers))
    asyncio.run(taking.take_decision(conductor, attempt))
    after = writer.state.attempt(NAME)
    assert after is not None
    return after.outcome, after.said


def test_a_signed_decision_counts(people: People, writer: RunWriter, proposal: Proposal) -> None:
    made = signed(people, proposal)
    assert made.run_id == RUN_ID
    assert deciding.decide(writer.run_dir, made)
    assert queue.decision_of(proposal) == made
    assert problem(people.signers, made) == ""
    assert take(writer, people.signers) == (Outcome.APPROVED, "")


@pytest.mark.skipif(shutil.which("jq") is None, reason="the documented command needs jq")
def test_ssh_keygen_alone_checks_a_decision_as_documented(
    people: People, writer: RunWriter, proposal: Proposal
) -> None:
    deciding.decide(writer.run_dir, signed(people, proposal))
    command = (
        f"jq -acjS 'del(.signature)' decision.json | ssh-keygen -Y verify -f {people.signers.allowed} "
        f"-I alice -n {NAMESPACE} -s <(jq -r .signature decision.json)"
    )
    done = subprocess.run(["bash", "-c", command], cwd=proposal.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f'Good "{NAMESPACE}" signature for alice')


def test_without_a_signature_nothing_is_written(people: People, writer: RunWriter, proposal: Proposal) -> None:
    for word in (queue.APPROVED, queue.REJECTED):
        with pytest.raises(QueueError, match="is not signed"):
            deciding.decide(writer.run_dir, decision(proposal, word))
    with pytest.raises(SigningError, match=r"set key in \[signing\]"):
        signing.signed(writer.run_dir, decision(proposal), None)
    assert queue.decision_of(proposal) is None


@pytest.mark.parametrize("word", [queue.APPROVED, queue.REJECTED])
def test_an_unsigned_decision_that_lies_there_is_never_taken(
    people: People, writer: RunWriter, proposal: Proposal, word: str
) -> None:
    lay(proposal, decision(proposal, word))
    outcome, said = take(writer, people.signers)
    assert outcome is Outcome.INVALIDATED
    assert "is not signed" in said


FIELDS: dict[str, Any] = {
    "id": "002-train-2", "digest": "0" * 64, "decision": queue.REJECTED, "operator": "bob", "reason": "other",
    "time": "2026-01-02T03:05:01Z", "terminal": "elsewhere", "shown_s": 99, "seen_to_end": True,
    "run_id": "another-run",
}  # fmt: skip


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_signature_is_over_every_field(people: People, proposal: Proposal, field: str) -> None:
    allow(people.folder, ("alice,bob", OURS, people.alice))
    made = signed(people, proposal)
    assert problem(people.signers, made) == ""
    changed = replace(made, **{field: FIELDS[field]})
    assert problem(people.signers, changed) != ""
    assert signing.check_bytes(made).good is True
    assert signing.check_bytes(changed).good is False


def test_every_field_of_a_decision_is_among_those_that_are_tried() -> None:
    assert {*FIELDS, "signature"} == set(Decision.__slots__)


def test_a_key_that_is_not_allowed_is_refused(people: People, writer: RunWriter, proposal: Proposal) -> None:
    deciding.decide(writer.run_dir, signed(people, proposal, people.mallory))
    outcome, said = take(writer, people.signers)
    assert outcome is Outcome.INVALIDATED
    assert "the signature of alice is not theirs" in said


def test_one_operator_cannot_sign_in_the_name_of_another(people: People, proposal: Proposal) -> None:
    both = allow(people.folder, ("alice", OURS, people.alice), ("mallory", OURS, people.mallory))
    made = signed(people, proposal, people.mallory)
    assert "is not theirs" in problem(both, made)
    assert problem(both, signed(people, proposal, people.mallory, operator="mallory")) == ""


def test_a_signature_of_another_namespace_is_refused(
    people: People, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(decision(proposal), run_id=RUN_ID)
    monkeypatch.setattr(signing, "NAMESPACE", "file")
    other = replace(made, signature=people.signer().sign(signing.message(made)))
    monkeypatch.undo()
    everywhere = allow(people.folder, ("alice", "", people.alice))
    assert "is not theirs" in problem(everywhere, other)
    assert problem(everywhere, signed(people, proposal)) == ""
    elsewhere = allow(people.folder, ("alice", 'namespaces="git"', people.alice))
    assert "is not theirs" in problem(elsewhere, signed(people, proposal))


def test_a_revoked_key_is_refused(people: People, proposal: Proposal) -> None:
    made = signed(people, proposal)
    assert problem(people.revoke(people.mallory), made) == ""
    assert "is not theirs" in problem(people.revoke(people.alice), made)
    gone = people.folder / "revoked"
    gone.unlink()
    assert "could not be checked" in problem(Signers(people.signers.allowed, gone), made)


@pytest.mark.parametrize(
    ("span", "holds"),
    [
        ('valid-after="20260101",valid-before="20260201"', True),
        ('valid-before="20260101"', False),
        ('valid-after="20260201"', False),
    ],
)
def test_a_key_counts_only_while_it_is_valid(people: People, proposal: Proposal, span: str, holds: bool) -> None:
    signers = allow(people.folder, ("alice", f"{OURS},{span}", people.alice))
    assert (problem(signers, signed(people, proposal)) == "") is holds


def test_a_key_that_expires_before_its_decision_is_taken_does_not_count(people: People, proposal: Proposal) -> None:
    signers = allow(people.folder, ("alice", f'{OURS},valid-before="20260103"', people.alice))
    made = signed(people, proposal)
    assert problem(signers, made) == ""
    assert "is not theirs" in problem(signers, made, at=datetime(2026, 1, 4, tzinfo=UTC))


@pytest.mark.parametrize(
    "text", ["x", "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n", "\x00", "\ud83d"]
)
def test_what_is_no_signature_is_refused(people: People, proposal: Proposal, text: str) -> None:
    made = replace(signed(people, proposal), signature=text)
    assert "is not theirs" in problem(people.signers, made)


def test_where_nobody_can_say_whose_it_is_nothing_counts(people: People, writer: RunWriter, proposal: Proposal) -> None:
    made = signed(people, proposal)
    assert "allowed_signers" in problem(None, made)
    assert "could not be checked" in problem(Signers(people.folder / "nowhere"), made)
    deciding.decide(writer.run_dir, made)
    assert take(writer, None)[0] is Outcome.INVALIDATED


def test_a_release_that_asks_for_no_signature_still_refuses_a_false_one(people: People, proposal: Proposal) -> None:
    made = signed(people, proposal)
    free = Rules()
    assert problem(people.signers, decision(proposal), rules=free) == ""
    assert problem(people.signers, made, rules=free) == ""
    assert problem(people.signers, replace(made, reason="other"), rules=free) != ""


def test_it_is_checked_again_before_the_submission(people: People, writer: RunWriter, proposal: Proposal) -> None:
    deciding.decide(writer.run_dir, signed(people, proposal))
    assert take(writer, people.signers)[0] is Outcome.APPROVED
    (proposal.folder / "decision.json").unlink()
    lay(proposal, decision(proposal))
    attempt = writer.state.attempt(NAME)
    assert attempt is not None
    cluster = FakeCluster()
    asyncio.run(submission.submit(writer, cast(Any, cluster), attempt, people.signers))
    after = writer.state.attempt(NAME)
    assert after is not None
    assert after.outcome is Outcome.INVALIDATED
    assert cluster.asked == 0
    assert not queue.is_used(proposal)


def test_both_of_two_approvals_are_checked(people: People, tmp_path: Path) -> None:
    writer = new_run(tmp_path / "two", signed_decisions=cast(Any, True), approvals=cast(Any, 2))
    proposal = propose(writer, NAME, make_job())
    both = allow(people.folder, ("alice", OURS, people.alice), ("mallory", OURS, people.mallory))
    second = signed(people, proposal, people.mallory, operator="mallory")
    rules = Rules(approvals=2, signed=True)

    def said() -> str:
        return asyncio.run(signing.against(rules, both, proposal, second, RUN_ID, AT))

    lay(proposal, signed(people, proposal), "first.json")
    assert said() == ""
    lay(proposal, decision(proposal), "first.json")
    assert "that of alice is not signed" in said()
    lay(proposal, signed(people, proposal, people.mallory), "first.json")
    assert "the signature of alice is not theirs" in said()


# The agent.


def refused(maker: Signer) -> str:
    with pytest.raises(SigningError) as caught:
        maker.sign(b"anything")
    return str(caught.value)


def test_without_an_agent_or_without_the_key_in_it_there_is_no_signature(people: People) -> None:
    assert "SSH_AUTH_SOCK is not set" in refused(Signer(people.alice, {"PATH": "/usr/bin:/bin"}))
    nobody = {**people.environ, "SSH_AUTH_SOCK": str(people.folder / "nobody")}
    assert "made no signature" in refused(Signer(people.alice, nobody))
    # The private half lies beside this one, without a passphrase; only the agent may sign.
    stranger = make_key(people.folder, "stranger")
    assert "made no signature" in refused(people.signer(stranger))
    assert "made no signature" in refused(people.signer(people.folder / "nowhere.pub"))


def test_an_agent_that_refuses_leaves_no_decision(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    folder = tmp_path_factory.mktemp("k")
    with agent(folder, askpass="exit 1") as environ:
        key = make_key(folder, "alice")
        add(environ, key, "-c")  # each use must be confirmed, and is not
        proposal = propose(new_run(tmp_path / "run"), NAME, make_job())
        with pytest.raises(SigningError, match="refused"):
            signing.signed(tmp_path / "run", decision(proposal), signer(environ, key))
        assert queue.decision_of(proposal) is None


def test_an_agent_that_does_not_answer_is_not_waited_for_for_ever(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("k")
    with agent(folder, askpass="exec sleep 600") as environ:
        key = make_key(folder, "alice")
        add(environ, key, "-c")
        assert "did not answer within 0.3 s" in refused(signer(environ, key, 0.3))


def test_a_key_of_hardware_is_known_by_its_file(people: People, tmp_path: Path) -> None:
    key = tmp_path / "id_ed25519_sk.pub"
    key.write_text("sk-ssh-ed25519@openssh.com AAAA operator\n")
    assert Signer(key, {}).touches()
    assert not people.signer().touches()
    assert not Signer(tmp_path / "nowhere", {}).touches()


def test_a_decision_on_disk_has_both_fields_of_a_signature_or_none(people: People, proposal: Proposal) -> None:
    whole = signed(people, proposal).to_json()
    for field in ("run_id", "signature"):
        for change in ({field: ""}, {field: 1}, {field: None}):
            (proposal.folder / "decision.json").write_bytes(json.dumps({**whole, **change}).encode())
            with pytest.raises(QueueError, match="decides nothing"):
                queue.decision_of(proposal)
        lacking = {key: value for key, value in whole.items() if key != field}
        (proposal.folder / "decision.json").write_bytes(json.dumps(lacking).encode())
        with pytest.raises(QueueError, match="decides nothing"):
            queue.decision_of(proposal)
