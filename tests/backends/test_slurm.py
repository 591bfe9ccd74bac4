"""Submitting exactly once, and reading what Slurm says."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import CouldNotAsk
from backends.hosts.base import RunResult
from backends.slurm.client import GRACE_LOOKS, Slurm
from backends.slurm.model import Accepted, JobState, NotSubmitted, Presence, Refused, Unknown
from backends.slurm.parsing import (
    duration,
    fields,
    is_job_id,
    job_id_of_answer,
    parse_accounting,
    parse_partitions,
    parse_queue,
    permanent_refusal,
    state_of,
)
from tests.backends.cluster import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "lab")


async def test_a_job_is_submitted_with_exactly_its_bytes(lab: Lab) -> None:
    request = lab.request()
    assert await Slurm(lab.host).submit(request) == Accepted("41", "lab", "")
    assert (lab.folder / "script-41").read_bytes() == request.script
    assert Path(request.job_dir, "tool.py").read_bytes() == request.uploads[0].data


async def test_the_same_submission_twice_is_one_job(lab: Lab) -> None:
    slurm, request = Slurm(lab.host), lab.request()
    assert isinstance(await slurm.submit(request), Accepted)
    assert isinstance(await slurm.submit(request), Unknown)
    again = await slurm.reconcile(request, submitted_at=0, settle_seconds=0)
    assert again == Accepted("41", "lab", "")
    assert len(lab.accepted) == 1


async def test_a_refusal_is_one_only_in_slurms_own_words(lab: Lab) -> None:
    lab.how("refuse")
    outcome = await Slurm(lab.host).submit(lab.request())
    assert outcome == Refused("sbatch: error: Batch job submission failed: Invalid qos specification", 1)


@pytest.mark.parametrize("how", ["timeout", "banner"])
async def test_an_unclear_answer_is_unknown_and_the_job_is_found_by_name(lab: Lab, how: str) -> None:
    lab.how(how)
    slurm, request = Slurm(lab.host), lab.request()
    assert isinstance(await slurm.submit(request), Unknown)
    assert await slurm.reconcile(request, submitted_at=0, settle_seconds=0) == Accepted("41")
    assert len(lab.accepted) == 1


async def test_what_never_arrived_is_fenced_off_for_good(lab: Lab) -> None:
    slurm, request = Slurm(lab.host), lab.request()
    outcome = await slurm.reconcile(request, submitted_at=None, settle_seconds=600)
    assert isinstance(outcome, NotSubmitted)
    assert isinstance(await slurm.submit(request), Unknown)
    assert isinstance(await slurm.reconcile(request, submitted_at=None, settle_seconds=600), NotSubmitted)
    assert lab.accepted == []


async def test_a_changed_upload_is_never_submitted(lab: Lab) -> None:
    from dataclasses import replace

    request = lab.request()
    broken = replace(request, uploads=(replace(request.uploads[0], data=b"other"),))
    assert isinstance(await Slurm(lab.host).submit(broken), NotSubmitted)
    assert isinstance(await Slurm(lab.host).reconcile(request, submitted_at=None, settle_seconds=600), NotSubmitted)
    assert lab.accepted == []


class Cut:
    """A host whose link breaks while sbatch runs: the remote script goes on, the answer is lost."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.name = lab, "cut"

    async def run(
        self, script: str, args: Sequence[str] = (), *, data: bytes = b"", timeout: float = 30.0
    ) -> RunResult:
        await self.lab.host.run(script, args, data=data, timeout=timeout)
        raise CouldNotAsk(self.name, "run", "connection lost")


async def test_a_lost_answer_is_found_in_the_receipt(lab: Lab) -> None:
    request = lab.request()
    assert isinstance(await Slurm(Cut(lab)).submit(request), Unknown)  # type: ignore[arg-type]
    assert await Slurm(lab.host).reconcile(request, submitted_at=0, settle_seconds=0) == Accepted("41", "lab", "")
    assert len(lab.accepted) == 1


async def test_while_sbatch_runs_nothing_is_concluded_and_its_death_leaves_the_scheduler_to_ask(lab: Lab) -> None:
    lab.how("hang")
    slurm, request = Slurm(lab.host), lab.request()
    submitting = asyncio.create_task(slurm.submit(request))
    async with asyncio.timeout(20):
        while not (lab.folder / "hanging").exists() or not (lab.folder / "hanging").read_text().strip():
            await asyncio.sleep(0.01)
    outcome = await slurm.reconcile(request, submitted_at=0, settle_seconds=0)
    assert isinstance(outcome, Unknown)
    assert outcome.asked[0].source == "process"
    os.kill(int((lab.folder / "hanging").read_text()), signal.SIGKILL)
    assert isinstance(await submitting, Unknown)
    assert await slurm.reconcile(request, submitted_at=0, settle_seconds=0) == Accepted("41")


