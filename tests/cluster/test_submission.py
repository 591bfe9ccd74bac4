"""Submitting to a real Slurm: taken once, refused in its own words, found again after a lost answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.slurm.model import Accepted, JobState, NotSubmitted, Refused, Unknown
from console.release.job import build_script
from tests.cluster.jobs import accepted, ended, make_request, reached, seen
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")

FAILED = "sbatch: error: Batch job submission failed: "

REFUSALS: dict[str, tuple[dict[str, Any], str, int]] = {
    "partition": (
        {"partition": "nope"},
        f"sbatch: error: invalid partition specified: nope\n{FAILED}Invalid partition name specified",
        1,
    ),
    "account": (
        {"account": "nope"},
        f"{FAILED}Invalid account or account/partition combination specified",
        1,
    ),
    "account of others": (
        {"account": "teaching"},
        f"{FAILED}Invalid account or account/partition combination specified",
        1,
    ),
    "qos": ({"qos": "nope"}, f"{FAILED}Invalid qos specification", 1),
    "time": (
        {"partition": "interactive", "time": "02:00:00"},
        f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)",
        1,
    ),
    "nodes": ({"nodes": 9}, f"{FAILED}Node count specification invalid", 1),
    "gpus": ({"gpus_per_node": 9}, f"{FAILED}Requested node configuration is not available", 1),
    "memory": (
        {"mem": "900G"},
        "sbatch: error: Memory specification can not be satisfied\n"
        f"{FAILED}Requested node configuration is not available",
        1,
    ),
    "processors": ({"cpus_per_task": 99}, f"{FAILED}More processors requested than permitted", 1),
    "closed partition": (
        {"partition": "closed"},
        f"{FAILED}Required partition not available (inactive or drain)",
        1,
    ),
    "partition of a group": (
        {"partition": "staff"},
        f"{FAILED}User's group not permitted to use this partition",
        1,
    ),
    "node": ({"extra_options": ("--nodelist=node99",)}, f"{FAILED}Invalid node name specified", 1),
    "feature": ({"extra_options": ("--constraint=nope",)}, f"{FAILED}Invalid feature specification", 1),
    "preference": ({"extra_options": ("--prefer=nope",)}, f"{FAILED}Invalid preferred feature specification", 1),
    "reservation": ({"extra_options": ("--reservation=nope",)}, f"{FAILED}Requested reservation is invalid", 1),
    "license": ({"extra_options": ("--licenses=nope:1",)}, f"{FAILED}Invalid license specification", 1),
    "dependency": ({"extra_options": ("--dependency=afterok:x",)}, f"{FAILED}Job dependency problem", 1),
    "array": ({"extra_options": ("--array=0-99999",)}, f"{FAILED}Invalid job array specification", 1),
    "resource": (
        {"extra_options": ("--gres=nope:1",)},
        "sbatch: error: Invalid generic resource (gres) specification",
        1,
    ),
    "option": (
        {"extra_options": ("--nosuch",)},
        "sbatch: unrecognized option '--nosuch'\nTry \"sbatch --help\" for more information",
        255,
    ),
    "value": ({"extra_options": ("--mem=lots",)}, "sbatch: error: Invalid --mem specification", 255),
    "privilege": ({"extra_options": ("--uid=root",)}, "sbatch: error: --uid only permitted by root user", 255),
}

SCRIPTS = {
    "empty": (b"", "Batch script is empty!"),
    "no interpreter": (b"echo\n", "This does not look like a batch script."),
    "DOS line breaks": (b"#!/bin/sh\r\necho\r\n", "Batch script contains DOS line breaks"),
    "NUL": (b"#!/bin/sh\n\0\n", "contain a NULL character"),
    "option": (b"#!/bin/sh\n#SBATCH --nosuch\n", "unrecognized option '--nosuch'"),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_is_known_and_told_word_for_word(cluster: Cluster, name: str) -> None:
    changes, said, status = REFUSALS[name]
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account, **changes)
        assert await slurm.submit(request) == Refused(said, status)
        # The refusal stays what it was for whoever asks again. Slurm may keep a record of what it refused, as failed.
        assert await slurm.reconcile(request, submitted_at=0, settle_seconds=0) == Refused(said, status)
        states = cluster.root("squeue", "-h", "-a", "-t", "all", f"--name={request.job_name}", "-o", "%T")
        assert states in ("", "FAILED\n")


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_that_slurm_does_not_take_is_refused(cluster: Cluster, name: str) -> None:
    script, said = SCRIPTS[name]
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        outcome = await slurm.submit(replace(make_request(cluster, account), script=script))
        assert isinstance(outcome, Refused)
        assert said in outcome.said


async def test_a_quality_of_service_with_its_limit_used_up_refuses(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        taken = [make_request(cluster, account, "sleep 300\n", qos="tiny") for _ in range(2)]
        ids = [await accepted(slurm, request) for request in taken]
        outcome = await slurm.submit(make_request(cluster, account, qos="tiny"))
        assert isinstance(outcome, Refused)
        assert "QOSMaxSubmitJobPerUserLimit" in outcome.said
        for job_id, request in zip(ids, taken, strict=True):
            await slurm.cancel(job_id, request.token)


async def test_a_reservation_for_others_refuses(cluster: Cluster) -> None:
    account = cluster.layout.account()
    cluster.root("scontrol", "create", "reservation=upkeep", "starttime=now", "duration=5", "users=root", "nodes=node3")
    try:
        async with reached(cluster, account) as (_, slurm):
            request = make_request(cluster, account, extra_options=("--reservation=upkeep",))
            assert await slurm.submit(request) == Refused(f"{FAILED}Access denied to requested reservation", 1)
    finally:
        cluster.root("scontrol", "delete", "reservation=upkeep")


async def test_what_slurm_has_is_what_was_approved(cluster: Cluster) -> None:
    account = cluster.layout.account()
    changes = {"gpus_per_node": 2, "cpus_per_task": 3, "mem": "2G", "qos": "long", "time": "00:07:00", "nodes": 2}
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account, "sleep 300\n", **changes)
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, lambda status: status.state is JobState.RUNNING)
        shown = cluster.root("scontrol", "show", "job", job_id)
        words = set(shown.split())
        assert {
            f"JobName={request.job_name}",
            f"Comment=gonogo:{request.token}:{request.digest[:16]}",
            "Account=research",
            "QOS=long",
            "Partition=batch",
            "TimeLimit=00:07:00",
            "Requeue=0",
            "NumNodes=2",
            "CPUs/Task=3",
            f"WorkDir={request.job_dir}",
            f"StdOut={request.job_dir}/slurm-{job_id}.out",
        } <= words
        assert "gres:gpu:2" in shown
        assert "cancelled" in await slurm.cancel(job_id, request.token)


async def test_pretended_gpus_are_given_to_one_job_each(cluster: Cluster) -> None:
    if not (cluster.layout.folder / "dev/gpu0").is_char_device():
        pytest.skip("this machine lets nobody make device files, so Slurm tells its jobs no GPU numbers")
    account = cluster.layout.account()
    body = 'echo "$CUDA_VISIBLE_DEVICES"\n'
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account, body, gpus_per_node=2)
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, ended)
        output = await host.read(f"{request.job_dir}/slurm-{job_id}.out")
        assert len(set(output.decode().strip().split(","))) == 2


async def test_a_job_makes_files_as_open_as_the_login_does(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account, "umask\n")
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, ended)
        assert await host.read(f"{request.job_dir}/slurm-{job_id}.out") == (await host.run("umask")).stdout
        # What is ours alone stays ours alone.
        for folder in (request.claim_dir, request.job_dir):
            assert Path(folder).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("odd", [" two  words", "it's", '"', "$HOME", "; # &", "`id`", "*?[a]", "ünï"])
async def test_a_folder_of_any_name_holds_a_job(cluster: Cluster, odd: str) -> None:
    account = cluster.layout.account()
    root = f"{cluster.layout.home(account)}/odd {odd}"
    job_dir, claim_dir = f"{root}/job", f"{root}/claim"
    script = build_script("pwd\npython3 tool.py\n", claim_dir=claim_dir, job_dir=job_dir, environment=())
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account, job_dir=job_dir, claim_dir=claim_dir, script=script)
        job_id = await accepted(slurm, request)
        await seen(slurm, job_id, request, ended)
        output = await host.read(f"{job_dir}/slurm-{job_id}.out")
        assert output.decode() == f"{job_dir}\nthe tool ran\n"


async def test_one_submission_is_one_job_however_often_it_is_sent(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm), reached(cluster, account) as (_, other):
        request = make_request(cluster, account)
        job_id = await accepted(slurm, request)
        assert isinstance(await other.submit(request), Unknown)
        assert await other.reconcile(request, submitted_at=0, settle_seconds=0) == Accepted(job_id)
        found = cluster.root("squeue", "-h", "-a", "-t", "all", f"--name={request.job_name}", "-o", "%A")
        assert found.split() == [job_id]


async def test_a_submission_that_was_fenced_off_never_reaches_sbatch(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account)
        assert isinstance(await slurm.reconcile(request, submitted_at=None, settle_seconds=600), NotSubmitted)
        assert isinstance(await slurm.submit(request), Unknown)
        assert isinstance(await slurm.reconcile(request, submitted_at=None, settle_seconds=600), NotSubmitted)
        assert cluster.root("squeue", "-h", "-a", "-t", "all", f"--name={request.job_name}") == ""


async def test_a_job_is_found_by_its_name_where_the_receipt_is_lost(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (_, slurm):
        request = make_request(cluster, account)
        job_id = await accepted(slurm, request)
        # As if sbatch had been told of a time-out although the controller took the job.
        receipt = Path(request.claim_dir, "receipt")
        (receipt / "stdout").write_text("")
        (receipt / "stderr").write_text(f"{FAILED}Socket timed out on send/recv operation\n")
        (receipt / "status").write_text("1")
        assert await slurm.reconcile(request, submitted_at=0, settle_seconds=0) == Accepted(job_id)


async def test_two_jobs_with_one_token_stop_everything(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account)
        job_id = await accepted(slurm, request)
        again = await host.run(f"sbatch --parsable --job-name={request.job_name} --wrap true")
        (Path(request.claim_dir, "receipt/stdout")).write_text("")
        outcome = await slurm.reconcile(request, submitted_at=0, settle_seconds=0)
        assert isinstance(outcome, Unknown)
        assert set(outcome.job_ids) == {job_id, again.stdout.decode().strip()}
