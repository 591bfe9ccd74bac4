"""Starts a server as a session of its own, watches it, and ends it with everything that it started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional

_PR_SET_PDEATHSIG = 1
_POLL = 0.05
_TAIL_BYTES = 6000
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Process:
    """A shell command that runs in a session of its own.

    Attributes:
        command: The command.
        log: File with everything that it says.
    """

    def __init__(self, command: str, log: str) -> None:
        """Start it.

        Raises:
            OSError: When it cannot be started, or the log not be written.
        """
        self.command = command
        self.log = log
        with open(log, "wb") as stream:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_dies_with_parent(),  # noqa: PLW1509 (called while this program has one thread)
            )

    @property
    def pid(self) -> int:
        """Process id, also the id of its session."""
        return self._process.pid

    def exit_status(self) -> Optional[int]:
        """How it ended, negative for a signal; None while it runs."""
        return self._process.poll()

    def tail(self) -> str:
        """The last lines of its log."""
        try:
            with open(self.log, "rb") as stream:
                stream.seek(max(0, os.path.getsize(self.log) - _TAIL_BYTES))
                return stream.read().decode("utf-8", "replace")
        except OSError as error:
            return f"(no log: {error})"

    def arguments(self) -> List[str]:
        """Arguments of everything that runs in its session."""
        found: List[str] = []
        for pid in _session(self.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as stream:
                found += [os.fsdecode(word) for word in stream.read().split(b"\0") if word]
        return found

    def stop(self, grace: float = 10.0) -> None:
        """End it and everything that it started: first asked to, after the grace (seconds) without asking.

        Signals that arrive meanwhile wait, so that nothing is left running.
        """
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._stop(grace)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def _stop(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        self._signal(signal.SIGTERM)
        while self._process.poll() is None or _session(self.pid):
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
                self._process.wait()
                return
            time.sleep(_POLL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, number)
        if number == signal.SIGKILL:
            for pid in _session(self.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)


def _dies_with_parent() -> Optional[Callable[[], Any]]:
    """What a child does first: ask Linux to be told to end when its parent is gone. None where that is not known."""
    try:
        libc = ctypes.CDLL(None)
        prctl = libc.prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _session(session: int) -> List[int]:
    """Processes of a session that have not ended."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                # The command's name comes second, in parentheses, and may hold anything.
                fields = stream.read().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
            found.append(int(name))
    return found


def at_signals(stop: Callable[[int], None]) -> None:
    """Call a function when the program is told to end (the time limit, a cancel, a lost terminal).

    Args:
        stop: Gets the number of the signal; what it raises is raised where the program is.
    """
    asked: Dict[int, bool] = {}

    def once(number: int, _: Any) -> None:
        # A second signal must not break into the cleaning up after the first.
        if not asked:
            asked[number] = True
            stop(number)

    for number in _ENDING:
        signal.signal(number, once)
