"""From a recipe's task to one exact job in the queue."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from console.release import queue
from console.release.canonical import sha256
from console.release.clusters import Cluster
from console.release.decisions import Plan, PlannedTask
from console.release.fit import fit_task, nodes_of
from console.release.job import ExactJob, UploadRef, build_script, refuse_secrets
from console.release.policy import Policy, to_job
from console.release.recipe import Recipe, RenderedTask, Task, expand, render_task, resolve_values, size_task
from console.release.spec import ReleaseSpec
from console.release.state import Attempt, Outcome, RunState
from console.release.thresholds import MEASURED_BY, Thresholds
from console.release.triage import RETRY

GATES_BY_STAGE: Mapping[str, tuple[tuple[str, frozenset[str]], ...]] = {
    "stage_target": (("target", frozenset({"stage_target", "target_check"})),),
    "train": (
        ("data", frozenset({"data"})),
        ("train", frozenset({"regression_check", "export_check"})),
        ("export", frozenset({"export_check"})),
        ("smoke", frozenset({"smoke"})),
    ),
    "freeze": (("freeze", frozenset({"freeze"})),),
    "bench": (("bench", frozenset({"bench"})), ("correctness", frozenset({"exact_match"}))),
}
"""For each stage its gates, and the kinds of result files that each one reads."""


@dataclass(frozen=True, slots=True)
class Release:
    """What a release is made from, all of it checked before anything was submitted.

    Attributes:
        run_dir: The run folder.
        run_id: Its name.
        spec: The inputs.
        cluster: The cluster that it runs on.
        recipe: Which jobs make up each stage.
        thresholds: The bars of a catalog that the drafter is held against, None for none.
    """

    run_dir: Path
    run_id: str
    spec: ReleaseSpec
    cluster: Cluster
    recipe: Recipe
    thresholds: Thresholds | None = None

    @property
    def remote_root(self) -> str:
        """The folder of this release on the cluster."""
        return f"{self.cluster.workspace}/gonogo/{self.run_id}"

    @property
    def target_path(self) -> str:
        """Where the target lies on the cluster, or will be staged to."""
        if self.spec.target.startswith("/"):
            return self.spec.target
        return f"{self.cluster.hf_local}/{self.spec.target_slug}/{self.spec.revision}"

    @property
    def drafter_path(self) -> str:
        """Where the drafter is frozen to: drafts root, target, algorithm, run."""
        root = self.cluster.drafts_root
        if root is None:
            known = {"WORKSPACE": self.cluster.workspace}
            root = expand(self.recipe.drafts_root, known, self.recipe.file, "drafts_root")
        return f"{root}/{self.spec.target_slug}/{self.spec.algorithm}/{self.run_id}"


def make_plan(release: Release) -> Plan:
    """The tasks of the recipe that this release needs, each with its gates."""
    existing = release.spec.existing_drafter is not None
    tasks = []
    for task in release.recipe.tasks:
        if task.skip_with_existing_drafter if existing else task.only_existing_drafter:
            continue
        gates = (*gates_for(task), *_catalog_gates(release, task))
        if gates or not task.only_if_judged:
            tasks.append(PlannedTask(task.stage, task.task, gates))
    return Plan(tuple(tasks), release.recipe.freeze_job_above_bytes)


def gates_for(task: Task) -> tuple[str, ...]:
    """Which gates read what a task writes; the widest first, and none whose files another one reads already."""
    kinds = set(task.results)
    gates: list[str] = []
    for name, needs in GATES_BY_STAGE[task.stage]:
        if needs <= kinds:
            gates.append(name)
            kinds -= needs
    return tuple(gates)


def _catalog_gates(release: Release, task: Task) -> tuple[str, ...]:
    """The gates of the catalog that judge what a task writes, after those that ask whether it was measured well."""
    if release.thresholds is None or task.stage != "bench":
        return ()
    return tuple(gate for gate in release.thresholds.gates if MEASURED_BY[gate] in task.results)


def export_dir(release: Release, state: RunState) -> str:
    """The export that is served, frozen and benchmarked: the operator's own, or the trained one."""
    if release.spec.existing_drafter is not None:
        return release.spec.existing_drafter
    trained = _through(state, "train", "train")
    return f"{trained.job_dir}/export" if trained is not None else ""


