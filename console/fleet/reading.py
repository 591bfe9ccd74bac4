"""Reads all run folders below some roots, again and again, each time only what changed.

An unchanged folder costs a few calls of `stat`; no log is read. Reading blocks, so the screen calls `poll` in a thread.
Nothing here writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from console.fleet.release import Kind, Release
from console.reader import Reader, signature
from console.release.folder import LOG_NAME, PREAMBLE, STATE_NAME
from console.release.state import Attempt, Outcome
from console.snapshot import Snapshot, Waiting

_BREATH = 8
"""So many folders are read in one go: about a millisecond."""


class Fleet(NamedTuple):
    """All releases at one moment.

    Attributes:
        releases: One for each run folder, by path.
        problems: What of the roots could not be read, one line each.
    """

    releases: tuple[Release, ...] = ()
    problems: tuple[str, ...] = ()


class FolderReader:
    """Reads one folder.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = Reader(path)
        self._signature: object = None
        self._kind: Kind | None = None
        self._said = ""
        self._name = ""

    def poll(self) -> Release | None:
        """The release as it is now; None where the folder holds no run."""
        try:
            kind = self._recognise()
            if kind is None:
                return None
            if kind is Kind.OURS:
                return Release(self._path, snapshot=self._snapshot())
            return Release(self._path, kind, said=self._said)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            return Release(self._path, Kind.UNREADABLE, said=f"{error.filename or self._path}: {reason}")

    def _recognise(self) -> Kind | None:
        """Whose run it is. What is ours stays ours: a log only grows; everything else is looked at when it changes."""
        if self._kind is Kind.OURS and signature(self._path / LOG_NAME) is not None:
            return self._kind
        log, state = _signature(self._path / LOG_NAME), _signature(self._path / STATE_NAME)
        if log is None and state is None:
            self._kind = None
        elif (log, state) != self._signature or self._kind is None:
            self._kind = self._look(log is not None)
        self._signature = (log, state)
        return self._kind

    def _look(self, has_log: bool) -> Kind:
        if has_log:
            with open(self._path / LOG_NAME, "rb") as stream:
                if stream.read(len(PREAMBLE)) == PREAMBLE:
                    return Kind.OURS
        from console.replay import foreign_state
        from console.replay.foreign_session import is_foreign

        if is_foreign(self._path):
            found = foreign_state.read(self._path)
            self._said = found.problem or (f"its verdict: {found.verdict}" if found.verdict else "")
            return Kind.FOREIGN
        if has_log:
            return Kind.OURS
        self._said = f"{self._path}: has a {STATE_NAME} and no {LOG_NAME}"
        return Kind.UNREADABLE

    def _snapshot(self) -> Snapshot:
        found = self._reader.first()
        if found.state is None or found.state.verdict is not None:
            return found
        waiting, decided = self._queue(found)
        return found._replace(waiting=waiting, decided=decided)

    def _queue(self, found: Snapshot) -> tuple[tuple[Waiting, ...], frozenset[str]]:
        """Proposals without a decision; those that the state does not know yet too."""
        waiting, decided = list[Waiting](), list[str]()
        known = {item.id: item for item in found.run.attempts}
        fresh = [name for name in self._names() if name not in known]
        open_ = [name for name, item in known.items() if item.outcome is Outcome.PROPOSED]
        for name in (*open_, *fresh):
            place = self._path / "submissions" / name
            if signature(place / "decision.json") is not None:
                decided.append(name)
            elif name in known or signature(place / "job.json") is not None:
                waiting.append(_waiting(name, known.get(name)))
        return tuple(waiting), frozenset(decided)

    def _names(self) -> Iterable[str]:
        try:
            return sorted(name for name in os.listdir(self._path / "submissions") if not name.startswith("."))
        except OSError:
            return ()


def _signature(path: Path) -> tuple[int, int, int] | None:
    """As `console.reader.signature`, but what could not be asked is not taken for what is not there.

    Raises:
        OSError: When it could not be asked.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _waiting(name: str, attempt: Attempt | None) -> Waiting:
    if attempt is None:
        return Waiting(name, "", "", 0, "not in the log yet", "")
    return Waiting(name, attempt.stage, attempt.task, attempt.attempt, attempt.summary, attempt.proposed_at)


class FleetReader:
    """Reads all run folders below some roots.

    Args:
        roots: Folders that hold run folders.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._folders: dict[Path, FolderReader] = {}

    def poll(self, breathe: Callable[[], None] | None = None) -> Fleet:
        """Everything, as it is now.

        Args:
            breathe: Called after every few folders; lets a screen in another thread have its turn.
        """
        problems, paths = list[str](), dict[Path, None]()
        for root in self.roots:
            try:
                paths |= dict.fromkeys(_folders(root))
            except FileNotFoundError:
                problems.append(f"{root}: no such folder; name the folder that holds your run folders")
            except OSError as error:
                problems.append(f"{root}: cannot be read ({error.strerror})")
        self._folders = {path: self._folders.get(path) or FolderReader(path) for path in paths}
        found = list[Release]()
        for place, reader in enumerate(self._folders.values(), 1):
            if (item := reader.poll()) is not None:
                found.append(item)
            if breathe is not None and place % _BREATH == 0:
                breathe()
        return Fleet(tuple(found), tuple(problems))


def _folders(root: Path) -> list[Path]:
    """The folders in a root, by name; the root itself where it is a run folder."""
    if signature(root / LOG_NAME) is not None:
        return [root]
    with os.scandir(root) as entries:
        return sorted(Path(entry.path) for entry in entries if not entry.name.startswith(".") and _is_folder(entry))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return True  # what cannot be asked is listed, with the reason
