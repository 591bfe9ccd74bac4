"""What somebody looks at: `looking.json`, written again and again by the one console that may write.

The conductor reads a job's output for as long as this file changes, and no longer: no output is followed for nobody.
Whether it changes is told by the conductor's own clock, whatever the clocks of other machines say.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

NAME = "looking.json"

BEAT_SECONDS = 2.0
"""So often is the file written while somebody looks."""

FRESH_SECONDS = 10.0
"""For so long after its last change somebody counts as looking."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class Lease(NamedTuple):
    """What is looked at.

    Attributes:
        id: The attempt.
        what: Which of its files, as in `console.release.output_paths`.
    """

    id: str
    what: str


def write(run_dir: Path, lease: Lease, beat: int) -> None:
    """Say what is looked at.

    Args:
        run_dir: The run folder.
        lease: What.
        beat: A number that is another one each time.

    Raises:
        OSError: When it cannot be written.
    """
    temporary = run_dir / f".{NAME}"
    temporary.write_text(json.dumps({**lease._asdict(), "beat": beat}), encoding="ascii")
    os.replace(temporary, run_dir / NAME)


def end(run_dir: Path) -> None:
    """Say that nobody looks any more.

    Raises:
        OSError: When it cannot be removed.
    """
    (run_dir / NAME).unlink(missing_ok=True)


class Leases:
    """Reads what is looked at.

    Args:
        run_dir: The run folder.
        monotonic: Seconds that only go forward.
    """

    def __init__(self, run_dir: Path, monotonic: Callable[[], float]) -> None:
        self._path = run_dir / NAME
        self._monotonic = monotonic
        # What lies there already may be left over from a console that is gone; its next change tells.
        self._before = self._read()
        self._changed_at = monotonic() - 2 * FRESH_SECONDS

    def current(self) -> Lease | None:
        """What is looked at now; None for nothing."""
        data = self._read()
        now = self._monotonic()
        if data != self._before:
            self._before, self._changed_at = data, now
        return _lease(data) if data is not None and now - self._changed_at <= FRESH_SECONDS else None

    def _read(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except OSError:
            return None


def _lease(data: bytes) -> Lease | None:
    try:
        found = json.loads(data)
        lease = Lease(found["id"], found["what"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return lease if all(isinstance(word, str) and _WORD.fullmatch(word) for word in lease) else None
