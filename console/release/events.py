"""What each kind of log entry means for the state. One function per event; unknown events change nothing.

The writers (conductor, submission) put `event` and these keys into an entry's data; the stage is the entry's own.
This module is the only reader of them, for resume, for the screen and for replay alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from console.release.journal import Entry, Kind
from console.release.state import (
    Attempt,
    GateRecord,
    Outcome,
    ReleaseVerdict,
    ResultFile,
    RunState,
    StageStatus,
    Triage,
    put_attempt,
    put_stage,
)

Data = Mapping[str, Any]


def apply(state: RunState, entry: Entry) -> RunState:
    """The state after one more entry."""
    return replace(
        change(state, entry),
        entries=entry.seq,
        head=entry.hash,
        updated_at=entry.time,
        interventions=state.interventions + (entry.kind is Kind.HUMAN_INTERVENTION),
    )


def change(state: RunState, entry: Entry) -> RunState:
    """What an entry's event changes; the counts of entries and interventions stay behind."""
    reader = READERS.get(str(entry.data.get("event", "")))
    return state if reader is None else reader(state, entry.data, entry)


def _run_started(state: RunState, data: Data, entry: Entry) -> RunState:
    return replace(
        state, run_id=data["run_id"], inputs=data["inputs"], overrides=data["overrides"], started_at=entry.time
    )


def _run_resumed(state: RunState, data: Data, entry: Entry) -> RunState:
    state = replace(state, stopped="")
    return _reopen(state, data["reopened"]) if data.get("reopened") else state


def _stage_started(state: RunState, data: Data, entry: Entry) -> RunState:
    stage = replace(state.stage(entry.stage), status=StageStatus.RUNNING, started_at=entry.time)
    return put_stage(state, stage)


def _stage_passed(state: RunState, data: Data, entry: Entry) -> RunState:
    return _end_stage(state, data, entry, StageStatus.PASSED)


def _stage_failed(state: RunState, data: Data, entry: Entry) -> RunState:
    return _end_stage(state, data, entry, StageStatus.FAILED)


def _end_stage(state: RunState, data: Data, entry: Entry, status: StageStatus) -> RunState:
    stage = state.stage(entry.stage)
    stage = replace(stage, status=status, ended_at=entry.time, detail=data.get("detail", ""))
    return put_stage(state, stage)


def _setup_done(state: RunState, data: Data, entry: Entry) -> RunState:
    return replace(state, setup=data["facts"])


def _target_known(state: RunState, data: Data, entry: Entry) -> RunState:
    return replace(state, target={**state.target, **data["target"]})


def _job_proposed(state: RunState, data: Data, entry: Entry) -> RunState:
    keys = (
        "attempt",
        "kind",
        "id",
        "digest",
        "token",
        "task",
        "summary",
        "change",
        "gpus",
        "limit_s",
        "job_dir",
    )
    known = {key: data[key] for key in keys}
    # Logs from before proposals could expire say nothing of it.
    known |= {"proposer": data["proposer"], "expires_at": data.get("expires_at", "")}
    return put_attempt(state, Attempt(**known, stage=entry.stage, proposed_at=entry.time))


_DECISIONS = {
    "approved": Outcome.APPROVED,
    "rejected": Outcome.REJECTED,
    "expired": Outcome.EXPIRED,
    "invalidated": Outcome.INVALIDATED,
}


def _job_decided(state: RunState, data: Data, entry: Entry) -> RunState:
    if data.get("policy"):
        own = {"id": data["id"], "digest": data["digest"], "since": entry.time, "jobs": 0, "gpu_seconds": 0}
        state = replace(state, policy={**own, **data["policy"]})
    elif data.get("takes") and data["takes"].get("policy") == state.policy.get("id"):
        both = {key: state.policy[key] + data["takes"][key] for key in ("jobs", "gpu_seconds")}
        state = replace(state, policy={**state.policy, **both})
    return _change(
        state,
        data["id"],
        outcome=_DECISIONS[data["decision"]],
        decided_by=data["by"],
        decided_at=entry.time,
        said=data.get("reason", ""),
    )


def _first_approved(state: RunState, data: Data, entry: Entry) -> RunState:
    return _change(state, data["id"], first_by=data["by"])


def _submit_intent(state: RunState, data: Data, entry: Entry) -> RunState:
    return _change(state, data["id"], outcome=Outcome.SUBMITTING, submitted_at=entry.time)


_SUBMISSIONS = {
    "accepted": Outcome.SUBMITTED,
    "refused": Outcome.REFUSED,
    "not_submitted": Outcome.NOT_SUBMITTED,
    "unknown": Outcome.UNKNOWN,
}


def _submit_outcome(state: RunState, data: Data, entry: Entry) -> RunState:
    outcome = _SUBMISSIONS[data["outcome"]]
    return _change(state, data["id"], outcome=outcome, job_id=data.get("job_id"), said=data.get("said", ""))


