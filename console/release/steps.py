"""What carrying out each step means. Every function logs what it did; none of them decides what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from backends.slurm.advice import after_refusal
from console.release import (
    catalog_judging,
    cluster_setup,
    deciding,
    expectations,
    freezing,
    judging,
    proposing,
    queue,
    rules,
    submission,
    target,
)
from console.release.canonical import sha256
from console.release.decisions import TARGET_CHECK, PlannedTask, Session, Step
from console.release.job import ExactJob
from console.release.state import Attempt, GateRecord
from console.release.thresholds import MEASURED_BY
from console.release.triage import Failure, failure_of, triage
from console.release.writer import CONDUCTOR, RunWriter
from gates.verdict import FailureClass, Verdict

if TYPE_CHECKING:
    from console.release.conductor import Conductor


def words(step: Step) -> str:
    """A step in a few words, for the screen."""
    name = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(step).__name__).strip()
    about = getattr(step, "id", "") or getattr(step, "stage", "")
    return f"{name} {about}".strip()


def attempt(conductor: Conductor, name: str) -> Attempt:
    """An attempt that the log knows."""
    found = conductor.writer.state.attempt(name)
    assert found is not None, "steps name attempts that are in the state"
    return found


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


def log_proposal(writer: RunWriter, proposal: queue.Proposal, job: ExactJob, text: str, actor: str = CONDUCTOR) -> None:
    """Log a proposal, whoever made it, so that everything that follows can be held against it."""
    expires_at = _expires_at(writer, proposal)
    limits: dict[str, Any] = {"expires_at": expires_at} if expires_at else {}
    until = f"; it expires at {expires_at}" if expires_at else ""
    writer.record(
        "job_proposed",
        f"{text}{until}",
        stage=job.stage,
        actor=actor,
        id=proposal.id,
        digest=proposal.digest,
        token=job.token,
        task=job.task,
        attempt=job.attempt,
        kind=job.kind,
        summary=job.summary,
        change=proposal.change,
        gpus=job.gpus,
        limit_s=job.limit_s,
        job_dir=job.job_dir,
        proposer=proposal.proposer,
        proposal_sha256=queue.about_digest(proposal),
        cluster=job.cluster,
        host=job.host,
        **limits,
    )


def _expires_at(writer: RunWriter, proposal: queue.Proposal) -> str:
    """When a proposal expires: when it says so itself, and at the latest when the release says so."""
    limit = rules.deadline(writer.clock(), rules.rules_of(writer.state.inputs).decide_within_s)
    return min(filter(None, (proposal.expires_at, limit)), key=rules.read_time, default="")


async def await_decision(conductor: Conductor, name: str) -> None:
    """Wait until somebody decided, and log the decision with what its receipt says.

    A proposal that is not what was proposed any more is invalidated at once: nobody could approve it.
    """
    current = attempt(conductor, name)
    try:
        decision = await _decision(conductor, current)
    except queue.QueueError as error:
        _record_decision(conductor, current, "invalidated", "conductor", str(error), None)
        return
    if decision is not None:
        _log_decision(conductor, current, decision)


def take_decision(conductor: Conductor, current: Attempt) -> None:
    """Log the decision on a proposal if there is one by now, or that there will be none; nothing else waits for it."""
    over = rules.is_past(current.expires_at, conductor.writer.clock())
    place = conductor.writer.run_dir / "submissions" / current.id
    first = not current.first_by and (place / queue.FIRST).exists()
    if not over and not first and not (place / "decision.json").exists():
        return
    try:
        proposal = _as_proposed(conductor, current)
    except queue.QueueError as error:
        _record_decision(conductor, current, "invalidated", "conductor", str(error), None)
        return
    try:
        decision = _standing(conductor, proposal, current)
    except queue.QueueError as error:
        # A file that is no decision decides nothing, and nobody can decide beside it.
        _record_decision(conductor, current, "invalidated", "conductor", str(error), None)
        return
    if decision is not None:
        _log_decision(conductor, current, decision)


def _note_first(conductor: Conductor, proposal: queue.Proposal, current: Attempt) -> None:
    """Log the first of two approvals, once, so that whoever reads the log knows that one more is waited for."""
    if current.first_by or rules.rules_of(conductor.writer.state.inputs).approvals < 2:
        return
    try:
        first = queue.first_of(proposal)
    except queue.QueueError:
        return  # it counts for nothing; whoever approves next is told so
    if first is None:
        return
    conductor.writer.record(
        "first_approved",
        f"{current.id} approved by {first.operator}, the first of two; digest {first.digest}",
        stage=current.stage,
        actor=f"operator:{first.operator}",
        id=current.id,
        by=first.operator,
        account=rules.owner(proposal.folder / queue.FIRST),
        receipt=first.to_json(),
    )


def _standing(conductor: Conductor, proposal: queue.Proposal, current: Attempt) -> queue.Decision | None:
    """The decision, or the end of the time for one, whichever was first; None while there is neither.

    Raises:
        console.release.queue.QueueError: When there is a file that is no decision.
    """
    _note_first(conductor, proposal, current)
    decision = queue.decision_of(proposal)
    now = conductor.writer.clock()
    if decision is None and rules.is_past(current.expires_at, now):
        return deciding.expire(proposal, current.digest, current.expires_at, now)
    return decision


def _log_decision(conductor: Conductor, current: Attempt, decision: queue.Decision) -> None:
    """Log what was decided, and whether it counts."""
    if decision.digest != current.digest:
        reason = f"the decision is on digest {decision.digest}, proposed was {current.digest}"
        _record_decision(conductor, current, "invalidated", "conductor", reason, decision)
        return
    if decision.decision == queue.EXPIRED:
        _record_decision(conductor, current, queue.EXPIRED, CONDUCTOR, decision.reason, decision)
        return
    if not rules.decided_in_time(decision, current.expires_at):
        reason = (
            f"{decision.operator} {decision.decision} it at {decision.time}; its time was up at {current.expires_at}"
        )
        _record_decision(conductor, current, queue.EXPIRED, CONDUCTOR, reason, decision)
        return
    problem = submission.against_rules(conductor.writer, current, decision)
    if problem:
        _record_decision(conductor, current, "invalidated", CONDUCTOR, problem, decision)
        return
    by = "policy" if decision.operator == "policy" else f"operator:{decision.operator}"
    _record_decision(conductor, current, decision.decision, by, decision.reason, decision)


def _approve_by_policy(conductor: Conductor, proposal: queue.Proposal, current: Attempt) -> None:
    stamp = f"{conductor.writer.clock():%Y-%m-%dT%H:%M:%SZ}"
    reason = "approve_submissions is none"
    decision = queue.Decision(proposal.id, current.digest, queue.APPROVED, "policy", reason, stamp, "conductor")
    try:
        deciding.decide(conductor.writer.run_dir, decision)
    except queue.AlreadyDecided:
        return


def _as_proposed(conductor: Conductor, current: Attempt) -> queue.Proposal:
    """The proposal as it lies there now.

    Raises:
        queue.QueueError: When it is gone, or is not what was proposed.
    """
    proposal = queue.load(conductor.writer.run_dir, current.id)
    if proposal.digest != current.digest:
        raise queue.QueueError(
            f"job.json was changed after the proposal: it has digest {proposal.digest}, proposed was {current.digest}"
        )
    return proposal


async def _decision(conductor: Conductor, proposed: Attempt) -> queue.Decision | None:
    """The decision once there is one; None when the log moved on in another way meanwhile.

    Raises:
        queue.QueueError: When there is nothing left to decide on: it is gone, or is not what was proposed.
    """
    from console.release.conductor import WAITING, Stop

    writer, live = conductor.writer, conductor.live
    start = conductor.monotonic()
    complaint = ""
    if conductor.approve == "none":
        _approve_by_policy(conductor, _as_proposed(conductor, proposed), proposed)
    while True:
        current = writer.state.attempt(proposed.id)
        if current is None or current.outcome != "proposed":
            return None
        proposal = _as_proposed(conductor, proposed)
        try:
            decision = _standing(conductor, proposal, current)
            if decision is not None:
                return decision
        except queue.QueueError as error:
            if str(error) != complaint:
                complaint = str(error)
                writer.record("odd_decision", complaint, stage=current.stage, id=proposal.id)
        live.wait("operator", f"approval of {proposal.id}: {current.summary}", conductor.now())
        if conductor.wait_s is not None and conductor.monotonic() - start >= conductor.wait_s:
            raise Stop(WAITING, f"waiting for an approval: {proposal.id}")
        await conductor.mailbox.wait()


def _record_decision(
    conductor: Conductor, current: Attempt, word: str, by: str, reason: str, decision: queue.Decision | None
) -> None:
    human = word == queue.REJECTED
    said = f": {reason}" if reason else ""
    now = attempt(conductor, current.id)
    also = f" after {now.first_by}" if now.first_by and word == queue.APPROVED else ""
    conductor.writer.record(
        "job_decided",
        f"{current.id} {word} by {by}{also}{said}; digest {current.digest}",
        stage=current.stage,
        actor=by,
        human=human,
        id=current.id,
        digest=current.digest,
        decision=word,
        by=by,
        reason=reason,
        receipt=None if decision is None else decision.to_json(),
        **_accounts(conductor, current),
    )


def _accounts(conductor: Conductor, current: Attempt) -> dict[str, Any]:
    """Which accounts the files of a decision belong to, where the rules are about accounts: a copy has other owners."""
    if not rules.rules_of(conductor.writer.state.inputs).of_people:
        return {}
    place = conductor.writer.run_dir / "submissions" / current.id
    files = {"proposer": "proposal.json", "first": queue.FIRST, "decision": "decision.json"}
    return {"accounts": {who: rules.owner(place / name) for who, name in files.items() if (place / name).exists()}}


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
    decided = triage(failure, record)
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
