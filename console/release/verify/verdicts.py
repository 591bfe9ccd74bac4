"""The verdicts again: every gate over the kept bytes, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.release import expectations
from console.release.canonical import canonical, sha256
from console.release.journal import Entry
from console.release.state import ReleaseVerdict, RunState, Stage, StageStatus
from console.release.thresholds import CATALOG_NAME, named
from console.release.triage import RULES
from console.release.verify.facts import Fact, Facts, not_checked, ok, read, told, wrong
from console.release.verify.folder import _files
from gates.registry import GATES, run
from gates.verdict import FailureClass

NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "stage_target": (("target",),),
    "train": (("train", "export"), ("smoke",)),
    "freeze": (("freeze",),),
    "bench": (("bench",), ("correctness",)),
}
"""For each stage the gates of which one of each group must have passed before the stage can have."""


def check_gates(run_dir: Path, entries: list[Entry]) -> Facts:
    """Run every gate of the log again, over the bytes that it read."""
    kept: dict[str, bytes] = {}
    for path in (*_files(run_dir / "results"), run_dir / CATALOG_NAME):
        data = read(path)
        if data is not None:
            kept[sha256(data)] = data
    for entry in entries:
        if entry.data["event"] == "gate":
            yield _again(entry, kept)


def _again(entry: Entry, kept: Mapping[str, bytes]) -> Fact:
    data = entry.data
    about = f"gate {data['gate']} over {data['id']}"
    if data["gate"] not in GATES or "expected" not in data:
        return not_checked(about, "this version knows no such gate, or the log does not say what it expected")
    files: dict[str, bytes | None] = dict.fromkeys(_kinds(entry))
    for file in data["files"]:
        if file["sha256"] not in kept:
            return wrong(about, f"the bytes that it read ({file['kind']}, SHA-256 {file['sha256']}) are not kept")
        files[file["kind"]] = kept[file["sha256"]]
    record = run(data["gate"], named(data["gate"], files), data["expected"]).to_json()
    for key in ("pass", "failure_class", "detail", "checks", "facts"):
        if canonical_or_none(record[key]) != canonical_or_none(data[key]):
            return wrong(about, f"{key}: the log says {_short(data[key])}, the gate says {_short(record[key])}")
    word = "GO" if data["pass"] else f"NO-GO ({data['failure_class']})"
    return ok(about, f"{word} again, with the same {len(data['checks'])} checks")


def _kinds(entry: Entry) -> tuple[str, ...]:
    """The kinds of files that a gate was given; where a kind has no digest there was no file."""
    gate, stage = str(entry.data["gate"]), entry.stage
    try:
        return expectations.kinds(stage, gate)
    except (StopIteration, KeyError):
        return tuple(file["kind"] for file in entry.data["files"])


def canonical_or_none(value: Any) -> bytes | None:
    """A JSON value's canonical bytes; floats compare by their shortest form."""
    try:
        return canonical(_exact(value))
    except (TypeError, ValueError):
        return None


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return f"float {value!r}"
    if isinstance(value, Mapping):
        return {str(key): _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_verdict(state: RunState) -> Facts:
    """The stages' ends and the verdict follow from the gates."""
    for stage in state.stages:
        if stage.status is StageStatus.PASSED and stage.name in NEEDED:
            lacking = _lacking(stage, _needed(stage.name, state))
            wanted = f"expected a passing gate before the stage passed, found none of: {', '.join(lacking)}"
            yield told(not lacking, f"stage {stage.name}", "its gates passed", wanted)
    if state.verdict is None:
        yield not_checked("verdict", "the release has none yet")
    elif state.verdict is ReleaseVerdict.DRAFTER_READY:
        left = [stage.name for stage in state.stages if stage.status is not StageStatus.PASSED]
        yield told(
            not left, "verdict", "DRAFTER_READY: every stage passed", f"stages that did not pass: {', '.join(left)}"
        )
    else:
        yield _failure(state)


def _needed(stage: str, state: RunState) -> tuple[tuple[str, ...], ...]:
    """The groups of gates of a stage, with those that the catalog of this release asks for."""
    asked = str(state.inputs.get("catalog_gates", "")).split(", ") if stage == "bench" else []
    return (*NEEDED[stage], *((gate,) for gate in asked if gate))


def _lacking(stage: Stage, needed: tuple[tuple[str, ...], ...]) -> list[str]:
    """Groups of gates of which none passed over the newest attempt of its task, or over what had no job."""
    newest = {attempt.task: attempt.id for attempt in stage.attempts}.values()
    known = {attempt.id for attempt in stage.attempts}
    passed = {gate.name for gate in stage.gates if gate.passed and (gate.id in newest or gate.id not in known)}
    return [" or ".join(group) for group in needed if not passed & set(group)]


def _failure(state: RunState) -> Fact:
    """A bad verdict rests on a failure of its class, in a stage that failed."""
    failed = [stage for stage in state.stages if stage.status is StageStatus.FAILED]
    classes = {item.failure_class for stage in failed for item in stage.triage}
    try:
        meant = RULES[FailureClass(state.failure_class)].verdict
    except ValueError:
        return wrong("verdict", f"expected a failure class, found {state.failure_class!r}")
    if state.failure_class not in classes:
        return wrong("verdict", f"{state.verdict} for {state.failure_class}, but no failed stage has that failure")
    text = f"{state.verdict} follows from {state.failure_class} in stage {failed[0].name}"
    return told(meant == state.verdict, "verdict", text, f"{state.failure_class} means {meant}, found {state.verdict}")
