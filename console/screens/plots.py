"""What was measured, drawn: training, acceptance, throughput and speedup, from the result files that were read."""

from __future__ import annotations

import asyncio
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
        self._found: list[Drawn] | None = None

    def compose_body(self) -> Iterable[Widget]:
        """Where the numbers come from, and the plots."""
        yield Heading(id="source")
        yield Lines(id="plots")

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw; files are read again only where the log names others."""
        if self._reader is None:
            self._reader = PlotReader(self.console.session.run_dir)
        if snapshot.run != self._seen:
            self._seen = snapshot.run
            work = self._read(self._reader, snapshot.run)
            self.run_worker(work, group="plots", exclusive=True, exit_on_error=False, description="read result files")
        self._draw(now)

    async def _read(self, reader: PlotReader, run: RunState) -> None:
        """Read in a thread: a result file may be large, and the screen stays quick."""
        self._found = await asyncio.to_thread(reader.read, run)
        self._draw(self.console.session.clock.now())

    def _draw(self, now: datetime) -> None:
        found, height = self._found, max(4, min(12, self.size.height // 5))
        self.query_one("#source", Heading).show(_source(found))
        if found is not None:
            self.query_one("#plots", Lines).build(lambda width: Rows(rows(found, now, width, height)))


def _source(found: list[Drawn] | None) -> Line:
    if found is None:
        return (Span("… reading the result files", "muted"),)
    count = sum(len(drawn.plots) for drawn in found)
    text = f"{count} {'plot' if count == 1 else 'plots'} from the result files that were read, of the newest attempts"
    return (Span(f"· {text}", "muted"),)
