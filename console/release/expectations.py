"""What each gate is told to expect: the token of the attempt, and what the release itself asked for."""

from __future__ import annotations

import json
from typing import Any

from console.release.proposing import GATES_BY_STAGE, Release, export_dir, values_for
from console.release.state import Attempt, RunState
from console.release.thresholds import CATALOG, MEASURED_BY


def kinds(stage: str, gate: str) -> tuple[str, ...]:
    """The kinds of files that a gate reads in a stage."""
    if gate in MEASURED_BY:
        return (gate, CATALOG)
    return tuple(sorted(next(needs for name, needs in GATES_BY_STAGE[stage] if name == gate)))


def target(release: Release) -> dict[str, Any]:
    """For a target that was found on the cluster: no job wrote the check, so there is no token."""
    return {"path": release.target_path, "revision": release.spec.revision or ""}


def expected(release: Release, state: RunState, attempt: Attempt, gate: str) -> dict[str, Any]:
    """What a gate over the results of one attempt must find in them."""
    values = values_for(release, state, attempt.stage, attempt.task)
    common: dict[str, Any] = {"token": attempt.token}
    if gate == "target":
        return {**common, **target(release)}
    if gate in ("train", "export"):
        return {**common, "algorithm": release.spec.algorithm, "draft_tokens": values.get("draft_tokens")}
    if gate == "smoke":
        drafter = export_dir(release, state)
        return {**common, "drafter": drafter, "draft_tokens": values.get("draft_tokens")}
    if gate in ("bench", "correctness"):
        frozen = state.freeze
        return {
            **common,
            "drafter": frozen.get("destination"),
            "manifest_sha256": frozen.get("manifest_sha256"),
            "draft_tokens": values.get("draft_tokens"),
        }
    if gate == "freeze":
        return {**common, **freeze(release, state)}
    if gate in MEASURED_BY and release.thresholds is not None:
        return {**common, **release.thresholds.expected()}
    return common


def freeze(release: Release, state: RunState) -> dict[str, Any]:
    """What a freeze must have read and written."""
    return {"source": export_dir(release, state), "destination": release.drafter_path}


def export_bytes(data: bytes | None) -> int:
    """The size of an export that passed its gate, over all its files."""
    return sum(int(file["size"]) for file in json.loads(data or b"{}").get("files", []))


def frozen(data: bytes | None) -> dict[str, Any]:
    """What a freeze result that passed its gate says about the frozen drafter."""
    result = json.loads(data or b"{}")
    return {key: result[key] for key in ("destination", "manifest_sha256", "bytes", "files")}
