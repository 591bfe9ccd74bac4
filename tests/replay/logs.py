"""Logs of many entries, written in the form of the journal without its cost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from console.release.journal import GENESIS, LOG_NAME, PREAMBLE, Kind, make_entry, render

START = datetime(2026, 8, 12, 9, 30, 11, tzinfo=UTC)


def steps(
    count: int, seed: int = 1, *, watching: float = 0.9, jobs: int = 200
) -> Iterator[tuple[str, str, Kind, str, dict[str, Any]]]:
    """Entries of a long run: stage, actor, kind, text, data.

    Args:
        count: How many.
        seed: Which.
        watching: Share of entries that only say how a job was seen, or that the fold does not read at all.
        jobs: At most so many attempts.
    """
    dice = random.Random(seed)
    names: list[str] = []
    yield "", "operator:alice", Kind.ACTION, "Release of a drafter", {
        "event": "run_started", "run_id": "long", "inputs": {"target": "demo/tiny"}, "overrides": {}}  # fmt: skip
    made = 1
    stages = ("train", "bench", "stage_target")
    while made < count:
        made += 1
        stage = dice.choice(stages)
        name = dice.choice(names[-12:]) if names else ""
        if name and dice.random() < watching:
            if dice.random() < 0.9:
                data = {"event": "job_seen", "id": name, "state": dice.choice(["RUNNING", "PENDING"]), "reason": "",
                        "node": f"node{dice.randrange(40):02d}", "ended": dice.random() < 0.1}  # fmt: skip
                yield stage, "conductor", Kind.ACTION, f"Slurm says {data['state']} of {name}", data
            else:
                yield stage, "operator:alice", Kind.HUMAN_INTERVENTION, "Note: look again", {"event": "note"}
            continue
        what = dice.randrange(6)
        if (what == 0 and len(names) < jobs) or not name:
            name = f"{len(names) + 1:03d}-train-1"
            names.append(name)
            yield stage, "conductor", Kind.ACTION, f"Proposed {name}", {
                "event": "job_proposed", "id": name, "digest": f"{made:064x}", "token": f"{made:016x}", "task": "train",
                "attempt": 1, "kind": "sbatch", "summary": "Train it", "change": "", "gpus": 8, "limit_s": 3600,
                "job_dir": f"/srv/{name}", "proposer": "conductor"}  # fmt: skip
        elif what == 1:
            decision = dice.choice(["approved", "approved", "rejected"])
            kind = Kind.ACTION if decision == "approved" else Kind.HUMAN_INTERVENTION
            yield stage, "operator:alice", kind, f"{name} {decision}", {
                "event": "job_decided", "id": name, "decision": decision, "by": "operator:alice",
                "reason": ""}  # fmt: skip
        elif what == 2:
            yield stage, "conductor", Kind.ACTION, f"{name} submitted", {
                "event": "submit_outcome", "id": name, "outcome": dice.choice(["accepted", "refused"]),
                "job_id": str(made), "said": ""}  # fmt: skip
        elif what == 3:
            passed = dice.random() < 0.8
            yield stage, "conductor", Kind.ACTION, f"Gate train over {name}", {
                "event": "gate", "gate": "train", "id": name, "pass": passed, "failure_class": None, "detail": "",
                "sha256": "0" * 64, "files": [], "checks": [{"name": "loss", "event": "odd", "ok": passed}],
                "facts": {}}  # fmt: skip
        elif what == 4:
            yield stage, "conductor", Kind.ACTION, f"Stage {stage} begins", {"event": "stage_started"}
        else:
            yield stage, "conductor", Kind.ACTION, f"Stage {stage} passed", {"event": "stage_passed", "detail": ""}


def write(path: Path, count: int, seed: int = 1, *, watching: float = 0.9, gap: float = 1.0) -> Path:
    """Write a log of `count` entries into a folder, and return the folder."""
    path.mkdir(parents=True, exist_ok=True)
    prev, moment = GENESIS, START
    with open(path / LOG_NAME, "wb") as stream:
        stream.write(PREAMBLE)
        for seq, (stage, actor, kind, text, data) in enumerate(steps(count, seed, watching=watching), 1):
            moment += timedelta(seconds=gap)
            entry = make_entry(seq, moment, kind, actor, stage, text, data, prev)
            prev = entry.hash
            stream.write(render(entry))
    return path
