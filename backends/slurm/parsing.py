"""Slurm's texts, read strictly: what is not understood stays unknown, and nothing here ever raises for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backends.slurm.model import JobState, JobStatus, Partition, Presence

_JOB_ID = re.compile(r"[1-9]\d{0,17}", re.ASCII)
_ANSWER = re.compile(rb"([1-9]\d{0,17})(?:;([\w.-]+))?")

_PERMANENT = (
    "Invalid partition name specified",
    "invalid partition specified",
    "Invalid account or account/partition combination specified",
    "Invalid qos specification",
    "Requested time limit is invalid",
    "Node count specification invalid",
    "Requested node configuration is not available",
    "Invalid generic resource (gres) specification",
    "Memory specification can not be satisfied",
    "CPU count per node can not be satisfied",
    "More processors requested than permitted",
    "User's group not permitted to use this partition",
    "Job violates accounting/QOS policy",
    "Requested reservation is invalid",
    "Access denied to requested reservation",
    "Invalid license specification",
    "Invalid node name specified",
    "Invalid feature specification",
    "Invalid preferred feature specification",
    "Job dependency problem",
    "Invalid job array specification",
    "Required partition not available (inactive or drain)",
    "Batch script is empty",
    "does not look like a batch script",
    "Batch script contains DOS line breaks",
    "contain a NULL character",
    "only permitted by root user",
    "unrecognized option",
    "Invalid --",
)
"""Words of sbatch that prove a refusal. Everything else, time-outs above all, proves nothing."""

_DOUBTFUL = ("Socket timed out", "Unable to contact", "Zero Bytes", "Connection", "try again", "temporarily")


def is_job_id(text: str) -> bool:
    """Whether a text is a job's number and nothing else."""
    return _JOB_ID.fullmatch(text) is not None


def job_id_of_answer(stdout: bytes) -> tuple[str, str | None] | None:
    """Job id and cluster in the answer of `sbatch --parsable`; None unless it is exactly one line of that form."""
    lines = [line for line in stdout.splitlines() if line.strip()]
    found = _ANSWER.fullmatch(lines[0].strip()) if len(lines) == 1 else None
    if found is None:
        return None
    cluster = found.group(2)
    return found.group(1).decode(), cluster.decode() if cluster else None


def permanent_refusal(said: str) -> bool:
    """Whether sbatch's error output proves that the job was not taken."""
    return any(words in said for words in _PERMANENT) and not any(words in said for words in _DOUBTFUL)


def fields(data: bytes) -> dict[str, bytes]:
    """The `key length` records of an answer; reading stops where the form does."""
    found: dict[str, bytes] = {}
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        words = data[position:end].split(b" ") if end >= 0 else []
        if len(words) != 2 or not words[1].isdigit():
            break
        length = int(words[1])
        body = data[end + 1 : end + 1 + length]
        if len(body) < length:
            break
        found[words[0].decode("ascii", "replace")] = body
        position = end + 1 + length + 1
    return found


def state_of(text: str) -> JobState:
    """A state by its first word; a text that is not one of the known states is OTHER."""
    word = text.split(" ", maxsplit=1)[0].rstrip("+")
    try:
        return JobState(word)
    except ValueError:
        return JobState.OTHER


def parse_queue(data: bytes) -> tuple[float | None, dict[str, JobStatus]]:
    """The cluster's time, and the rows of `squeue` by job id; rows of another shape are left out."""
    lines = data.decode("utf-8", "replace").splitlines()
    seconds = number(lines[0].strip()) if lines else None
    time = None if seconds is None else float(seconds)
    jobs: dict[str, JobStatus] = {}
    for line in lines[1:]:
        # The job's name comes last: it may hold anything.
        parts = line.split("|", 6)
        if len(parts) < 6 or not is_job_id(parts[0]):
            continue
        job_id, state, reason, node, elapsed, limit, *name = parts
        jobs[job_id] = JobStatus(
            job_id,
            Presence.IN_QUEUE,
            state_of(state),
            state,
            reason,
            node,
            duration(elapsed),
            duration(limit),
            name="".join(name),
        )
    return time, jobs


def parse_accounting(data: bytes) -> dict[str, JobStatus]:
    """The rows of `sacct` by job id."""
    jobs: dict[str, JobStatus] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        parts = line.split("|", 6)
        if len(parts) < 6 or not is_job_id(parts[0]):
            continue
        job_id, state, code, node, elapsed, limit, *name = parts
        jobs[job_id] = JobStatus(
            job_id,
            Presence.IN_ACCOUNTING,
            state_of(state),
            state,
            "",
            node,
            number(elapsed),
            None if number(limit) is None else int(limit) * 60,
            code,
            name="".join(name),
        )
    return jobs


_TOKEN = re.compile(r"[0-9a-f]{16}")


def carries(status: JobStatus, token: str) -> bool:
    """Whether a job can be the one of a token, by its name; one that is not known does not speak against it."""
    return not status.name or _TOKEN.fullmatch(token) is None or token[:8] in status.name


def number(text: str) -> int | None:
    """A number written in plain digits, None for anything else; Python would also take digits of other scripts."""
    return int(text) if text.isascii() and text.isdigit() else None


_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", re.ASCII)


def duration(text: str) -> int | None:
    """Slurm's `days-hours:minutes:seconds` in seconds; None for anything else, so also for UNLIMITED."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


_GPUS = re.compile(r"gpu:(?:[^:,()]+:)?(\d+)", re.ASCII)


def parse_partitions(text: str) -> Mapping[str, Partition]:
    """The rows of `sinfo -o '%P|%a|%l|%D|%c|%G'`, those of one partition merged: smallest nodes count."""
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        cpus = re.fullmatch(r"(\d+)\+?", parts[4], re.ASCII) if len(parts) == 6 else None
        nodes = number(parts[3]) if cpus is not None else None
        if cpus is None or nodes is None:
            continue
        name = parts[0].rstrip("*")
        gpus = sum(int(count) for count in _GPUS.findall(parts[5])) if parts[5] not in ("N/A", "") else None
        gpus = 0 if parts[5] == "(null)" else gpus
        row = Partition(name, parts[1] == "up", duration(parts[2]), nodes, int(cpus.group(1)), gpus)
        found[name] = _merge(found[name], row) if name in found else row
    return found


def _merge(one: Partition, other: Partition) -> Partition:
    known = [item.gpus_per_node for item in (one, other) if item.gpus_per_node is not None]
    return Partition(
        one.name,
        one.up and other.up,
        one.max_seconds,
        one.nodes + other.nodes,
        min(one.cpus_per_node, other.cpus_per_node),
        min(known) if known else None,
    )
