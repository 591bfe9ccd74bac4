"""Every approval by a policy: recomputed from the log and the jobs that lie there, in the order of the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from console.release import policing, policy, queue
from console.release.job import JobError
from console.release.journal import Entry
from console.release.policy import POLICY
from console.release.rules import read_time, rules_of
from console.release.state import RunState
from console.release.verify.facts import Fact, Facts, told


def check_policies(run_dir: Path, state: RunState, entries: list[Entry]) -> Facts:
    """Whether each job that no person approved was inside the bounds of a policy that one did, at that moment.

    Args:
        run_dir: The run folder.
        state: What the log says at its end.
        entries: The log.
    """
    rules = rules_of(state.inputs)
    standing: dict[str, Any] = {}
    for entry in entries:
        data = entry.data
        if data["event"] != "job_decided" or data["decision"] != "approved":
            continue
        if data["by"] == POLICY and (rules.bounds or rules.signed):
            yield _one(run_dir, standing, entry)
            takes = data.get("takes") or {}
            for key in ("jobs", "gpu_seconds"):
                standing[key] = standing.get(key, 0) + int(takes.get(key, 0))
        elif data.get("policy"):
            standing = {"id": data["id"], "digest": data["digest"], "since": entry.time, "jobs": 0, "gpu_seconds": 0}
            found = policing.read(run_dir, standing)
            good = not isinstance(found, str) and _same(found, entry)
            text = found if isinstance(found, str) else "the log holds other bounds than the policy"
            yield told(good, f"submissions/{data['id']}", "is the policy that was approved", text)


def _same(found: policy.Policy, entry: Entry) -> bool:
    """Whether the log shows the bounds that the policy has."""
    wanted = policy.limits(found, datetime.fromisoformat(entry.time))
    keys = ("max_jobs", "max_gpu_seconds")
    return all(entry.data["policy"].get(key) == wanted[key] for key in keys)


def _one(run_dir: Path, standing: Mapping[str, Any], entry: Entry) -> Fact:
    about = f"submissions/{entry.data['id']}"
    if not standing.get("id"):
        return told(False, about, "", "it was approved by a policy, and none was approved before")
    try:
        proposal = queue.load(run_dir, str(entry.data["id"]))
        job = proposal.job()
        at = read_time(str((entry.data.get("receipt") or {}).get("time", "")))
    except (queue.QueueError, JobError, ValueError) as error:
        return told(False, about, "", f"whether it was inside the policy cannot be told: {error}")
    found = policing.covered(run_dir, standing, job, at)
    takes = {"policy": standing["id"], "jobs": found.takes.jobs, "gpu_seconds": found.takes.gpu_seconds}
    if found.problem:
        return told(False, about, "", f"approved by policy {standing['id']}, and outside it: {found.problem}")
    logged = entry.data.get("takes") == takes and proposal.digest == entry.data["digest"]
    return told(logged, about, f"approved {found.words}", "the log counts something else for it than it takes")
