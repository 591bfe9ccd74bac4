"""Looking at jobs of a real Slurm, and cancelling them: waiting, running, ended, forgotten, ours and not ours."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from backends.slurm.client import GRACE_LOOKS, Slurm
from backends.slurm.model import Accepted, JobState, Presence, SubmitRequest
from tests.cluster.jobs import accepted, because, ended, make_request, reached, running, seen, there
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")


async def test_why_a_job_waits_is_told_in_slurms_word(cluster: Cluster) -> None:
    account = cluster.layout.account()
    waits: dict[str, dict[str, Any]] = {
        "Dependency": {"extra_options": ("--dependency=afterok:{first}",)},
        "DependencyNeverSatisfied": {"extra_options": ("--dependency=afterok:{failed}",)},
        "BeginTime": {"extra_options": ("--begin=now+1hour",)},
        "JobHeldUser": {"extra_options": ("--hold",)},
        "QOSMaxWallDurationPerJobLimit": {"qos": "tiny", "time": "00:30:00"},
    }
    async with reached(cluster, account) as (_, slurm):
        failing = make_request(cluster, account, "exit 1\n")
        failed = await accepted(slurm, failing)
        await seen(slurm, failed, failing, ended)
        first = make_request(cluster, account, "sleep 300\n")
        tokens = {await accepted(slurm, first): first.token}
        ids = {"first": next(iter(tokens)), "failed": failed}
        for reason, changes in waits.items():
            options = tuple(option.format(**ids) for option in changes.pop("extra_options", ()))
            request = make_request(cluster, account, extra_options=options, **changes)
            job_id = await accepted(slurm, request)
            tokens[job_id] = request.token
            status = await seen(slurm, job_id, request, because(reason))
            assert (status.state, status.presence) == (JobState.PENDING, Presence.IN_QUEUE)
            assert not status.state.ended
        assert (await slurm.jobs(tokens)).problems == ()
        for job_id, token in tokens.items():
            assert (await slurm.cancel(job_id, token)).startswith("cancelled")


async def test_full_nodes_are_a_reason_to_wait(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        filling = make_request(cluster, account, "sleep 300\n", nodes=3, extra_options=("--exclusive",))
        filling_id = await accepted(slurm, filling)
        waiting = make_request(cluster, account, nodes=3)
        waiting_id = await accepted(slurm, waiting)
        await seen(slurm, waiting_id, waiting, because("Resources"))
        behind = make_request(cluster, account)
        behind_id = await accepted(slurm, behind)
        await seen(slurm, behind_id, behind, because("Priority"))
        await slurm.cancel(filling_id, filling.token)
        assert (await seen(slurm, behind_id, behind, ended)).state is JobState.COMPLETED


async def test_a_running_job_shows_its_node_and_limit(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account, "sleep 300\n", time="1-00:00:00")
        job_id = await accepted(slurm, request)
        status = await seen(slurm, job_id, request, running)
        assert status.node in ("node1", "node2", "node3")
        assert status.limit == 86400
        assert status.elapsed is not None
        reading = await slurm.jobs({job_id: request.token})
        assert reading.cluster_time is not None
        said = await slurm.cancel(job_id, request.token)
        assert said in ("cancelled: COMPLETING", "cancelled: CANCELLED")
        assert (await seen(slurm, job_id, request, ended)).state is JobState.CANCELLED


async def test_only_a_job_that_carries_our_token_is_cancelled(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account, "sleep 300\n")
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, running)
        assert "is not ours" in await slurm.cancel(job_id, "f" * 16)
        assert (await slurm.jobs({job_id: request.token})).jobs[job_id].state is JobState.RUNNING
        await slurm.cancel(job_id, request.token)


async def test_a_job_of_another_account_cannot_be_cancelled_and_slurm_says_so(cluster: Cluster) -> None:
    stranger, account = cluster.layout.stranger, cluster.layout.account()
    async with reached(cluster, stranger) as (_, theirs), reached(cluster, account) as (_, slurm):
        request = make_request(cluster, stranger, "sleep 300\n")
        job_id = await accepted(theirs, request)
        await seen(theirs, job_id, request, running)
        assert "Access/permission denied" in await slurm.cancel(job_id, request.token)
        assert (await theirs.jobs({job_id: request.token})).jobs[job_id].state is JobState.RUNNING
        await theirs.cancel(job_id, request.token)


async def test_what_ended_before_it_could_be_cancelled_is_not_called_cancelled(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account)
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, ended)
        assert await slurm.cancel(job_id, request.token) == f"job {job_id} had ended before: COMPLETED"
        assert await slurm.cancel("999999", request.token) == "job 999999 is not in the queue any more"


async def test_a_requeued_job_is_not_over_and_its_start_guard_lets_it_run_only_once(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account, "echo again >>runs\nsleep 300\n", extra_options=("--requeue",))
        job_id = await accepted(slurm, request)
        # Slurm calls a job running before its script's first line has run.
        await there(f"{request.job_dir}/runs")
        cluster.root("scontrol", "requeue", job_id)
        # Slurm lets two minutes pass before it starts such a job again; two seconds must be left of them. A node that
        # ended a job refuses any start of it from the same second ("Job credential revoked"), and Slurm then gives up.
        status = await seen(slurm, job_id, request, because("BeginTime"))
        assert (status.presence, status.state) == (Presence.IN_QUEUE, JobState.PENDING)
        cluster.root("scontrol", "update", f"jobid={job_id}", "starttime=now+2")
        # The guard's exit status: both starts write one output file, and Slurm's own last word of the first one may
        # come so late that it overwrites what the guard says in the second.
        assert (await seen(slurm, job_id, request, ended)).state is JobState.FAILED
        shown = cluster.root("scontrol", "show", "job", job_id)
        assert " Restarts=1 " in shown
        assert " ExitCode=97:0" in shown
        assert await host.read(f"{request.job_dir}/runs") == b"again\n"


async def test_a_job_as_it_is_approved_is_never_requeued(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account, "sleep 300\n", extra_options=("--nodelist=node3",))
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, running)
        try:
            cluster.root("scontrol", "update", "nodename=node3", "state=down", "reason=power")
            assert (await seen(slurm, job_id, request, ended)).state is JobState.NODE_FAIL
        finally:
            cluster.wait_for_nodes()


async def test_the_tasks_of_an_array_do_not_become_one_job(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account)
        words = f"sbatch --parsable --array=0-3%1 --job-name={request.job_name} --wrap 'sleep 300'"
        array_id = (await host.run(words)).stdout.decode().strip()
        shown = cluster.root("squeue", "-h", "-r", "-j", array_id, "-o", "%i")
        assert sorted(shown.split()) == [f"{array_id}_{number}" for number in range(4)]
        # The first task has an id of its own; the array's id stands for those that wait.
        status = await seen(slurm, array_id, request, because("JobArrayTaskLimit"))
        assert status.state is JobState.PENDING
        assert (await slurm.cancel(array_id, request.token[:8])).startswith("cancelled")
        assert (await seen(slurm, array_id, request, ended)).state is JobState.CANCELLED


async def test_how_jobs_ended_is_known_after_the_queue_forgot_them(cluster: Cluster) -> None:
    account = cluster.layout.account()
    bodies = {
        "COMPLETED 0:0": "true\n",
        "FAILED 3:0": "exit 3\n",
        "FAILED 127:0": "nosuchcommand\n",
        "FAILED 0:11": "kill -SEGV $$\n",
    }
    async with reached(cluster, account) as (_, slurm):
        requests, expected = {}, {}
        for words, body in bodies.items():
            request = make_request(cluster, account, body)
            job_id = await accepted(slurm, request)
            requests[job_id], expected[job_id] = request, words
        # Its output's folder is not there: it fails without a word anywhere.
        lost = make_request(cluster, account, extra_options=("--output=/no/such/folder/%j",))
        lost_id = await accepted(slurm, lost)
        requests[lost_id], expected[lost_id] = lost, "FAILED 0:53"
        limited = make_request(cluster, account, "sleep 300\n", time="00:01:00")
        limited_id = await accepted(slurm, limited)
        requests[limited_id], expected[limited_id] = limited, "TIMEOUT 0:0"
        await seen(slurm, limited_id, limited, running)
        # Slurm's shortest limit is a minute; the administrator moves its end nearer.
        cluster.root("scontrol", "update", f"jobid={limited_id}", "endtime=now+2")
        for job_id, request in requests.items():
            assert (await seen(slurm, job_id, request, ended)).presence is Presence.IN_QUEUE
        cluster.forget_ended_jobs(after_s=2)
        try:
            found = {}
            for job_id, request in requests.items():
                status = await seen(slurm, job_id, request, lambda status: status.presence is Presence.IN_ACCOUNTING)
                found[job_id] = f"{status.state} {status.exit_code}"
            assert found == expected
            await _asked_for_after_ten_days(cluster, slurm, lost_id, lost)
            # Nobody ever heard of this one; that is believed only when it was seen several times.
            looks = [(await slurm.jobs({"999999": "f" * 16})).jobs["999999"].presence for _ in range(GRACE_LOOKS)]
            assert looks == [Presence.COULD_NOT_ASK] * (GRACE_LOOKS - 1) + [Presence.GONE]
        finally:
            cluster.forget_ended_jobs(after_s=300)


async def _asked_for_after_ten_days(cluster: Cluster, slurm: Slurm, job_id: str, request: SubmitRequest) -> None:
    """A run that is taken up again late: the answer was lost, and the job ended long ago."""
    ago = 10 * 86400
    columns = ("time_submit", "time_eligible", "time_start", "time_end")
    changes = ", ".join(f"{column} = {column} - {ago}" for column in columns)
    cluster.sql(f"UPDATE proving_job_table SET {changes} WHERE id_job = {job_id}")
    Path(request.claim_dir, "receipt/stdout").write_text("")
    outcome = await slurm.reconcile(request, submitted_at=time.time() - ago, settle_seconds=0)
    assert outcome == Accepted(job_id)
    assert await slurm.reconcile(request, submitted_at=None, settle_seconds=0) == Accepted(job_id)


async def test_a_job_under_our_id_that_is_not_ours_is_not_taken_for_ours(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account)
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, ended)
        # As after a loss of Slurm's state, when it gives out its numbers again.
        looks = [(await slurm.jobs({job_id: "f" * 16})).jobs[job_id] for _ in range(GRACE_LOOKS)]
        assert [look.presence for look in looks] == [Presence.COULD_NOT_ASK] * (GRACE_LOOKS - 1) + [Presence.GONE]
        assert not any(look.state.ended for look in looks)
        assert f"it is called {request.job_name}" in (await slurm.jobs({job_id: "f" * 16})).problems[0]


async def test_many_looks_at_once_are_one_answer_each(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        requests = [make_request(cluster, account) for _ in range(12)]
        ids = await asyncio.gather(*(accepted(slurm, request) for request in requests))
        assert len(set(ids)) == 12
        for job_id, request in zip(ids, requests, strict=True):
            assert (await seen(slurm, job_id, request, ended)).state is JobState.COMPLETED
