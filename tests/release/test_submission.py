"""What lies between an OK and the cluster: any change refuses, an OK is used once, what nobody knows stays unknown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends.slurm.advice import GENERAL
from backends.slurm.model import Refused
from console.release import deciding, queue, submission
from console.release.canonical import canonical
from console.release.job import ExactJob
from console.release.state import Attempt, Outcome
from console.release.writer import RunWriter
from tests.release.fake_cluster import FakeCluster
from tests.release.making import decide, make_job, new_run, propose


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return new_run(tmp_path / "run")


def approved(writer: RunWriter) -> tuple[queue.Proposal, Attempt]:
    """One approved job."""
    proposal = propose(writer, "001-train-1", make_job())
    decide(writer, proposal)
    attempt = writer.state.attempt("001-train-1")
    assert attempt is not None
    return proposal, attempt


def other(value: Any) -> Any:
    """A value of the same shape that is not the same."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return "0" * len(value) if value[:1] in "abcdef123456789" and len(value) in (16, 64) else f"{value}x"
        case list() if value:
            return [*value[:-1], other(value[-1])]
        case list():
            return ["--exclusive"]
        case dict():
            name = next(iter(value))
            return {**value, name: other(value[name])}
    raise AssertionError(value)


def write_job(proposal: queue.Proposal, document: Any) -> None:
    file = proposal.folder / "job.json"
    file.chmod(0o600)
    file.write_bytes(canonical(document))


@pytest.mark.parametrize("name", sorted(ExactJob.model_fields))
def test_a_job_whose_any_field_was_changed_after_its_approval_is_not_submitted(writer: RunWriter, name: str) -> None:
    proposal, attempt = approved(writer)
    document = json.loads(proposal.job_bytes)
    document[name] = other(document[name])
    write_job(proposal, document)
    cluster = FakeCluster()
    asyncio.run(submission.submit(writer, cluster, attempt))
    after = writer.state.attempt(attempt.id)
    assert (cluster.asked, after and after.outcome) == (0, Outcome.INVALIDATED)
    assert "job.json was changed after the proposal" in writer.entries[-1].text


def drop_job(proposal: queue.Proposal) -> None:
    (proposal.folder / "job.json").unlink()


def change_upload(proposal: queue.Proposal) -> None:
    file = proposal.folder / "uploads" / "tool.py"
    file.chmod(0o600)
    file.write_bytes(b"print('other')\n")


def drop_decision(proposal: queue.Proposal) -> None:
    (proposal.folder / "decision.json").unlink()


def decide_on_another_digest(proposal: queue.Proposal) -> None:
    file = proposal.folder / "decision.json"
    document = json.loads(file.read_bytes())
    file.chmod(0o600)
    file.write_bytes(canonical({**document, "digest": "0" * 64}))


def turn_into_a_rejection(proposal: queue.Proposal) -> None:
    file = proposal.folder / "decision.json"
    document = json.loads(file.read_bytes())
    file.chmod(0o600)
    file.write_bytes(canonical({**document, "decision": "rejected"}))


@pytest.mark.parametrize(
    "trouble", [drop_job, change_upload, drop_decision, decide_on_another_digest, turn_into_a_rejection]
)
def test_anything_missing_or_changed_around_the_job_refuses_too(
    writer: RunWriter, trouble: Callable[[queue.Proposal], None]
) -> None:
    proposal, attempt = approved(writer)
    trouble(proposal)
    cluster = FakeCluster()
    asyncio.run(submission.submit(writer, cluster, attempt))
    after = writer.state.attempt(attempt.id)
    assert (cluster.asked, after and after.outcome) == (0, Outcome.INVALIDATED)


def test_an_ok_cannot_be_used_twice(writer: RunWriter) -> None:
    _, attempt = approved(writer)
    cluster = FakeCluster()
    asyncio.run(submission.submit(writer, cluster, attempt))
    assert [number for number, _ in cluster.accepted] == ["100"]
    asyncio.run(submission.submit(writer, cluster, attempt))
    assert cluster.asked == 1
    assert "this OK was used before" in writer.entries[-1].text


@pytest.mark.parametrize(
    ("said", "step"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid qos specification",
            "name another QOS (gonogo.qos in clusters.yaml), or none",
        ),
        ("sbatch: error: the moon is in the way", GENERAL),
    ],
)
def test_a_refusal_is_logged_word_for_word_and_with_what_to_do(writer: RunWriter, said: str, step: str) -> None:
    _, attempt = approved(writer)
    submission.record_outcome(writer, attempt, Refused(said, 1))
    assert writer.entries[-1].text == f"{attempt.id}: Slurm refused it: {said}; what to do: {step}"
    after = writer.state.attempt(attempt.id)
    assert after is not None
    assert (after.outcome, after.said) == (Outcome.REFUSED, said)


def test_an_ok_that_another_process_used_at_this_moment_is_unknown_not_used_again(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, attempt = approved(writer)
    monkeypatch.setattr(deciding, "use", lambda proposal, time: False)
    cluster = FakeCluster()
    asyncio.run(submission.submit(writer, cluster, attempt))
    after = writer.state.attempt(attempt.id)
    assert (cluster.asked, after and after.outcome) == (0, Outcome.UNKNOWN)
