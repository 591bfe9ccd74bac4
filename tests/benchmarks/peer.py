"""The peer of the first frame: the least that a Textual app with one table can be.

It imports nothing else, so that nothing else is in its time; the word that is looked for is its argument.
"""

from __future__ import annotations

import sys

from textual.app import App, ComposeResult
from textual.widgets import DataTable


class Peer(App[None]):
    """One table with a row for each stage of a release."""

    def compose(self) -> ComposeResult:
        yield DataTable()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns(sys.argv[1], "state", "time")
        for stage in ("setup", "stage_target", "train", "freeze", "bench", "closeout"):
            table.add_row(stage, "passed", "0:00")


if __name__ == "__main__":
    Peer().run()
