"""The whole way in a real terminal: from the fleet into a release with enter, back with escape, out with q."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.console import runs

DEADLINE = 60.0


class Terminal:
    """A program in a pseudo-terminal of 120 columns and 36 rows."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
        os.close(theirs)
        self.seen = b""

    def until(self, mark: str) -> bytes:
        """Read until a text was written; forget everything up to it."""
        deadline = time.monotonic() + DEADLINE
        while mark.encode() not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {mark!r}: {self.seen[-800:]!r}"
            try:
                self.seen += os.read(self.ours, 65536)
            except OSError:  # the program has ended
                raise AssertionError(f"ended before {mark!r}: {self.seen[-800:]!r}") from None
        before, _, self.seen = self.seen.partition(mark.encode())
        return before

    def send(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


def test_enter_opens_a_release_and_escape_comes_back(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "runs" / "one")
    environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    environ.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "console", "fleet", "--read-only", str(tmp_path / "runs")]
    terminal = Terminal(command, environ)
    try:
        terminal.until("WAITS FOR YOU")
        terminal.send("\r")
        terminal.until("Work log")
        terminal.send("\x1b")
        terminal.until("sorted by state")
        terminal.until("WAITS FOR YOU")
        terminal.send("q")
        while True:
            try:
                if not os.read(terminal.ours, 65536):
                    break
            except OSError:
                break
        assert terminal.process.wait(DEADLINE) == 0
    finally:
        terminal.close()
        run.close()
