"""A fleet line by line and as data: for pipes, screen readers and other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from console.fleet.listing import Wish, rows
from console.fleet.reading import Fleet
from console.fleet.release import Release, word
from console.safe_text import safe
from console.widgets.figures import duration
from console.widgets.status import Status


def lines(fleet: Fleet, now: datetime, words: str = "") -> Iterator[str]:
    """One line for each release, the most pressing first; each stands for itself."""
    yield from (f"Problem: {safe(text)}" for text in fleet.problems)
    for release, found in _judged(fleet, now, words):
        yield _line(release, found, now)


def _line(release: Release, found: Status, now: datetime) -> str:
    held = "" if found.seconds is None else f" for {duration(found.seconds)}"
    parts = [f"{safe(release.name)}: {word(found)}{held}", safe(found.text)]
    if release.snapshot.state is not None:
        run, attempt = release.snapshot.run, release.attempt
        where = f"{release.cluster or 'cluster not known'}{f', account {release.account}' if release.account else ''}"
        parts += [f"on {safe(where)}", f"stage {safe(run.current.name)}" if run.verdict is None else ""]
        parts += [f"attempt {safe(attempt.id)}" if attempt is not None else ""]
        parts += [f"interventions {run.interventions}"]
        parts += [f"cluster time {duration(release.cluster_seconds(now))}, {release.gpu_hours(now):.2f} GPU hours"]
    parts.append(safe(str(release.path)))
    return "; ".join(part for part in parts if part)


def data(fleet: Fleet, now: datetime, words: str = "") -> dict[str, Any]:
    """The same for programs: times in seconds, None for what is not known."""
    return {
        "schema_version": 1,
        "at": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "problems": list(fleet.problems),
        "releases": [_data(release, found, now) for release, found in _judged(fleet, now, words)],
    }


def _data(release: Release, found: Status, now: datetime) -> dict[str, Any]:
    run, attempt = release.snapshot.run, release.attempt
    ours = release.snapshot.state is not None
    return {
        "path": str(release.path),
        "run_id": run.run_id or None,
        "kind": release.kind.name.lower(),
        "state": word(found),
        "detail": found.text,
        "for_s": None if found.seconds is None else round(found.seconds),
        "verdict": None if run.verdict is None else str(run.verdict),
        "waits_for_you": release.waits_for_you(now),
        "waiting": [item.id for item in release.snapshot.waiting],
        "cluster": release.cluster or None,
        "account": release.account or None,
        "stage": run.current.name if ours else None,
        "attempt": attempt.id if attempt is not None else None,
        "interventions": run.interventions if ours else None,
        "cluster_s": round(release.cluster_seconds(now)) if ours else None,
        "gpu_hours": round(release.gpu_hours(now), 4) if ours else None,
    }


def _judged(fleet: Fleet, now: datetime, words: str) -> Iterable[tuple[Release, Status]]:
    for row in rows(fleet.releases, Wish(words), now):
        if row.release is not None and row.status is not None:
            yield row.release, row.status
