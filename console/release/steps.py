"""What carrying out each step means. Every function logs what it did; none of them decides what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from backends.slurm.advice import after_refusal
from console.release import (
    catalog_judging,
    cluster_setup,
    expectations,
    freezing,
    judging,
    proposing,
    submission,
    target,
)
from console.release.canonical import sha256
from console.release.decisions import TARGET_CHECK, PlannedTask, Session, Step
from console.release.state import Attempt, GateRecord
from console.release.taking import attempt, log_proposal
from console.release.thresholds import MEASURED_BY
from console.release.triage import Failure, failure_of, triage
from gates.verdict import FailureClass, Verdict

if TYPE_CHECKING:
    from console.release.conductor import Conductor


def words(step: Step) -> str:
    """A step in a few words, for the screen."""
    name = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(step).__name__).strip()
    about = getattr(step, "id", "") or getattr(step, "stage", "")
    return f"{name} {about}".strip()


async def probe(conductor: Conductor) -> Session:
    """Ask the cluster; on a first run, log what it is."""
    from console.release.conductor import BAD_INPUT, SYSTEMIC, Stop

    writer = conductor.writer
    try:
        if writer.state.setup:
            await cluster_setup.reachable(conductor.release, conductor.connection)
        else:
            facts = await cluster_setup.probe(conductor.release, conductor.connection)
            writer.record("stage_started", "Stage setup begins", stage="setup")
            text = f"{facts['host']} answers: Slurm {facts['slurm_version']}, partition {facts['partition']}"
            writer.record("setup_done", text, stage="setup", facts=facts)
    except cluster_setup.SetupProblem as problem:
        raise Stop(SYSTEMIC if problem.systemic else BAD_INPUT, str(problem)) from None
    offset = writer.state.setup.get("clock_offset_ms")
    conductor.live.clock_offset_s = None if offset is None else offset / 1000
    return replace(conductor.session, probed=True)


async def find_target(conductor: Conductor) -> None:
    """Look whether the target is on the cluster already."""
    release, writer = conductor.release, conductor.writer
    path = release.target_path
    found = await target.find(conductor.connection.host, path)
    given = release.spec.target.startswith("/")
    # A folder that is there but not readable is never downloaded over: its check fails and says so.
    present = found != "absent" or given
    text = f"The target lies at {path} ({found})" if present else f"The target is not at {path}; it must be staged"
    known = {"path": path, "revision": release.spec.revision or "", "present": present, "found": found}
    writer.record("target_known", text, stage="stage_target", target=known)


async def check_target(conductor: Conductor) -> None:
    """Check the copy that was found, on the login node, and judge it."""
    release, writer = conductor.release, conductor.writer
    data = await target.check(conductor.connection.host, release.cluster.python, release.target_path)
    copy = f"results/{TARGET_CHECK}/target_check.json"
    judging.keep_bytes(writer.run_dir, copy, data)
    files = {"target_check": data or None}
    judging.judge(writer, "stage_target", "target", TARGET_CHECK, files, expectations.target(release))


def propose(conductor: Conductor, task: PlannedTask, number: int, change: str) -> None:
    """Put a job into the queue and log it."""
    writer = conductor.writer
    proposal = proposing.put_in_queue(conductor.release, writer.state, task, number, change, writer.clock())
    job = proposal.job()
    why = f" ({change})" if change else ""
    log_proposal(writer, proposal, job, f"Proposed {proposal.id}: {job.summary}{why}; digest {job.digest}")


def propose_policy(conductor: Conductor, number: int, change: str) -> None:
    """Put the policy into the queue and log it."""
    writer = conductor.writer
    proposal = proposing.put_policy_in_queue(conductor.release, writer.state, number, change, writer.clock())
    job = proposal.job()
    log_proposal(writer, proposal, job, f"Proposed {proposal.id}: {job.summary}; digest {job.digest}")


async def reconcile(conductor: Conductor, name: str) -> None:
    """Ask what became of a submission until it is known, showing what is asked of whom."""
    current = attempt(conductor, name)
    settle = conductor.release.cluster.settle_seconds
    await submission.reconcile(conductor.writer, conductor.connection.slurm, current, settle)
    after = attempt(conductor, name)
    if after.outcome in ("unknown", "submitting"):
        what = f"{name}: outcome unknown: {after.said}; {after_refusal(after.said)}"
        conductor.live.wait("operator", what, conductor.now())
        await submission.pause(conductor.writer, conductor.next_round(name))


def judge(conductor: Conductor, name: str, gates: tuple[str, ...]) -> None:
    """Let the gates of a task read the bytes that were kept of its results."""
    current = attempt(conductor, name)
    writer = conductor.writer
    for gate in gates:
        if writer.state.stage(current.stage).gate(gate, name) is not None:
            continue
        expected = expectations.expected(conductor.release, writer.state, current, gate)
        if gate in MEASURED_BY:
            files = catalog_judging.files(writer.run_dir, writer.state, current, gate)
            if len(files) > catalog_judging.ONE_MEASUREMENT:
                # Each attempt's own token was checked when its measurement was found to be valid.
                del expected["token"]
        else:
            kinds = expectations.kinds(current.stage, gate)
            files = judging.load_kept(writer.run_dir, current.results, kinds)
        learned = _learned(conductor, gate, files)
        verdict = judging.judge(writer, current.stage, gate, name, files, expected, learned)
        if verdict.passed:
            _say_what_is_known(conductor, current.stage, learned())


def _learned(conductor: Conductor, gate: str, files: Mapping[str, bytes | None]) -> Callable[[], dict[str, Any]]:
    """What later stages need to know from results that passed."""

    def learn() -> dict[str, Any]:
        if gate == "target":
            return {"target": {"staged": True}}
        if gate in ("train", "export"):
            source = proposing.export_dir(conductor.release, conductor.writer.state)
            return {"freeze": {"source": source, "export_bytes": expectations.export_bytes(files.get("export_check"))}}
        return {"freeze": expectations.frozen(files.get("freeze"))} if gate == "freeze" else {}

    return learn


def _say_what_is_known(conductor: Conductor, stage: str, learned: Mapping[str, Any]) -> None:
    """The same for people, in an entry of its own."""
    record = conductor.writer.record
    freeze = learned.get("freeze", {})
    if "target" in learned:
        record("target_known", "The target is staged", stage=stage, target=learned["target"])
    elif "destination" in freeze:
        record("freeze_known", f"Frozen to {freeze['destination']}", stage=stage, freeze=freeze)
    elif freeze:
        text = f"The export is {freeze['source']}, {freeze['export_bytes']} bytes"
        record("freeze_known", text, stage=stage, freeze=freeze)


def decide_triage(conductor: Conductor, stage: str, task: str, name: str, gate: str) -> None:
    """Decide what follows from a failure and log it before it is done."""
    writer = conductor.writer
    record = writer.state.stage(stage)
    values = proposing.values_for(conductor.release, writer.state, stage, task)
    failure = _failure(record.gate(gate, name), writer.state.attempt(name), task, values)
    # What runs on the login node (a target that was found, a small freeze) need not be a task of the recipe.
    granted = [item.max_retries for item in conductor.release.recipe.tasks if (item.stage, item.task) == (stage, task)]
    decided = triage(failure, record, *granted)
    writer.record(
        "triaged",
        f"{name} failed ({decided.failure_class}); next: {decided.step}: {decided.detail}",
        stage=stage,
        **asdict(decided),
    )


_DISTURBED = ("NODE_FAIL", "PREEMPTED", "BOOT_FAIL")


def _failure(gate: GateRecord | None, current: Attempt | None, task: str, values: dict[str, Any]) -> Failure:
    if gate is not None:
        return failure_of(gate, task, values)
    assert current is not None, "a failure without a gate belongs to an attempt"
    disturbed = current.job_state.split(" ")[0] in _DISTURBED
    failure_class = FailureClass.INFRA_TRANSIENT if disturbed else FailureClass.RESULT_MISSING
    return Failure(current.id, task, failure_class, current.said, {}, values)


async def freeze(conductor: Conductor) -> Session:
    """Freeze the export on the login node, judge the result, and remember the manifest's digest."""
    release, writer = conductor.release, conductor.writer
    place = freezing.FreezePlace(
        python=release.cluster.python,
        source=proposing.export_dir(release, writer.state),
        destination=release.drafter_path,
        work=f"{release.remote_root}/freeze",
    )
    writer.record("freeze_started", f"Freezing {place.source} to {place.destination}", stage="freeze")
    data = await freezing.freeze(conductor.connection.host, place)
    learned = _learned(conductor, "freeze", {"freeze": data})
    verdict = _judge_freeze(conductor, data, "freeze", expectations.freeze(release, writer.state), learned)
    if verdict.passed:
        _say_what_is_known(conductor, "freeze", learned())
        return replace(conductor.session, freeze_verified=True)
    return conductor.session


async def verify_freeze(conductor: Conductor) -> Session:
    """Verify the frozen drafter where it lies."""
    release, writer = conductor.release, conductor.writer
    known = writer.state.freeze
    manifest = str(known["manifest_sha256"])
    host = conductor.connection.host
    data = await freezing.verify(host, release.cluster.python, str(known["destination"]), manifest)
    expected = {**expectations.freeze(release, writer.state), "manifest_sha256": manifest}
    verdict = _judge_freeze(conductor, data, "verify", expected)
    return replace(conductor.session, freeze_verified=verdict.passed)


def _judge_freeze(
    conductor: Conductor,
    data: bytes,
    name: str,
    expected: dict[str, Any],
    learn: Callable[[], Mapping[str, Any]] = dict,
) -> Verdict:
    writer = conductor.writer
    digest = sha256(data)
    judging.keep_bytes(writer.run_dir, f"results/{name}/{digest[:16]}.json", data)
    stage = writer.state.current.name
    return judging.judge(writer, stage, "freeze", name, {"freeze": data or None}, expected, learn)
