"""What the outside is told of a release: three kinds of notices, each a small JSON object with a fixed schema.

A notice says that something waits or happened, never how to answer: no link, no full digest, no words that came from a
cluster or from another program, no path. Whoever wants to know more opens the console.
"""

from __future__ import annotations

from typing import Any

from console.release.job import CODE_LENGTH
from console.release.journal import Entry
from console.release.state import ASKED, RunState

SCHEMA, VERSION = "gonogo-notice", 1

WAITING, GATE_FAILED, VERDICT = "waiting_for_approval", "gate_failed", "verdict"


def notice(entry: Entry, state: RunState, *, by_policy: bool) -> dict[str, Any] | None:
    """The notice that a log entry is worth; None for most.

    Args:
        entry: The entry.
        state: The release after it.
        by_policy: Whether a policy decides on the jobs of the flow, so that these wait for nobody.
    """
    data = entry.data
    match data.get("event"):
        case "job_proposed" if entry.stage == ASKED or not by_policy:
            return _waiting(entry, state)
        case "outside_policy":
            return _waiting(entry, state)
        case "gate" if not data["pass"]:
            more = {
                "stage": entry.stage,
                "gate": data["gate"],
                "id": data["id"],
                "failure_class": data["failure_class"],
            }
            return _notice(entry, state, GATE_FAILED, f"gate {data['gate']} failed over {data['id']}", more)
        case "verdict":
            more = {"verdict": data["verdict"], "failure_class": data["failure_class"] or None}
            return _notice(entry, state, VERDICT, f"verdict {data['verdict']}", more)
    return None


def _waiting(entry: Entry, state: RunState) -> dict[str, Any]:
    name, code = str(entry.data["id"]), str(entry.data["digest"])[:CODE_LENGTH]
    waiting = sum(1 for item in state.attempts if item.outcome == "proposed")
    more = {"stage": entry.stage, "id": name, "code": code, "waiting": waiting}
    return _notice(entry, state, WAITING, f"{name} waits for approval ({code})", more)


def _notice(entry: Entry, state: RunState, event: str, text: str, more: dict[str, Any]) -> dict[str, Any]:
    common = {
        "schema": SCHEMA,
        "version": VERSION,
        "event": event,
        "run_id": state.run_id,
        "cluster": str(state.inputs.get("cluster", "")),
        "seq": entry.seq,
        "time": entry.time,
        "text": f"{state.run_id}: {text}",
    }
    return {**common, **more}