def _job_seen(state: RunState, data: Data, entry: Entry) -> RunState:
    ended = entry.time if data.get("ended") else ""
    return _change(
        state,
        data["id"],
        job_state=data["state"],
        job_reason=data.get("reason", ""),
        node=data.get("node", ""),
        ended_at=ended,
    )


def _result_read(state: RunState, data: Data, entry: Entry) -> RunState:
    attempt = state.attempt(data["id"])
    if attempt is None:
        return state
    keys = ("kind", "path", "sha256", "size", "copy")
    result = ResultFile(**{key: data[key] for key in keys}, time=entry.time)
    others = tuple(item for item in attempt.results if item.kind != result.kind)
    return put_attempt(state, replace(attempt, results=(*others, result)))


def _results_complete(state: RunState, data: Data, entry: Entry) -> RunState:
    return _change(state, data["id"], outcome=Outcome.RESULTS_READ)


def _result_missing(state: RunState, data: Data, entry: Entry) -> RunState:
    return _change(state, data["id"], outcome=Outcome.RESULT_MISSING, said=data["detail"])


def _gate(state: RunState, data: Data, entry: Entry) -> RunState:
    stage = state.stage(entry.stage)
    record = GateRecord(
        name=data["gate"],
        id=data["id"],
        passed=data["pass"],
        failure_class=data["failure_class"],
        detail=data["detail"],
        sha256=data["sha256"],
        time=entry.time,
        files=tuple(data["files"]),
        checks=tuple(data["checks"]),
        facts=data["facts"],
    )
    kept = tuple(gate for gate in stage.gates if (gate.name, gate.id) != (record.name, record.id))
    learned = data.get("learned", {})
    state = replace(
        state,
        freeze={**state.freeze, **learned.get("freeze", {})},
        target={**state.target, **learned.get("target", {})},
    )
    return put_stage(state, replace(stage, gates=(*kept, record)))


def _triaged(state: RunState, data: Data, entry: Entry) -> RunState:
    stage = state.stage(entry.stage)
    item = Triage(data["id"], data["failure_class"], data["step"], data["detail"], data["values"])
    return put_stage(state, replace(stage, triage=(*stage.triage, item)))


def _retry_requested(state: RunState, data: Data, entry: Entry) -> RunState:
    return _reopen(replace(state, stopped=""), data["id"])


def _reopen(state: RunState, name: str) -> RunState:
    if state.attempt(name) is not None:
        return _change(state, name, reopened=True)
    # What had no job of its own (the target's copy, the freeze) is judged afresh.
    for stage in state.stages:
        gates = tuple(gate for gate in stage.gates if gate.id != name)
        triage = tuple(item for item in stage.triage if item.id != name)
        state = put_stage(state, replace(stage, gates=gates, triage=triage))
    return state


def _freeze_known(state: RunState, data: Data, entry: Entry) -> RunState:
    return replace(state, freeze={**state.freeze, **data["freeze"]})


_LONGEST_REASON = 300
"""Characters of a refusal that the state keeps; the log has all of it."""


def _proposal_refused(state: RunState, data: Data, entry: Entry) -> RunState:
    refusals = (*state.refusals, (data["id"], str(data.get("reason", ""))[:_LONGEST_REASON]))
    return replace(state, refused=(*state.refused, data["id"]), refusals=refusals)


def _stopped(state: RunState, data: Data, entry: Entry) -> RunState:
    return replace(state, stopped=data["detail"])


def _verdict(state: RunState, data: Data, entry: Entry) -> RunState:
    return replace(
        state,
        verdict=ReleaseVerdict(data["verdict"]),
        verdict_detail=data["detail"],
        failure_class=data["failure_class"],
        stopped="",
    )


def _change(state: RunState, attempt_id: str, **changes: Any) -> RunState:
    attempt = state.attempt(attempt_id)
    return state if attempt is None else put_attempt(state, replace(attempt, **changes))


READERS: Mapping[str, Callable[[RunState, Data, Entry], RunState]] = {
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "stage_started": _stage_started,
    "stage_passed": _stage_passed,
    "stage_failed": _stage_failed,
    "proposal_refused": _proposal_refused,
    "setup_done": _setup_done,
    "target_known": _target_known,
    "job_proposed": _job_proposed,
    "first_approved": _first_approved,
    "job_decided": _job_decided,
    "submit_intent": _submit_intent,
    "submit_outcome": _submit_outcome,
    "job_seen": _job_seen,
    "result_read": _result_read,
    "results_complete": _results_complete,
    "result_missing": _result_missing,
    "gate": _gate,
    "triaged": _triaged,
    "retry_requested": _retry_requested,
    "freeze_known": _freeze_known,
    "stopped": _stopped,
    "verdict": _verdict,
}