def _through(state: RunState, stage: str, task: str) -> Attempt | None:
    attempt = state.stage(stage).latest(task)
    return attempt if attempt is not None and attempt.outcome is Outcome.RESULTS_READ else None


def values_for(release: Release, state: RunState, stage: str, task: str) -> dict[str, Any]:
    """The recipe's values for the next attempt of a task: budget, overrides, and what triage changed since."""
    values = resolve_values(release.recipe, release.spec.budget, release.spec.overrides)
    record = state.stage(stage)
    ids = {attempt.id for attempt in record.attempts if attempt.task == task}
    for item in record.triage:
        if item.step == RETRY and item.id in ids:
            values.update(item.values)
    return values


def run_facts(release: Release, state: RunState, task: PlannedTask, attempt: int, job_dir: str) -> dict[str, str]:
    """What the placeholders in capitals stand for in one job."""
    data = _through(state, "train", "data")
    image = release.cluster.container_image
    facts = {
        "TARGET": release.spec.target,
        "TARGET_PATH": release.target_path,
        "REVISION": release.spec.revision or "",
        "ALGORITHM": release.spec.algorithm,
        "BUDGET": release.spec.budget,
        "WORKSPACE": release.cluster.workspace,
        "HF_LOCAL": release.cluster.hf_local,
        "RUN_ID": release.run_id,
        "PYTHON": release.cluster.python,
        "ATTEMPT": str(attempt),
        "EXPORT_PATH": f"{job_dir}/export",
    }
    if image is not None:
        facts["CONTAINER_IMAGE"] = image
    if data is not None:
        facts["DATA_DIR"] = data.job_dir
    served = export_dir(release, state)
    if served:
        facts["EXPORT_DIR"] = served
    if "manifest_sha256" in state.freeze:
        facts["DRAFTER_PATH"] = str(state.freeze["destination"])
        facts["MANIFEST_SHA256"] = str(state.freeze["manifest_sha256"])
    elif task.stage == "freeze":
        facts["DRAFTER_PATH"] = release.drafter_path
    return facts


def build_job(
    release: Release, state: RunState, planned: PlannedTask, attempt: int, token: str
) -> tuple[ExactJob, dict[str, bytes]]:
    """Build one exact job and the bytes that travel with it.

    Raises:
        console.release.errors.InputError: When the recipe's template cannot be filled in.
        console.release.job.JobError: When the recipe would send a secret by value.
    """
    cluster = release.cluster
    values = values_for(release, state, planned.stage, planned.task)
    task = size_task(release.recipe.task(planned.stage, planned.task), values)
    fitted = fit_task(task, values, nodes_of(cluster, state.setup.get("gpus_per_node")))
    task = fitted.task
    job_dir = f"{release.remote_root}/{planned.stage}/{planned.task}-{attempt}-{token[:8]}"
    claim_dir = f"{release.remote_root}/claims/{token}"
    facts = run_facts(release, state, planned, attempt, job_dir)
    facts.update(GPUS_PER_NODE=str(task.gpus_per_node), NODES=str(task.nodes), FAIL=str(values.get("fail", "")))
    rendered: RenderedTask = render_task(release.recipe, task, fitted.values, facts)
    environment = (
        ("GONOGO_TOKEN", token),
        ("GONOGO_JOB_DIR", job_dir),
        ("GONOGO_RUN_ID", release.run_id),
        *rendered.environment,
    )
    refuse_secrets(environment)
    job = ExactJob(
        run_id=release.run_id,
        stage=planned.stage,
        task=planned.task,
        attempt=attempt,
        summary=f"{task.summary} ({fitted.change})" if fitted.change else task.summary,
        cluster=cluster.name,
        host=cluster.login_node,
        port=cluster.port,
        user=cluster.user,
        token=token,
        job_name=f"gonogo-{release.run_id[:60]}-{planned.task}-{token[:8]}",
        partition=cluster.partition or "",
        account=cluster.account or "",
        qos=cluster.qos or "",
        nodes=task.nodes,
        gpus_per_node=task.gpus_per_node,
        cpus_per_task=task.cpus_per_task or 0,
        mem=task.mem or "",
        time=task.time,
        image=rendered.image,
        job_dir=job_dir,
        claim_dir=claim_dir,
        environment=environment,
        script=build_script(rendered.script_body, claim_dir=claim_dir, job_dir=job_dir, environment=environment),
        uploads=tuple(UploadRef(name=name, sha256=sha256(data), size=len(data)) for name, data in rendered.uploads),
        results=tuple(sorted(rendered.results.items())),
        evidence=_evidence(state),
    )
    return job, dict(rendered.uploads)


