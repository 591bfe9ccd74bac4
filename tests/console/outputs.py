"""Writes what a conductor keeps of an output, into a run folder."""

from __future__ import annotations

from console.release.spool import Segment, Spool, place
from tests.console.runs import Run

JOB = "003-train-1"


class Output:
    """The output of a job, as a conductor would keep it."""

    def __init__(self, run: Run, what: str = "stdout", name: str = JOB) -> None:
        attempt = run.writer.state.attempt(name)
        assert attempt is not None
        self.run = run
        self.spool = Spool(place(run.path, name), what, f"{attempt.job_dir}/slurm-{attempt.job_id}.out")
        self.size = 0

    @property
    def now(self) -> str:
        return self.run.time.wall.isoformat()

    def write(self, data: bytes, *, why: str = "", skipped: int = 0) -> None:
        self.size += skipped
        segment = Segment(0, self.size, why or "first look", skipped) if why or not self.spool.kept.segments else None
        self.size += len(data)
        self.spool.add(self.now, data, size=self.size, inode=7, segment=segment)
