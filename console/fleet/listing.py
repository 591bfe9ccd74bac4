"""Which rows a list of releases has: filtered, sorted, folded. Pure; nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from console.fleet.release import Release, is_for_you, urgency, word
from console.safe_text import safe
from console.snapshot import LiveJob
from console.widgets.status import Status

COLUMNS = ("state", "release", "cluster", "for", "stage", "attempt", "interventions", "cluster time", "target")
"""Columns by which the list can be sorted, in the order of the key."""

GROUPINGS = ("", "cluster", "state")
"""What the list can be folded by; empty for nothing."""


class Wish(NamedTuple):
    """How the operator wants to see the list.

    Attributes:
        words: What every row must contain.
        column: One of COLUMNS.
        reverse: Whether the order is turned round.
        grouping: One of GROUPINGS.
        folded: Groups of which only the heading is shown.
        jobs: Whether the jobs of each release are shown below it.
    """

    words: str = ""
    column: str = COLUMNS[0]
    reverse: bool = False
    grouping: str = ""
    folded: frozenset[str] = frozenset()
    jobs: bool = False


class Row(NamedTuple):
    """One row: a heading, a release, or a job of one."""

    key: str
    release: Release | None = None
    status: Status | None = None
    job: LiveJob | None = None
    group: str = ""
    size: int = 0
    waiting: int = 0


Judged = tuple[Release, Status]


def text_of(release: Release, found: Status) -> str:
    """What a filter looks into: every word that a row shows, as it is shown."""
    run = release.snapshot.run
    attempt = release.attempt
    parts = (
        release.name, release.path.name, release.cluster, release.account, word(found), found.text,
        run.current.name if release.snapshot.state is not None else "", attempt.id if attempt else "",
        str(run.inputs.get("target", "")), str(run.inputs.get("algorithm", "")),
    )  # fmt: skip
    return safe(" ".join(parts)).lower()


def _stage(release: Release) -> int:
    run = release.snapshot.run
    return run.stages.index(run.current)


_KEYS: Mapping[str, Callable[[Judged, datetime], object]] = {
    "state": lambda item, now: (urgency(word(item[1])), -(item[1].seconds or 0.0)),
    "release": lambda item, now: item[0].name.lower(),
    "cluster": lambda item, now: (item[0].cluster.lower(), item[0].account.lower()),
    "for": lambda item, now: -(item[1].seconds or 0.0),
    "stage": lambda item, now: _stage(item[0]),
    "attempt": lambda item, now: -(item[0].attempt.attempt if item[0].attempt else 0),
    "interventions": lambda item, now: -item[0].snapshot.run.interventions,
    "cluster time": lambda item, now: -item[0].cluster_seconds(now),
    "target": lambda item, now: str(item[0].snapshot.run.inputs.get("target", "")).lower(),
}


def rows(releases: Sequence[Release], wish: Wish, now: datetime) -> list[Row]:
    """The rows of a list.

    Args:
        releases: All releases.
        wish: How they are to be shown.
        now: The time.
    """
    found = [(release, release.status(now)) for release in releases]
    wanted = wish.words.lower().split()
    if wanted:
        found = [item for item in found if all(part in text_of(*item) for part in wanted)]
    found.sort(key=lambda item: item[0].key)
    key = _KEYS[wish.column]
    found.sort(key=lambda item: key(item, now), reverse=wish.reverse)  # type: ignore[arg-type,return-value]
    if not wish.grouping:
        return [row for item in found for row in _of(item, wish)]
    groups: dict[str, list[Judged]] = {}
    for item in found:
        groups.setdefault(_group(item, wish.grouping), []).append(item)
    shown = list[Row]()
    for name in sorted(groups, key=lambda name: (urgency(name), name)):
        heading = f"group:{name}"
        waiting = sum(1 for item in groups[name] if is_for_you(item[1]))
        shown.append(Row(heading, group=name, size=len(groups[name]), waiting=waiting))
        if name not in wish.folded:
            shown += [row for item in groups[name] for row in _of(item, wish)]
    return shown


def _group(item: Judged, grouping: str) -> str:
    return word(item[1]) if grouping == "state" else item[0].cluster or "cluster not known"


def _of(item: Judged, wish: Wish) -> list[Row]:
    release, found = item
    own = [Row(release.key, release, found)]
    if wish.jobs:
        # The key of a job's row leads to the release: enter opens it.
        own += [Row(f"{release.key}\n{job.id}", release, found, job) for job in release.snapshot.live.jobs]
    return own
