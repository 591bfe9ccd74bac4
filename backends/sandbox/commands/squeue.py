"""`squeue`: the waiting and running jobs, and the ended ones that the controller still remembers."""

from __future__ import annotations

import time

from backends.sandbox.commands.usage import (
    SlurmError,
    clock,
    fill,
    moment,
    need_controller,
    numbers,
    options,
    state_text,
    whoami,
)
from backends.sandbox.store import ENDED, MIN_JOB_AGE_S, Job, Store

_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_TITLES = {
    "i": "JOBID", "A": "JOBID", "F": "ARRAY_JOB_ID", "K": "ARRAY_TASK_ID", "P": "PARTITION", "j": "NAME", "u": "USER",
    "t": "ST", "T": "STATE", "M": "TIME", "D": "NODES", "R": "NODELIST(REASON)", "r": "REASON", "N": "NODELIST",
    "l": "TIME_LIMIT", "k": "COMMENT", "a": "ACCOUNT", "q": "QOS", "C": "CPUS", "V": "SUBMIT_TIME", "S": "START_TIME",
    "e": "END_TIME", "E": "DEPENDENCY", "Z": "WORK_DIR",
}  # fmt: skip
_SHORT_STATES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETED": "CD",
    "FAILED": "F",
    "CANCELLED": "CA",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
}


def main(store: Store, arguments: list[str]) -> int:
    """Print the queue."""
    long = ["me", "name=", "format=", "states=", "user=", "jobs=", "noheader", "partition="]
    found, _ = options("squeue", arguments, "ht:o:u:j:n:p:", long)
    need_controller(store, "slurm_load_jobs error: ")
    jobs = _filtered(store, found)
    pattern = found.get("o", found.get("format", _DEFAULT))
    if "h" not in found and "noheader" not in found:
        print(fill(pattern, _TITLES))
    now = time.time()
    for job in jobs:
        print(fill(pattern, _values(store, job, now)))
    return 0


def _filtered(store: Store, found: dict[str, str]) -> list[Job]:
    now = time.time()
    known = [
        job
        for job in store.jobs(
            "state NOT IN ('COMPLETED','FAILED','CANCELLED','TIMEOUT','NODE_FAIL') OR ended > ?", (now - MIN_JOB_AGE_S,)
        )
        if job.visible <= now
    ]
    asked = found.get("j", found.get("jobs", ""))
    if asked:
        ids = numbers(asked, f"squeue: error: Invalid job id: {asked}")
        if len(ids) == 1 and not any(job.id == ids[0] for job in known):
            raise SlurmError("slurm_load_jobs error: Invalid job id specified")
        known = [job for job in known if job.id in ids]
    states = found.get("t", found.get("states", "PENDING,RUNNING")).upper().split(",")
    if states != ["ALL"]:
        wanted = {long for long, short in _SHORT_STATES.items() if long in states or short in states}
        known = [job for job in known if job.state in wanted]
    user = found.get("u", found.get("user", whoami() if "me" in found else ""))
    names = found.get("n", found.get("name", ""))
    partition = found.get("p", found.get("partition", ""))
    return [
        job
        for job in known
        if (not user or job.user in user.split(","))
        and (not names or job.name in names.split(","))
        and (not partition or job.partition in partition.split(","))
    ]


def _values(store: Store, job: Job, now: float) -> dict[str, str]:
    state = state_text(store, job)
    ended = job.state in ENDED
    pending = job.state == "PENDING"
    return {
        "i": str(job.id), "A": str(job.id), "F": str(job.id), "K": "N/A", "P": job.partition, "j": job.name,
        "u": job.user, "t": _SHORT_STATES.get(state, state[:2]), "T": state, "M": clock(job.elapsed(now)),
        "D": str(job.nodes), "R": f"({job.reason})" if pending or (ended and not job.node_list) else job.node_list,
        "r": job.reason, "N": job.node_list, "l": clock(job.limit_s), "k": job.comment or "(null)", "a": job.account,
        "q": job.qos, "C": str(job.cpus), "V": moment(job.submitted),
        "S": moment(job.started) if job.started else "N/A", "e": moment(job.ended) if job.ended else "N/A",
        "E": job.dependency or "(null)", "Z": job.workdir,
    }  # fmt: skip
