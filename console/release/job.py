"""The exact job: everything that will run, as one frozen record, and the digest that an OK is bound to.

What the operator sees is rendered from this record, what is submitted is built from this record, and nothing in
between changes it. A changed field is a changed digest, and a changed digest is a job that nobody approved.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backends.quoting import quote
from console.release.canonical import canonical, sha256
from console.release.state import ASKED

CODE_LENGTH = 8
"""Digits of the short code that an operator types; the decision itself always names the full digest."""

_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_Token = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class UploadRef(_Frozen):
    """A file that travels with the job, by digest.

    Attributes:
        name: File name in the job's folder.
        sha256: Hex digest of its bytes.
        size: Bytes.
        mode: Permission bits.
    """

    name: _Name
    sha256: _Hex
    size: int
    mode: int = 0o600


class ExactJob(_Frozen):
    """One job, exactly as it will run.

    Attributes:
        schema_version: 1.
        run_id: The release it belongs to.
        stage: Stage of the flow.
        task: Task within the stage.
        attempt: 1 for the first job of the task.
        kind: "sbatch", or "policy" for what is only decided on and never submitted.
        summary: What it does, in one line.
        cluster: Name in clusters.yaml.
        host: Login node.
        port: SSH port of it.
        user: Account on it.
        token: Unique token of this submission.
        job_name: Slurm job name; ends with the first eight digits of the token.
        partition: Slurm partition, empty for the cluster's default.
        account: Slurm account, empty for the user's default.
        qos: Quality of service, empty for the default.
        nodes: Number of nodes.
        gpus_per_node: GPUs on each node, 0 for none.
        cpus_per_task: CPUs, 0 for the default.
        mem: Memory per node as sbatch takes it, empty for the default.
        time: Time limit as sbatch takes it ("00:30:00").
        image: Container image that the script runs, empty for none.
        extra_options: Further sbatch options, passed as they are.
        options: For a job that another program asked for: its own sbatch options, exactly, which the fields above
            only repeat for people; empty for a job of the flow.
        arguments: Arguments of the script.
        job_dir: The attempt's own folder on the cluster.
        claim_dir: Folder by which the token is claimed on the cluster.
        environment: Names and values that the script exports, in order.
        script: The whole script that sbatch gets, start guard included.
        uploads: Files that travel with it.
        results: Kinds and paths (relative to job_dir) of the result files that it writes.
        evidence: Digests of the result files and of the frozen drafter on which the proposal rests.
    """

    schema_version: Literal[1] = 1
    run_id: _Name
    stage: _Name
    task: _Name
    attempt: int = Field(ge=1)
    kind: Literal["sbatch", "policy"] = "sbatch"
    summary: str
    cluster: str
    host: str
    port: int
    user: str
    token: _Token
    job_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=120)]
    partition: str
    account: str
    qos: str
    nodes: int = Field(ge=1)
    gpus_per_node: int = Field(ge=0)
    cpus_per_task: int = Field(ge=0)
    mem: str
    time: Annotated[str, Field(pattern=r"^(([0-9]+-)?[0-9]{1,3}:[0-9]{2}:[0-9]{2})?$")]
    image: str
    extra_options: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    job_dir: str
    claim_dir: str
    environment: tuple[tuple[_Variable, str], ...]
    script: str
    uploads: tuple[UploadRef, ...]
    results: tuple[tuple[str, str], ...]
    evidence: tuple[tuple[str, str], ...] = ()

    def to_bytes(self) -> bytes:
        """The canonical bytes that the digest is taken over."""
        return canonical(self.model_dump(mode="json"))

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes, hex."""
        return sha256(self.to_bytes())

    @property
    def code(self) -> str:
        """The short code that the operator types."""
        return self.digest[:CODE_LENGTH]

    @property
    def limit_s(self) -> int:
        """Time limit in seconds; 0 where it is left to the partition."""
        return seconds(self.time) if self.time else 0

    @property
    def gpus(self) -> int:
        """GPUs over all nodes."""
        return self.nodes * self.gpus_per_node

    @property
    def gpu_hours(self) -> float:
        """GPU hours asked for: all GPUs for the whole time limit."""
        return self.gpus * self.limit_s / 3600

    def sbatch_options(self) -> tuple[str, ...]:
        """The options of sbatch, in order, as they are passed and shown; none for what is never submitted."""
        if self.kind != "sbatch":
            return ()
        if self.stage == ASKED:
            # With arguments the script has to be named, and standard input is where it comes from.
            script = ("/dev/stdin", *self.arguments) if self.arguments else ()
            mark = f"--comment=gonogo:{self.token}:{self.digest[:16]}"
            return ("--parsable", *self.options, f"--job-name={self.job_name}", mark, *script)
        options = [
            "--parsable",
            "--no-requeue",
            "--export=NONE",
            f"--job-name={self.job_name}",
            f"--comment=gonogo:{self.token}:{self.digest[:16]}",
            f"--chdir={self.job_dir}",
            f"--output={self.job_dir}/slurm-%j.out",
            f"--nodes={self.nodes}",
            f"--time={self.time}",
        ]
        optional = (
            ("partition", self.partition),
            ("account", self.account),
            ("qos", self.qos),
            ("mem", self.mem),
            ("gpus-per-node", str(self.gpus_per_node) if self.gpus_per_node else ""),
            ("cpus-per-task", str(self.cpus_per_task) if self.cpus_per_task else ""),
        )
        options += [f"--{name}={value}" for name, value in optional if value]
        return (*options, *self.extra_options)


