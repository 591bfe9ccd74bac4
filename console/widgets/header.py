"""The lines on top of every screen: which run, which cluster and account, is the link alive, what is waited for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from console.release.policy_words import usage
from console.release.state import Outcome
from console.safe_text import safe
from console.settings import Production
from console.snapshot import Snapshot
from console.widgets.figures import age, between, duration, offset
from console.widgets.ink import MORE, Line, Paragraph, Span, cells, fit, foreign, lay_out, pad
from console.widgets.inked import Block
from console.widgets.status import status
from console.widgets.words import HUMAN_SIGN, link_mark

_GAP = Span("  ")


class Conducting(NamedTuple):
    """What this console knows about a conductor of its own.

    Attributes:
        running: Whether it runs inside this console.
        ended: How it ended, in words; empty before.
        failed: Whether it ended with an error instead of an exit status.
    """

    running: bool = False
    ended: str = ""
    failed: bool = False


class Facts(NamedTuple):
    """What the header is drawn from."""

    snapshot: Snapshot
    now: datetime
    run_dir: Path
    read_only_because: str
    conducting: Conducting
    problem: str = ""
    production: Mapping[str, Production] = MappingProxyType({})


class RunHeader(Block):
    """The header. `facts` is set by the screen whenever something changed, and once a second."""

    DEFAULT_CSS = """
    RunHeader { height: auto; padding: 0 1; background: $surface; }
    """

    facts: Facts | None = None

    def take(self, facts: Facts) -> None:
        """Show new facts."""
        rows = 0 if self.facts is None else len(self.lines(self.content_size.width))
        self.facts = facts
        self.refresh(layout=rows != len(self.lines(self.content_size.width)))

    def lines(self, width: int) -> list[Line]:
        """Three lines, and one for each thing that needs attention."""
        facts = self.facts
        if facts is None:
            return [(), (), ()]
        rows = [_run_line(facts, width), _life_line(facts, width), _status_line(facts, width)]
        return rows + [row for notice in notices(facts) for row in _at_most(lay_out([notice], width), width)]


_NOTICE_ROWS = 2
"""So many rows a notice may have; the board below needs the others."""


def _at_most(rows: list[Line], width: int) -> list[Line]:
    """The first rows of a notice; one that goes on ends with a mark."""
    if len(rows) <= _NOTICE_ROWS:
        return rows
    last = fit(rows[_NOTICE_ROWS - 1], width - 1)
    return [*rows[: _NOTICE_ROWS - 1], (*last, Span(MORE, "muted"))]


def _run_line(facts: Facts, width: int) -> Line:
    run = facts.snapshot.run
    login = run.inputs.get("login") or facts.snapshot.live.link.host or run.setup.get("host") or "host not known yet"
    account = run.setup.get("account")
    left: Line = (
        foreign(run.run_id or facts.run_dir.name, "strong"),
        _GAP,
        *_cluster(facts),
        Span(" "),
        foreign(login),
        *((Span(" account ", "muted"), foreign(account)) if account else ()),
    )
    seconds = between(run.started_at, run.updated_at if run.verdict is not None else "", facts.now)
    right: Line = (Span("took " if run.verdict is not None else "for ", "muted"), Span(duration(seconds), "text"))
    if facts.read_only_because:
        right = (Span(" READ-ONLY ", "chip-idle"), _GAP, *right)
    return _sides(left, right, width)


def _cluster(facts: Facts) -> Line:
    """The cluster; one that is marked stands in its colour, behind its mark."""
    name = str(facts.snapshot.run.inputs.get("cluster") or "")
    marked = facts.production.get(name)
    if marked is None:
        return (foreign(name or "cluster not known yet", "title"),)
    label = f" {safe(marked.label)} · {foreign(name).text} "
    return (Span(label, f"chip-{marked.colour}"),)


def _life_line(facts: Facts, width: int) -> Line:
    """Link, clocks, conductor, jobs, files, interventions; what matters least goes first when it is narrow."""
    snapshot = facts.snapshot
    live = snapshot.live
    link = _link(snapshot, facts.now)
    human = snapshot.run.interventions
    parts: list[tuple[int, Line]] = [
        (0, link),
        (2, (Span("clock ", "muted"), Span(offset(live.clock_offset_s)))),
        (0, conductor_words(facts)),
        (3, (Span("jobs ", "muted"), Span(_jobs(snapshot)))),
        (4, (Span("files ", "muted"), Span(_files(snapshot)))),
        (0, _interventions(human)),
    ]
    if snapshot.run.policy:
        parts.insert(-1, (1, (Span("policy ", "muted"), foreign(usage(snapshot.run.policy)))))
    while len(parts) > 3 and sum(cells(part) + 2 for _, part in parts) - 2 > width:
        parts.remove(max(parts, key=lambda part: part[0]))
    line: list[Span] = []
    for _, part in parts:
        line += [*([_GAP] if line else []), *part]
    return fit(tuple(line), width)


def _link(snapshot: Snapshot, now: datetime) -> Line:
    """State of the connection and the age of the last sign of life."""
    if snapshot.run.verdict is not None and snapshot.conductor is None:
        return (Span("· link closed", "muted"),)
    live, dead = snapshot.live, snapshot.feed_is_dead(now)
    mark = link_mark(live.link, dead)
    since = live.age(now) if dead else live.link.age_s
    seen = "" if since is None else f", last word {age(since)} ago" if dead else f" {age(since)}"
    return (Span(f"{mark.sign} link ", mark.style), foreign(mark.word, mark.style), Span(seen, "muted"))


def _interventions(count: int) -> Line:
    words = "intervention" if count == 1 else "interventions"
    style = "human" if count else "muted"
    return (Span(f"{HUMAN_SIGN} {count} {words}", style, "log"),)


def _jobs(snapshot: Snapshot) -> str:
    running = sum(1 for item in snapshot.run.attempts if item.outcome is Outcome.SUBMITTED and not item.ended_at)
    return str(running)


def _files(snapshot: Snapshot) -> str:
    files = snapshot.live.files
    return f"{sum(1 for item in files if item.presence == 'seen')}/{len(files)}"


def conductor_words(facts: Facts) -> Line:
    """Who conducts the run."""
    if facts.conducting.running:
        return (Span("▸ conductor here", "running"),)
    if facts.snapshot.conductor is not None:
        return (Span("▸ conductor runs", "running"),)
    if facts.snapshot.run.verdict is not None:
        return (Span("■ run closed", "muted"),)
    if facts.conducting.ended:
        return (Span("■ conductor ended", "muted"),)
    return (Span("■ no conductor", "muted"),)


def _status_line(facts: Facts, width: int) -> Line:
    found = status(facts.snapshot, facts.now)
    chip = Span(f" {found.word} ", found.style, "waiting" if facts.snapshot.waiting else "")
    right: Line = () if found.seconds is None else (Span("for ", "muted"), Span(duration(found.seconds), "strong"))
    return _sides((chip, Span(" "), foreign(found.text)), right, width)


def _sides(left: Line, right: Line, width: int) -> Line:
    """Two parts of a line, one at each end; the left one gives way."""
    if not right:
        return fit(left, width)
    room = width - cells(right) - 1
    return (*pad(fit(left, max(0, room)), max(0, room)), Span(" "), *right)


def notices(facts: Facts) -> list[Paragraph]:
    """What needs attention beside the status: nobody conducts, the conductor died, something cannot be read."""
    snapshot, found = facts.snapshot, list[Line]()
    if facts.problem:
        found.append((Span("? ", "unknown"), foreign(facts.problem, "unknown")))
    if facts.conducting.failed:
        found.append((Span("✗ the conductor stopped: ", "failed"), foreign(facts.conducting.ended, "failed")))
    elif facts.conducting.ended:
        found.append((Span("■ ", "muted"), foreign(facts.conducting.ended, "muted")))
    if snapshot.conductor is None and not facts.conducting.running and snapshot.run.verdict is None:
        words = "■ no conductor is running: "
        found.append((Span(words, "muted"), foreign(f"gonogo resume {facts.run_dir}", "strong")))
    if facts.read_only_because:
        found.append((Span("read-only: ", "muted"), foreign(facts.read_only_because, "muted")))
    found += [(Span("▲ ", "waiting"), foreign(text, "waiting")) for text in snapshot.problems[:3]]
    if len(snapshot.problems) > 3:
        found.append((Span(f"▲ {len(snapshot.problems) - 3} more{MORE}", "waiting"),))
    return [Paragraph(line) for line in found]
