"""What screens have in common that only look: at a moment of a log, or at the run of another program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from textual.content import Content

from console.replay.foreign import Unplaced
from console.replay.moment import READING
from console.screens.base import Area
from console.screens.help import Help
from console.snapshot import Snapshot
from console.verbs import Verb
from console.widgets.ink import Line, Paragraph, Span, foreign, lay_out
from console.widgets.lines import Lines, Rows
from console.widgets.words import NOT_RECORDED

_MOST = 2000
"""So many lines that could not be placed are shown."""


def only_looks(verbs: Iterable[Verb]) -> list[Verb]:
    """Those verbs that neither write nor lead to something that can be decided, or that nobody recorded."""
    return [item for item in verbs if not item.writes and item.id not in ("waiting", "output")]


def nothing(lines: Lines, text: str) -> None:
    """Show in a list that it is empty, and why."""
    lines.build(lambda width: Rows([(Span(text, "muted"),)], [""]))


def not_recorded(lines: Lines, snapshot: Snapshot | None = None) -> None:
    """Show in a list that nobody wrote down what would be in it, or that the log was not read so far yet."""
    reading = snapshot is not None and READING in snapshot.unrecorded.values()
    nothing(lines, "the log is being read up to this moment" if reading else NOT_RECORDED.word)


def recorded_line(text: str) -> Line:
    """The line over a table: that it tells of what was recorded."""
    return (Span(f"· {text}", "muted"),)


class LookingHelp(Help):
    """Help for an area that only looks."""

    def verbs(self) -> list[Verb]:
        """Only those of the help itself."""
        return only_looks(super().verbs())


class UnplacedThings(LookingHelp):
    """What could not be placed, and what was assumed while reading.

    Args:
        below: The screen below.
        notes: What was assumed.
        unplaced: Lines of the log that are part of no entry.
        others: What of other files could not be placed.
    """

    def __init__(
        self, below: Area, notes: Sequence[str], unplaced: Sequence[Unplaced], others: Sequence[str] = ()
    ) -> None:
        super().__init__(below)
        self._notes, self._unplaced, self._others = notes, unplaced, others

    def take(self, snapshot: Snapshot, now: datetime) -> None:
        """Draw the lists."""
        text = self.query_one("#text", Lines)
        text.border_title = Content("Not placed")
        shown = [Paragraph((Span("What was assumed", "title"),))]
        shown += [Paragraph((foreign(note),), (Span("  "),)) for note in self._notes or ("nothing",)]
        shown += [Paragraph(()), Paragraph((Span(f"Lines that are part of no entry: {len(self._unplaced)}", "title"),))]
        for item in self._unplaced[:_MOST]:
            label = (Span(f"{item.line:>7}  ", "muted"),)
            shown.append(Paragraph((Span(f"{item.why}: ", "muted"), foreign(item.text)), label))
        if len(self._unplaced) > _MOST:
            rest = f"and {len(self._unplaced) - _MOST} more; gonogo replay --json lists them all"
            shown.append(Paragraph((Span(rest, "muted"),)))
        if self._others:
            shown += [Paragraph(()), Paragraph((Span("Elsewhere", "title"),))]
            shown += [Paragraph((foreign(item),), (Span("  "),)) for item in self._others[:_MOST]]
        text.build(lambda width: Rows(lay_out(shown, width)))
