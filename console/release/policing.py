"""Whether a policy covers a job now: reads the policy that was approved, and counts what the log says it approved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from console.release import policy, queue
from console.release.job import ExactJob, JobError
from console.release.policy import Policy, Used
from console.release.policy_words import hours
from console.release.rules import read_time


@dataclass(frozen=True, slots=True)
class Covered:
    """What a policy says to a job.

    Attributes:
        problem: The first bound that the job breaks, or why there is no policy; empty where it is covered.
        takes: What it takes of the policy, where it is covered.
        words: Why it is approved, in words.
    """

    problem: str
    takes: Used = Used(0, 0)  # noqa: RUF009 - frozen
    words: str = ""


def covered(run_dir: Path, standing: Mapping[str, Any], job: ExactJob, now: datetime) -> Covered:
    """Ask the policy that was approved.

    Args:
        run_dir: The run folder.
        standing: The policy as the state holds it.
        job: The job.
        now: The time.
    """
    found = read(run_dir, standing)
    if isinstance(found, str):
        return Covered(found)
    used = Used(int(standing["jobs"]), int(standing["gpu_seconds"]))
    problem = policy.within(found, used, job, since=read_time(str(standing["since"])), now=now)
    if problem:
        return Covered(problem)
    takes = policy.cost(job)
    assert isinstance(takes, Used), "a job that cannot be counted is outside"
    total = used + takes
    words = (
        f"within policy {standing['id']}: {total.jobs} of {found.jobs} jobs, {hours(total.gpu_seconds)} of "
        f"{hours(found.gpu_seconds)} GPU hours"
    )
    return Covered("", takes, words)


def read(run_dir: Path, standing: Mapping[str, Any]) -> Policy | str:
    """The policy that was approved, from the bytes that lie there; why there is none, in words."""
    if not standing:
        return "no policy was approved"
    try:
        proposal = queue.load(run_dir, str(standing["id"]))
        job = proposal.job()
    except (queue.QueueError, JobError) as error:
        return f"the policy cannot be read: {error}"
    if proposal.digest != standing["digest"]:
        return f"the policy was changed after it was approved: approved was digest {standing['digest']}"
    return policy.of_job(job) or "what was approved is not a policy in its exact form"
