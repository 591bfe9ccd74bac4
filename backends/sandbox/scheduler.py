"""Decides which waiting job starts on which node, and notices runners that have died."""

from __future__ import annotations

import os
import subprocess
import time

from backends.sandbox import processes
from backends.sandbox.program import program
from backends.sandbox.store import ENDED, NODES, Job, Store

NODE_NAMES = tuple(f"node{number}" for number in range(1, NODES + 1))


class Scheduler:
    """One pass after another over the jobs; all memory is in the store, so a new one goes on where this one ended.

    Args:
        store: The cluster's jobs and knobs.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runners: dict[int, subprocess.Popen[bytes]] = {}

    def look(self) -> int:
        """One pass: end what died, start what can start.

        Returns:
            How many jobs wait or run.
        """
        dead = {name for name, runner in self._runners.items() if runner.poll() is not None}
        self._runners = {name: runner for name, runner in self._runners.items() if name not in dead}
        active = self._store.jobs("state IN ('PENDING', 'RUNNING')")
        now = time.time()
        for job in active:
            if job.state == "RUNNING" and job.runner is not None and not processes.lives(job.runner, job.runner_born):
                self._lost(job, f"runner = {job.runner}", now)
            elif job.state == "RUNNING" and job.runner is None and job.id in dead:
                self._lost(job, "runner IS NULL", now)
        for job in active:
            # A runner that was launched and still lives will report in a moment.
            # One that was launched by a server before this one did not come to report: it is launched again, and
            # whoever reports first runs the job.
            if job.state == "RUNNING" and job.runner is None and job.id not in self._runners | dict.fromkeys(dead):
                self._launch(job)
        self._start(now)
        return len(self._store.jobs("state IN ('PENDING', 'RUNNING')"))

    def _lost(self, job: Job, condition: str, now: float) -> None:
        """A runner is gone without a word. It may have written its end between two looks: the condition decides."""
        self._store.change(
            job.id, f"state = 'RUNNING' AND {condition}", state="NODE_FAIL", reason="NodeFail", ended=now
        )

    def _start(self, now: float) -> None:
        running = self._store.jobs("state = 'RUNNING'")
        busy = {node for job in running for node in job.node_list.split(",")}
        free = [node for node in NODE_NAMES if node not in busy]
        # First come, first served: a job that does not fit yet holds back those behind it, so none starves.
        blocked = ""
        for job in self._store.jobs("state = 'PENDING'"):
            reason = self._obstacle(job, now)
            if not reason and (blocked or job.nodes > len(free)):
                reason = "Priority" if blocked else "Resources"
                blocked = blocked or reason
            if reason == "DependencyNeverSatisfied" and job.kill_on_invalid_dep:
                self._store.change(job.id, "state = 'PENDING'", state="CANCELLED", reason=reason, ended=now)
            elif reason:
                if reason != job.reason:
                    self._store.change(job.id, "state = 'PENDING'", reason=reason)
            else:
                mine, free = free[: job.nodes], free[job.nodes :]
                taken = self._store.change(
                    job.id, "state = 'PENDING'", state="RUNNING", reason="None", node_list=",".join(mine), started=now
                )
                if taken:
                    self._launch(job)

    def _obstacle(self, job: Job, now: float) -> str:
        if job.hold:
            return "JobHeldUser"
        if job.eligible > now:
            return "BeginTime" if job.restarts else "Priority"
        return dependency_reason(job.dependency, self._store)

    def _launch(self, job: Job) -> None:
        self._runners[job.id] = subprocess.Popen(
            [*program(), "run", str(self._store.place.root), str(job.id)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self._store.place.home,
            start_new_session=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )


def dependency_reason(dependency: str, store: Store) -> str:
    """Why a dependency keeps a job from starting: "", "Dependency" or "DependencyNeverSatisfied"."""
    waits = False
    for part in dependency.split(","):
        if not part:
            continue
        kind, *ids = part.split(":")
        for text in ids:
            other = store.job(int(text))
            if other is None:
                # Slurm forgets ended jobs, and takes an id that it does not know for one that ended well.
                continue
            if other.state not in ENDED:
                waits = waits or not (kind == "after" and other.state == "RUNNING")
                continue
            good = other.state == "COMPLETED"
            if (kind == "afterok" and not good) or (kind == "afternotok" and good):
                return "DependencyNeverSatisfied"
    return "Dependency" if waits else ""
