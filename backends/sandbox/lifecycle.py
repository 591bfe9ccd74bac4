"""Start an embedded cluster, find one that runs, end one. Nothing here imports asyncssh: it is quick to call."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backends.sandbox import processes
from backends.sandbox.place import USER, Place

IDLE_S = 600.0
"""An unused cluster ends after so many seconds."""


class SandboxError(Exception):
    """The embedded cluster cannot be started. One line that says why."""


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """How to reach a running embedded cluster.

    Attributes:
        host: Address.
        port: SSH port.
        user: Account.
        key_path: Private key of that account.
        known_hosts_path: Its host key.
        home: Home folder of the account.
        pid: Process of the cluster.
    """

    host: str
    port: int
    user: str
    key_path: Path
    known_hosts_path: Path
    home: Path
    pid: int


def ensure(state_dir: Path, *, idle_s: float = IDLE_S) -> SandboxInfo:
    """Make sure that the cluster of a folder runs, and describe it.

    Args:
        state_dir: Its folder; created when missing.
        idle_s: A cluster that is started now ends after so many unused seconds.

    Raises:
        SandboxError: When it does not come up.
    """
    place = Place(state_dir.absolute())
    place.root.mkdir(parents=True, exist_ok=True)
    with _locked(place.starting):
        if not is_running(place):
            _start(place, idle_s)
        return _info(place)


def is_running(place: Place) -> bool:
    """Whether a process runs the cluster of this folder: it holds the lock for as long as it lives."""
    try:
        file = os.open(place.lock, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def stop(state_dir: Path, number: int = signal.SIGTERM) -> bool:
    """End the cluster's server, if it runs; its jobs go on, as on any cluster whose login node goes down.

    Args:
        state_dir: The cluster's folder.
        number: The signal; SIGKILL for tests of a crash.

    Returns:
        Whether it ran.
    """
    place = Place(state_dir.absolute())
    if not place.root.is_dir():
        return False
    with _locked(place.starting):
        if not is_running(place):
            return False
        pid = _info(place).pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        # The lock is free once the process is gone, however it went.
        with _locked(place.lock):
            return True


def end_jobs(state_dir: Path) -> None:
    """End the running jobs of a cluster that nobody needs any more."""
    from backends.sandbox.store import Store

    place = Place(state_dir.absolute())
    store = Store(place)
    for job in store.jobs("state = 'PENDING'"):
        store.change(job.id, "state = 'PENDING'", state="CANCELLED")
    for job in store.jobs("state = 'RUNNING'"):
        processes.end(job.runner, job.runner_born)
    store.close()


def _start(place: Place, idle_s: float) -> None:
    log = os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    place.home.mkdir(exist_ok=True)
    try:
        server = subprocess.Popen(
            [sys.executable, "-m", "backends.sandbox", "serve", str(place.root), "--idle", str(idle_s)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=_root(),
            start_new_session=True,
        )
    finally:
        os.close(log)
    assert server.stdout is not None
    with server.stdout as said:
        line = said.readline().strip()
    if line != b"ready":
        server.wait()
        last = place.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise SandboxError(f"the embedded cluster in {place.root} did not start: {''.join(last) or 'no reason given'}")
    # It lives on without us; where we live on, Python shall not warn that nobody waits for it.
    server.returncode = 0


def _root() -> Path:
    """Folder from which `backends` is found, whatever folder the caller stands in."""
    return Path(__file__).resolve().parents[2]


def _info(place: Place) -> SandboxInfo:
    found = json.loads(place.info.read_text(encoding="utf-8"))
    return SandboxInfo(
        host="127.0.0.1",
        port=found["port"],
        user=USER,
        key_path=place.keys / "user_ed25519",
        known_hosts_path=place.keys / "known_hosts",
        home=place.home,
        pid=found["pid"],
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
