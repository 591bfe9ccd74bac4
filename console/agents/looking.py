"""What an agent can see of a run: proposals, stages, gates and the log, as data from the run folder's own files."""

from __future__ import annotations

import json
from typing import Any

from console.agents.agent import Agent
from console.agents.arguments import refuse
from console.release import folder, queue
from console.release.queue_view import INVALIDATED, item
from console.release.state import STAGES, Attempt, RunState
from console.snapshot import LogView

_INPUTS = ("target", "revision", "algorithm", "budget", "cluster", "existing_drafter")
MAX_LOG_BYTES = 256 << 10
"""Of one answer with log entries; older ones are left out beyond it."""


def job_state(agent: Agent, *, id: str) -> dict[str, Any]:
    """Where one proposal stands.

    Raises:
        console.release.errors.InputError: When there is none of this name.
    """
    state = agent.state()
    if id not in queue.ids(agent.run_dir) and state.attempt(id) is None:
        raise refuse("job_state: id", "the name of a proposal", repr(id), "list_jobs names them")
    return _job(agent, state, id)


def list_jobs(agent: Agent, *, last: int) -> dict[str, Any]:
    """The newest proposals, of the flow and of other programs, oldest of them first."""
    state = agent.state()
    jobs = [_job(agent, state, name) for name in queue.ids(agent.run_dir)]
    jobs.sort(key=lambda job: (job["proposed_at"], job["id"]))
    return {"jobs": jobs[-last:], "earlier": max(0, len(jobs) - last)}


def _job(agent: Agent, state: RunState, name: str) -> dict[str, Any]:
    found = item(agent.run_dir, state, name).to_json()
    if name in state.refused:
        found |= {"state": INVALIDATED, "problem": _why_refused(agent, name)}
    attempt = state.attempt(name)
    return found | (_on_cluster(attempt) if attempt is not None else {})


def _on_cluster(attempt: Attempt) -> dict[str, Any]:
    """What the conductor last saw of a job, and the result files that were read."""
    results = [
        {"kind": result.kind, "path": result.copy.removeprefix("results/"), "sha256": result.sha256,
         "size": result.size}
        for result in attempt.results
    ]  # fmt: skip
    return {
        "job_state": attempt.job_state,
        "job_reason": attempt.job_reason,
        "node": attempt.node,
        "submitted_at": attempt.submitted_at,
        "ended_at": attempt.ended_at,
        "results": results,
    }


def _why_refused(agent: Agent, name: str) -> str:
    refusals = (entry for entry in _log(agent) if entry.data.get("event") == "proposal_refused")
    said = next((str(entry.data.get("reason")) for entry in refusals if entry.data.get("id") == name), "")
    return f"refused before anybody was asked: {said}"


def release_state(agent: Agent) -> dict[str, Any]:
    """The inputs, the verdict, and where every stage stands."""
    state = agent.state()
    conductor = folder.holder(agent.run_dir, "conductor")
    stages = [
        {"name": stage.name, "status": str(stage.status), "detail": stage.detail, "started_at": stage.started_at,
         "ended_at": stage.ended_at, "attempts": [_attempt(attempt) for attempt in stage.attempts]}
        for stage in state.stages
    ]  # fmt: skip
    return {
        "run_id": state.run_id,
        "inputs": {name: state.inputs[name] for name in _INPUTS if name in state.inputs},
        "overrides": dict(state.overrides),
        "verdict": None if state.verdict is None else str(state.verdict),
        "verdict_detail": state.verdict_detail,
        "stopped": state.stopped,
        "conducted": conductor is not None,
        "stages": stages,
        "interventions": state.interventions,
        "log": {"entries": state.entries, "head": state.head},
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    names = ("id", "task", "attempt", "job_id", "job_state", "change")
    return {name: getattr(attempt, name) for name in names} | {"outcome": str(attempt.outcome)}


def gate_verdicts(agent: Agent, *, stage: str) -> dict[str, Any]:
    """What the gates decided so far, each check with its measured value and its limit.

    Raises:
        console.release.errors.InputError: When there is no such stage.
    """
    state = agent.state()
    if stage and stage not in STAGES:
        raise refuse("gate_verdicts: stage", f"one of {', '.join(STAGES)}, or nothing for all", repr(stage))
    names = ("name", "id", "failure_class", "detail", "sha256", "time")
    found = [
        {"stage": one.name, **{name: getattr(gate, name) for name in names}, "pass": gate.passed,
         "checks": [dict(check) for check in gate.checks], "files": [dict(file) for file in gate.files]}
        for one in state.stages
        if stage in ("", one.name)
        for gate in one.gates
    ]  # fmt: skip
    return {"gates": found}


def read_log(agent: Agent, *, last: int, before: int) -> dict[str, Any]:
    """The newest entries of the work log, oldest of them first, with whether the whole log is sound."""
    view = _log(agent)
    entries = [entry for entry in view if before == 0 or entry.seq < before]
    chosen: list[dict[str, Any]] = []
    size = 0
    for entry in reversed(entries[-last:]):
        shown = entry.to_json()
        del shown["prev"]  # the documented keys; the chain is checked here, not by the reader
        size += len(json.dumps(shown))
        if chosen and size > MAX_LOG_BYTES:
            break
        chosen.append(shown)
    sound = {"sound": not view.problem, "problem": view.problem}
    return {"entries": chosen[::-1], "earlier": len(entries) - len(chosen), **sound}


def _log(agent: Agent) -> LogView:
    """The whole log, checked; it is read in parts, the first time."""
    view = agent.log.poll()
    while view.more:
        view = agent.log.poll()
    return view
