"""The embedded cluster's commands answer as Slurm's do, through the code that reaches every cluster."""

from __future__ import annotations

import pytest

from backends.hosts.ssh import SshHost
from backends.slurm.client import Slurm
from backends.slurm.model import Accepted, JobState, NotSubmitted, Presence, Refused, SubmitRequest, Unknown
from tests.sandbox.clusters import Cluster, Shell


async def accept(slurm: Slurm, request: SubmitRequest) -> int:
    outcome = await slurm.submit(request)
    assert isinstance(outcome, Accepted), outcome
    return int(outcome.job_id)


async def test_a_script_really_runs_and_both_records_know_it(cluster: Cluster, slurm: Slurm) -> None:
    request = cluster.request('echo "$SLURM_JOB_ID $HOME $GREETING"; exit 3', "--export=NONE,GREETING=hello")
    number = await accept(slurm, request)
    job = await cluster.until(number, "FAILED", "COMPLETED")
    assert (job.state, job.exit_code, job.reason) == ("FAILED", 3, "NonZeroExitCode")
    output = cluster.info.home / "jobs" / request.token / f"slurm-{number}.out"
    assert output.read_text() == f"{number} {cluster.info.home} hello\n"
    assert [(item["job_id"], item["comment"]) for item in cluster.accepted()] == [(number, f"gonogo:{request.token}")]
    assert [item["job_id"] for item in cluster.started()] == [number]
    seen = (await slurm.jobs({str(number): request.token})).jobs[str(number)]
    assert (seen.presence, seen.state, seen.limit) == (Presence.IN_QUEUE, JobState.FAILED, 300)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--partition=nope", "Invalid partition name specified"),
        ("--account=nope", "Invalid account or account/partition combination specified"),
        ("--qos=nope", "Invalid qos specification"),
        ("--time=9-00:00:00", "Requested time limit is invalid"),
        ("--time=soon", "Invalid --time specification"),
        ("--nodes=9", "Node count specification invalid"),
        ("--gpus-per-node=1", "Requested node configuration is not available"),
        ("--mem=1T", "Memory specification can not be satisfied"),
        ("--cpus-per-task=99", "CPU count per node can not be satisfied"),
        ("--dependency=soon", "Job dependency problem"),
        ("--nosuch", "unrecognized option '--nosuch'"),
    ],
)
async def test_what_slurm_refuses_is_refused_in_its_words(
    cluster: Cluster, slurm: Slurm, option: str, words: str
) -> None:
    outcome = await slurm.submit(cluster.request("true", option))
    assert isinstance(outcome, Refused), outcome
    assert words in outcome.said
    assert cluster.accepted() == []


async def test_a_job_ends_at_its_time_limit_and_leaves_nothing_behind(cluster: Cluster, slurm: Slurm) -> None:
    script = 'trap "" TERM; setsid sleep 1000 & echo $! > left; sleep 1000'
    request = cluster.request(script, "--time=0:01")
    number = await accept(slurm, request)
    assert (await cluster.until(number, "TIMEOUT", "COMPLETED", "FAILED")).state == "TIMEOUT"
    folder = cluster.info.home / "jobs" / request.token
    assert "DUE TO TIME LIMIT" in (folder / f"slurm-{number}.out").read_text()
    left = int((folder / "left").read_text())
    from backends.sandbox.processes import born

    assert born(left) is None


async def test_a_job_is_cancelled_by_us_only_when_it_is_ours(cluster: Cluster, slurm: Slurm) -> None:
    request = cluster.request("sleep 1000")
    number = await accept(slurm, request)
    await cluster.until(number, "RUNNING")
    assert "not ours" in await slurm.cancel(str(number), "ffffffff")
    assert cluster.job(number).state == "RUNNING"
    await slurm.cancel(str(number), request.token[:8])
    assert (await cluster.until(number, "CANCELLED", "COMPLETED")).state == "CANCELLED"


async def test_nodes_are_bounded_and_whoever_waits_says_why(cluster: Cluster, slurm: Slurm, shell: Shell) -> None:
    first = await accept(slurm, cluster.request("sleep 1000", "--nodes=2", token="1" * 16))
    await cluster.until(first, "RUNNING")
    second = await accept(slurm, cluster.request("true", token="2" * 16))
    assert (await shell(f"squeue -h -j {second} -o '%T|%r'")).stdout == b"PENDING|Resources\n"
    await shell(f"scancel {first}")
    assert (await cluster.until(second, "COMPLETED")).state == "COMPLETED"


async def test_dependencies_hold_back_and_can_become_impossible(cluster: Cluster, slurm: Slurm, shell: Shell) -> None:
    first = await accept(slurm, cluster.request("read line < gate; exit 1", token="1" * 16))
    folder = cluster.info.home / "jobs" / ("1" * 16)
    after = await accept(slurm, cluster.request("true", f"--dependency=afterok:{first}", token="2" * 16))
    any_end = await accept(slurm, cluster.request("true", f"--dependency=afterany:{first}", token="3" * 16))
    await shell(f"scancel {first}") if not folder.exists() else None
    await cluster.until(first, "FAILED", "CANCELLED")  # there is no gate to read from, so it fails
    await cluster.until(any_end, "COMPLETED")
    assert cluster.job(after).state == "PENDING"
    shown = await shell(f"squeue -h -j {after} -o %r")
    assert shown.stdout == b"DependencyNeverSatisfied\n"


async def test_accepted_although_sbatch_said_time_out(cluster: Cluster, slurm: Slurm) -> None:
    cluster.knob("submit", {"how": "accept-time-out"})
    request = cluster.request("true")
    outcome = await slurm.submit(request)
    assert isinstance(outcome, Unknown)
    assert "Socket timed out" in outcome.said
    found = await slurm.reconcile(request, submitted_at=0.0, settle_seconds=0.0)
    assert isinstance(found, Accepted)
    assert [item["job_id"] for item in cluster.accepted()] == [int(found.job_id)]


