"""What a run is doing in one line: a verdict, or what it waits for and since when. Nothing here imports Textual."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from console.release.state import ReleaseVerdict
from console.snapshot import Snapshot
from console.widgets.figures import since


class Status(NamedTuple):
    """Where a run is.

    Attributes:
        word: A few words in capitals.
        style: Name of a chip style.
        text: What it is about; foreign text.
        seconds: For how long it has been so; None where that says nothing.
    """

    word: str
    style: str
    text: str
    seconds: float | None = None


_VERDICTS = {
    ReleaseVerdict.DRAFTER_READY: ("✓ DRAFTER_READY", "chip-passed"),
    ReleaseVerdict.INFEASIBLE: ("✗ INFEASIBLE", "chip-failed"),
    ReleaseVerdict.ANOMALOUS: ("▲ ANOMALOUS", "chip-unknown"),
}


def status(snapshot: Snapshot, now: datetime) -> Status:
    """Where a run is, the most pressing first."""
    run, live = snapshot.run, snapshot.live
    if run.verdict is not None:
        word, style = _VERDICTS[run.verdict]
        return Status(word, style, run.verdict_detail)
    if snapshot.waiting:
        first = snapshot.waiting[0]
        more = f" (and {len(snapshot.waiting) - 1} more)" if len(snapshot.waiting) > 1 else ""
        text = f"approve or reject {first.id}{more}: {first.summary}"
        return Status("◆ WAITS FOR YOU", "chip-waiting", text, since(first.proposed_at, now))
    if run.stopped:
        return Status("■ STOPPED", "chip-failed", run.stopped)
    if snapshot.feed_is_dead(now):
        nobody = snapshot.conductor is None
        word = "■ NOT CONDUCTED" if nobody else "? NO SIGN OF LIFE"
        text = "nothing goes on" if nobody else "the conductor has said nothing new"
        return Status(word, "chip-unknown", text, live.age(now))
    if live.waiting_for == "operator":
        return Status("◆ WAITS FOR YOU", "chip-waiting", live.waiting_what, since(live.waiting_since, now))
    if live.waiting_for == "cluster":
        return Status("▸ WAITS FOR THE CLUSTER", "chip-idle", live.waiting_what, since(live.waiting_since, now))
    return Status("▸ AT WORK", "chip-idle", live.doing)
