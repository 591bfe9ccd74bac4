"""The run folder: where everything of a release lies, who may write to it, and what is true of it right now.

    release.yaml  specdec_state.json  work_log.md  SPECDEC_REPORT.md  submissions/  results/

Beside these lie `requests/` (what operators ask the conductor to do), `live.json` (link, jobs and files as of
this second; not part of the record) and two lock files; and, where somebody looked, `looking.json`, `outputs/` and
`exports/` (what is looked at, what was read of it, what was taken along; no part of the record either). One
conductor writes the log; one console decides.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.release.state import RunState, from_json
from console.safe_text import safe

LOG_NAME = "work_log.md"
STATE_NAME = "specdec_state.json"
REPORT_NAME = "SPECDEC_REPORT.md"
RELEASE_NAME = "release.yaml"
LIVE_NAME = "live.json"
EXPORTS_NAME = "exports"

PREAMBLE = (
    b"# Work log\n\n"
    b"Every step of this release, oldest first. ACTION: a step of the flow, or an approval of a job as shown.\n"
    b"HUMAN_INTERVENTION: anything else that a person did to change the run. Each entry ends with its record;\n"
    b"the records form a hash chain, so an edit, a gap or a removed entry shows. Check with `gonogo log`.\n\n"
)
"""What `work_log.md` begins with; the log itself is the matter of `journal`."""

RUNS_ROOT = "gonogo-runs"
"""Folder below the working folder in which runs are kept unless another place is named."""

# `effects` is imported where they are used: the console reads states on the way to its first frame.

_LOOKING_SECONDS = 0.25
"""A lock that is held for longer than this is held by more than a look at it."""


class FolderError(Exception):
    """A run folder cannot be used. One line: which folder, what was expected, what to do."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock: process id, host and account."""

    pid: int
    host: str
    user: str

    def __str__(self) -> str:
        return f"{self.user} on {self.host}, process {self.pid}"


class Locked(FolderError):
    """Somebody else holds the lock.

    Attributes:
        holder: Who, None where the lock file does not say.
    """

    def __init__(self, role: str, holder: Holder | None) -> None:
        super().__init__(f"another {role} has this run: {holder or 'unknown holder'}")
        self.holder = holder


class Lock:
    """An advisory lock on a run folder, held until closed or until the process ends.

    Args:
        run_dir: The run folder.
        role: "conductor" (writes the log) or "console" (decides).

    Raises:
        Locked: When another process holds it.
    """

    def __init__(self, run_dir: Path, role: str) -> None:
        self._descriptor = os.open(run_dir / f"{role}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(self._descriptor)
        except BlockingIOError:
            os.close(self._descriptor)
            raise Locked(role, holder(run_dir, role)) from None
        me = {"pid": os.getpid(), "host": socket.gethostname(), "user": account()}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(me).encode(), 0)

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


def _take(descriptor: int) -> None:
    """Take a lock; whoever only looks who holds it (`holder`) has it for a moment, so one "no" is not a no."""
    deadline = time.monotonic() + _LOOKING_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def holder(run_dir: Path, role: str) -> Holder | None:
    """Who holds a lock right now; None when nobody does."""
    try:
        descriptor = os.open(run_dir / f"{role}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        try:
            data = json.loads(os.pread(descriptor, 4096, 0))
            return Holder(int(data["pid"]), str(data["host"]), str(data["user"]))
        except (ValueError, KeyError, TypeError):
            return Holder(0, "unknown host", "unknown account")
    finally:
        os.close(descriptor)


def account() -> str:
    """The name of the account that runs this process, without relying on a login terminal."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def require_free(run_dir: Path) -> None:
    """Make sure that a new run can have this folder: it is not there, or is empty.

    Raises:
        FolderError: When it is not free.
    """
    if run_dir.is_dir() and not any(run_dir.iterdir()):
        return
    if run_dir.is_symlink() or run_dir.exists():
        raise FolderError(
            f"{run_dir}: is not empty; name a new folder, or continue the run in it with `gonogo resume {run_dir}`"
        )


def create_run_folder(run_dir: Path, release: bytes) -> None:
    """Make a new run folder with its inputs.

    Raises:
        FolderError: When it cannot be made.
    """
    from console.release import effects

    try:
        run_dir.mkdir(parents=True)
        effects.share_as(run_dir, run_dir.parent)
        for name in ("submissions", "results", "requests"):
            (run_dir / name).mkdir()
            effects.share_as(run_dir / name, run_dir)
        effects.create(run_dir / RELEASE_NAME, release, RELEASE_NAME)
    except OSError as error:
        raise FolderError(f"{run_dir}: cannot be made into a run folder ({error.strerror})") from None


def publish(fresh: Path, run_dir: Path) -> None:
    """Give a complete new run folder its name.

    Raises:
        FolderError: When somebody else took the name meanwhile.
    """
    from console.release import effects

    with effects.effect("publish run folder"):
        try:
            os.rename(fresh, run_dir)
        except OSError as error:
            raise FolderError(f"{run_dir}: cannot be used as a run folder ({error.strerror})") from None
        effects.sync_folder(run_dir.parent)


def require_run_folder(run_dir: Path) -> None:
    """Make sure that this is a run folder.

    Raises:
        FolderError: When it is not.
    """
    if not run_dir.is_dir():
        raise FolderError(f"{run_dir}: no such folder; name the folder of a release")
    if not (run_dir / LOG_NAME).is_file():
        raise FolderError(f"{run_dir}: holds no {LOG_NAME}, so it is not the folder of a release")


def read_state(run_dir: Path) -> RunState | None:
    """The state as last written; None when there is none yet.

    Raises:
        FolderError: When the file is there and is not a state.
    """
    path = run_dir / STATE_NAME
    try:
        data = json.loads(path.read_bytes())
        return from_json(data)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise FolderError(f"{path}: {safe(str(error))}") from None


def write_state(run_dir: Path, state: RunState) -> None:
    """Write the state for others to read; the log stays the source of truth."""
    from console.release import effects
    from console.release.state_text import state_bytes

    effects.replace(run_dir / STATE_NAME, state_bytes(state), "state")


def write_live(run_dir: Path, live: Mapping[str, Any]) -> None:
    """Write what is true this second. Not durable on purpose: it is worth nothing after a crash."""
    path = run_dir / LIVE_NAME
    temporary = path.with_name(f".{LIVE_NAME}.{os.getpid()}")
    temporary.write_text(json.dumps(live, ensure_ascii=True), encoding="ascii")
    os.replace(temporary, path)


def read_live(run_dir: Path) -> dict[str, Any]:
    """What the conductor last said about this second; empty when it said nothing readable."""
    try:
        data = json.loads((run_dir / LIVE_NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
