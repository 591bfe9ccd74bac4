"""The queue: a proposal whole or not at all, the first decision stands, an OK is used once."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.release import deciding, queue
from console.release.job import JobError
from console.release.queue import APPROVED, REJECTED, AlreadyDecided, Decision, Proposal, QueueError
from tests.release.making import UPLOADS, Clock, decision, make_job

CONTEXT = multiprocessing.get_context("fork")
MANY = 8


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "submissions").mkdir()
    return tmp_path


@pytest.fixture
def proposal(run_dir: Path) -> Proposal:
    return put(run_dir)


def put(run_dir: Path, name: str = "001-train-1", **changes: Any) -> Proposal:
    return queue.propose(
        run_dir, name, make_job(**changes), UPLOADS, proposer="conductor", time=Clock()(), change="more time"
    )


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What many processes get that do the same work at the same moment."""
    start, results = CONTEXT.Barrier(MANY), CONTEXT.Queue()

    def run(number: int) -> None:
        start.wait(30)
        results.put(work(number))

    workers = [CONTEXT.Process(target=run, args=(number,)) for number in range(MANY)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    return found


def test_a_proposal_comes_back_as_it_was_made(run_dir: Path, proposal: Proposal) -> None:
    assert queue.ids(run_dir) == ["001-train-1"]
    assert queue.load(run_dir, "001-train-1") == proposal
    assert proposal.job() == make_job()
    assert proposal.digest == make_job().digest
    assert proposal.uploads() == UPLOADS
    assert (proposal.proposer, proposal.change) == ("conductor", "more time")
    assert proposal.time == "2026-01-02T03:04:06.000000Z"
    assert queue.decision_of(proposal) is None
    assert not queue.is_used(proposal)


def test_files_of_a_proposal_are_its_owners_alone(proposal: Proposal) -> None:
    for path in (proposal.folder / "job.json", proposal.folder / "proposal.json", proposal.folder / "uploads/tool.py"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_name_is_taken_once_and_the_first_proposal_stays(run_dir: Path, proposal: Proposal) -> None:
    with pytest.raises(FileExistsError):
        put(run_dir, partition="other")
    assert queue.load(run_dir, proposal.id).digest == proposal.digest
    assert os.listdir(run_dir / "submissions") == [proposal.id]


def test_of_many_that_propose_under_one_name_exactly_one_does(run_dir: Path) -> None:
    def work(number: int) -> str:
        try:
            return put(run_dir, nodes=number + 1).digest
        except FileExistsError:
            return ""

    digests = [digest for digest in at_once(work) if digest]
    assert digests == [queue.load(run_dir, "001-train-1").digest]
    assert os.listdir(run_dir / "submissions") == ["001-train-1"]


def test_a_half_made_proposal_is_not_in_the_queue(run_dir: Path) -> None:
    (run_dir / "submissions" / ".new-001-train-1-0123").mkdir()
    assert queue.ids(run_dir) == []
    assert queue.ids(run_dir / "nothing") == []


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a b", "x\n", "a" * 200])
def test_a_name_that_is_none_is_refused(run_dir: Path, name: str) -> None:
    with pytest.raises(QueueError, match="not the name"):
        queue.load(run_dir, name)


def test_a_proposal_that_is_not_there_is_refused(run_dir: Path) -> None:
    with pytest.raises(QueueError, match="no such proposal"):
        queue.load(run_dir, "009-train-1")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"proposer":"x"}'])
def test_a_proposal_whose_description_is_broken_is_refused(run_dir: Path, proposal: Proposal, data: bytes) -> None:
    (proposal.folder / "proposal.json").write_bytes(data)
    with pytest.raises(QueueError, match="001-train-1"):
        queue.load(run_dir, proposal.id)


def test_a_changed_job_has_another_digest_and_cannot_be_read_as_the_old(run_dir: Path, proposal: Proposal) -> None:
    (proposal.folder / "job.json").write_bytes(proposal.job_bytes.replace(b"batch", b"other"))
    changed = queue.load(run_dir, proposal.id)
    assert changed.digest != proposal.digest
    (proposal.folder / "job.json").write_bytes(proposal.job_bytes + b" ")
    with pytest.raises(JobError, match=r"submissions/001-train-1/job\.json"):
        queue.load(run_dir, proposal.id).job()


def test_a_changed_or_missing_upload_is_named_with_both_digests(proposal: Proposal) -> None:
    path = proposal.folder / "uploads" / "tool.py"
    path.write_bytes(b"print('other')\n")
    with pytest.raises(QueueError, match=r"tool\.py was changed.*SHA-256 [0-9a-f]{64}, the job names [0-9a-f]{64}"):
        proposal.uploads()
    path.unlink()
    with pytest.raises(QueueError, match=r"tool\.py cannot be read"):
        proposal.uploads()


@pytest.mark.parametrize("word", [APPROVED, REJECTED])
def test_a_decision_comes_back_as_it_was_made(run_dir: Path, proposal: Proposal, word: str) -> None:
    made = decision(proposal, word, shown_s=12, seen_to_end=True)
    deciding.decide(run_dir, made)
    assert queue.decision_of(proposal) == made


def test_the_first_decision_stands(run_dir: Path, proposal: Proposal) -> None:
    first = decision(proposal, REJECTED, operator="alice")
    deciding.decide(run_dir, first)
    for later in (decision(proposal, operator="bob"), first):
        with pytest.raises(AlreadyDecided, match=r"was rejected by alice at .*that decision stands") as fault:
            deciding.decide(run_dir, later)
        assert fault.value.decision == first
    assert queue.decision_of(proposal) == first


def test_of_many_opposite_decisions_at_once_exactly_one_stands_and_all_others_learn_whose(
    run_dir: Path, proposal: Proposal
) -> None:
    def work(number: int) -> tuple[bool, str]:
        word = APPROVED if number % 2 else REJECTED
        try:
            deciding.decide(run_dir, decision(proposal, word, operator=f"operator-{number}"))
        except AlreadyDecided as fault:
            return False, fault.decision.operator
        return True, f"operator-{number}"

    found = at_once(work)
    assert [won for won, _ in found].count(True) == 1
    standing = queue.decision_of(proposal)
    assert standing is not None
    assert {operator for _, operator in found} == {standing.operator}


def test_a_decision_on_other_bytes_than_those_that_lie_there_is_refused(run_dir: Path, proposal: Proposal) -> None:
    for digest in ("0" * 64, proposal.digest[:8], proposal.digest.upper(), ""):
        with pytest.raises(QueueError, match="not the one that was shown"):
            deciding.decide(run_dir, decision(proposal, digest=digest))
    (proposal.folder / "job.json").write_bytes(proposal.job_bytes.replace(b"batch", b"other"))
    with pytest.raises(QueueError, match="look at it again"):
        deciding.decide(run_dir, decision(proposal))
    assert queue.decision_of(proposal) is None


def test_a_rejection_needs_a_reason_and_a_decision_a_known_word(run_dir: Path, proposal: Proposal) -> None:
    for reason in ("", " \n"):
        with pytest.raises(QueueError, match="needs a reason"):
            deciding.decide(run_dir, decision(proposal, REJECTED, reason=reason))
    for word in ("", "Approved", "yes"):
        with pytest.raises(QueueError, match="no decision"):
            deciding.decide(run_dir, decision(proposal, word))
    assert "decision.json" not in os.listdir(proposal.folder)
    assert queue.decision_of(proposal) is None


def stored(proposal: Proposal, **changes: Any) -> bytes:
    record = {**decision(proposal).to_json(), **changes}
    return json.dumps({key: value for key, value in record.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "Approved"},
        {"decision": True},
        {"id": "002-train-1"},
        {"schema_version": 2},
        {"schema_version": ...},
        {"digest": None},
        {"digest": ...},
        {"more": 1},
        {"shown_s": "12"},
        {"shown_s": float("nan")},
        {"shown_s": True},
        {"seen_to_end": 1},
    ],
)
def test_a_decision_of_another_shape_decides_nothing(proposal: Proposal, changes: dict[str, Any]) -> None:
    (proposal.folder / "decision.json").write_bytes(stored(proposal, **changes))
    with pytest.raises(QueueError, match=r"001-train-1: decision\.json"):
        queue.decision_of(proposal)