def _evidence(state: RunState) -> tuple[tuple[str, str], ...]:
    """What the proposal rests on: digests of the result files that passed, and of the frozen drafter."""
    found = [(f"{gate.name}:{file['kind']}", file["sha256"]) for stage in state.stages for gate in stage.gates
             if gate.passed for file in gate.files]  # fmt: skip
    if "manifest_sha256" in state.freeze:
        found.append(("manifest", state.freeze["manifest_sha256"]))
    return tuple(dict.fromkeys(found))


def put_in_queue(
    release: Release,
    state: RunState,
    planned: PlannedTask,
    attempt: int,
    change: str,
    now: datetime,
    new_token: Callable[[], str] = lambda: secrets.token_hex(8),
) -> queue.Proposal:
    """Propose a job; one that was published just before a crash is taken up again instead of proposed twice."""
    proposal_id = f"{len(state.attempts) + 1:03d}-{planned.task}-{attempt}"
    left = _left_over(release, lambda token: build_job(release, state, planned, attempt, token)[0], proposal_id)
    if left is not None:
        return left
    job, uploads = build_job(release, state, planned, attempt, new_token())
    return queue.propose(release.run_dir, proposal_id, job, uploads, proposer="conductor", time=now, change=change)


def put_policy_in_queue(
    release: Release,
    state: RunState,
    attempt: int,
    change: str,
    now: datetime,
    new_token: Callable[[], str] = lambda: secrets.token_hex(8),
) -> queue.Proposal:
    """Propose the policy of a release; one from just before a crash is taken up again."""
    bounds, cluster = release.spec.bounds, release.cluster
    assert bounds is not None, "a policy is asked for only where there are bounds"
    made = Policy(
        run_id=release.run_id, cluster=cluster.name, host=cluster.login_node, port=cluster.port, user=cluster.user,
        account=cluster.account or "", qos=cluster.qos or "", partition=bounds.partition, image=bounds.image or "",
        stages=bounds.stages, jobs=bounds.jobs, gpu_seconds=bounds.gpu_hours * 3600, days=bounds.days,
    )  # fmt: skip
    proposal_id = f"{len(state.attempts) + 1:03d}-policy-{attempt}"
    left = _left_over(release, lambda token: to_job(made, attempt, token), proposal_id)
    if left is not None:
        return left
    job = to_job(made, attempt, new_token())
    return queue.propose(release.run_dir, proposal_id, job, {}, proposer="conductor", time=now, change=change)


def _left_over(release: Release, build: Callable[[str], ExactJob], proposal_id: str) -> queue.Proposal | None:
    """A proposal of this id that the log does not know: ours from before a crash, or set aside."""
    path = release.run_dir / "submissions" / proposal_id
    if not path.exists():
        return None
    try:
        proposal = queue.load(release.run_dir, proposal_id)
        again = build(proposal.job().token)
        if again.digest == proposal.digest:
            return proposal
    except Exception as error:  # whatever lies there is not what this release would propose
        reason = type(error).__name__
    else:
        reason = "another job"
    path.rename(path.with_name(f".set-aside-{proposal_id}-{secrets.token_hex(4)}-{reason.replace(' ', '-')}"))
    return None
