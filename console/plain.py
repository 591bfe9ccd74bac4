"""A release line by line: for headless runs, pipes, logs of other programs, and screen readers.

The same facts as on the screen, one line for each entry of the work log, and a line whenever it is a person who
is waited for. Nothing is said by colour alone; colour is only used on a terminal, and not where NO_COLOR is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from backends.slurm.advice import after_refusal
from console.release.events import apply
from console.release.journal import Entry, Kind
from console.release.state import ASKED, Attempt, Outcome, RunState
from console.release.triage import ASK
from console.safe_text import safe

MARKS = {Kind.ACTION: "ACTION", Kind.HUMAN_INTERVENTION: "HUMAN "}
"""How the kind of an entry is written, in as many characters for each."""

_BOLD, _RED, _GREEN, _YELLOW, _RESET = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def entry_line(entry: Entry) -> str:
    """One entry as one line: time (UTC), kind, who, stage, what was done and why."""
    where = f" [{safe(entry.stage)}]" if entry.stage else ""
    return f"{safe(entry.time[11:19])} {MARKS[entry.kind]} {safe(entry.actor)}{where} {safe(entry.text)}"


def waiting_line(state: RunState, run_dir: Path) -> str:
    """Whom the release waits for, and by which command to answer; empty when it waits for no person."""
    if state.verdict is not None:
        return ""
    from backends.quoting import quote

    lines = [
        f"approve {safe(attempt.id)} ({safe(attempt.summary)}; {_cost(attempt)}{_terms(attempt)}) "
        f"with `gonogo queue approve {safe(quote(str(run_dir)))} {safe(attempt.id)}`"
        for attempt in state.attempts
        if attempt.outcome is Outcome.PROPOSED
    ]
    if lines:
        return f"waiting for the operator: {'; '.join(lines)}"
    return next((f"waiting for the operator: {line}" for line in _held(state)), "")


def _held(state: RunState) -> Iterator[str]:
    """What nothing goes on with before a person acts: rejected, refused, or failed for a reason of theirs."""
    for attempt in (item for item in state.attempts if item.stage != ASKED):
        newest = state.stage(attempt.stage).latest(attempt.task) == attempt
        if (
            newest
            and not attempt.reopened
            and attempt.outcome
            in (
                Outcome.REJECTED,
                Outcome.REFUSED,
                Outcome.EXPIRED,
            )
        ):
            refused = f"; {after_refusal(attempt.said)}" if attempt.outcome is Outcome.REFUSED else ""
            yield f"{safe(attempt.id)} is {attempt.outcome}: {safe(attempt.said)}{refused}"
    for stage in state.stages:
        for item in stage.triage[-1:]:
            judged = state.attempt(item.id)
            if item.step == ASK and (judged is None or (not judged.reopened and stage.latest(judged.task) == judged)):
                yield f"{safe(item.id)} failed ({safe(item.failure_class)}): {safe(item.detail)}"


def _terms(attempt: Attempt) -> str:
    """How far it is under the rules of the release; empty where there are none."""
    first = f"; approved by {safe(attempt.first_by)}, one more account must approve" if attempt.first_by else ""
    return first + (f"; expires at {safe(attempt.expires_at)}" if attempt.expires_at else "")


def _cost(attempt: Attempt) -> str:
    hours, rest = divmod(attempt.limit_s, 3600)
    limit = f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{attempt.gpus} GPUs, at most {limit}, {attempt.gpus * attempt.limit_s / 3600:.2f} GPU hours"


def coloured(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a stream takes colour: a terminal, not a dumb one, and nobody asked for none."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb" and stream.isatty()


class PlainPrinter:
    """Prints a release as it goes.

    A reader that goes away (a closed pipe) silences the printer and never disturbs the release.

    Args:
        stream: Where to.
        colour: Whether to use colour; None leaves it to the stream and the environment.
    """

    def __init__(self, stream: TextIO, *, colour: bool | None = None) -> None:
        self._stream = stream
        self._colour = coloured(stream) if colour is None else colour
        self._open = True
        self._state = RunState()
        self._run_dir: Path | None = None
        self._policy = False
        self._waiting = ""

    @property
    def state(self) -> RunState:
        """What the entries say so far."""
        return self._state

    @property
    def heard(self) -> bool:
        """Whether there is still somebody who reads."""
        return self._open

    def say(self, line: str, tint: str = "") -> None:
        """Print one line of safe text."""
        self._write(f"{tint}{line}{_RESET}\n" if tint and self._colour else f"{line}\n")

    def ring(self) -> None:
        """Ring the terminal's bell."""
        self._write("\a")

    def learn(self, entry: Entry) -> None:
        """Take over an entry that is not printed."""
        self._state = apply(self._state, entry)
        asked = entry.data.get("approve_submissions")
        inputs = entry.data.get("inputs")
        if asked is None and isinstance(inputs, Mapping):
            asked = inputs.get("approve_submissions")
        if asked is not None:
            self._policy = asked == "none"

    def begin(self, state: RunState, run_dir: Path) -> None:
        """Say which run this is, and whom it waits for; from now on each new waiting is said too."""
        self._state, self._run_dir = state, run_dir
        self.say(f"Run folder: {safe(str(run_dir))} (times are UTC)")
        self._say_waiting()

    def entry(self, entry: Entry) -> None:
        """Print one entry, and whom the release waits for after it."""
        self.say(entry_line(entry), _tint(entry))
        self.learn(entry)
        self._say_waiting()

    def _say_waiting(self) -> None:
        if self._run_dir is None or self._policy:
            return
        line = waiting_line(self._state, self._run_dir)
        if line != self._waiting:
            self._waiting = line
            if line:
                self.say(line, f"{_BOLD}{_YELLOW}")

    def _write(self, text: str) -> None:
        if not self._open:
            return
        try:
            print(text, end="", file=self._stream, flush=True)
        except (OSError, ValueError):  # nobody reads, no space left, closed: the log has all of it
            self._open = False


def _tint(entry: Entry) -> str:
    """The colour of an entry; its words say the same."""
    if entry.kind is Kind.HUMAN_INTERVENTION:
        return _YELLOW
    if entry.data.get("event") == "gate":
        return _GREEN if entry.data.get("pass") is True else _RED
    if entry.data.get("event") == "verdict":
        return _BOLD
    return ""
