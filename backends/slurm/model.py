"""Frozen records that pass between the Slurm backend and its callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Upload:
    """One file that travels with a job.

    Attributes:
        name: File name inside the job's folder, no slash.
        data: The bytes.
        sha256: Hex digest of the bytes, compared on the cluster after arrival.
        mode: Permission bits.
    """

    name: str
    data: bytes
    sha256: str
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """One exact submission.

    Attributes:
        token: Unique token of this submission, 16 hex digits; also in the job's name and comment.
        digest: SHA-256 of the approved job, hex.
        job_name: Full Slurm job name; ends with the token's first 8 digits.
        options: sbatch options exactly as they are passed, without script.
        script: Script bytes, handed to sbatch over standard input.
        job_dir: The attempt's own folder on the cluster, absolute; created by the submission.
        claim_dir: Folder that is created exclusively to claim the token, absolute; holds receipt and start marks.
        uploads: Files written to job_dir before sbatch is called.
    """

    token: str
    digest: str
    job_name: str
    options: tuple[str, ...]
    script: bytes
    job_dir: str
    claim_dir: str
    uploads: tuple[Upload, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """Slurm took the job: the answer was framed, the token matched, the id is a number."""

    job_id: str
    cluster: str | None = None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The job surely was not taken: sbatch said so with a known permanent refusal and the token is not queued."""

    said: str
    exit_status: int | None = None


@dataclass(frozen=True, slots=True)
class NotSubmitted:
    """The job surely was not taken and never will be by this submission: the claim was fenced off."""

    proof: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One question during reconciliation and what came back.

    Attributes:
        source: "receipt", "squeue", "sacct", "claim" or "process".
        answer: What it answered, verbatim or in short; "could not ask: ..." where there was none.
        healthy: True when the source proved that it was alive and did answer.
    """

    source: str
    answer: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can say yet whether the job was taken. Blocks every further submission of it."""

    said: str
    asked: tuple[Asked, ...] = ()
    job_ids: tuple[str, ...] = ()


SubmitOutcome = Accepted | Refused | NotSubmitted | Unknown


class JobState(StrEnum):
    """Slurm's job states as far as they change what we do; all other texts are OTHER."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    REQUEUED = "REQUEUED"
    OTHER = "OTHER"

    @property
    def ended(self) -> bool:
        """True for states after which Slurm will not run the job again by itself."""
        return self in _ENDED


_ENDED = frozenset(
    {
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.TIMEOUT,
        JobState.NODE_FAIL,
        JobState.PREEMPTED,
        JobState.OUT_OF_MEMORY,
        JobState.BOOT_FAIL,
        JobState.DEADLINE,
    }
)


class Presence(StrEnum):
    """The three answers, and who gave the first."""

    IN_QUEUE = "in queue"
    IN_ACCOUNTING = "in accounting"
    GONE = "surely gone"
    COULD_NOT_ASK = "could not ask"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job at one look.

    Attributes:
        job_id: Slurm's id.
        presence: Who saw it, or that it is surely gone, or that nobody could be asked.
        state: State where it was seen; OTHER for texts that are not understood and where it was not seen.
        state_text: The state as Slurm wrote it, verbatim.
        reason: Slurm's reason, verbatim ("Resources", "DependencyNeverSatisfied").
        node: Node list, verbatim.
        elapsed: Seconds run so far, None where unknown.
        limit: Time limit in seconds, None where unknown or unlimited.
        exit_code: "code:signal" as accounting writes it, empty where unknown.
        name: The job's name, empty where the look did not tell.
    """

    job_id: str
    presence: Presence
    state: JobState = JobState.OTHER
    state_text: str = ""
    reason: str = ""
    node: str = ""
    elapsed: int | None = None
    limit: int | None = None
    exit_code: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class QueueReading:
    """All registered jobs at one look.

    Attributes:
        jobs: By job id; every id that was asked for is there.
        cluster_time: Seconds since the epoch by the cluster's clock at this look, None when it could not be asked.
        problems: What could not be asked and why, for the screen.
        queries: How many of Slurm's commands this look took.
    """

    jobs: Mapping[str, JobStatus]
    cluster_time: float | None = None
    problems: tuple[str, ...] = ()
    queries: int = 1


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as sinfo shows it.

    Attributes:
        name: Its name without the default mark.
        up: True when it takes and runs jobs.
        max_seconds: Time limit, None for unlimited.
        nodes: Number of nodes.
        cpus_per_node: Smallest CPU count among its nodes.
        gpus_per_node: Smallest GPU count among its nodes, None where sinfo does not tell (never read as 0).
    """

    name: str
    up: bool
    max_seconds: int | None
    nodes: int
    cpus_per_node: int
    gpus_per_node: int | None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What setup learns about a cluster.

    Attributes:
        slurm_version: As `sbatch --version` prints it.
        partitions: By name.
        accounts: Accounts of this user, None where accounting could not be asked.
        hostname: The login node's own name.
        home: Home folder.
        python: Version of python3 on the login node, empty where there is none.
        clock_offset: Cluster time minus ours in seconds.
        problems: One line for each thing that could not be asked.
    """

    slurm_version: str
    partitions: Mapping[str, Partition]
    accounts: tuple[str, ...] | None
    hostname: str
    home: str
    python: str
    clock_offset: float
    problems: tuple[str, ...] = field(default=())
