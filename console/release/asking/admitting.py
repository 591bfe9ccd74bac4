"""Whether a proposal that some program laid into the queue is one that an operator can be asked about.

Whatever lies there is data. A job whose readable fields say something else than its options do would be approved
as what it is not, so it is refused before anybody sees it as a job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from console.release import queue
from console.release.asking.describing import describe
from console.release.asking.sbatch_line import read_line
from console.release.clusters import Cluster
from console.release.errors import InputError
from console.release.job import ExactJob, JobError, refuse_secrets
from console.release.state import ASKED, RunState

_SAFE_OPTIONS = ("parsable", "job-name", "comment", "wrap")


def admit(proposal: queue.Proposal, state: RunState, cluster: Cluster) -> ExactJob:
    """The job of an asked proposal.

    Raises:
        JobError: When it is none, is for another place, or says of itself what it does not do.
    """
    try:
        job = proposal.job()
        _consistent(job)
        _results(job)
        refuse_secrets(job.environment)
        proposal.uploads()
    except (InputError, queue.QueueError) as error:
        raise JobError(str(error)) from None
    root = f"{cluster.workspace}/gonogo/{state.run_id}"
    wanted = {
        "kind": "sbatch",
        "stage": ASKED,
        "attempt": 1,
        "run_id": state.run_id,
        "cluster": cluster.name,
        "host": cluster.login_node,
        "port": cluster.port,
        "user": cluster.user,
        "task": f"asked-{job.token[:8]}",
        "job_dir": f"{root}/asked/{job.token[:8]}",
        "claim_dir": f"{root}/claims/{job.token}",
        "extra_options": (),
        "evidence": (),
    }
    for name, value in wanted.items():
        if getattr(job, name) != value:
            raise JobError(f"{proposal.id}: {name}: expected {value!r}, found {getattr(job, name)!r}")
    if not job.job_name.endswith(job.token[:8]):
        raise JobError(
            f"{proposal.id}: job_name: expected a name that ends with {job.token[:8]}, found {job.job_name!r}"
        )
    if any(attempt.token == job.token for attempt in state.attempts):
        raise JobError(f"{proposal.id}: token: expected a new one, found that of another job")
    return job


def _consistent(job: ExactJob) -> None:
    line = read_line(job.options)
    if line.words:
        raise JobError(f"options: expected options only, found {line.words[0]!r}")
    for name in _SAFE_OPTIONS:
        if line.has(name):
            raise JobError(f"options: --{name} is not the proposer's to give")
    said: Mapping[str, Any] = describe(line.options, job.script)
    for name, value in said.items():
        if getattr(job, name) != value:
            raise JobError(f"{name}: it says {getattr(job, name)!r}, but its options ask for {value!r}")
    exports = ",".join(f"{name}={value}" for name, value in job.environment)
    if line.value("export") != exports:
        raise JobError("environment: its variables are not those that its --export names")


def _results(job: ExactJob) -> None:
    """Kinds become file names of ours, and paths are read on the cluster: neither may lead anywhere else."""
    for kind, path in job.results:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", kind):
            raise JobError(f"results: expected a word of lower-case letters as kind, found {kind!r}")
        if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
            raise JobError(f"results: {kind}: expected a path inside the job's folder, found {path!r}")
