"""Result files in, verdicts out: keeps the exact bytes that a gate reads, and runs the gates over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from console.release import effects
from console.release.canonical import sha256
from console.release.state import Attempt, ResultFile
from console.release.thresholds import named
from console.release.writer import RunWriter
from gates.registry import run as run_gate
from gates.verdict import Verdict

MAX_RESULT_BYTES = 64 * 1024 * 1024
"""A result file larger than this is not one."""


def keep(writer: RunWriter, attempt: Attempt, kind: str, path: str, data: bytes) -> None:
    """Store the exact bytes of a result file in `results/` and log their digest."""
    copy = f"results/{attempt.id}/{kind}.json"
    keep_bytes(writer.run_dir, copy, data)
    digest = sha256(data)
    writer.record(
        "result_read",
        f"Read {kind} of {attempt.id}: {len(data)} bytes, SHA-256 {digest}",
        stage=attempt.stage,
        id=attempt.id,
        kind=kind,
        path=path,
        sha256=digest,
        size=len(data),
        copy=copy,
    )


def keep_bytes(run_dir: Path, copy: str, data: bytes) -> None:
    """Write a copy below `results/`; the same bytes twice are fine, other bytes replace what was never logged."""
    target = run_dir / copy
    if not target.parent.exists():
        target.parent.mkdir(parents=True)
        effects.sync_folder(target.parent.parent)
    effects.replace(target, data, copy)
    os.chmod(target, 0o400)


def load_kept(run_dir: Path, results: tuple[ResultFile, ...], kinds: tuple[str, ...]) -> dict[str, bytes | None]:
    """The kept bytes of some kinds; None where there are none, or where they are not the logged bytes any more."""
    found: dict[str, bytes | None] = dict.fromkeys(kinds)
    for result in results:
        if result.kind in found:
            try:
                data = (run_dir / result.copy).read_bytes()
            except OSError:
                continue
            found[result.kind] = data if sha256(data) == result.sha256 else None
    return found


def judge(
    writer: RunWriter,
    stage: str,
    gate: str,
    attempt_id: str,
    files: Mapping[str, bytes | None],
    expected: Mapping[str, Any],
    learn: Callable[[], Mapping[str, Any]] = dict,
) -> Verdict:
    """Run one gate over the bytes of its files, and log what it measured and decided.

    Args:
        writer: The log.
        stage: Stage of the gate.
        gate: Its name.
        attempt_id: What it judges.
        files: Bytes by kind.
        expected: What it must find.
        learn: What later stages need to know where it passed ("freeze", "target"). It stands in the same entry, so
            that no process can die between the two.
    """
    verdict = run_gate(gate, named(gate, files), expected)
    digests = [{"kind": kind, "sha256": sha256(data)} for kind, data in files.items() if data is not None]
    record = verdict.to_json()
    word = "GO" if verdict.passed else f"NO-GO ({verdict.failure_class})"
    writer.record(
        "gate",
        f"Gate {gate} over {attempt_id}: {word}: {verdict.detail}",
        stage=stage,
        id=attempt_id,
        gate=gate,
        files=digests,
        sha256=digests[0]["sha256"] if digests else "",
        expected=dict(expected),
        learned=dict(learn()) if verdict.passed else {},
        **{key: record[key] for key in ("pass", "failure_class", "detail", "checks", "facts")},
    )
    return verdict