@given(data=st.binary(max_size=100) | st.sampled_from([b"[" * 100_000, b"null", b"[]", b'"approved"']))
def test_any_bytes_as_a_decision_never_approve(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("proposal")
    (folder / "decision.json").write_bytes(data)
    with pytest.raises(QueueError):
        queue.decision_of(Proposal("001-train-1", folder, b"", "x", "", ""))


def test_a_decision_that_cannot_be_read_decides_nothing(run_dir: Path, proposal: Proposal) -> None:
    (proposal.folder / "decision.json").mkdir()
    with pytest.raises(QueueError, match="decides nothing"):
        queue.decision_of(proposal)
    with pytest.raises(QueueError):
        deciding.decide(run_dir, decision(proposal))


def test_an_ok_is_used_once(proposal: Proposal) -> None:
    clock = Clock()
    assert deciding.use(proposal, clock())
    assert queue.is_used(proposal)
    assert not deciding.use(proposal, clock())
    used = json.loads((proposal.folder / "used.json").read_bytes())
    assert (used["id"], used["digest"]) == (proposal.id, proposal.digest)


def test_of_many_that_use_one_ok_at_once_exactly_one_may(proposal: Proposal) -> None:
    assert at_once(lambda number: deciding.use(proposal, Clock()())).count(True) == 1


def test_an_outcome_is_replaced_by_the_next(proposal: Proposal) -> None:
    for word in ("unknown", "accepted"):
        queue.write_outcome(proposal, {"outcome": word})
    assert json.loads((proposal.folder / "outcome.json").read_bytes()) == {"outcome": "accepted"}


def test_a_decision_keeps_every_field() -> None:
    made = Decision("a", "b" * 64, APPROVED, "alice", "", "now", "tty", 3, False, "run", "a signature")
    assert made.to_json() == {"schema_version": 1, **{name: getattr(made, name) for name in Decision.__slots__}}