async def test_what_another_login_node_started_is_found_but_never_concluded_absent(lab: Lab) -> None:
    lab.how("timeout")
    slurm, request = Slurm(lab.host), lab.request()
    await slurm.submit(request)
    claim = Path(request.claim_dir)
    (claim / "receipt").rename(claim / "receipt.tmp")
    (claim / "process").write_text("1 another-login-node")
    accepted = (lab.folder / "accepted").read_text()
    (lab.folder / "accepted").write_text("")
    outcome = await slurm.reconcile(request, submitted_at=0, settle_seconds=0)
    assert isinstance(outcome, Unknown)
    assert "another-login-node" in outcome.asked[0].answer
    (lab.folder / "accepted").write_text(accepted)
    assert await slurm.reconcile(request, submitted_at=0, settle_seconds=0) == Accepted("41")


async def test_a_source_that_is_down_never_proves_absence(lab: Lab) -> None:
    lab.how("timeout")
    slurm, request = Slurm(lab.host), lab.request()
    await slurm.submit(request)
    (lab.folder / "accepted").write_text("")
    (lab.folder / "sacct-down").touch()
    assert isinstance(await slurm.reconcile(request, submitted_at=0, settle_seconds=0), Unknown)
    (lab.folder / "sacct-down").unlink()
    assert isinstance(await slurm.reconcile(request, submitted_at=None, settle_seconds=0), Unknown)
    assert isinstance(await slurm.reconcile(request, submitted_at=0, settle_seconds=0), NotSubmitted)


async def test_a_queue_that_fails_is_not_an_empty_queue(lab: Lab) -> None:
    (lab.folder / "squeue-down").touch()
    with pytest.raises(CouldNotAsk, match="Unable to contact"):
        await Slurm(lab.host).jobs({"41": "t"})


async def test_a_missing_job_is_gone_only_after_several_healthy_looks(lab: Lab) -> None:
    slurm = Slurm(lab.host)
    (lab.folder / "sacct-down").touch()
    for _ in range(GRACE_LOOKS + 1):
        reading = await slurm.jobs({"41": "t"})
        assert reading.jobs["41"].presence is Presence.COULD_NOT_ASK
        assert reading.problems
    (lab.folder / "sacct-down").unlink()
    seen = [(await slurm.jobs({"41": "t"})).jobs["41"].presence for _ in range(GRACE_LOOKS)]
    assert seen == [Presence.COULD_NOT_ASK] * (GRACE_LOOKS - 1) + [Presence.GONE]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"12\n", ("12", None)),
        (b"12;alpha\n", ("12", "alpha")),
        (b"", None),
        (b"Submitted batch job 12\n", None),
        (b"Welcome to host7\n12\n", None),
        (b"12\n13\n", None),
        (b"0\n", None),
        (b"-1\n", None),
    ],
)
def test_an_id_is_taken_only_from_an_answer_that_is_nothing_else(answer: bytes, found: object) -> None:
    assert job_id_of_answer(answer) == found


@pytest.mark.parametrize("said", ["Socket timed out on send/recv operation", "Unable to contact slurm controller", "?"])
def test_doubtful_words_never_prove_a_refusal(said: str) -> None:
    assert not permanent_refusal(f"sbatch: error: Batch job submission failed: {said}")
    assert not permanent_refusal(f"sbatch: error: Invalid qos specification\nsbatch: error: Socket timed out {said}")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("CANCELLED by 1000", JobState.CANCELLED),
        ("CANCELLED+", JobState.CANCELLED),
        ("OUT_OF_ME+", JobState.OTHER),
        ("COMPLETININVALID", JobState.OTHER),
        ("HITHERTO_UNHEARD", JobState.OTHER),
        ("", JobState.OTHER),
    ],
)
def test_a_state_that_is_not_understood_is_never_an_end(text: str, state: JobState) -> None:
    assert state_of(text) is state
    assert state_of("HITHERTO_UNHEARD").ended is False


@given(st.binary())
def test_no_text_makes_a_parser_raise_or_invent_a_job(data: bytes) -> None:
    for jobs in (parse_queue(data)[1], parse_accounting(data)):
        assert all(is_job_id(name) for name in jobs)
    parse_partitions(data.decode("utf-8", "replace"))
    fields(data)
    job_id_of_answer(data)


def test_times_and_partitions() -> None:
    assert [duration(text) for text in ("0:05", "1:00:00", "1-02:03:04", "UNLIMITED", "INVALID")] == [
        5, 3600, 93784, None, None,
    ]  # fmt: skip
    found = parse_partitions(
        "batch*|up|1-00:00:00|4|16|gpu:8\nlong|drain|infinite|1|16+|N/A\nbatch*|up|1-00:00:00|2|8|gpu:4"
    )
    assert (found["batch"].nodes, found["batch"].cpus_per_node, found["batch"].gpus_per_node) == (6, 8, 4)
    assert (found["long"].up, found["long"].max_seconds, found["long"].gpus_per_node) == (False, None, None)
