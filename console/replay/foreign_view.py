"""The header over a run of another program as rows. Nothing here imports Textual."""

from __future__ import annotations

from collections.abc import Sequence

from console.replay.foreign_state import ForeignState
from console.snapshot import Snapshot
from console.widgets.ink import Line, Paragraph, Span, fit, foreign, lay_out
from console.widgets.words import HUMAN_SIGN

_GAP = Span("  ")
_NOTICE_ROWS = 2


def header(name: str, snapshot: Snapshot, beside: ForeignState, problems: Sequence[str], width: int) -> list[Line]:
    """Three lines on top, and some for each thing that could not be read or placed.

    Args:
        name: Name of the folder, for a run that has no name of its own.
        snapshot: The run.
        beside: Its state file.
        problems: What could not be read or placed.
        width: Cells of a row.
    """
    run = snapshot.run
    human = run.interventions
    words = "intervention" if human == 1 else "interventions"
    rows: list[Line] = [
        (Span(" ANOTHER PROGRAM'S RUN ", "chip-unknown"), _GAP, foreign(run.run_id or name, "strong")),
        (
            Span(f"{HUMAN_SIGN} {human} {words}", "human" if human else "muted", "log"),
            Span("  link, clock, conductor, jobs not recorded", "muted"),
        ),
        _verdict(snapshot, beside),
    ]
    rows = [fit(row, width) for row in rows]
    for problem in problems:
        rows += lay_out([Paragraph((Span("▲ ", "waiting"), foreign(problem, "waiting")))], width)[:_NOTICE_ROWS]
    return rows


def _verdict(snapshot: Snapshot, beside: ForeignState) -> Line:
    if beside.verdict:
        return (Span(" THE STATE FILE SAYS ", "chip-idle"), Span(" verdict "), foreign(beside.verdict, "strong"))
    last = snapshot.log[-1].text if len(snapshot.log) else "nothing"
    return (Span(" VERDICT NOT RECORDED ", "chip-idle"), Span(" last entry: ", "muted"), foreign(last))