@pytest.mark.parametrize("how", ["accept-exit-1", "accept-silent"])
async def test_accepted_although_sbatch_failed(cluster: Cluster, slurm: Slurm, how: str) -> None:
    cluster.knob("submit", {"how": how})
    request = cluster.request("true")
    assert isinstance(await slurm.submit(request), Unknown)
    assert isinstance(await slurm.reconcile(request, submitted_at=0.0, settle_seconds=0.0), Accepted)


async def test_time_out_without_a_job_is_found_out(cluster: Cluster, slurm: Slurm) -> None:
    cluster.knob("submit", {"how": "time-out"})
    request = cluster.request("true")
    assert isinstance(await slurm.submit(request), Unknown)
    assert isinstance(await slurm.reconcile(request, submitted_at=0.0, settle_seconds=0.0), NotSubmitted)
    assert isinstance(await slurm.submit(request), Unknown), "a second submission of one request is never made"
    assert cluster.accepted() == []


async def test_a_slow_queue_does_not_make_a_job_absent(cluster: Cluster, slurm: Slurm) -> None:
    cluster.knob("queue_delay_s", 3600)
    cluster.knob("accounting", "down")
    cluster.knob("submit", {"how": "accept-time-out"})
    request = cluster.request("true")
    await slurm.submit(request)
    outcome = await slurm.reconcile(request, submitted_at=0.0, settle_seconds=0.0)
    assert isinstance(outcome, Unknown), "accounting did not answer, so nobody can say"
    assert any(not item.healthy and item.source == "sacct" for item in outcome.asked)
    cluster.knob("accounting", None)
    assert isinstance(await slurm.reconcile(request, submitted_at=0.0, settle_seconds=0.0), Accepted)


async def test_accounting_that_lags_shows_the_past(cluster: Cluster, slurm: Slurm, shell: Shell) -> None:
    number = await accept(slurm, cluster.request("true"))
    await cluster.until(number, "COMPLETED")
    assert (await shell(f"sacct -n -X -P -j {number} -o State")).stdout == b"COMPLETED\n"
    cluster.knob("accounting_lag_s", 3600)
    assert (await shell(f"sacct -n -X -P -j {number} -o State")).stdout == b""


async def test_a_controller_that_is_down_is_no_empty_queue(cluster: Cluster, slurm: Slurm, host: SshHost) -> None:
    from backends.errors import CouldNotAsk

    number = await accept(slurm, cluster.request("sleep 1000"))
    cluster.knob("controller", "down")
    with pytest.raises(CouldNotAsk, match="Unable to contact slurm controller"):
        await slurm.jobs({str(number): "x"})
    assert isinstance(await slurm.submit(cluster.request("true", token="a" * 16)), Unknown)


async def test_an_odd_state_is_not_an_end(cluster: Cluster, slurm: Slurm) -> None:
    number = await accept(slurm, cluster.request("true"))
    cluster.knob("odd_state", "STAGE_OUT")
    seen = (await slurm.jobs({str(number): "x"})).jobs[str(number)]
    assert (seen.state, seen.state_text, seen.state.ended) == (JobState.OTHER, "STAGE_OUT", False)


async def test_a_noisy_login_shell_disturbs_nothing(cluster: Cluster, slurm: Slurm) -> None:
    cluster.knob("noise", "Welcome!\nBEGIN-000\nstate 6\nsbatch\n\x1b[31mred\x1b[0m\n")
    number = await accept(slurm, cluster.request("true"))
    assert (await cluster.until(number, "COMPLETED")).id == number


async def test_a_requeued_job_starts_again_and_says_so(cluster: Cluster, slurm: Slurm, shell: Shell) -> None:
    request = cluster.request('[ "$SLURM_RESTART_COUNT" = 0 ] && { echo up > up; sleep 1000; }; exit 0')
    number = await accept(slurm, request)
    while not (cluster.info.home / "jobs" / request.token / "up").exists():
        await cluster.until(number, "RUNNING")
    denied = await shell(f"scontrol requeue {number}")
    assert b"presently disabled" in denied.stderr, "--no-requeue holds"
    from backends.sandbox.commands.scontrol import requeue
    from backends.sandbox.store import Store

    store = Store(cluster.place)
    requeue(store, cluster.job(number))
    store.close()
    job = await cluster.until(number, "COMPLETED", "FAILED")
    assert (job.state, job.restarts) == ("COMPLETED", 1)
    assert [item["restarts"] for item in cluster.started()] == [0, 1]
    assert len(cluster.accepted()) == 1


async def test_the_cluster_describes_itself(slurm: Slurm) -> None:
    facts = await slurm.facts("batch", "research")
    assert facts.accounts == ("research",)
    assert {name: item.max_seconds for name, item in facts.partitions.items()} == {"batch": 86400, "interactive": 3600}
    assert facts.partitions["batch"].gpus_per_node == 0
    assert facts.slurm_version == "slurm 22.05.8"


async def test_scontrol_shows_a_job(cluster: Cluster, slurm: Slurm, shell: Shell) -> None:
    number = await accept(slurm, cluster.request("sleep 1000"))
    await cluster.until(number, "RUNNING")
    shown = (await shell(f"scontrol show job {number}")).stdout.decode()
    assert f"JobId={number} JobName=gonogo-01234567" in shown
    assert "JobState=RUNNING Reason=None" in shown
    assert "Comment=gonogo:0123456789abcdef" in shown
    missing = await shell("scontrol show job 9999")
    assert (missing.exit_status, missing.stderr) == (1, b"slurm_load_jobs error: Invalid job id specified\n")
