"""Reads a run folder again and again, each time only what changed. It holds nothing that could write.

Reading blocks, so the console calls `poll` in a thread; what it returns is frozen.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from console.release import folder
from console.release.state import Outcome, RunState
from console.snapshot import UNREAD, Live, LogView, Snapshot, Waiting, live_from_json

if TYPE_CHECKING:
    from console.release.journal import Entry

Signature = tuple[int, int, int]

CHUNK_BYTES = 4_000_000
"""So much of the log is read and checked before the screen is shown what there is."""


def signature(path: Path) -> Signature | None:
    """What changes when a file changes: inode, size and time of its last change; None where it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class LogReader:
    """Follows the work log, and checks every entry against the one before as it arrives.

    Args:
        run_dir: The run folder.
    """

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / "work_log.md"
        self._restart()

    def _restart(self) -> None:
        self._entries: list[Entry] = []
        self._position = 0
        self._signature: Signature | None = None
        self._verified = 0
        self._problem = ""
        self._torn = False
        self._more = False
        self._chunk = CHUNK_BYTES

    def poll(self) -> LogView:
        """Read what was added. A log that became shorter, or another file, is read from its beginning."""
        now = signature(self._path)
        if now is None:
            self._restart()
            return LogView([], 0, problem=f"{self._path.name}: there is no log")
        if now != self._signature:
            before = self._signature
            # Appending makes it longer; a change in any other way is a log that must be checked from the start.
            if before is not None and (now[0] != before[0] or now[1] <= before[1]):
                self._restart()
            self._signature = now
            self._read_on()
        return self._view()

    def _view(self) -> LogView:
        count = len(self._entries)
        return LogView(
            self._entries, count, verified=self._verified, problem=self._problem, torn=self._torn, more=self._more
        )

    def _read_on(self) -> None:
        from console.release import journal

        self._more = False
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._position)
                data = stream.read(self._chunk)
                more = stream.read(1) != b""
        except OSError as error:
            self._problem = f"{self._path.name}: cannot be read ({error.strerror})"
            self._signature = None
            return
        if self._problem:
            self._take_unverified(data)
            return
        try:
            entries, torn = journal.scan(data, self._entries[-1] if self._entries else None)
        except journal.LogError:
            self._find_break()
            return
        self._entries += entries
        self._verified = len(self._entries)
        self._torn = torn is not None and not more
        self._position += len(data) if torn is None else torn.position
        if more:
            self._signature = None
            self._more = True
            if torn is not None and torn.position == 0:
                self._chunk *= 2

    def _find_break(self) -> None:
        """Read the whole log once more: how much of it holds, what is wrong, and what stands behind the break."""
        from console.release import journal

        try:
            data = self._path.read_bytes()
        except OSError:
            self._signature = None
            return
        self._entries = []
        try:
            for entry in journal.parse(data):
                self._entries.append(entry)
        except journal.LogError as error:
            self._problem = str(error)
        self._verified = len(self._entries)
        records = list(journal.records(data))
        self._entries += records[self._verified :]
        self._position = len(data)

    def _take_unverified(self, data: bytes) -> None:
        from console.release import journal

        self._entries += list(journal.records(data))
        self._position += len(data)


class Reader:
    """Makes snapshots of one run folder.

    Args:
        run_dir: The run folder.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._log = LogReader(run_dir)
        self._log_view = UNREAD
        self._state: RunState | None = None
        self._state_signature: Signature | None = None
        self._state_problem = ""
        self._live = Live()
        self._live_signature: Signature | None = None
        self._proposals: dict[str, tuple[object, Waiting | None]] = {}

    def first(self) -> Snapshot:
        """What is needed for the first frame: state and live data, not the log."""
        self._read_state()
        self._read_live()
        return self._snapshot((), frozenset())

    def poll(self) -> Snapshot:
        """Everything, as it is now."""
        # The log is written before the state: read in this order, it is never behind the state.
        self._read_state()
        self._log_view = self._log.poll()
        self._read_live()
        return self._snapshot(*self._read_queue())

    def _snapshot(self, waiting: tuple[Waiting, ...], decided: frozenset[str]) -> Snapshot:
        problems = (*self._problems(), *self._live.problems)
        conductor = folder.holder(self.run_dir, "conductor")
        return Snapshot(self._state, self._live, self._log_view, waiting, decided, conductor, problems)

    def _problems(self) -> list[str]:
        found = [text for text in (self._state_problem, self._log_view.problem) if text]
        state, log = self._state, self._log_view
        if state is not None and log.read and not log.problem and state.entries:
            if len(log) < state.entries:
                found.append(f"work_log.md ends after entry {len(log)}, the state knows of {state.entries}")
            elif log[state.entries - 1].hash != state.head:
                found.append(f"work_log.md: entry {state.entries} is not the one that the state knows")
        return found

    def _read_state(self) -> None:
        now = signature(self.run_dir / folder.STATE_NAME)
        if now is not None and now == self._state_signature:
            return
        try:
            self._state = folder.read_state(self.run_dir)
            self._state_problem = ""
            self._state_signature = now
        except folder.FolderError as error:
            # The last state that could be read stays on the screen, beside the complaint.
            self._state_problem = str(error)

    def _read_live(self) -> None:
        now = signature(self.run_dir / folder.LIVE_NAME)
        if now != self._live_signature or now is None:
            self._live = live_from_json(folder.read_live(self.run_dir))
            self._live_signature = now

    def _read_queue(self) -> tuple[tuple[Waiting, ...], frozenset[str]]:
        from console.release import queue

        waiting, decided = [], []
        closed = self._state is not None and self._state.verdict is not None
        for name in queue.ids(self.run_dir):
            attempt = None if self._state is None else self._state.attempt(name)
            if closed or (attempt is not None and attempt.outcome is not Outcome.PROPOSED):
                self._proposals.pop(name, None)
                continue
            found = self._proposal(name)
            if found is None:
                decided.append(name)
            else:
                waiting.append(found)
        return tuple(waiting), frozenset(decided)

    def _proposal(self, name: str) -> Waiting | None:
        """One proposal of the queue; None when somebody decided on it."""
        place = self.run_dir / "submissions" / name
        key = (signature(place / "job.json"), signature(place / "decision.json"), self._state)
        known = self._proposals.get(name)
        if known is not None and known[0] == key:
            return known[1]
        from console.release import queue_view

        item = queue_view.item(self.run_dir, self._state, name)
        undecided = item.state in (queue_view.PENDING, queue_view.INVALIDATED) and not item.decided_by
        found = Waiting(name, item.stage, item.task, item.attempt, item.summary, item.proposed_at, item.problem)
        self._proposals[name] = (key, found if undecided else None)
        return found if undecided else None
