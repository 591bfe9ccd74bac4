"""What programs lay into the queue becomes a job that waits for a person, or is refused; never anything else."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.release import deciding, folder, queue
from console.release.asking.admitting import admit
from console.release.canonical import canonical
from console.release.errors import InputError
from console.release.job import ExactJob, JobError
from console.release.queue_view import item
from console.release.state import ASKED, Outcome, from_json, to_json
from tests.asking.desks import SCRIPT, Desk
from tests.release.making import decision
from tests.release.submitting import make_release, run_before_its_first_job


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    release = make_release(tmp_path)
    run_before_its_first_job(release.run_dir)
    with asyncio.Runner() as loop:
        yield Desk(release, loop)


def test_an_asked_job_waits_for_a_person_and_is_submitted_as_it_was_shown(desk: Desk) -> None:
    proposal = desk.ask("-p", "batch", "--nodes=2", "/dev/stdin", "one", "two words", summary="Look around")
    desk.process.conductor.approve = "none"
    for _ in range(3):
        desk.look()
    (attempt,) = desk.asked
    assert (attempt.outcome, attempt.stage, desk.cluster.asked) == (Outcome.PROPOSED, ASKED, 0), (
        "no policy decides on it"
    )
    deciding.decide(desk.run_dir, decision(proposal))
    for _ in range(2):
        desk.look()
    ((_, request),) = desk.cluster.accepted
    assert request.script == SCRIPT
    assert request.options[:3] == ("--parsable", "--partition=batch", "--nodes=2")
    assert request.options[-3:] == ("/dev/stdin", "one", "two words")
    assert request.digest == proposal.digest
    assert desk.asked[0].job_id == "100"
    actors = [entry.actor for entry in desk.process.writer.entries][-4:]
    assert actors == ["proposer:robot", "operator:alice", "conductor", "conductor"]
    for _ in range(3):
        desk.look()
    assert len(desk.cluster.accepted) == 1


def test_a_rejection_goes_back_with_its_reason(desk: Desk) -> None:
    proposal = desk.ask()
    desk.look()
    deciding.decide(desk.run_dir, replace(decision(proposal, queue.REJECTED), reason="too long"))
    desk.look()
    assert (desk.asked[0].outcome, desk.asked[0].said, desk.cluster.asked) == (Outcome.REJECTED, "too long", 0)
    assert desk.process.writer.state.interventions == 1


def test_the_release_does_not_notice(desk: Desk) -> None:
    before = desk.process.next
    desk.ask()
    desk.look()
    assert desk.process.next == before


def lie(proposal: queue.Proposal, **changes: Any) -> None:
    file = proposal.folder / "job.json"
    file.chmod(0o600)
    file.write_bytes(canonical({**json.loads(proposal.job_bytes), **changes}))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"partition": "cheap"}, "partition"),
        ({"nodes": 1}, "nodes"),
        ({"time": "00:00:01"}, "time"),
        ({"gpus_per_node": 3}, "gpus_per_node"),
        ({"account": "other"}, "account"),
        ({"host": "elsewhere"}, "host"),
        ({"user": "root"}, "user"),
        ({"stage": "train"}, "stage"),
        ({"run_id": "another"}, "run_id"),
        ({"job_dir": "/etc"}, "job_dir"),
        ({"claim_dir": "/tmp/x"}, "claim_dir"),
        ({"job_name": "innocent"}, "job_name"),
        ({"environment": [["A", "b"]]}, "environment"),
        ({"results": [["../../x", "a.json"]]}, "results"),
        ({"results": [["smoke", "../../../etc/passwd"]]}, "results"),
        ({"options": ["--nodes=2", "--wait"]}, "--wait"),
        ({"options": ["--nodes=2", "script.sh"]}, "script.sh"),
        ({"options": ["--comment=gonogo:0"]}, "--comment"),
        ({"extra_options": ["--exclusive"]}, "extra_options"),
        ({"token": "x"}, "token"),
    ],
)
def test_a_job_that_says_of_itself_what_it_does_not_do_is_refused(
    desk: Desk, changes: dict[str, Any], named: str
) -> None:
    proposal = desk.ask("--nodes=2", "-p", "batch", "--gpus-per-node=8")
    lie(proposal, **changes)
    desk.look()
    assert desk.asked == []
    last = desk.process.writer.entries[-1]
    assert last.data["event"] == "proposal_refused"
    assert named in last.text
    assert desk.process.writer.state.refused == (proposal.id,)
    desk.look()
    assert desk.process.writer.entries[-1] == last, "it is refused once"


def test_every_field_of_a_job_is_either_checked_or_shown_for_what_it_is(desk: Desk) -> None:
    proposal = desk.ask("--nodes=2", summary="Look")
    free = {"summary", "script", "arguments", "uploads", "mem"}
    document = json.loads(proposal.job_bytes)
    cluster, state = desk.release.cluster, desk.process.writer.state
    for name in sorted(set(ExactJob.model_fields) - free):
        value = document[name]
        match value:
            case int():
                other: Any = value + 1
            case str():
                other = value + "1" if value else "1"
            case _:
                other = [*value, ["A", "b"] if name in ("environment", "results", "evidence") else "--hold=1"]
        lie(proposal, **{name: other})
        changed = queue.load(desk.run_dir, proposal.id)
        if name == "results":
            continue  # a result file more is shown as one
        with pytest.raises(JobError):
            admit(changed, state, cluster)


@pytest.mark.parametrize("words", [["--export=ALL"], ["--export=UNSET"], ["--export=A=1,B=x,y"], ["--wrap=a", "b"]])
def test_what_cannot_be_asked_for_is_one_clear_line(desk: Desk, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        desk.ask(*words)
    assert len(str(caught.value).splitlines()) == 1


def test_a_secret_by_value_is_refused(desk: Desk) -> None:
    with pytest.raises(JobError, match="HF_TOKEN"):
        desk.ask("--export=HF_TOKEN", environ={"HF_TOKEN": "hf_0123"})


@pytest.mark.parametrize(
    "break_it",
    [
        lambda folder: (folder / "job.json").write_bytes(b"\xff\x00"),
        lambda folder: (folder / "job.json").write_bytes(b"[" * 100_000),
        lambda folder: (folder / "proposal.json").write_bytes(b"{}"),
        lambda folder: (folder / "job.json").unlink(),
        lambda folder: (folder / "job.json").write_bytes(b'{"token": NaN}'),
    ],
)
def test_anything_else_that_lies_there_is_refused(desk: Desk, break_it: Callable[[Path], object]) -> None:
    proposal = desk.ask()
    for file in proposal.folder.iterdir():
        if file.is_file():
            file.chmod(0o600)
    break_it(proposal.folder)
    desk.look()
    assert desk.asked == []
    assert desk.process.writer.state.refused == (proposal.id,)


def test_changed_between_proposal_and_decision_it_is_invalidated(desk: Desk) -> None:
    proposal = desk.ask()
    desk.look()
    lie(proposal, summary="Something else")
    deciding.decide(desk.run_dir, decision(queue.load(desk.run_dir, proposal.id)))
    desk.look()
    assert (desk.asked[0].outcome, desk.cluster.asked) == (Outcome.INVALIDATED, 0)


def test_a_decision_that_the_proposer_brings_along_is_no_job_that_was_approved_before_it_was_seen(desk: Desk) -> None:
    """Whoever can write into the folder can decide: that is the operator's account. It is logged as who it says."""
    proposal = desk.ask()
    deciding.decide(desk.run_dir, decision(proposal))
    desk.look()
    desk.look()
    assert desk.asked[0].decided_by == "operator:alice"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), text=st.text(max_size=30))
