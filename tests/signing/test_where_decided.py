"""Signing where operators decide, in the console and in `gonogo queue`, and `gonogo verify` of what they decided."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console import settings
from console.cli import main
from console.release import folder, opening, queue, signing, taking
from console.release.canonical import canonical
from console.release.errors import InputError
from console.release.queue import Proposal
from console.release.rules import Rules
from console.release.signing import Signer, SigningError
from console.release.writer import RunWriter
from console.session import Clock, Desk
from tests.release.making import decision, make_job, new_run, propose
from tests.signing.conftest import People
from tests.signing.keys import OURS, add, agent, allow, make_key

NAME = "001-train-1"


@pytest.fixture
def writer(tmp_path: Path, set_up: Path) -> RunWriter:
    return new_run(tmp_path / "run", signed_decisions=cast(Any, True))


@pytest.fixture
def proposal(writer: RunWriter) -> Proposal:
    return propose(writer, NAME, make_job())


def run(*words: object) -> int:
    return main([str(word) for word in words])


def approve(proposal: Proposal) -> int:
    return run("queue", "approve", proposal.folder.parent.parent, NAME, "--digest", proposal.digest)


def problem(people: People, proposal: Proposal) -> str:
    found = queue.decision_of(proposal)
    assert found is not None
    now = datetime(2026, 1, 2, 3, 6, tzinfo=UTC)
    return signing.against_one(Rules(signed=True), people.signers, found, found.run_id, now)


def test_the_queue_command_signs(people: People, proposal: Proposal, capsys) -> None:
    assert approve(proposal) == 0
    assert "your SSH agent is asked to sign the decision" in capsys.readouterr().err
    assert problem(people, proposal) == ""


def test_a_rejection_is_signed_too(people: People, proposal: Proposal) -> None:
    run_dir = proposal.folder.parent.parent
    assert run("queue", "reject", run_dir, NAME, "--reason", "not today") == 0
    assert problem(people, proposal) == ""


def test_without_a_signature_the_queue_command_decides_nothing(
    proposal: Proposal, set_up: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere")
    assert approve(proposal) == 1
    assert "made no signature" in capsys.readouterr().err
    set_up.write_text("")
    assert approve(proposal) == 1
    assert "set key in [signing]" in capsys.readouterr().err
    set_up.write_text("[signing]\nkey = 3\n")
    assert approve(proposal) == 2
    assert queue.decision_of(proposal) is None


@pytest.fixture
def desk(proposal: Proposal):
    made = Desk(proposal.folder.parent.parent, Clock())
    yield made
    made.close()


def test_the_console_signs(people: People, proposal: Proposal, desk: Desk) -> None:
    assert desk.announce() == "your SSH agent is asked to sign the decision"
    desk.approve(NAME, proposal.digest, shown_s=3)
    assert problem(people, proposal) == ""


def test_the_console_says_what_must_be_touched(set_up: Path, tmp_path: Path, desk: Desk) -> None:
    key = tmp_path / "sk.pub"
    key.write_text("sk-ssh-ed25519@openssh.com AAAA operator\n")
    set_up.write_text(f'[signing]\nkey = "{key}"\n')
    assert "TOUCH YOUR SECURITY KEY" in desk.announce()
    set_up.write_text("")
    assert desk.announce() == "the decision is being written"


def test_leaving_the_console_ends_the_wait_for_the_agent(
    tmp_path_factory: pytest.TempPathFactory, proposal: Proposal, desk: Desk, set_up: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    place = tmp_path_factory.mktemp("k")
    asked = place / "asked"
    with agent(place, askpass=f"echo > {asked}; exec sleep 600") as environ:
        key = make_key(place, "slow")
        add(environ, key, "-c")
        set_up.write_text(f'[signing]\nkey = "{key}"\n')
        monkeypatch.setenv("SSH_AUTH_SOCK", environ["SSH_AUTH_SOCK"])
        desk.announce()
        said: list[str] = []

        def decide() -> None:
            try:
                desk.approve(NAME, proposal.digest, shown_s=3)
            except SigningError as error:
                said.append(str(error))

        thread = threading.Thread(target=decide)
        thread.start()
        while not asked.exists() and thread.is_alive():
            thread.join(0.01)
        desk.abandon()
        thread.join()
    assert "it was stopped" in said[0]
    assert queue.decision_of(proposal) is None


# Afterwards.


def taken(people: People, writer: RunWriter, proposal: Proposal) -> None:
    """The conductor takes what lies there; whatever it is, it is logged as approved."""
    attempt = writer.state.attempt(NAME)
    assert attempt is not None
    conductor = cast(Any, SimpleNamespace(writer=writer, signers=people.signers))
    asyncio.run(taking.take_decision(conductor, attempt))


def verified(run_dir: Path, capsys, *words: object) -> tuple[int, list[dict[str, str]]]:
    """What `gonogo verify` says of decisions."""
    capsys.readouterr()
    status = run("verify", run_dir, "--json", *words)
    facts = json.loads(capsys.readouterr().out)
    return status, [fact for fact in facts if fact["about"] == f"submissions/{NAME}" and " at 20" in fact["text"]]


def wrong(run_dir: Path, capsys, *words: object) -> str:
    status, facts = verified(run_dir, capsys, *words)
    (fact,) = facts
    return fact["text"] if (fact["word"], status) == ("WRONG", 1) else f"{status} {fact['word']}"


def test_verify_says_of_each_decision_whose_signature_it_has(
    people: People, writer: RunWriter, proposal: Proposal, capsys
) -> None:
    assert approve(proposal) == 0
    taken(people, writer, proposal)
    _, (fact,) = verified(writer.run_dir, capsys)
    assert fact["word"] == "OK"
    assert f"approved by {folder.account()}" in fact["text"]
    assert "signed with ED25519 key SHA256:" in fact["text"]


def test_verify_names_a_wrong_signer_a_revoked_key_and_one_that_was_not_valid(
    people: People, writer: RunWriter, proposal: Proposal, capsys
) -> None:
    assert approve(proposal) == 0
    taken(people, writer, proposal)
    me = folder.account()
    revoked = people.revoke(people.alice).revoked
    assert "not one of theirs" in wrong(writer.run_dir, capsys, "--revoked", revoked)
    other = people.folder / "others"
    other.mkdir()
    for line in ((me, OURS, people.mallory), ("bob", OURS, people.alice), (me, f'{OURS},valid-before="20250101"',
                 people.alice)):  # fmt: skip
        signers = allow(other, line)
        assert "not one of theirs" in wrong(writer.run_dir, capsys, "--allowed-signers", signers.allowed)


def test_verify_without_anybody_who_says_whose_keys_count_still_checks_the_bytes(
    people: People, writer: RunWriter, proposal: Proposal, set_up: Path, capsys
) -> None:
    assert approve(proposal) == 0
    taken(people, writer, proposal)
    set_up.write_text("")
    _, (fact,) = verified(writer.run_dir, capsys)
    assert fact["word"] == "NOT CHECKED"
    assert "whose key that is nobody can say" in fact["text"]


@pytest.mark.parametrize("what", ["unsigned", "other bytes", "other run"])
def test_verify_names_a_decision_that_should_never_have_been_taken(
    people: People, writer: RunWriter, proposal: Proposal, capsys, what: str
) -> None:
    """A conductor that does not look (another version, or changed) logs it all the same."""
    assert approve(proposal) == 0
    made = queue.decision_of(proposal)
    assert made is not None
    receipt = made.to_json()
    if what == "unsigned":
        receipt = decision(proposal).to_json()
    elif what == "other bytes":
        receipt["reason"] = "changed"
    else:
        receipt["run_id"] = "another"
    (proposal.folder / "decision.json").write_bytes(canonical(receipt))
    writer.record(
        "job_decided", "approved", stage="train", actor="operator:x", id=NAME, digest=proposal.digest,
        decision="approved", by="operator:x", reason="", receipt=receipt,
    )  # fmt: skip
    text = wrong(writer.run_dir, capsys)
    said = {"unsigned": "is not signed", "other bytes": "not one of theirs", "other run": "for run another"}
    assert said[what] in text


# The start of a release.


def test_a_release_that_asks_for_signatures_does_not_start_where_nobody_can_check_them(
    people: People, set_up: Path, tmp_path: Path
) -> None:
    def check() -> None:
        opening._require_signers(Rules(signed=True), settings.load().signing)

    check()
    for text in ("", f'[signing]\nallowed_signers = "{tmp_path}/nowhere"\n'):
        set_up.write_text(text)
        with pytest.raises(InputError) as caught:
            check()
        assert caught.value.field == "signing.allowed_signers"
        assert caught.value.file == str(set_up)
    set_up.write_text(f'[signing]\nallowed_signers = "{people.signers.allowed}"\nrevoked = "{tmp_path}/nowhere"\n')
    with pytest.raises(InputError, match=r"signing\.revoked"):
        check()
    opening._require_signers(Rules(), settings.load().signing)


def test_settings_can_ask_for_signatures_in_every_release_that_is_started(set_up: Path, tmp_path: Path) -> None:
    clusters, release = tmp_path / "clusters.yaml", tmp_path / "release.yaml"
    entry = {"login_node": "login.example.org", "user": "alice", "workspace": "/w/alice"}
    clusters.write_text(json.dumps({"clusters": {"gpu": entry}}))
    release.write_text(f"target: a/b\nrevision: '{'0' * 40}'\nalgorithm: dflash2\nbudget: dev\nrecipe: demo\n")
    set_up.write_text(f"{set_up.read_text()}required = true\n")
    run_dir = tmp_path / "release"

    def start(approve: str | None) -> opening.Opened:
        return opening.start_run(release, run_dir=run_dir, clusters_file=clusters, approve=approve, clock=Clock().now)

    with pytest.raises(InputError, match="signed_decisions is true"):
        start("none")
    opened = start(None)
    opened.lock.close()
    assert opened.writer.state.inputs["signed_decisions"] is True
    assert opened.signers is not None
    # A run keeps the rules that it was started with, whatever is set later.
    set_up.write_text("")
    with pytest.raises(InputError, match=r"signing\.allowed_signers"):
        opening.resume_run(run_dir, approve=None, clock=Clock().now)


def test_a_signer_is_only_there_where_a_key_is_set(set_up: Path) -> None:
    assert isinstance(signing.signer_of(settings.load().signing), Signer)
    assert signing.signer_of(settings.Signing()) is None
