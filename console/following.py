"""`gonogo open --plain`: a release as plain lines, first where it is, then what happens, until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from console.plain import PlainPrinter, entry_line
from console.plain_facts import facts, job_line, link_line, problem_lines, state_line
from console.release.state import ReleaseVerdict
from console.session import Clock, Session
from console.snapshot import UNREAD, LiveJob, LogView, Snapshot
from console.widgets.status import status

LAST_ENTRIES = 10
"""So many entries of the log are printed at the beginning."""

LOOK_SECONDS = 0.5
"""So often we look at the run folder."""

EXIT_STATUS = {ReleaseVerdict.DRAFTER_READY: 0, ReleaseVerdict.INFEASIBLE: 1, ReleaseVerdict.ANOMALOUS: 3}
"""What a verdict ends the command with: the same as `gonogo run --headless`."""

NOT_SOUND = 2
"""A log that was changed or cut vouches for no verdict."""

_WORKING = "AT WORK"


class Follower:
    """Prints a release and follows it.

    Args:
        session: The run; nothing is decided through it.
        stream: Where to.
        pause: Waits until it is worth looking again.
        colour: Whether to use colour; None leaves it to the stream and the environment.
    """

    def __init__(
        self, session: Session, stream: TextIO, pause: Callable[[], None], *, colour: bool | None = None
    ) -> None:
        self._session = session
        self._printer = PlainPrinter(stream, colour=colour)
        self._pause = pause
        self._bell = stream.isatty()
        self._log: LogView = UNREAD
        self._said: dict[str, str] = {}
        self._waiting: frozenset[str] = frozenset()

    def run(self) -> int:
        """Print what there is, then what comes, until the release is closed.

        Returns:
            The exit status: 0 DRAFTER_READY, 1 INFEASIBLE, 3 ANOMALOUS, 2 where its log is not sound.

        Raises:
            BrokenPipeError: When nobody reads any more.
        """
        snapshot = self._read()
        self._begin(snapshot)
        while (verdict := self._printer.state.verdict or snapshot.run.verdict) is None:
            self._pause()
            snapshot = self._read()
            self._go_on(snapshot)
        # The conductor's own remarks take nothing from a verdict; a log or a state that cannot be read does.
        sound = set(snapshot.problems) <= set(snapshot.live.problems)
        return EXIT_STATUS[verdict] if sound else NOT_SOUND

    def _read(self) -> Snapshot:
        """The run as it is now, with all of its log."""
        if not self._printer.heard:
            raise BrokenPipeError
        snapshot = self._session.poll()
        while snapshot.log.more:
            snapshot = self._session.poll()
        return snapshot

    def _begin(self, snapshot: Snapshot) -> None:
        for line in facts(snapshot, self._session.run_dir, self._session.clock.now()):
            self._printer.say(line)
        self._note(snapshot)
        log = snapshot.log
        last = max(0, len(log) - LAST_ENTRIES)
        self._printer.say(f"Work log, entries {last + 1} to {len(log)}:" if len(log) else "Work log: no entries yet")
        for entry in log[: log.verified]:
            self._printer.learn(entry)
        for index in range(last, len(log)):
            self._printer.say(_said_as(log, index))
        self._log = log
        self._waiting = frozenset(item.id for item in snapshot.waiting)
        self._printer.begin(self._printer.state, self._session.run_dir)

    def _go_on(self, snapshot: Snapshot) -> None:
        log = snapshot.log
        if log.read and not log.continues(self._log):
            self._printer.say("Problem: the work log is another one than before; all of it follows")
            self._log = UNREAD
        for index in range(len(self._log), len(log)):
            # Only an entry that is what was written is folded into what the release waits for.
            if index < log.verified:
                self._printer.entry(log[index])
            else:
                self._printer.say(_said_as(log, index))
        self._log = log
        self._call(snapshot)
        before = dict(self._said)
        self._note(snapshot)
        for name, line in self._said.items():
            if before.get(name) != line and line:
                self._printer.say(line)

    def _call(self, snapshot: Snapshot) -> None:
        """Ring where a person sits and a job has begun to wait."""
        waiting = frozenset(item.id for item in snapshot.waiting)
        if self._bell and waiting - self._waiting:
            self._printer.ring()
        self._waiting = waiting

    def _note(self, snapshot: Snapshot) -> None:
        """What was said last of everything that changes beside the log. Times alone are no change."""
        now = self._session.clock.now()
        found = status(snapshot, now)
        working = found.word.endswith(_WORKING)
        quiet = found._replace(seconds=None, text="" if working else found.text)
        self._said = {"state": state_line(quiet)}
        self._said["link"] = link_line(snapshot, now, ages=False)
        self._said.update({f"job {job.id}": _at_rest(job) for job in snapshot.live.jobs})
        self._said.update({line: line for line in problem_lines(snapshot)})


def _at_rest(job: LiveJob) -> str:
    """A job without the time that goes on."""
    return job_line(job._replace(elapsed_s=None))


def _said_as(log: LogView, index: int) -> str:
    """An entry as a line; one that is not what was written says so."""
    line = entry_line(log[index])
    return line if index < log.verified else f"NOT VERIFIED: {line}"


def follow(run_dir: Path, stream: TextIO) -> int:
    """Print a release as plain lines and follow it.

    Args:
        run_dir: The run folder.
        stream: Where to.

    Returns:
        The exit status, see `Follower.run`.

    Raises:
        BrokenPipeError: When nobody reads any more.
    """
    session = Session(run_dir, None, read_only_because="opened to look on", clock=Clock())
    try:
        return Follower(session, stream, lambda: time.sleep(LOOK_SECONDS)).run()
    finally:
        session.close()
