"""`sacct`: accounting, which lags behind and may be down while everything else goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

from backends.sandbox.commands.usage import SlurmError, clock, moment, numbers, options, state_text
from backends.sandbox.store import Job, Store

_DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
_WIDTH = {"jobid": 12}

_DOWN = """\
sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to \
host:127.0.0.1:6819: Connection refused
sacct: error: Sending PersistInit msg: Connection refused
sacct: error: Problem talking to the database: Connection refused"""


def _cancelled(job: Job) -> str:
    by = f" by {job.cancelled_by}" if job.state == "CANCELLED" and job.cancelled_by is not None else ""
    return job.state + by


_FIELDS: dict[str, tuple[str, Callable[[Job, float], str]]] = {
    "jobid": ("JobID", lambda job, now: str(job.id)),
    "jobidraw": ("JobIDRaw", lambda job, now: str(job.id)),
    "jobname": ("JobName", lambda job, now: job.name),
    "partition": ("Partition", lambda job, now: job.partition),
    "account": ("Account", lambda job, now: job.account),
    "user": ("User", lambda job, now: job.user),
    "qos": ("QOS", lambda job, now: job.qos),
    "alloccpus": ("AllocCPUS", lambda job, now: str(job.cpus)),
    "nnodes": ("NNodes", lambda job, now: str(job.nodes)),
    "state": ("State", lambda job, now: _cancelled(job)),
    "exitcode": ("ExitCode", lambda job, now: f"{job.exit_code}:{job.signal}"),
    "nodelist": ("NodeList", lambda job, now: job.node_list or "None assigned"),
    "elapsed": ("Elapsed", lambda job, now: clock(job.elapsed(now), wide=True)),
    "elapsedraw": ("ElapsedRaw", lambda job, now: str(job.elapsed(now))),
    "timelimit": ("Timelimit", lambda job, now: clock(job.limit_s, wide=True)),
    "timelimitraw": ("TimelimitRaw", lambda job, now: str(job.limit_s // 60)),
    "submit": ("Submit", lambda job, now: moment(job.submitted)),
    "start": ("Start", lambda job, now: moment(job.started)),
    "end": ("End", lambda job, now: moment(job.ended)),
    "comment": ("Comment", lambda job, now: job.comment),
    "workdir": ("WorkDir", lambda job, now: job.workdir),
}


def main(store: Store, arguments: list[str]) -> int:
    """Print accounting."""
    long = ["name=", "format=", "jobs=", "starttime=", "noheader", "parsable2", "parsable", "allocations", "user="]
    found, _ = options("sacct", arguments, "nXPpS:E:o:j:u:", long)
    knobs = store.knobs()
    if knobs.get("accounting") == "down":
        raise SlurmError(_DOWN)
    now = time.time()
    jobs = _filtered(store, found, now - float(knobs.get("accounting_lag_s", 0)))
    names = [word.split("%")[0].lower() for word in found.get("o", found.get("format", _DEFAULT)).split(",")]
    unknown = [name for name in names if name not in _FIELDS]
    if unknown:
        raise SlurmError(f'sacct: error: Invalid field requested: "{unknown[0]}"')
    rows = [[_FIELDS[name][0] for name in names]] if not {"n", "noheader"} & set(found) else []
    for job in jobs:
        if knobs.get("odd_state"):
            job.state = state_text(store, job)
        row = {name: _FIELDS[name][1](job, now) for name in names}
        rows.append([row[name] for name in names])
        if not {"X", "allocations"} & set(found) and job.started is not None:
            step = {**row, "jobid": f"{job.id}.batch", "jobidraw": f"{job.id}.batch", "jobname": "batch"}
            rows.append([{**step, "partition": "", "user": "", "timelimitraw": ""}[name] for name in names])
    for cells in rows:
        print(_line(cells, names, found))
    return 0


def _line(cells: list[str], names: list[str], found: dict[str, str]) -> str:
    if {"P", "parsable2"} & set(found):
        return "|".join(cells)
    if {"p", "parsable"} & set(found):
        return "|".join(cells) + "|"
    return " ".join(
        f"{cell:<12}" if name == "jobid" else f"{cell:>10}"[:10] for cell, name in zip(cells, names, strict=True)
    )


def _filtered(store: Store, found: dict[str, str], until: float) -> list[Job]:
    """The jobs that accounting has heard of: what happened after `until` is not there yet."""
    asked = found.get("j", found.get("jobs", ""))
    names = found.get("name", "")
    jobs = store.jobs("submitted <= ?", (until,))
    if asked:
        ids = numbers(asked, f"sacct: fatal: Bad job/step specified: {asked}")
        jobs = [job for job in jobs if job.id in ids]
    if names:
        jobs = [job for job in jobs if job.name in names.split(",")]
    for job in jobs:
        if job.ended is not None and job.ended > until:
            job.state, job.ended, job.exit_code, job.signal = "RUNNING", None, 0, 0
        if job.started is not None and job.started > until:
            job.state, job.started, job.node_list = "PENDING", None, ""
    return jobs
