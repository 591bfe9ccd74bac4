"""Daemons by pid file: started in the foreground with a log each, found again, and ended only where they are ours."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.layout import MARK, Layout

START_TIMEOUT_S = 60.0
END_TIMEOUT_S = 15.0
POLL_S = 0.02


class Daemons:
    """The daemons of one cluster.

    Args:
        layout: Whose daemons they are.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def pid_file(self, name: str) -> Path:
        """The pid file of a daemon."""
        return self._layout.folder / "run" / f"{name}.pid"

    def log(self, name: str) -> Path:
        """What a daemon said."""
        return self._layout.folder / "log" / f"{name}.log"

    def pid(self, name: str) -> int | None:
        """Process id of a daemon that runs and is ours, None otherwise."""
        try:
            pid = int(self.pid_file(name).read_text())
        except (OSError, ValueError):
            return None
        self._reap(pid)
        return pid if program_of(pid) == name.split("-", maxsplit=1)[0] and _is_ours(pid, self._layout) else None

    def start(
        self,
        name: str,
        command: Sequence[str],
        ready: Callable[[], bool],
        *,
        user: str | None = None,
    ) -> None:
        """Start a daemon unless it runs, and wait until it answers.

        Args:
            name: Its name; what stands before a dash is its program's name.
            command: How to run it in the foreground.
            ready: Whether it answers.
            user: The account it runs as, None for root.

        Raises:
            ClusterError: With the end of its log, when it ends or does not answer.
        """
        child = None
        if self.pid(name) is None:
            with self.log(name).open("ab") as log:
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    env=self._layout.environment(),
                    start_new_session=True,
                    user=user,
                    group=user,
                    extra_groups=[] if user else None,
                    umask=0o022,
                )
            self._children[child.pid] = child
            self.pid_file(name).write_text(f"{child.pid}\n")

        # A daemon that has just begun may be writing its title over the command line that `pid` knows it by.
        def ended() -> bool:
            return child is not None and child.poll() is not None

        wait_until(lambda: ready() or ended(), f"{name} to answer", self.log(name))
        if ended():
            raise ClusterError(f"{name} ended as soon as it was started. {tail(self.log(name))}")

    def end(self, name: str) -> bool:
        """End a daemon; returns whether it ran."""
        pid = self.pid(name)
        if pid is not None:
            _end([pid], self._reap)
        self.pid_file(name).unlink(missing_ok=True)
        return pid is not None

    def end_leftovers(self) -> int:
        """End what jobs and logins left behind; returns how many processes these were."""
        left = [pid for pid in all_pids() if pid != os.getpid() and _is_leftover(pid, self._layout)]
        _end(left, self._reap)
        return len(left)

    def _reap(self, pid: int) -> None:
        """Collect a child of this process that has ended."""
        child = self._children.get(pid)
        if child is not None and child.poll() is not None:
            del self._children[pid]


def wait_until(holds: Callable[[], bool], what: str, log: Path | None = None, timeout: float = START_TIMEOUT_S) -> None:
    """Ask again and again until something holds.

    Raises:
        ClusterError: When it does not within the timeout (seconds).
    """
    end = time.monotonic() + timeout
    while not holds():
        if time.monotonic() >= end:
            raise ClusterError(f"waited {timeout:g} s for {what}. {tail(log) if log else ''}".strip())
        time.sleep(POLL_S)


def tail(log: Path, lines: int = 8) -> str:
    """The end of a log, in words for an error."""
    try:
        said = log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        said = []
    return f"The end of {log}:\n" + "\n".join(said) if said else f"{log} is empty."


def program_of(pid: int) -> str | None:
    """Name of the program that a process runs, None where there is none or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return None if rest.split()[0] in ("Z", "X") else name


def environment_of(pid: int) -> dict[str, str]:
    """Environment that a process was started with; empty where it cannot be read."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition("=") for item in data.decode("utf-8", "replace").split("\0"))
    return {name: value for name, sign, value in pairs if sign}


def command_line_of(pid: int) -> str:
    """A process's command line, its words after NULs; empty where it cannot be read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def owner_of(pid: int) -> int | None:
    """Account of a process by its number, None where there is no process."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def all_pids() -> list[int]:
    """Every process of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is_ours(pid: int, layout: Layout) -> bool:
    """Whether a daemon belongs to this cluster: by the mark, or by its command line where it wrote over that."""
    return environment_of(pid).get(MARK) == str(layout.folder) or f"{layout.folder}/" in command_line_of(pid)


def _is_leftover(pid: int, layout: Layout) -> bool:
    """Whether a process is a login's or a job's: jobs without our mark are known by Slurm's two variables."""
    known = environment_of(pid)
    in_job = "SLURM_JOB_ID" in known and known.get("SLURM_CONF") == str(layout.slurm_conf)
    return known.get(MARK) == str(layout.folder) or in_job


def _end(pids: Sequence[int], reap: Callable[[int], None]) -> None:
    """End processes: ask, wait, insist."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                # A stopped process takes nothing but SIGKILL until it goes on.
                os.kill(pid, signal.SIGCONT)
        end = time.monotonic() + END_TIMEOUT_S
        while pids and time.monotonic() < end:
            for pid in pids:
                reap(pid)
            pids = [pid for pid in pids if program_of(pid) is not None]
            if pids:
                time.sleep(POLL_S)
    if pids:
        raise ClusterError(f"these processes did not end: {', '.join(map(str, pids))}")
