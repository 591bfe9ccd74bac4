"""Approval within bounds: one exact policy that an operator decides on, and which jobs are inside it. Pure.

A policy is decided on like a job: it lies in the queue, is shown whole, and an OK is bound to its digest. It covers
jobs of the flow that a person would otherwise be asked about one by one; anything outside is asked about as ever.
Counting fails closed: a job costs all its GPUs for its whole time limit, arrays multiply, and what cannot be
counted is outside.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from console.release.job import ExactJob
from console.release.policy_words import hours
from console.release.state import ASKED

KIND: Final = "policy"
TASK, STAGE = "policy", "setup"
"""How a policy stands in the queue: a kind of its own, which nothing submits, in the stage before any job."""

POLICY = "policy"
"""Who decides by it, as decisions and the log name it."""

MOST_JOBS = 1000


class Policy(BaseModel):
    """What is approved without asking.

    Attributes:
        run_id: The release that it belongs to.
        cluster: Where jobs may run: name, `host`, `port`, `user`, `account`, `qos` and `partition`, each exactly.
        image: The one container image, with its digest; empty for jobs without one.
        stages: Stages whose jobs it covers.
        jobs: So many jobs at most; each job of an array counts.
        gpu_seconds: So many GPU seconds at most, as asked for.
        days: For so many days after the policy was approved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_version: Literal[1] = 1
    run_id: str
    cluster: str
    host: str
    port: int
    user: str
    account: str
    qos: str
    partition: str = Field(min_length=1)
    image: str
    stages: tuple[str, ...] = Field(min_length=1)
    jobs: int = Field(ge=1, le=MOST_JOBS)
    gpu_seconds: int = Field(ge=0)
    days: int = Field(ge=1, le=365)

    def to_text(self) -> str:
        """The document that is shown and approved."""
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=True) + "\n"

    def words(self) -> tuple[str, ...]:
        """What it allows, a line for each bound; foreign text where names are."""
        return (
            f"jobs of the stages {', '.join(self.stages)} of release {self.run_id} are submitted without asking",
            f"on {self.cluster} ({self.user}@{self.host}:{self.port}), partition {self.partition}, "
            f"account {self.account or 'as by default'}, QOS {self.qos or 'as by default'}",
            f"with the image {self.image}" if self.image else "without a container image",
            f"at most {self.jobs} jobs and {hours(self.gpu_seconds)} GPU hours in all, counted as asked for",
            f"for {self.days} day{'' if self.days == 1 else 's'} after it is approved",
            "anything else, and every job that another program asks for, still waits for a decision",
        )


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a policy is used: by every job that it approved, whatever became of it."""

    jobs: int = 0
    gpu_seconds: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(self.jobs + other.jobs, self.gpu_seconds + other.gpu_seconds)


def to_job(policy: Policy, attempt: int, token: str) -> ExactJob:
    """A policy in the form in which it lies in the queue: nothing of it runs."""
    return ExactJob(
        run_id=policy.run_id, stage=STAGE, task=TASK, attempt=attempt, kind=KIND,
        summary=f"Approve up to {policy.jobs} jobs of {', '.join(policy.stages)} without asking",
        cluster=policy.cluster, host=policy.host, port=policy.port, user=policy.user, token=token,
        job_name=f"gonogo-policy-{token[:8]}", partition=policy.partition, account=policy.account, qos=policy.qos,
        nodes=1, gpus_per_node=0, cpus_per_task=0, mem="", time="", image=policy.image, job_dir="", claim_dir="",
        environment=(), script=policy.to_text(), uploads=(), results=(),
    )  # fmt: skip


def of_job(job: ExactJob) -> Policy | None:
    """The policy that a proposal is; None where it is none, or says anything beside it."""
    try:
        policy = Policy.model_validate_json(job.script)
    except ValidationError:
        return None
    return policy if to_job(policy, job.attempt, job.token) == job else None


_PART = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")


def _array(text: str) -> int | None:
    """How many jobs an array is ("0-15:4%2"); None where that is not certain."""
    ids, _, _ = text.partition("%")
    count = 0
    for part in ids.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            return None
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or step < 1:
            return None
        count += (last - first) // step + 1
    return count


def cost(job: ExactJob) -> Used | str:
    """What a job takes of a policy, or why nobody can say."""
    if job.options or job.arguments:
        return "it has options of its own, which are not counted"
    if job.limit_s <= 0:
        return "its time limit is left to the partition, so its cost is not known"
    count = 1
    for option in job.extra_options:
        size = _array(option.removeprefix("--array=")) if option.startswith("--array=") else None
        if size is None:
            return f"its option {option} is not counted"
        count *= size
    for line in job.script.split("\n"):
        if line.lstrip().startswith("#SBATCH"):
            return "its script has #SBATCH lines, which are not counted"
    return Used(count, count * job.gpus * job.limit_s)


def within(policy: Policy, used: Used, job: ExactJob, *, since: datetime, now: datetime) -> str:
    """Whether a job is inside a policy.

    Args:
        policy: The policy.
        used: How much of it is used by other jobs.
        job: The job.
        since: When the policy was approved.
        now: When the job would be.

    Returns:
        The first bound that it breaks, in words; empty when it is inside.
    """
    if job.kind != "sbatch" or job.stage == ASKED:
        return "it is no job of the flow"
    if job.stage not in policy.stages:
        return f"stage {job.stage} is not among {', '.join(policy.stages)}"
    for name in ("run_id", "cluster", "host", "port", "user", "account", "qos", "partition", "image"):
        wanted, found = getattr(policy, name), getattr(job, name)
        if wanted != found:
            return f"{name}: the policy is for {wanted!r}, the job has {found!r}"
    end = since + timedelta(days=policy.days)
    if not since <= now < end:
        return f"the policy holds from {since:%Y-%m-%dT%H:%M:%SZ} to {end:%Y-%m-%dT%H:%M:%SZ}"
    takes = cost(job)
    if isinstance(takes, str):
        return takes
    total = used + takes
    if total.jobs > policy.jobs:
        return f"it would be job {total.jobs} of at most {policy.jobs}"
    if total.gpu_seconds > policy.gpu_seconds:
        return f"it would bring the GPU hours to {hours(total.gpu_seconds)} of at most {hours(policy.gpu_seconds)}"
    return ""


def limits(policy: Policy, since: datetime) -> dict[str, Any]:
    """The bounds of a policy that was approved, as the log and the state hold them."""
    return {
        "max_jobs": policy.jobs,
        "max_gpu_seconds": policy.gpu_seconds,
        "until": f"{since + timedelta(days=policy.days):%Y-%m-%dT%H:%M:%SZ}",
    }
