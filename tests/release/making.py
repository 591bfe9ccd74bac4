"""Makes jobs, run folders and logs for tests, with the code that makes real ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from console.release import deciding, folder, queue
from console.release.canonical import sha256
from console.release.job import ExactJob, UploadRef, build_script
from console.release.writer import RunWriter

RUN_ID = "tiny-20260102-030405-ab12"
UPLOADS = {"tool.py": b"print('hello')\n"}


class Clock:
    """A clock that goes forward by a second each time it is asked."""

    def __init__(self, start: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) -> None:
        self.now = start

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def make_job(task: str = "train", attempt: int = 1, token: str = "0123456789abcdef", **changes: Any) -> ExactJob:
    """An exact job, built as the conductor builds one."""
    root = f"/lustre/alice/gonogo/{RUN_ID}"
    job_dir = f"{root}/train/{task}-{attempt}-{token[:8]}"
    claim_dir = f"{root}/claims/{token}"
    environment = changes.pop("environment", (("GONOGO_TOKEN", token), ("SERVER_TIMEOUT", "60")))
    body = changes.pop("body", "echo training\npython3 tool.py\n")
    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "stage": "train",
        "task": task,
        "attempt": attempt,
        "summary": "Train the drafter",
        "cluster": "gpu",
        "host": "login.example.org",
        "port": 22,
        "user": "alice",
        "token": token,
        "job_name": f"gonogo-{RUN_ID}-{task}-{token[:8]}",
        "partition": "batch",
        "account": "research",
        "qos": "",
        "nodes": 2,
        "gpus_per_node": 4,
        "cpus_per_task": 0,
        "mem": "",
        "time": "01:30:00",
        "image": "registry/image@sha256:00",
        "job_dir": job_dir,
        "claim_dir": claim_dir,
        "environment": environment,
        "script": build_script(body, claim_dir=claim_dir, job_dir=job_dir, environment=environment),
        "uploads": tuple(UploadRef(name=n, sha256=sha256(d), size=len(d)) for n, d in UPLOADS.items()),
        "results": (("regression_check", "regression_check.json"),),
        "evidence": (("target:target_check", "a" * 64),),
    }
    return ExactJob(**{**fields, **changes})


def new_run(run_dir: Path, **inputs: str) -> RunWriter:
    """A run folder with its first log entry, and its writer."""
    folder.create_run_folder(run_dir, b"target: demo/tiny-target\n")
    writer = RunWriter(run_dir, Clock())
    known = {"target": "demo/tiny-target", "algorithm": "dflash2", "cluster": "gpu", "approve_submissions": "each"}
    writer.record(
        "run_started",
        "Release of a dflash2 drafter",
        actor="operator:alice",
        run_id=RUN_ID,
        inputs={**known, **inputs},
        overrides={},
    )
    return writer


def propose(writer: RunWriter, proposal_id: str, job: ExactJob, change: str = "") -> queue.Proposal:
    """Put a job into the queue and log it, as the conductor does."""
    proposal = queue.propose(
        writer.run_dir, proposal_id, job, UPLOADS, proposer="conductor", time=writer.clock(), change=change
    )
    writer.record(
        "job_proposed",
        f"Proposed {proposal_id}: {job.summary}; digest {job.digest}",
        stage=job.stage,
        id=proposal_id,
        digest=job.digest,
        token=job.token,
        task=job.task,
        attempt=job.attempt,
        kind=job.kind,
        summary=job.summary,
        change=change,
        gpus=job.gpus,
        limit_s=job.limit_s,
        job_dir=job.job_dir,
        proposer="conductor",
        proposal_sha256=queue.about_digest(proposal),
        cluster=job.cluster,
        host=job.host,
    )
    return proposal


def decision(proposal: queue.Proposal, word: str = queue.APPROVED, **changes: Any) -> queue.Decision:
    """A decision on a proposal as it lies there."""
    fields: dict[str, Any] = {
        "id": proposal.id,
        "digest": proposal.digest,
        "decision": word,
        "operator": "alice",
        "reason": "" if word == queue.APPROVED else "not today",
        "time": "2026-01-02T03:05:00Z",
        "terminal": "/dev/pts/1 on desk",
    }
    return queue.Decision(**{**fields, **changes})


def decide(writer: RunWriter, proposal: queue.Proposal, word: str = queue.APPROVED) -> None:
    """Decide on a proposal and log it, as operator and conductor do."""
    made = decision(proposal, word)
    deciding.decide(writer.run_dir, made)
    writer.record(
        "job_decided",
        f"{proposal.id} {word} by operator:alice",
        stage="train",
        actor="operator:alice",
        human=word == queue.REJECTED,
        id=proposal.id,
        digest=proposal.digest,
        decision=word,
        by="operator:alice",
        reason=made.reason,
        receipt=made.to_json(),
    )


def submit(writer: RunWriter, proposal: queue.Proposal, job_id: str = "4711") -> None:
    """Log that an approved proposal was submitted and taken."""
    common: Mapping[str, Any] = {"stage": "train", "id": proposal.id, "digest": proposal.digest}
    writer.record("submit_intent", f"Submitting {proposal.id}", **common, token=proposal.job().token)
    assert deciding.use(proposal, writer.clock())
    writer.record("submit_outcome", f"Slurm took it as {job_id}", **common, outcome="accepted", job_id=job_id, said="")
