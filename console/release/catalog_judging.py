"""Which files a gate of the catalog judges: the measurement of an attempt, those that it repeats, and the catalog."""

from __future__ import annotations

from pathlib import Path

from console.release import judging
from console.release.state import Attempt, RunState
from console.release.thresholds import CATALOG, CATALOG_NAME, MEASURED_BY
from console.release.triage import MEASURE_AGAIN, RETRY

ONE_MEASUREMENT = 2
"""Number of files where nothing is repeated: the measurement and the catalog."""


def files(run_dir: Path, state: RunState, attempt: Attempt, gate: str) -> dict[str, bytes | None]:
    """Bytes by the gate's own kinds; None for a file that should be there and is not.

    Where the catalog wants several measurements, those before count as long as nothing was decided over them.
    """
    stage = state.stage(attempt.stage)
    same = [item for item in stage.attempts if item.task == attempt.task]
    before = [item for item in same[: same.index(attempt)] if _is_repeated(state, item, gate)]
    kind = MEASURED_BY[gate]
    found: dict[str, bytes | None] = {}
    for number, item in enumerate((*before, attempt), start=1):
        name = gate if number == 1 else f"{gate}_{number}"
        found[name] = judging.load_kept(run_dir, item.results, (kind,))[kind]
    try:
        found[CATALOG] = (run_dir / CATALOG_NAME).read_bytes()
    except OSError:
        found[CATALOG] = None
    return found


def _is_repeated(state: RunState, attempt: Attempt, gate: str) -> bool:
    """Whether an attempt's measurement was good, but the catalog wants more of them before it decides."""
    stage = state.stage(attempt.stage)
    record, decided = stage.gate(gate, attempt.id), stage.triage_of(attempt.id)
    return (
        record is not None and bool(record.facts.get(MEASURE_AGAIN)) and decided is not None and decided.step == RETRY
    )