class JobError(Exception):
    """A stored job is not one, or is not the one that was meant. One line, naming file and field."""


def read_job(data: bytes, file: str) -> ExactJob:
    """Read a job back from its canonical bytes.

    Raises:
        JobError: When the bytes are not exactly the canonical form of a job.
    """
    try:
        job = ExactJob.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise JobError(f"{file}: {where}: {first['msg']}") from None
    if job.to_bytes() != data:
        raise JobError(f"{file}: it is not in canonical form: it was not written by gonogo, or was changed")
    return job


def seconds(time: str) -> int:
    """A Slurm time limit ("1-02:03:04", "02:03:04") in seconds."""
    days, _, clock = time.rpartition("-")
    hours, minutes, secs = (int(part) for part in clock.split(":"))
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + secs


_SECRET = re.compile(r"(SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIAL|(^|_)TOKEN$)", re.IGNORECASE)


def refuse_secrets(environment: tuple[tuple[str, str], ...]) -> None:
    """Refuse values that look like secrets: a job is shown, stored and logged whole.

    Raises:
        JobError: Naming the variable and what to do instead.
    """
    for name, value in environment:
        if value and name != "GONOGO_TOKEN" and _SECRET.search(name):
            raise JobError(
                f"environment: {name}: a secret may not travel in a job; let the script read it on the cluster, "
                "from a file of mode 600"
            )


_GUARD = """\
#!/bin/bash
# Start guard: one submission runs once, whatever the network or the scheduler repeats.
if ! mkdir {started} 2>/dev/null; then
  if [ -d {started} ]; then
    echo "gonogo: this submission has been started before; refusing to run it again" >&2
    exit 97
  fi
  echo "gonogo: cannot create" {started} >&2
  exit 98
fi
printf '%s\\n' "${{SLURM_JOB_ID:-none}}" > {started}/job_id
cd {job_dir} || exit 96
"""


def build_script(body: str, *, claim_dir: str, job_dir: str, environment: tuple[tuple[str, str], ...]) -> str:
    """The whole script of a job: start guard, exports, then the recipe's own text.

    Args:
        body: The rendered template; its own first line may be a `#!` line, which becomes a comment.
        claim_dir: Folder that the submission claimed.
        job_dir: Folder that the script runs in.
        environment: What it exports, in order.
    """
    guard = _GUARD.format(started=quote(f"{claim_dir}/started"), job_dir=quote(job_dir))
    exports = "".join(f"export {name}={quote(value)}\n" for name, value in environment)
    return f"{guard}{exports}\n{body if body.endswith(chr(10)) else body + chr(10)}"


RISKY = ("image", "host", "user", "port", "cluster", "partition", "account", "qos", "nodes", "gpus_per_node", "time")
"""Fields whose change is named first: where a job runs, as whom, on how much, for how long."""


def changes(before: ExactJob | None, after: ExactJob) -> list[tuple[str, str, str]]:
    """Fields in which two jobs differ, risky ones first.

    Returns:
        (field, before, after) as text; empty when there is no job before. What differs in every attempt by
        design (token, attempt number, and where these two stand in names and folders) is left out.
    """
    if before is None:
        return []
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    ordered = [*RISKY, *(name for name in new if name not in RISKY and name not in _BY_DESIGN)]
    rows = [(name, _text(old[name]), _text(new[name])) for name in ordered]
    return [row for row in rows if neutral(row[1], before) != neutral(row[2], after)]


_BY_DESIGN = frozenset({"attempt", "token", "schema_version"})


def neutral(text: str, job: ExactJob) -> str:
    """Text of a job with its token taken out, and its attempt number where that stands beside the token."""
    text = text.replace(f"{job.task}-{job.attempt}-{job.token[:8]}", f"{job.task}-ATTEMPT-TOKEN8")
    return text.replace(job.token, "TOKEN").replace(job.token[:8], "TOKEN8")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
