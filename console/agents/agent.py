"""Who uses the server, on which run, and how much they may leave lying there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from console.agents.arguments import refuse
from console.reader import LogReader
from console.release import folder
from console.release.folder import FolderError
from console.release.state import RunState

_PROPOSER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

MOST_WAITING = 20
"""So many jobs of other programs may wait for a decision: an operator who is flooded reads none of them well."""

MOST_ASKED = 1000
"""So many jobs of other programs may lie in one run, whatever became of them."""

MOST_REMARKS = 20
"""So many remarks may wait to be logged."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent at one run.

    Attributes:
        run_dir: The run folder.
        proposer: The name under which everything that it does is logged; the operator gave it.
        log: Follows the work log.
        now: Gives the time, UTC.
        most_waiting: So many jobs of other programs may wait for a decision.
        most_asked: So many jobs of other programs may lie in the run.
        most_remarks: So many remarks may wait to be logged.
    """

    run_dir: Path
    proposer: str
    log: LogReader = field(compare=False)
    now: Callable[[], datetime] = _now
    most_waiting: int = MOST_WAITING
    most_asked: int = MOST_ASKED
    most_remarks: int = MOST_REMARKS

    def state(self) -> RunState:
        """The state of the run as last written.

        Raises:
            console.release.folder.FolderError: When there is none, or what is there is none.
        """
        state = folder.read_state(self.run_dir)
        if state is None:
            raise FolderError(f"{self.run_dir}: it has no state yet; try again in a moment")
        return state


def open_agent(run_dir: Path, proposer: str) -> Agent:
    """An agent at a run.

    Args:
        run_dir: The run folder.
        proposer: Its name, which the operator chose.

    Raises:
        console.release.folder.FolderError: When this is no run folder.
        console.release.errors.InputError: When the name is none.
    """
    folder.require_run_folder(run_dir)
    if not _PROPOSER.fullmatch(proposer):
        raise refuse("gonogo mcp: --proposer", "a name of at most 64 letters, digits and . _ @ -", repr(proposer[:80]))
    return Agent(run_dir, proposer, LogReader(run_dir))
