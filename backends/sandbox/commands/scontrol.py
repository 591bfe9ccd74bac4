"""`scontrol`: `show job`, `ping`, `hold`, `release`, `requeue`."""

from __future__ import annotations

import os
import time

from backends.sandbox import processes
from backends.sandbox.commands.usage import SlurmError, clock, moment, need_controller, options, state_text
from backends.sandbox.place import poke
from backends.sandbox.runner import expand
from backends.sandbox.store import ENDED, MIN_JOB_AGE_S, Job, Store

_UNKNOWN = "slurm_load_jobs error: Invalid job id specified"


def main(store: Store, arguments: list[str]) -> int:
    """Show or change a job."""
    found, rest = options("scontrol", arguments, "o", ["oneliner"])
    match rest:
        case ["ping"]:
            up = store.knobs().get("controller") != "down"
            print(f"Slurmctld(primary) at localhost is {'UP' if up else 'DOWN'}")
            return 0 if up else 1
        case ["show", "job", number]:
            need_controller(store, "slurm_load_jobs error: ")
            text = _shown(store, _job(store, number))
            print(" ".join(text.split("\n   ")) if found else text + "\n")
            return 0
        case ["hold" | "release" | "requeue" as verb, number]:
            need_controller(store, "slurm_update error: ")
            return _change(store, verb, _job(store, number))
    raise SlurmError(f"scontrol: error: the embedded cluster does not know: {' '.join(rest)}")


def _job(store: Store, number: str) -> Job:
    job = store.job(int(number)) if number.isascii() and number.isdigit() else None
    if job is None or (job.ended is not None and job.ended < time.time() - MIN_JOB_AGE_S):
        raise SlurmError(_UNKNOWN)
    return job


def _change(store: Store, verb: str, job: Job) -> int:
    if verb == "requeue":
        if not job.requeue:
            raise SlurmError(f"Requested operation is presently disabled for job {job.id}")
        requeue(store, job)
    else:
        held = int(verb == "hold")
        store.change(job.id, "state = 'PENDING'", hold=held, reason="JobHeldUser" if held else "None")
    poke(store.place)
    return 0


def requeue(store: Store, job: Job) -> None:
    """Queue a job again: a running one once its processes have ended."""
    if job.state in ENDED:
        store.change(
            job.id, state="PENDING", reason="BeginTime", runner=None, runner_born=None, node_list="", started=None,
            ended=None, restarts=job.restarts + 1,
        )  # fmt: skip
    elif store.change(job.id, "state = 'RUNNING'", again=1):
        processes.end(job.runner, job.runner_born)


def _shown(store: Store, job: Job) -> str:
    now = time.time()
    user = f"{job.user}({os.getuid()})"
    out = os.path.join(job.workdir, expand(job.output, job))
    err = os.path.join(job.workdir, expand(job.error, job)) if job.error else out
    started = moment(job.started)
    end = job.ended if job.ended is not None else (job.started + job.limit_s if job.started is not None else None)
    lines = [
        f"JobId={job.id} JobName={job.name}",
        f"UserId={user} GroupId={os.getgid()}({os.getgid()}) MCS_label=N/A",
        f"Priority={4294901757 - job.id} Nice=0 Account={job.account} QOS={job.qos}",
        f"JobState={state_text(store, job)} Reason={job.reason} Dependency={job.dependency or '(null)'}",
        f"Requeue={job.requeue} Restarts={job.restarts} BatchFlag=1 Reboot=0 ExitCode={job.exit_code}:{job.signal}",
        f"RunTime={clock(job.elapsed(now), wide=True)} TimeLimit={clock(job.limit_s, wide=True)} TimeMin=N/A",
        f"SubmitTime={moment(job.submitted)} EligibleTime={moment(job.eligible)}",
        f"StartTime={started} EndTime={moment(end)} Deadline=N/A",
        f"Partition={job.partition} AllocNode:Sid=localhost:1",
        f"NodeList={job.node_list}",
        f"NumNodes={job.nodes} NumCPUs={job.cpus} NumTasks={job.nodes} CPUs/Task={job.cpus} ReqB:S:C:T=0:0:*:*",
        "Command=(null)",
        f"WorkDir={job.workdir}",
    ]
    lines += [f"Comment={job.comment} "] if job.comment else []
    lines += [f"StdErr={err}", "StdIn=/dev/null", f"StdOut={out}", "Power="]
    return "\n   ".join(lines)
