"""Looks on at the run folder of another program that follows the convention: its log and its state, as they are now."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from console.reader import signature
from console.release.folder import LOG_NAME, STATE_NAME, FolderError, read_state
from console.release.journal import Kind
from console.release.state import STAGES, RunState, Stage
from console.replay import foreign, foreign_state
from console.replay.foreign import ForeignLog
from console.replay.foreign_state import ForeignStage, ForeignState
from console.replay.recording import OWN, form_of
from console.session import Clock, Session
from console.snapshot import LogView, Snapshot

WHY = "the run is of another program; it is shown as far as it can be read"

_EMPTY = ForeignLog([], [], [], [], [])


def is_foreign(folder: Path) -> bool:
    """Whether a folder is the run of another program: a log without our records, or a state that is not ours alone."""
    log = folder / LOG_NAME
    try:
        if log.is_file():
            return log.stat().st_size > 0 and form_of(log) != OWN
    except OSError:
        return False
    if not (folder / STATE_NAME).is_file():
        return False
    try:
        return read_state(folder) is None
    except FolderError:
        return True


class ForeignSession(Session):
    """A session on such a folder. It has no desk: nothing can be decided on there.

    Args:
        run_dir: The folder.
        clock: The clocks.

    Attributes:
        log: What was read of the log.
        beside: What was read of the state file.
    """

    def __init__(self, run_dir: Path, clock: Clock | None = None) -> None:
        # On purpose not the constructor of Session, whose reader expects a folder of this program.
        self.run_dir = run_dir
        self.desk = None
        self.read_only_because = WHY
        self.clock = clock or Clock()
        self.log, self.beside = _EMPTY, ForeignState()
        self._signature: object = None
        self.snapshot = Snapshot()
        self.snapshot = self.poll()

    def poll(self) -> Snapshot:
        """The folder as it is now; the same snapshot while nothing changed."""
        now = (signature(self.run_dir / LOG_NAME), signature(self.run_dir / STATE_NAME))
        if now == self._signature:
            return self.snapshot
        self.beside, problems = foreign_state.read(self.run_dir), list[str]()
        self.log = self._read_log(problems)
        self._signature = now
        return _snapshot(self.log, self.beside, problems)

    def _read_log(self, problems: list[str]) -> ForeignLog:
        path = self.run_dir / LOG_NAME
        try:
            if path.stat().st_size > foreign.LONGEST_BYTES:
                problems.append(f"{LOG_NAME}: longer than {foreign.LONGEST_BYTES} bytes; it is not read")
                return _EMPTY
            return foreign.parse(path.read_bytes(), [stage.name for stage in self.beside.stages])
        except FileNotFoundError:
            problems.append(f"{LOG_NAME}: there is none")
        except OSError as error:
            problems.append(f"{LOG_NAME}: cannot be read ({error.strerror})")
        return _EMPTY


def _snapshot(log: ForeignLog, state: ForeignState, problems: list[str]) -> Snapshot:
    if state.problem:
        problems.append(state.problem)
    elif not state.found:
        problems.append(f"{STATE_NAME}: there is none; the status of the stages is not recorded")
    count = len(log.unplaced) + len(state.unplaced)
    if count:
        problems.append(f"{count} {'thing' if count == 1 else 'things'} could not be placed: press u")
    said = {stage.name: stage for stage in state.stages}
    named = Counter(entry.stage for entry in log.entries if entry.stage)
    names = dict.fromkeys((*STAGES, *said, *named))
    run = replace(
        RunState(),
        run_id=state.run_id,
        stages=tuple(_stage(name, said.get(name), named[name]) for name in names),
        interventions=sum(1 for entry in log.entries if entry.kind is Kind.HUMAN_INTERVENTION),
        inputs=dict(state.facts),
        started_at=next((entry.time for entry in log.entries if entry.time), ""),
        updated_at=next((entry.time for entry in reversed(log.entries) if entry.time), ""),
        entries=len(log.entries),
    )
    view = LogView(log.entries, len(log.entries), verified=len(log.entries))
    words = {name: said[name].status if name in said else "" for name in names}
    return Snapshot(state=run, log=view, problems=tuple(problems), unrecorded=words)


def _stage(name: str, said: ForeignStage | None, entries: int) -> Stage:
    """A stage in the words of the state file; else where the log names it; nothing is made of either."""
    named = "1 entry" if entries == 1 else f"{entries} entries"
    where = f"{named} of the log name it" if entries else "no entry of the log names it"
    if said is None:
        return Stage(name, detail=f"{where}; its status is not recorded")
    words = "; ".join(f"{key}: {value}" for key, value in said.said) or said.status or "its name alone"
    return Stage(name, detail=f"{where}. The state file says: {words}")
