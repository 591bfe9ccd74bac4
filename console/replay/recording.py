"""A work log that was opened to be replayed: of this program, or of another that follows the convention.

Only the log is read, once, at its length of that moment. What else lies in the run folder tells of the present and is
no part of a replay.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from console.release.folder import LOG_NAME
from console.release.journal import Entry, Kind
from console.release.state import STAGES, RunState, Stage
from console.replay import foreign, foreign_state, words
from console.replay.checking import Check
from console.replay.entries import IndexedEntries
from console.replay.errors import ReplayError
from console.replay.foreign import Unplaced
from console.replay.history import History
from console.replay.index import build, is_own
from console.replay.marks import INTERVENTION, Marks

OWN, FOREIGN = "gonogo", "foreign"

_HEAD_BYTES = 1_000_000


class Recording(ABC):
    """A log, its time line, and the state at any entry of it.

    Attributes:
        path: The log.
        form: OWN or FOREIGN.
        entries: The entries.
        times: Seconds since 1970 of each, never smaller than those before it.
        marks: What one may jump to.
        unplaced: Lines that are part of no entry.
        notes: What was assumed while reading, one line each.
    """

    path: Path
    form: str
    entries: Sequence[Entry]
    times: Sequence[float]
    marks: Marks
    unplaced: Sequence[Unplaced] = ()
    notes: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def begin(self) -> float:
        """Seconds since 1970 of the first entry; 0 where there is none."""
        return self.times[0] if len(self.times) else 0.0

    @property
    def seconds(self) -> float:
        """From the first entry to the last."""
        return self.times[-1] - self.times[0] if len(self.times) else 0.0

    def count_at(self, second: float) -> int:
        """How many entries there are up to a moment, in seconds after the first."""
        # Times have microseconds; a sum of two floats may miss one of them by less than half of that.
        return bisect_right(self.times, self.begin + second + 5e-7)

    def second_of(self, position: int) -> float:
        """When an entry was, in seconds after the first."""
        return self.times[position] - self.begin

    @abstractmethod
    def state(self, count: int) -> RunState:
        """What the first `count` entries say, and nothing else."""

    def reaches(self, count: int) -> bool:
        """Whether `state` answers for so many entries within a frame; where not, `work` makes it so."""
        return True

    @abstractmethod
    def stage_of(self, position: int) -> str:
        """Name of an entry's stage, without reading the entry where that can be helped."""

    @property
    def unrecorded(self) -> Mapping[str, str]:
        """Stages whose status no log of this form says, as in `console.snapshot.Snapshot`."""
        return {}

    @property
    def problem(self) -> str:
        """What is wrong with the log; empty while nothing is known to be."""
        return ""

    @property
    def sound(self) -> int:
        """How many entries, from the first on, are not known to be other than what was written."""
        return len(self)

    @property
    def torn(self) -> bool:
        """Whether bytes that are no entry follow the last one."""
        return False

    @property
    def checked(self) -> bool:
        """Whether every byte was compared with what was written."""
        return False

    @property
    def ready(self) -> bool:
        """Whether nothing is left for `work` to do."""
        return True

    def prepare(self) -> bool:
        """Do a part of what makes jumps short; returns whether that is all done."""
        return True

    def work(self) -> bool:
        """Do a part of what can be done meanwhile (checkpoints, checking); returns whether all is done."""
        return True

    def close(self) -> None:  # noqa: B027 - there is nothing to close where nothing stays open
        """Close the log."""


class OwnRecording(Recording):
    """A log of this program.

    Args:
        path: The log.

    Raises:
        ReplayError: When it cannot be read.
    """

    form = OWN

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = open(path, "rb")  # noqa: SIM115 - it is open for as long as the replay is
        try:
            self.index = build(path, self._stream)
        except BaseException:
            self._stream.close()
            raise
        self._entries = IndexedEntries(self.index, self._stream.fileno())
        self.entries = self._entries
        self.times = self.index.times
        self.marks = self.index.marks
        self.history = History(self.index, self._entries)
        self._check = Check(self.index, self._stream.fileno())
        if self.index.undated:
            self.notes = (
                f"{self.index.undated} entries have no readable time; they stand at that of the entry before",
            )

    def state(self, count: int) -> RunState:
        """The fold of the first `count` entries."""
        return self.history.state(count)

    def reaches(self, count: int) -> bool:
        """Whether the checkpoints come near enough."""
        return self.history.reaches(count)

    def stage_of(self, position: int) -> str:
        """Name of an entry's stage."""
        return self.index.stage(position)

    @property
    def problem(self) -> str:
        """What the check found, or the index."""
        return self._check.problem or self.index.problem

    @property
    def sound(self) -> int:
        """How many entries are linked and were not found to be changed."""
        return min(self._check.sound, self.index.sound)

    @property
    def torn(self) -> bool:
        """Whether an incomplete entry follows the last."""
        return self.index.torn

    @property
    def checked(self) -> bool:
        """Whether the check has come to the end of the log."""
        return self._check.done

    @property
    def ready(self) -> bool:
        """Whether all checkpoints are there and every byte was checked."""
        return self.history.ready and self._check.done

    def prepare(self) -> bool:
        """Make a checkpoint."""
        return self.history.prepare()

    def work(self) -> bool:
        """Make a checkpoint, or check some entries once all checkpoints are there."""
        if self.history.prepare():
            self._check.go_on()
        return self.ready

    def check_all(self) -> None:
        """Check the rest of the log at once."""
        while not self._check.done:
            self._check.go_on()

    def close(self) -> None:
        """Close the log."""
        self._stream.close()


