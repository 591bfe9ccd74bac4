"""Run folders at several stages, written by the real log, state and queue, with a clock of our own."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from console.release import deciding, folder, queue
from console.release.canonical import sha256
from console.release.job import ExactJob, UploadRef, build_script
from console.release.writer import RunWriter
from console.session import Clock
from gates.verdict import Check, FailureClass, Verdict, decide

RUN_ID = "demo-20260812-093011"
START = datetime(2026, 8, 12, 9, 30, 11, tzinfo=UTC)
LOGIN = "demo@127.0.0.1:40223"


@dataclass
class Time:
    """A clock that stands still until it is told to go on."""

    wall: datetime = START
    seconds: float = 1000.0

    def go(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.seconds)


def token(number: int) -> str:
    return hashlib.sha256(f"token {number}".encode()).hexdigest()[:16]


SCRIPT = """\
set -euo pipefail
python3 tiny_train.py --data "$GONOGO_JOB_DIR/../data-1" --steps 200 \\
  --output regression_check.json
python3 check_export.py export --target /tmp/target --output export_check.json
"""


def make_job(number: int, stage: str, task: str, attempt: int = 1, **changes: Any) -> ExactJob:
    """An exact job as the conductor would build one."""
    own = token(number)
    root = f"/home/demo/work/gonogo/{RUN_ID}"
    job_dir, claim_dir = f"{root}/{stage}/{task}-{attempt}-{own[:8]}", f"{root}/claims/{own}"
    environment = changes.pop(
        "environment",
        (("GONOGO_TOKEN", own), ("GONOGO_JOB_DIR", job_dir), ("GONOGO_RUN_ID", RUN_ID), ("OMP_NUM_THREADS", "2")),
    )
    body = changes.pop("body", SCRIPT)
    upload = b"print('tiny')\n"
    fields: dict[str, Any] = {
        "run_id": RUN_ID, "stage": stage, "task": task, "attempt": attempt,
        "summary": {"stage_target": "Stage the tiny target", "data": "Make training data",
                    "train": "Train and export the tiny drafter", "smoke": "Serve it and look whether it drafts",
                    "bench": "Measure target alone against target with drafter"}.get(task, f"Do {task}"),
        "cluster": "sandbox", "host": "127.0.0.1", "port": 40223, "user": "demo", "token": own,
        "job_name": f"gonogo-{RUN_ID}-{task}-{own[:8]}", "partition": "main", "account": "research", "qos": "",
        "nodes": 1, "gpus_per_node": 0, "cpus_per_task": 2, "mem": "", "time": "00:05:00", "image": "",
        "job_dir": job_dir, "claim_dir": claim_dir, "environment": environment,
        "script": build_script(body, claim_dir=claim_dir, job_dir=job_dir, environment=environment),
        "uploads": (UploadRef(name=f"tiny_{task}.py", sha256=sha256(upload), size=len(upload)),),
        "results": ((task, f"{task}.json"),), "evidence": (),
    }  # fmt: skip
    return ExactJob(**{**fields, **changes})


@dataclass
class Run:
    """A run folder that is being written."""

    path: Path
    time: Time = field(default_factory=Time)
    jobs: int = 0
    writer: RunWriter = field(init=False)
    lock: folder.Lock | None = None
    live: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folder.create_run_folder(self.path, b"target: demo/tiny-target\n")
        self.writer = RunWriter(self.path, self.time.clock.now)

    def record(self, event: str, text: str, **data: Any) -> None:
        self.time.go(1)
        self.writer.record(event, text, **data)

    def begin(self) -> Run:
        inputs = {
            "target": "demo/tiny-target", "algorithm": "dflash", "cluster": "sandbox", "login": LOGIN,
            "budget": "dev", "approve_submissions": "each",
        }  # fmt: skip
        self.record(
            "run_started", "Release of a dflash drafter for demo/tiny-target on sandbox", actor="operator:alice",
            run_id=RUN_ID, inputs=inputs, overrides={},
        )  # fmt: skip
        self.stage("setup")
        facts = {
            "host": LOGIN, "slurm_version": "24.05.4", "partition": "main", "account": "research",
            "cpus_per_node": 2, "gpus_per_node": 0, "workspace": "/home/demo/work", "python": "3.11.7",
            "clock_offset_ms": 20,
        }  # fmt: skip
        self.record("setup_done", f"{LOGIN} answers: Slurm 24.05.4, partition main", stage="setup", facts=facts)
        self.passed("setup")
        return self

    def stage(self, name: str) -> None:
        self.record("stage_started", f"Stage {name} begins", stage=name)

    def passed(self, name: str) -> None:
        self.record("stage_passed", f"Stage {name} passed", stage=name, detail="")

    def propose(self, stage: str, task: str, attempt: int = 1, change: str = "", **changes: Any) -> str:
        self.jobs += 1
        name = f"{self.jobs:03d}-{task}-{attempt}"
        job = make_job(self.jobs, stage, task, attempt, **changes)
        uploads = {ref.name: b"print('tiny')\n" for ref in job.uploads}
        self.time.go(1)
        queue.propose(self.path, name, job, uploads, proposer="conductor", time=self.time.wall, change=change)
        self.record(
            "job_proposed", f"Proposed {name}: {job.summary}; digest {job.digest}", stage=stage, id=name,
            digest=job.digest, token=job.token, task=task, attempt=attempt, kind="sbatch", summary=job.summary,
            change=change, gpus=job.gpus, limit_s=job.limit_s, job_dir=job.job_dir, proposer="conductor",
        )  # fmt: skip
        return name

    def decide(self, name: str, word: str = "approved", reason: str = "", operator: str = "alice") -> None:
        attempt = self.writer.state.attempt(name)
        assert attempt is not None
        self.time.go(4)
        stamp = f"{self.time.wall:%Y-%m-%dT%H:%M:%SZ}"
        deciding.decide(self.path, queue.Decision(name, attempt.digest, word, operator, reason, stamp, "tty1", 4, True))
        said = f": {reason}" if reason else ""
        self.record(
            "job_decided", f"{name} {word} by operator:{operator}{said}", stage=attempt.stage,
            actor=f"operator:{operator}", human=word == "rejected", id=name, digest=attempt.digest, decision=word,
            by=f"operator:{operator}", reason=reason,
        )  # fmt: skip

    def submit(self, name: str, job_id: str, outcome: str = "accepted", said: str = "") -> None:
        attempt = self.writer.state.attempt(name)
        assert attempt is not None
        self.record("submit_intent", f"About to submit {name}", stage=attempt.stage, id=name)
        accepted = job_id if outcome == "accepted" else None
        self.record(
            "submit_outcome", f"{name}: {outcome} {job_id}", stage=attempt.stage, id=name, outcome=outcome,
            job_id=accepted, said=said,
        )  # fmt: skip

    def result(self, name: str, kind: str, seconds: float = 9) -> None:
        attempt = self.writer.state.attempt(name)
        assert attempt is not None
        data = f'{{"schema_version": 1, "kind": "{kind}", "token": "{attempt.token}"}}'.encode()
        self.time.go(seconds)
        self.record(
            "result_read", f"Read {kind} of {name}: {len(data)} bytes, SHA-256 {sha256(data)}", stage=attempt.stage,
            id=name, kind=kind, path=f"{attempt.job_dir}/{kind}.json", sha256=sha256(data), size=len(data),
            copy=f"results/{name}/{kind}.json",
        )  # fmt: skip
        self.record("results_complete", f"All results of {name} are read", stage=attempt.stage, id=name)
        self.record("job_seen", f"Job of {name} ended", stage=attempt.stage, id=name, state="COMPLETED", node="node01",
                    ended=True)  # fmt: skip

    def gate(
        self,
        stage: str,
        name: str,
        gate: str,
        checks: Sequence[Check],
        default: FailureClass,
        facts: dict[str, float] | None = None,
    ) -> Verdict:
        verdict = decide(gate, checks, default)
        record = verdict.to_json()
        digest = sha256(name.encode())
        word = "GO" if verdict.passed else f"NO-GO ({verdict.failure_class})"
        checks_json = [dataclasses.asdict(check) for check in checks]
        self.record(
            "gate", f"Gate {gate} over {name}: {word}: {verdict.detail}", stage=stage, id=name, gate=gate,
            failure_class=record["failure_class"], detail=verdict.detail, sha256=digest,
            files=[{"kind": check.file.removesuffix(".json"), "sha256": digest} for check in checks[:1]],
            checks=checks_json, facts=facts or {}, **{"pass": verdict.passed},
        )  # fmt: skip
        return verdict

    def work(self, stage: str, task: str, job_id: str, **changes: Any) -> str:
        """A job that was proposed, approved, submitted and read."""
        name = self.propose(stage, task, **changes)
        self.decide(name)
        self.submit(name, job_id)
        self.result(name, task)
        return name

    def conduct(self) -> None:
        """Hold the conductor's lock, as a running conductor does."""
        self.lock = folder.Lock(self.path, "conductor")

    def say(self, **live: Any) -> None:
        """Write live.json."""
        link = {"state": "up", "age_s": 0.4, "detail": "", "host": LOGIN}
        self.live = {
            "at": f"{self.time.wall:%Y-%m-%dT%H:%M:%SZ}", "pid": 4711, "link": link, "clock_offset_s": 0.02,
            "doing": "", "waiting": {"for": "", "what": "", "since": ""}, "jobs": [], "files": [], "problems": [],
            **live,
        }  # fmt: skip
        folder.write_live(self.path, self.live)

    def close(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock = None


TARGET_CHECKS = (
    Check("status", True, "ok", "= ok", file="target_check.json", field="status"),
    Check("shards_present", True, 1, "= 1", "count", "target_check.json", "shards"),
    Check("shard_sizes", True, 1048576, "= 1048576", "bytes", "target_check.json", "shards[0].size"),
)
DATA_CHECKS = (
    Check("sequences", True, 512, ">= 1", "count", "data.json", "sequences"),
    Check("tokens", True, 32768, ">= 1", "tokens", "data.json", "tokens"),
)
TRAIN_CHECKS = (
    Check("status", True, "ok", "= ok", file="regression_check.json", field="status"),
    Check("steps_done", True, 200, "= 200", "steps", "regression_check.json", "global_step"),
    Check("final_loss_finite", True, 1.8732, "finite", "nats", "regression_check.json", "final_loss"),
    Check("loss_went_down", True, 1.8732, "< 4.6052", "nats", "regression_check.json", "final_loss"),
    Check("grad_norm_finite", True, 0.4127, "finite", "", "regression_check.json", "final_grad_norm"),
    Check("export_hidden_size", True, 64, "= 64", "", "export_check.json", "config.hidden_size"),
    Check("export_vocab_size", True, 256, "= 256", "", "export_check.json", "config.vocab_size"),
    Check("weights_finite", True, 0, "= 0", "count", "export_check.json", "tensors[*].non_finite"),
)
SMOKE_CHECKS = (
    Check("stage", True, "done", "= done", file="smoke.json", field="stage"),
    Check("prompts_passed", True, 8, "= 8", "count", "smoke.json", "prompts_passed"),
    Check("drafts", True, 96, "> 0", "count", "smoke.json", "counters.drafts"),
    Check("acceptance_length", True, 3.41, "> 1 and <= 5", "tokens", "smoke.json", "acceptance_length"),
)
SMOKE_FAILED = (
    Check("stage", False, "server_timeout", "= done", file="smoke.json", field="stage"),
    Check("prompts_passed", False, 0, "= 8", "count", "smoke.json", "prompts_passed"),
    Check("drafts", False, None, "> 0", "count", "smoke.json", "counters.drafts"),
)
BENCH_CHECKS = (
    Check("points_a", True, 3, "= 3", "count", "bench.json", "arms.A.points"),
    Check("points_b", True, 3, "= 3", "count", "bench.json", "arms.B.points"),
    Check("failed_requests", True, 0, "= 0", "count", "bench.json", "arms.B.points[*].failed"),
    Check("speedup_c1_finite", True, 1.62, "> 0", "ratio", "bench.json", "speedup[0].value"),
    Check(
        "acceptance_length", True, 3.38, "> 1 and <= 5", "tokens", "bench.json", "arms.B.points[0].acceptance_length"
    ),
)
EXACT_CHECKS = (
    Check("exact_match", True, 1.0, ">= 0.99", "fraction 0-1", "exact_match.json", "exact_match"),
    Check("control_exact_match", True, 1.0, ">= 0.99", "fraction 0-1", "exact_match.json", "control_exact_match"),
)


def fresh(path: Path) -> Run:
    """Nothing but a begun run."""
    return Run(path).begin()


def staged(path: Path) -> Run:
    """The target is staged; training begins."""
    run = fresh(path)
    run.stage("stage_target")
    name = run.work("stage_target", "stage_target", "1001")
    run.gate("stage_target", name, "target", TARGET_CHECKS, FailureClass.EXPORT_INVALID)
    run.passed("stage_target")
    run.stage("train")
    return run


def waiting(path: Path) -> Run:
    """The training job waits for the operator."""
    run = staged(path)
    name = run.work("train", "data", "1002")
    run.gate("train", name, "data", DATA_CHECKS, FailureClass.TRAINING_REGRESSION)
    run.propose("train", "train")
    run.time.go(42)
    run.conduct()
    run.say(
        doing="await decision 003-train-1",
        waiting={"for": "operator", "what": "approval of 003-train-1", "since": "2026-08-12T09:31:00Z"},
    )
    return run


def running(path: Path) -> Run:
    """The training job runs on the cluster."""
    run = waiting(path)
    run.decide("003-train-1")
    run.submit("003-train-1", "1003")
    run.record("job_seen", "Job 1003 is RUNNING", stage="train", id="003-train-1", state="RUNNING", node="node01")
    run.time.go(12)
    attempt = run.writer.state.attempt("003-train-1")
    assert attempt is not None
    run.say(
        doing="watch 003-train-1",
        waiting={
            "for": "cluster",
            "what": "results of 003-train-1",
            "since": f"{run.time.wall - timedelta(seconds=12):%FT%TZ}",
        },
        jobs=[
            {"id": "003-train-1", "job_id": "1003", "name": "train", "presence": "in queue", "state": "RUNNING",
             "reason": "", "node": "node01", "elapsed_s": 12, "limit_s": 300, "gpus": 0, "hanging": False},
        ],
        files=[
            {"id": "003-train-1", "kind": "regression_check", "path": f"{attempt.job_dir}/regression_check.json",
             "presence": "missing", "size": None, "age_s": None},
            {"id": "003-train-1", "kind": "export_check", "path": f"{attempt.job_dir}/export_check.json",
             "presence": "seen", "size": 1834, "age_s": 2.5},
        ],
    )  # fmt: skip
    return run


def trained(path: Path) -> Run:
    """The drafter is trained; the smoke test comes next."""
    run = running(path)
    run.result("003-train-1", "train")
    run.gate("train", "003-train-1", "train", TRAIN_CHECKS, FailureClass.TRAINING_REGRESSION)
    return run


def failed(path: Path) -> Run:
    """The smoke test's server did not come up; triage proposes it again, with a longer limit."""
    run = trained(path)
    name = run.propose("train", "smoke")
    run.decide(name)
    run.submit(name, "1004")
    run.result(name, "smoke")
    run.gate("train", name, "smoke", SMOKE_FAILED, FailureClass.CHECKPOINT_NOT_SERVABLE)
    detail = "the server did not come up in 60 s: the same job with SERVER_TIMEOUT 120 s"
    run.record(
        "triaged", f"{name} failed (CHECKPOINT_NOT_SERVABLE); next: retry: {detail}", stage="train", id=name,
        failure_class="CHECKPOINT_NOT_SERVABLE", step="retry", detail=detail, values={"server_timeout": 120},
    )  # fmt: skip
    job = make_job(5, "train", "smoke", 2)
    environment = (*job.environment[:3], ("SERVER_TIMEOUT", "120"))
    run.propose("train", "smoke", 2, change=detail, environment=environment, time="00:10:00")
    run.say(doing="await decision 005-smoke-2")
    return run


def ready(path: Path) -> Run:
    """A finished run: DRAFTER_READY."""
    run = trained(path)
    name = run.work("train", "smoke", "1004")
    run.gate("train", name, "smoke", SMOKE_CHECKS, FailureClass.CHECKPOINT_NOT_SERVABLE)
    run.passed("train")
    run.stage("freeze")
    manifest = sha256(b"manifest")
    run.gate("freeze", "freeze", "freeze",
             (Check("status", True, "frozen", "= frozen", file="freeze.json", field="status"),),
             FailureClass.FREEZE_FAILED)  # fmt: skip
    frozen = {"destination": f"/home/demo/drafts/demo/tiny-target/dflash/{RUN_ID}", "manifest_sha256": manifest}
    run.record("freeze_known", f"Frozen to {frozen['destination']}", stage="freeze", freeze=frozen)
    run.passed("freeze")
    run.stage("bench")
    name = run.work("bench", "bench", "1005")
    speedups = {"speedup_c1": 1.62, "speedup_c32": 0.97, "speedup_c8": 1.31}
    run.gate("bench", name, "bench", BENCH_CHECKS, FailureClass.MEASUREMENT_INVALID, speedups)
    run.gate("bench", name, "correctness", EXACT_CHECKS, FailureClass.CORRECTNESS_MISMATCH)
    run.passed("bench")
    run.stage("closeout")
    run.passed("closeout")
    detail = "every gate passed"
    run.record("verdict", f"DRAFTER_READY: {detail}", stage="closeout", verdict="DRAFTER_READY", failure_class="",
               detail=detail)  # fmt: skip
    run.say(doing="stopped")
    run.close()
    return run


HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07\x1b[2J",
    "a\rb\x08c\x01d",
    "[/] [b +  [red]x[/red] [@click=app.bell]x[/]",
    "\u202egnp.exe\u202c\u2066x\u2069",
    "zero\u200bwidth\u00a0\u00ad\ufeff",
    "e\u0301\u0302\u0303\u0304 combining",
    "日本語の幅 wide",
    "\u115f\u3164\u2800 blank",
    "\udc80\udcff bytes",
    "x" * 100_000,
    "line\nline\u2028line\u2029",
    "‹ESC› looks like ours",
)


def hostile(path: Path, text: str) -> Run:
    """A run in which every foreign text is a given one."""
    run = staged(path)
    name = run.work("train", "data", "1002", summary=text)
    checks = (Check(text, False, text, text, text, text, text),)
    run.gate("train", name, "data", checks, FailureClass.TRAINING_REGRESSION)
    run.record("triaged", text, stage="train", id=name, failure_class="UNKNOWN", step=text, detail=text, values={})
    run.record("note", text, stage="train", actor=f"operator:{text}", human=True)
    second = run.propose("train", "train", change=text, summary=text, partition=text, body=text, qos=text, mem=text,
                         extra_options=(f"--comment={text}",))  # fmt: skip
    run.decide(second)
    run.submit(second, text, said=text)
    run.propose("train", "train", 2, change=text, summary=text, account=text, body=text + "\n" + text,
                environment=(("GONOGO_TOKEN", token(4)), ("X", text)))  # fmt: skip
    run.conduct()
    run.say(
        doing=text,
        link={"state": text, "age_s": 1.0, "detail": text, "host": text},
        waiting={"for": "operator", "what": text, "since": text},
        jobs=[{"id": second, "job_id": text, "name": text, "presence": "in queue", "state": text, "reason": text,
               "node": text, "elapsed_s": 1, "limit_s": 2, "gpus": 1, "hanging": False}],
        files=[{"id": second, "kind": text, "path": text, "presence": text, "size": 1, "age_s": 1.0}],
        problems=[text],
    )  # fmt: skip
    return run


BUILDERS: dict[str, Callable[[Path], Run]] = {
    "fresh": fresh, "waiting": waiting, "running": running, "failed": failed, "ready": ready,
}  # fmt: skip


def rejected(path: Path) -> Run:
    """The training job was rejected, with a reason, and a note was written."""
    run = waiting(path)
    run.decide("003-train-1", "rejected", "too many steps for a first try")
    run.record("note", "Note: half of the steps", stage="train", actor="operator:alice", human=True)
    run.say(
        waiting={"for": "operator", "what": "003-train-1: rejected", "since": f"{run.time.wall:%Y-%m-%dT%H:%M:%SZ}"}
    )
    return run
