"""Runs one job: the cluster's node. It is a process of its own, so a job outlives the cluster's server.

It enforces the time limit itself and writes the end into the cluster's file itself, for the same reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import IO, Any

from backends.sandbox import processes
from backends.sandbox.place import Place, poke
from backends.sandbox.store import Job, Store, record

KILL_WAIT_S = 2.0
"""Between a job's TERM and its KILL."""

LAUNCH_FAILED = 53
"""What Slurm shows as signal where the output file could not be opened."""


def expand(pattern: str, job: Job) -> str:
    """Slurm's patterns in names of output files."""
    values = {
        "%": "%",
        "j": str(job.id),
        "A": str(job.id),
        "x": job.name,
        "u": job.user,
        "N": job.node_list.split(",")[0],
    }
    return re.sub(r"%([%jAxuN])", lambda found: values[found.group(1)], pattern)


def main(place: Place, job_id: int) -> int:
    """Run one job to its end."""
    processes.adopt_descendants()
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    store = Store(place)
    # Whoever wins this may run the script: a job is started once, even by two schedulers.
    mine = store.change(
        job_id,
        "state = 'RUNNING' AND runner IS NULL",
        runner=os.getpid(),
        runner_born=processes.born(os.getpid()),
        started=time.time(),
    )
    job = store.job(job_id)
    if not mine or job is None:
        return 1
    try:
        result = _Run(place, store, job, asked).run()
    except OSError as error:
        print(f"job {job_id}: {error}", file=sys.stderr)
        result = {"state": "FAILED", "signal": LAUNCH_FAILED, "reason": "JobLaunchFailure"}
    _finish(store, job, result)
    poke(place)
    return 0


def _finish(store: Store, job: Job, result: dict[str, Any]) -> None:
    current = store.job(job.id)
    if current is not None and current.again:
        store.change(
            job.id,
            state="PENDING",
            reason="BeginTime",
            again=0,
            runner=None,
            runner_born=None,
            node_list="",
            started=None,
            restarts=current.restarts + 1,
            eligible=time.time(),
        )
        return
    store.change(job.id, **{"ended": time.time(), "reason": "None", **result})


class _Run:
    """One run of one script."""

    def __init__(self, place: Place, store: Store, job: Job, asked: list[int]) -> None:
        self._place = place
        self._store = store
        self._job = job
        self._asked = asked
        self._deadline = time.monotonic() + job.limit_s

    def run(self) -> dict[str, Any]:
        job = self._job
        output = os.path.join(job.workdir, expand(job.output, job))
        with contextlib.ExitStack() as open_files:
            stdout = open_files.enter_context(open(output, "ab"))
            stderr = stdout
            if job.error:
                stderr = open_files.enter_context(open(os.path.join(job.workdir, expand(job.error, job)), "ab"))
            return self._run(stdout, stderr)

    def _run(self, stdout: IO[bytes], stderr: IO[bytes]) -> dict[str, Any]:
        job = self._job
        folder = job.workdir
        if not os.path.isdir(folder):
            stderr.write(f"slurmstepd: error: couldn't chdir to `{folder}': going to /tmp instead\n".encode())
            stderr.flush()
            folder = "/tmp"
        script = str(self._place.spool(job.id) / "script")
        os.chmod(script, 0o700)
        record(self._place.started, {"job_id": job.id, "name": job.name, "restarts": job.restarts})
        process = subprocess.Popen(
            [script, *json.loads(job.arguments)],
            cwd=folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            process_group=0,
        )
        ended_by = self._wait(process)
        if ended_by:
            at = time.strftime("%Y-%m-%dT%H:%M:%S")
            why = " DUE TO TIME LIMIT" if ended_by == "TIMEOUT" else ""
            node = job.node_list.split(",")[0]
            stderr.write(f"slurmstepd-{node}: error: *** JOB {job.id} ON {node} CANCELLED AT {at}{why} ***\n".encode())
        self._end_rest(process)
        status = process.wait()
        if ended_by:
            return {"state": ended_by, "exit_code": 0, "signal": 0}
        if status < 0:
            return {"state": "FAILED", "exit_code": 0, "signal": -status, "reason": "RaisedSignal"}
        reason = "NonZeroExitCode" if status else "None"
        return {"state": "FAILED" if status else "COMPLETED", "exit_code": status, "signal": 0, "reason": reason}

    def _wait(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for the script, the time limit, or a cancel; says which of the two latter ended it."""
        while True:
            try:
                process.wait(timeout=0.1)
                return ""
            except subprocess.TimeoutExpired:
                if self._asked:
                    return "CANCELLED"
                if time.monotonic() >= self._deadline:
                    return "TIMEOUT"

    def _end_rest(self, process: subprocess.Popen[bytes]) -> None:
        """End whatever the script left behind: TERM first, KILL after a while, nothing stays."""
        for number, patience in ((signal.SIGTERM, KILL_WAIT_S), (signal.SIGKILL, KILL_WAIT_S)):
            until = time.monotonic() + patience
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            for pid in processes.descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            while time.monotonic() < until:
                process.poll()
                self._reap(process)
                if process.returncode is not None and not processes.descendants(os.getpid()):
                    return
                time.sleep(0.02)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        """Collect adopted children that have ended; the script itself is left to its own handle."""
        for pid in processes.descendants(os.getpid()):
            if pid != process.pid and processes.born(pid) is None:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _environment(self) -> dict[str, str]:
        job = self._job
        nodes = str(job.nodes)
        slurm = {
            "SLURM_CLUSTER_NAME": "demo",
            "SLURM_JOB_ID": str(job.id),
            "SLURM_JOBID": str(job.id),
            "SLURM_JOB_NAME": job.name,
            "SLURM_JOB_ACCOUNT": job.account,
            "SLURM_JOB_PARTITION": job.partition,
            "SLURM_JOB_QOS": job.qos,
            "SLURM_JOB_USER": job.user,
            "SLURM_JOB_NODELIST": job.node_list,
            "SLURM_NODELIST": job.node_list,
            "SLURM_JOB_NUM_NODES": nodes,
            "SLURM_NNODES": nodes,
            "SLURM_CPUS_ON_NODE": str(job.cpus),
            "SLURM_SUBMIT_DIR": job.workdir,
            "SLURM_RESTART_COUNT": str(job.restarts),
            "SLURMD_NODENAME": job.node_list.split(",")[0],
            "ENVIRONMENT": "BATCH",
        }
        return {**json.loads(job.environment), **slurm}
