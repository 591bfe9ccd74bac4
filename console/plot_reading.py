"""Reads what can be drawn of a run: the copies of the result files that the log says were read, and nothing else."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from console.release.curves import Plot, plots_of
from console.release.state import Attempt, ResultFile, RunState

MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one result file shows.

    Attributes:
        attempt: Name of the attempt that wrote it.
        file: Where its copy lies, below the run folder.
        sha256: Digest of the bytes that were drawn; empty where there are none.
        time: When it was read, as the log says.
        plots: Its plots.
        problem: Why there are none; empty where there are some, or where such a file has nothing to draw.
    """

    attempt: str
    file: str
    sha256: str
    time: str
    plots: tuple[Plot, ...] = ()
    problem: str = ""


class PlotReader:
    """Reads the plots of a run, each file once for as long as its digest stays the same.

    Args:
        run_dir: The run folder.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._known: dict[tuple[str, str], Drawn] = {}

    def read(self, run: RunState) -> list[Drawn]:
        """What the newest attempt of each task has to draw, in the order of the flow."""
        newest: dict[tuple[str, str], Attempt] = {}
        for attempt in run.attempts:
            if attempt.results:
                newest[attempt.stage, attempt.task] = attempt
        found = [self._one(attempt, result) for attempt in newest.values() for result in attempt.results]
        return [drawn for drawn in found if drawn.plots or drawn.problem]

    def _one(self, attempt: Attempt, result: ResultFile) -> Drawn:
        key = (result.copy, result.sha256)
        drawn = self._known.get(key)
        if drawn is None:
            drawn = self._fresh(attempt, result)
            if not drawn.problem:
                self._known[key] = drawn
        return drawn

    def _fresh(self, attempt: Attempt, result: ResultFile) -> Drawn:
        empty = Drawn(attempt.id, result.copy, "", result.time)
        try:
            data = _bytes(self._run_dir, result.copy)
        except OSError as error:
            return _with(empty, f"cannot be read ({error.strerror or error}); `gonogo verify` says what is missing")
        digest = hashlib.sha256(data).hexdigest()
        if digest != result.sha256:
            return _with(empty, "holds other bytes than those that the log says were read; it is not drawn")
        plots, problem = plots_of(data)
        return Drawn(attempt.id, result.copy, digest, result.time, tuple(plots), problem)


def _with(drawn: Drawn, problem: str) -> Drawn:
    return Drawn(drawn.attempt, drawn.file, drawn.sha256, drawn.time, (), problem)


def _bytes(run_dir: Path, copy: str) -> bytes:
    """The bytes of a copy below `results/`; a name in the log that leads elsewhere is not followed."""
    root = (run_dir / "results").resolve()
    path = (run_dir / copy).resolve()
    if not path.is_relative_to(root):
        raise OSError(None, "its name leads out of results/")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(None, f"longer than {MOST_BYTES} bytes")
    return data
