"""What was measured, drawn: training, acceptance, throughput and speedup, from the result files that were read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from textual.widget import Widget

from console.plot_reading import Drawn, PlotReader
from console.release.state import RunState
from console.screens.base import Area, bindings
from console.snapshot import Snapshot
from console.widgets.ink import Line, Span
from console.widgets.lines import Lines, Rows
from console.widgets.plot_rows import rows
from console.widgets.strips import Heading


class Plots(Area):
    """The plots, below each other; they follow the run."""

    scope = "plots"
    BINDINGS = bindings("plots")
    AUTO_FOCUS = "#plots"

    def __init__(self) -> None:
        super().__init__()
        self._reader: PlotReader | None = None
        self._seen: RunState | None = None
        self._found: list[Drawn] = []

    def compose_body(self) -> Iterable[Widget]:
        """Where the numbers come from, and the plots."""
        yield Heading(id="source")
        yield Lines(id="plots")

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw; files are read again only where the log names others."""
        if self._reader is None:
            self._reader = PlotReader(self.console.session.run_dir)
        if snapshot.run != self._seen:
            self._seen, self._found = snapshot.run, self._reader.read(snapshot.run)
        found, height = self._found, max(4, min(12, self.size.height // 5))
        self.query_one("#source", Heading).show(_source(found))
        self.query_one("#plots", Lines).build(lambda width: Rows(rows(found, now, width, height)))


def _source(found: list[Drawn]) -> Line:
    count = sum(len(drawn.plots) for drawn in found)
    text = f"{count} {'plot' if count == 1 else 'plots'} from the result files that were read, of the newest attempts"
    return (Span(f"· {text}", "muted"),)
