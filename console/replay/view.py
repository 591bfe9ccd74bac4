"""Header and time line of a replay as rows. Nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from console.release.state import Outcome
from console.replay.marks import APPROVAL, FAILURE, GATE, INTERVENTION
from console.replay.moment import READING
from console.replay.player import Player
from console.replay.recording import FOREIGN, Recording
from console.snapshot import Snapshot
from console.widgets.figures import between, duration, since
from console.widgets.ink import Line, Paragraph, Span, cells, fit, foreign, lay_out, pad
from console.widgets.status import status
from console.widgets.words import HUMAN_SIGN

SIGNS = {
    FAILURE: Span("✗", "failed"),
    INTERVENTION: Span(HUMAN_SIGN, "human"),
    APPROVAL: Span("◆", "waiting"),
    GATE: Span("✓", "passed"),
}
"""How marks stand on the time line; where several fall into one cell, the first of these is shown."""

_GAP = Span("  ")


def header(recording: Recording, snapshot: Snapshot, now: datetime, width: int) -> list[Line]:
    """Three lines on top, and one for each thing that must be known about the log."""
    rows = [_run_line(recording, snapshot, now, width), _life_line(snapshot, now, width)]
    rows.append(_status_line(snapshot, now, width))
    for text, style in notices(recording, snapshot):
        rows += lay_out([Paragraph((foreign(text, style),))], width)[:2]
    return rows


def _run_line(recording: Recording, snapshot: Snapshot, now: datetime, width: int) -> Line:
    run = snapshot.run
    name = run.run_id or recording.path.parent.name or recording.path.name
    cluster = run.inputs.get("cluster") if isinstance(run.inputs, dict) else None
    left: Line = (
        foreign(name, "strong"),
        _GAP,
        foreign(cluster or "cluster not recorded", "title" if cluster else "muted"),
    )
    login = run.inputs.get("login") or run.setup.get("host")
    if login:
        left = (*left, Span(" "), foreign(login))
    took = duration(between(run.started_at, "", now))
    return _sides(left, (Span(" REPLAY ", "chip-unknown"), _GAP, Span("for ", "muted"), Span(took)), width)


def _life_line(snapshot: Snapshot, now: datetime, width: int) -> Line:
    jobs = sum(1 for item in snapshot.run.attempts if item.outcome is Outcome.SUBMITTED and not item.ended_at)
    human = snapshot.run.interventions
    words = "intervention" if human == 1 else "interventions"
    line: Line = (
        Span(f"{now:%Y-%m-%d %H:%M:%S} UTC", "strong"),
        _GAP,
        Span(f"{HUMAN_SIGN} {human} {words}", "human" if human else "muted", "log"),
        _GAP,
        Span("jobs ", "muted"),
        Span(_unsaid(snapshot) or str(jobs), "muted" if snapshot.unrecorded else "text"),
        _GAP,
        Span("link, clock, conductor not recorded", "muted"),
    )
    return fit(line, width)


def _unsaid(snapshot: Snapshot) -> str:
    """Why nothing is said of jobs; empty where something is."""
    if not snapshot.unrecorded:
        return ""
    return READING if READING in snapshot.unrecorded.values() else "not recorded"


def _status_line(snapshot: Snapshot, now: datetime, width: int) -> Line:
    run = snapshot.run
    if run.verdict is not None:
        found = status(snapshot, now)
        return fit((Span(f" {found.word} ", found.style), Span(" "), foreign(found.text)), width)
    if snapshot.waiting:
        first = snapshot.waiting[0]
        waited = duration(since(first.proposed_at, now))
        more = f" (and {len(snapshot.waiting) - 1} more)" if len(snapshot.waiting) > 1 else ""
        left = (
            Span(" ◆ WAITED FOR A DECISION ", "chip-waiting"),
            Span(" "),
            foreign(f"{first.id}{more}: {first.summary}"),
        )
        return _sides(left, (Span("for ", "muted"), Span(waited, "strong")), width)
    if run.stopped:
        return fit((Span(" ■ STOPPED ", "chip-failed"), Span(" "), foreign(run.stopped)), width)
    text = snapshot.log[-1].text if len(snapshot.log) else ""
    return fit((Span(" ▸ LAST ENTRY ", "chip-idle"), Span(" "), foreign(text)), width)


def notices(recording: Recording, snapshot: Snapshot) -> list[tuple[str, str]]:
    """What must be known about the log: text and style, the gravest first."""
    found = []
    if recording.problem:
        found.append((f"✗ CHAIN BROKEN: {recording.problem}; what follows is shown as it stands there", "failed"))
    if recording.unplaced:
        count = len(recording.unplaced)
        found.append(
            (f"▲ {count} {'line' if count == 1 else 'lines'} of the log could not be placed: press u", "waiting")
        )
    if recording.form == FOREIGN:
        extra = f", {len(recording.notes)} assumed (press u)" if recording.notes else ""
        found.append((f"the log is of another program; only what its words say is known{extra}", "muted"))
    return found


def _sides(left: Line, right: Line, width: int) -> Line:
    room = max(0, width - cells(right) - 1)
    return fit((*pad(fit(left, room), room), Span(" "), *right), width)


class TimeLine:
    """The rows of the time line; where the marks stand is found once for each width."""

    def __init__(self, recording: Recording, player: Player) -> None:
        self._recording = recording
        self._player = player
        self._known: tuple[int, Line] = (0, ())

    def rows(self, width: int) -> list[Line]:
        """Marks, the bar, and where we are in words."""
        if self._known[0] != width:
            self._known = (width, self._marks(width))
        return [self._known[1], self._bar(width), self._words(width)]

    def cell(self, fraction: float, width: int) -> int:
        """The cell of a part of the time line."""
        return min(width - 1, max(0, round(fraction * (width - 1))))

    def _marks(self, width: int) -> Line:
        found: dict[int, Span] = {}
        whole = self._recording.seconds or 1.0
        times, begin, last = self._recording.times, self._recording.begin, width - 1
        for kind in reversed(SIGNS):
            sign = SIGNS[kind]
            for position in _spread(self._recording.marks.of(kind)):
                found[min(last, round((times[position] - begin) / whole * last))] = sign
        return tuple(found.get(cell, Span(" ")) for cell in range(width))

    def _bar(self, width: int) -> Line:
        here = self.cell(self._player.fraction, width)
        return (Span("━" * here, "title"), Span("●", "strong"), Span("─" * (width - here - 1), "rule"))

    def _words(self, width: int) -> Line:
        player, recording = self._player, self._recording
        sign = "▶" if player.playing else "❚❚"
        here = datetime.fromtimestamp(player.now, UTC)
        left: Line = (
            Span(f"{sign} ×{player.speed:g}", "strong"),
            Span(f"  {duration(player.second)} of {duration(recording.seconds)}"),
            Span(f"  entry {player.count} of {len(recording)}"),
        )
        legend: list[Span] = []
        for kind, sign_span in SIGNS.items():
            done, total = recording.marks.before(kind, player.count), len(recording.marks.of(kind))
            legend += [_GAP, sign_span, Span(f" {kind} {done}/{total}", "muted")]
        stamp: Line = (_GAP, Span(f"{here:%H:%M:%S}", "muted"))
        for right in ((*legend, *stamp), tuple(legend), stamp):
            if cells(left) + cells(right) + 1 <= width:
                return _sides(left, right, width)
        return fit(left, width)


def _spread(positions: Sequence[int], most: int = 20_000) -> Sequence[int]:
    """At most so many of some positions, evenly chosen: more than that no time line can show apart."""
    step = max(1, -(-len(positions) // most))
    return positions[::step]
