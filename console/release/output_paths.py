"""Where a job's output lies, from the exact job that was submitted: no question to Slurm is needed for it."""

from __future__ import annotations

import posixpath
import re

from console.release.asking.directives import effective
from console.release.asking.sbatch_line import read_line
from console.release.errors import InputError
from console.release.job import ExactJob

STDOUT, STDERR, RESULT = "stdout", "stderr", "result-"
"""What can be looked at: two streams, and result files by their kind behind the prefix."""


class UnknownPath(Exception):
    """Nobody can tell from the job where it lies. One line that says why."""


def path_of(job: ExactJob, job_id: str, what: str) -> str:
    """The file on the cluster.

    Args:
        job: The job as it was submitted.
        job_id: Slurm's number of it.
        what: STDOUT, STDERR, or RESULT and a kind.

    Raises:
        UnknownPath: When it cannot be told.
    """
    if what.startswith(RESULT):
        kind = what.removeprefix(RESULT)
        found = dict(job.results).get(kind)
        if found is None:
            raise UnknownPath(f"the job writes no result of the kind {kind}")
        return posixpath.join(job.job_dir, found)
    try:
        # Slurm takes the command line before the script's own lines, and of one option the last.
        line = effective(job.script, read_line([*job.options, *job.extra_options]))
    except InputError as error:
        raise UnknownPath(f"the job's options cannot be read: {error}") from None
    if line.value("array") is not None:
        raise UnknownPath("each task of an array has an output of its own")
    output = line.value("output") or f"{job.job_dir}/slurm-%j.out"
    pattern = (line.value("error") or output) if what == STDERR else output
    folder = posixpath.join(job.job_dir, line.value("chdir") or "")
    return posixpath.join(folder, _filled(pattern, job, job_id))


def is_apart(job: ExactJob, job_id: str) -> bool:
    """Whether standard error goes to a file of its own.

    Raises:
        UnknownPath: When it cannot be told.
    """
    return path_of(job, job_id, STDERR) != path_of(job, job_id, STDOUT)


def _filled(pattern: str, job: ExactJob, job_id: str) -> str:
    """A file name pattern of sbatch, filled in."""
    if "\\" in pattern:
        raise UnknownPath(f"the output's name {pattern} has a backslash, which switches Slurm's patterns off")
    known = {"j": job_id, "A": job_id, "x": job.job_name, "u": job.user, "%": "%"}

    def fill(found: re.Match[str]) -> str:
        width, letter = found.groups()
        if letter not in known:
            raise UnknownPath(f"the output's name {pattern} has %{letter}, which only the job knows")
        return known[letter].rjust(int(width or 0), "0") if letter in "jA" else known[letter]

    return re.sub(r"%(\d{0,2})(.)", fill, pattern)
