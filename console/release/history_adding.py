"""From a run folder to what the history keeps of it: the last word of each gate, from a log whose chain is whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from console.release import folder, history, journal
from console.release.history import HistoryError, Measurement, Release
from console.release.journal import Entry
from console.release.state import RunState, fold


def release_of(run_dir: Path) -> Release:
    """What the history keeps of a release.

    Raises:
        HistoryError: When the release is not closed.
        console.release.folder.FolderError: When this is no run folder.
        console.release.journal.LogError: When its log was changed or cut; then nothing in it counts.
    """
    folder.require_run_folder(run_dir)
    known = folder.read_state(run_dir)
    entries = journal.read_log(run_dir)
    if known is not None:
        journal.check_anchor(entries, known.entries, known.head)
    return summarize(fold(entries), entries, run_dir)


def summarize(state: RunState, entries: Sequence[Entry], run_dir: Path) -> Release:
    """What the history keeps of a state.

    Raises:
        HistoryError: When the release is not closed.
    """
    if state.verdict is None:
        raise HistoryError(f"{run_dir}: the release has no verdict yet; it is added when it is closed")
    return Release(
        run_id=state.run_id,
        head=state.head,
        model=str(state.inputs.get("target", "")),
        drafter=str(state.inputs.get("algorithm", "")),
        draft_tokens=_draft_tokens(entries),
        manifest=str(state.freeze.get("manifest_sha256") or ""),
        cluster=str(state.inputs.get("cluster", "")),
        day=state.updated_at[:10],
        verdict=str(state.verdict),
        why=state.verdict_detail,
        measured=_measured(state),
    )


def _measured(state: RunState) -> tuple[Measurement, ...]:
    """Every number among the facts of each gate's last verdict."""
    last = {gate.name: gate for stage in state.stages for gate in stage.gates}
    return tuple(
        Measurement(gate.name, name, float(value), gate.sha256)
        for gate in last.values()
        for name, value in gate.facts.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )


def _draft_tokens(entries: Sequence[Entry]) -> int | None:
    """What the gates were told to expect; the last one that was told anything."""
    for entry in reversed(entries):
        expected = entry.data.get("expected")
        found = expected.get("draft_tokens") if isinstance(expected, dict) else None
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None


def remember(run_dir: Path, path: Path | None = None) -> str:
    """Add a closed release to the history; what became of it, in words. Never raises: no verdict depends on it.

    Args:
        run_dir: The run folder.
        path: The history; None takes the usual place.
    """
    try:
        where = path or history.default_path()
        release = release_of(run_dir)
        fresh = history.add(where, release)
    except (HistoryError, folder.FolderError, journal.LogError, OSError) as error:
        return f"not added to the history: {error}; try `gonogo history add {run_dir}`"
    return f"{'added to' if fresh else 'is in'} the history {where}"