class ForeignRecording(Recording):
    """A log of another program.

    Args:
        path: The log.

    Raises:
        ReplayError: When it cannot be read, or is too long to be.
    """

    form = FOREIGN

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.stat().st_size > foreign.LONGEST_BYTES:
            raise ReplayError(
                f"{path}: longer than {foreign.LONGEST_BYTES} bytes, and not in the form of this program; "
                "cut it into parts"
            )
        self.beside = foreign_state.read(path.parent)
        log = foreign.parse(path.read_bytes(), [stage.name for stage in self.beside.stages])
        self.entries, self.unplaced, self.lines = log.entries, log.unplaced, log.lines
        self.times = _rising(log.times)
        self.marks = Marks()
        self._stages: dict[str, int] = {}
        self._human: list[int] = []
        for position, entry in enumerate(log.entries):
            kinds = words.kinds_of(entry.text)
            self.marks.add(position, kinds)
            if entry.kind is Kind.HUMAN_INTERVENTION:
                self.marks.add(position, (INTERVENTION,))
            if entry.stage:
                self._stages.setdefault(entry.stage, position)
        self.notes = [*log.notes]
        if self.beside.found:
            self.notes.append("the state file beside the log tells of its end and is no part of the replay")

    def state(self, count: int) -> RunState:
        """What the convention lets one say: which stages were named so far, and how many interventions there were."""
        named = [name for name, first in self._stages.items() if first < count and name not in STAGES]
        first = self.entries[0].time if count else ""
        return replace(
            RunState(),
            stages=tuple(self._stage(name, count) for name in (*STAGES, *named)),
            interventions=self.marks.before(INTERVENTION, count),
            started_at=first,
            updated_at=self.entries[count - 1].time if count else "",
            entries=count,
            head="",
        )

    def _stage(self, name: str, count: int) -> Stage:
        first = self._stages.get(name)
        if first is None or first >= count:
            return Stage(name, detail="not named in the log so far")
        return Stage(name, detail=f"named first in entry {first + 1}; its status is not recorded")

    def stage_of(self, position: int) -> str:
        """Name of an entry's stage."""
        return self.entries[position].stage

    @property
    def unrecorded(self) -> Mapping[str, str]:
        """All of them: the convention has no word for the status of a stage."""
        return dict.fromkeys((*STAGES, *self._stages), "")


def _rising(times: Sequence[float | None]) -> Sequence[float]:
    """Times that never fall: one that is missing or earlier is that of the entry before."""
    known = next((time for time in times if time is not None), 0.0)
    rising = array("d")
    for time in times:
        known = known if time is None else max(known, time)
        rising.append(known)
    return rising


def log_path(place: Path) -> Path:
    """The log that is meant by a run folder or by a file.

    Raises:
        ReplayError: When there is none.
    """
    path = place / LOG_NAME if place.is_dir() else place
    if not path.is_file():
        what = f"holds no {LOG_NAME}" if place.is_dir() else "no such file or folder"
        raise ReplayError(f"{place}: {what}; name the folder of a release, or a work log")
    return path


def form_of(path: Path) -> str:
    """Whether a log is of this program.

    Raises:
        OSError: When it cannot be read.
    """
    with open(path, "rb") as stream:
        return OWN if is_own(stream.read(_HEAD_BYTES)) else FOREIGN


def open_recording(place: Path) -> Recording:
    """Open a log to replay it.

    Args:
        place: A run folder, or a work log.

    Raises:
        ReplayError: When there is no log, it cannot be read, or holds no entry.
    """
    path = log_path(place)
    try:
        recording: Recording = OwnRecording(path) if form_of(path) == OWN else ForeignRecording(path)
    except OSError as error:
        raise ReplayError(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from None
    if not len(recording):
        recording.close()
        raise ReplayError(
            f"{path}: holds no entry that could be replayed: no line of it says ACTION or HUMAN_INTERVENTION"
            if recording.form == FOREIGN
            else f"{path}: holds no whole entry yet"
        )
    return recording
