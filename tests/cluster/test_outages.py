"""Parts of the cluster stop answering, one after the other. Nothing is ever concluded from silence."""

from __future__ import annotations

import asyncio
import time

import pytest

from backends.errors import CouldNotAsk
from backends.slurm.model import Accepted, ClusterFacts, NotSubmitted, Presence, QueueReading, Unknown
from tests.cluster.jobs import accepted, holds_in_time, make_request, reached, running, seen, there
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")

TIMED_OUT = "Socket timed out on send/recv operation"
UNREACHED = "Unable to contact slurm controller (connect failure)"


async def test_a_hung_controller_may_have_taken_the_job_which_is_then_adopted(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        before = make_request(cluster, account, "sleep 300\n")
        before_id = await accepted(slurm, before)
        request = make_request(cluster, account)
        cluster.pause("slurmctld")
        try:
            outcome = await slurm.submit(request)
            assert isinstance(outcome, Unknown)
            assert TIMED_OUT in outcome.said
            still, *others = await asyncio.gather(
                slurm.reconcile(request, submitted_at=0, settle_seconds=0),
                slurm.jobs({before_id: before.token}),
                slurm.cancel(before_id, before.token),
                slurm.facts("batch", "research"),
                return_exceptions=True,
            )
        finally:
            cluster.go_on("slurmctld")
        assert isinstance(still, Unknown)
        assert {item.source: item.healthy for item in still.asked} == {"receipt": True, "squeue": False, "sacct": True}
        for answer in others:
            assert isinstance(answer, CouldNotAsk)
            assert TIMED_OUT in answer.said
        assert isinstance(await slurm.reconcile(request, submitted_at=0, settle_seconds=0), Accepted)
        found = cluster.root("squeue", "-h", "-a", "-t", "all", f"--name={request.job_name}", "-o", "%A")
        assert len(found.split()) == 1


async def test_a_controller_that_is_down_takes_nothing_and_proves_nothing(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        before = make_request(cluster, account, "sleep 300\n")
        before_id = await accepted(slurm, before)
        await seen(slurm, before_id, before, running)
        request, lost = make_request(cluster, account), make_request(cluster, account)
        await host.run("mkdir -p $1 && ln -s sbatch $1/go && echo 999999 $(hostname) > $1/process", [lost.claim_dir])
        cluster.end("slurmctld")
        try:
            outcome, still, *others = await asyncio.gather(
                slurm.submit(request),
                slurm.reconcile(lost, submitted_at=0, settle_seconds=0),
                slurm.jobs({before_id: before.token}),
                slurm.cancel(before_id, before.token),
                slurm.facts("batch", "research"),
                return_exceptions=True,
            )
        finally:
            cluster.start("slurmctld")
        assert isinstance(outcome, Unknown)
        assert UNREACHED in outcome.said
        assert isinstance(still, Unknown)
        for answer in others:
            assert isinstance(answer, CouldNotAsk)
            assert UNREACHED in answer.said
        # What ran goes on, and absence is believed only once the submission had time to appear.
        assert running((await slurm.jobs({before_id: before.token})).jobs[before_id])
        assert isinstance(await slurm.reconcile(request, submitted_at=time.time(), settle_seconds=600), Unknown)
        assert isinstance(await slurm.reconcile(request, submitted_at=0, settle_seconds=0), NotSubmitted)


async def test_without_accounting_jobs_go_on_and_absence_is_never_concluded(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        cluster.end("slurmdbd")
        try:
            request = make_request(cluster, account, "sleep 300\n")
            job_id = await accepted(slurm, request)
            reading = await slurm.jobs({job_id: request.token, "999999": "f" * 16})
            assert reading.jobs[job_id].presence is Presence.IN_QUEUE
            assert reading.jobs["999999"].presence is Presence.COULD_NOT_ASK
            assert "Connection refused" in reading.problems[0]
            lost = make_request(cluster, account)
            await host.run(
                "mkdir -p $1 && ln -s sbatch $1/go && echo 999999 $(hostname) > $1/process", [lost.claim_dir]
            )
            assert isinstance(await slurm.reconcile(lost, submitted_at=0, settle_seconds=0), Unknown)
            facts = await slurm.facts("batch", "research")
            assert facts.accounts is None
            assert "Connection refused" in facts.problems[0]
        finally:
            cluster.start("slurmdbd")
        assert isinstance(await slurm.reconcile(lost, submitted_at=0, settle_seconds=0), NotSubmitted)
        assert (await slurm.facts("batch", "research")).accounts == ("research",)


async def test_accounting_that_hangs_is_waited_for_in_vain_but_not_for_long(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        cluster.pause("slurmdbd")
        try:
            facts, reading = await asyncio.gather(
                slurm.facts("batch", "research"), slurm.jobs({"999999": "f" * 16}), return_exceptions=True
            )
        finally:
            cluster.go_on("slurmdbd")
        assert isinstance(facts, ClusterFacts)
        assert (facts.accounts, facts.problems) == (None, ("accounts: no answer within 15 s",))
        assert "batch" in facts.partitions
        # However long the answer took: both clocks are this machine's.
        assert abs(facts.clock_offset) < 2
        assert isinstance(reading, QueueReading)
        assert reading.jobs["999999"].presence is Presence.COULD_NOT_ASK
        assert reading.problems == ("sacct: no answer within 15 s",)


async def test_without_munge_nothing_is_taken_for_an_answer(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        before = make_request(cluster, account, "sleep 300\n")
        before_id = await accepted(slurm, before)
        await seen(slurm, before_id, before, running)
        request = make_request(cluster, account)
        cluster.end("munged")
        try:
            outcome, *others = await asyncio.gather(
                slurm.submit(request),
                slurm.jobs({before_id: before.token}),
                slurm.cancel(before_id, before.token),
                slurm.facts("batch", "research"),
                return_exceptions=True,
            )
        finally:
            cluster.start("munged")
        assert isinstance(outcome, Unknown)
        assert "Munge encode failed" in outcome.said
        for answer in others:
            assert isinstance(answer, CouldNotAsk)
            assert "Munge encode failed" in answer.said


async def test_a_link_that_breaks_while_sbatch_runs_leaves_a_receipt(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account)
        cluster.pause("slurmctld")
        try:
            submitting = asyncio.create_task(slurm.submit(request))
            await holds_in_time(lambda: cluster.waits("slurmctld"), "a request to the controller")
            cluster.end_logins(account)
            outcome = await submitting
        finally:
            cluster.go_on("slurmctld")
        assert isinstance(outcome, Unknown)
        assert "no answer" in outcome.said
        await there(f"{request.claim_dir}/receipt")
        # The login node went on without us, and wrote down what sbatch said.
        assert isinstance(await slurm.reconcile(request, submitted_at=0, settle_seconds=0), Accepted)
        assert isinstance(await slurm.submit(request), Unknown)


async def test_a_login_node_that_dies_while_sbatch_runs_leaves_the_scheduler_to_ask(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account)
        cluster.pause("slurmctld")
        try:
            submitting = asyncio.create_task(slurm.submit(request))
            await holds_in_time(lambda: cluster.waits("slurmctld"), "a request to the controller")
            cluster.end_processes(account)
            assert isinstance(await submitting, Unknown)
        finally:
            cluster.go_on("slurmctld")
        # The request had arrived: the controller takes the job although nobody waits for the answer any more.
        outcome = await slurm.reconcile(request, submitted_at=time.time(), settle_seconds=600)
        while isinstance(outcome, Unknown):
            assert outcome.asked[0].answer in ("alive", "none: the login node stopped while sbatch ran")
            await asyncio.sleep(0.2)
            outcome = await slurm.reconcile(request, submitted_at=time.time(), settle_seconds=600)
        assert isinstance(outcome, Accepted)


async def test_a_server_that_restarts_is_logged_into_again(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, _):
        assert (await host.run("echo first")).stdout == b"first\n"
        cluster.end("sshd")
        try:
            cluster.end_logins(account)
            with pytest.raises(CouldNotAsk):
                await host.run("echo second")
        finally:
            cluster.start("sshd")
        assert (await host.run("echo third")).stdout == b"third\n"


async def test_a_server_that_falls_silent_is_noticed_by_its_missing_replies(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account, keepalive_s=0.2) as (host, _):
        await host.run("true")
        with cluster.paused_logins(account):
            with pytest.raises(CouldNotAsk) as error:
                await host.run("true", timeout=60)
            assert "within" not in error.value.said
        assert (await host.run("echo again")).stdout == b"again\n"
