"""A root with every kind of folder in it: releases at several stages, on two clusters, a foreign run, a broken one."""

from __future__ import annotations

import shutil
from pathlib import Path

from console.release.folder import STATE_NAME
from tests.console import runs
from tests.console.runs import Run

NOW = runs.START.replace(hour=10)


def root(place: Path) -> dict[str, Run]:
    """Make it."""
    place.mkdir(parents=True, exist_ok=True)
    made = {name: build(place / name) for name, build in runs.BUILDERS.items() if name != "failed"}
    foreign = place / "theirs"
    foreign.mkdir()
    (foreign / "work_log.md").write_text("# Log\n2026-08-12 09:30 ACTION [setup] looked around\n")
    (foreign / STATE_NAME).write_text('{"run_id": "theirs-1", "verdict": "fine so far"}')
    runs.fresh(place / "broken").close()
    (place / "broken" / STATE_NAME).write_text('{"schema_version"')
    (place / "demo.cluster").mkdir()
    return made


def close(made: dict[str, Run]) -> None:
    """Give the locks of their conductors back."""
    for run in made.values():
        run.close()


def copies(source: Path, place: Path, count: int) -> list[Path]:
    """So many copies of a run folder."""
    place.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copytree(source, place / f"run-{number:03d}")) for number in range(count)]
