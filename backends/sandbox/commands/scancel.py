"""`scancel`: ends jobs; silent and content about ids that are unknown or have ended, as Slurm is."""

from __future__ import annotations

import os
import time

from backends.sandbox import processes
from backends.sandbox.commands.usage import SlurmError, options
from backends.sandbox.place import poke
from backends.sandbox.store import ENDED, Store


def main(store: Store, arguments: list[str]) -> int:
    """Cancel jobs."""
    found, rest = options("scancel", arguments, "n:", ["name=", "jobname="])
    name = found.get("n", found.get("name", found.get("jobname", "")))
    if store.knobs().get("controller") == "down":
        first = rest[0] if rest else "0"
        raise SlurmError(
            f"scancel: error: Kill job error on job id {first}: Unable to contact slurm controller (connect failure)", 8
        )
    bad = [word for word in rest if not (word.isascii() and word.isdigit())]
    if bad:
        raise SlurmError(f"scancel: error: Invalid job id {bad[0]}")
    jobs = store.jobs("name = ?", (name,)) if name else []
    jobs += [job for job in map(store.job, map(int, rest)) if job is not None]
    for job in jobs:
        if job.state in ENDED:
            continue
        if store.change(job.id, "state = 'PENDING'", state="CANCELLED", ended=time.time(), cancelled_by=os.getuid()):
            continue
        store.change(job.id, "state = 'RUNNING'", cancelled_by=os.getuid(), again=0)
        now = store.job(job.id)
        if now is not None:
            processes.end(now.runner, now.runner_born)
    poke(store.place)
    return 0