def test_any_bytes_as_a_job_decide_nothing(desk: Desk, data: bytes, text: str) -> None:
    proposal = desk.ask(summary=text)
    (proposal.folder / "job.json").chmod(0o600)
    (proposal.folder / "job.json").write_bytes(data)
    desk.look()
    assert proposal.id in desk.process.writer.state.refused
    assert desk.cluster.asked == 0


@pytest.mark.parametrize("name", ["job.json", "proposal.json"])
@pytest.mark.parametrize("kind", ["pipe", "link", "endless", "folder", "huge"])
def test_a_file_that_could_never_be_read_to_its_end_holds_nobody_up(desk: Desk, name: str, kind: str) -> None:
    proposal = desk.ask()
    file = proposal.folder / name
    file.rename(file.with_name("aside"))
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "link":
            file.symlink_to("aside")
        case "endless":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case _:
            file.touch()
            os.truncate(file, 1 << 40)
    desk.look()
    assert (desk.asked, desk.process.writer.state.refused) == ([], (proposal.id,))


def test_what_the_desk_refused_is_shown_as_that_and_nobody_can_decide_on_it(desk: Desk) -> None:
    proposal = desk.ask("--nodes=2")
    lie(proposal, nodes=1)
    desk.look()
    state = desk.process.writer.state
    shown = item(desk.run_dir, state, proposal.id)
    assert (shown.state, shown.proposer) == ("invalidated", "robot")
    assert "refused before anybody was asked: nodes: it says 1, but its options ask for 2" in shown.problem
    folder.write_state(desk.run_dir, state)
    with pytest.raises(queue.QueueError, match="the conductor refused it"):
        deciding.decide(desk.run_dir, decision(queue.load(desk.run_dir, proposal.id)))
    assert from_json(json.loads(json.dumps(to_json(state)))) == state
