"""A console's hold on one run: what it may read, and, where it may decide, the desk that it decides at.

A session without a desk is read-only by construction: it holds a path and functions that read, and no object by
which anything could be written, decided, cancelled or asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from console.reader import Reader
from console.release import folder
from console.snapshot import Snapshot
from console.terminal import terminal

if TYPE_CHECKING:
    from console.release.queue import Decision
    from console.release.signing import Signer


def utc_now() -> datetime:
    """The wall clock, UTC."""
    return datetime.now(UTC)


class Clock(NamedTuple):
    """The console's clocks; tests bring their own.

    Attributes:
        now: The wall clock, UTC.
        monotonic: Seconds that only go forward.
    """

    now: Callable[[], datetime] = utc_now
    monotonic: Callable[[], float] = time.monotonic


class Desk:
    """Where an operator decides and asks. There is one for each run: it holds the run's console lock.

    Args:
        run_dir: The run folder.
        clock: Gives the time of decisions and requests.

    Attributes:
        final: Whether the last decision made here decides; False for the first of two approvals.

    Raises:
        console.release.folder.Locked: When another console has the lock.
        OSError: When the folder cannot be written to.
    """

    def __init__(self, run_dir: Path, clock: Clock) -> None:
        self._run_dir = run_dir
        self._clock = clock
        self._lock = folder.Lock(run_dir, "console")
        self._signer: Signer | None = None
        self.operator = folder.account()
        self.terminal = terminal()
        self.final = True
        self._beats = 0

    def approve(self, proposal_id: str, digest: str, *, shown_s: int) -> Decision:
        """Approve exactly the job of this digest.

        Args:
            proposal_id: The proposal.
            digest: The full digest of the job that was shown, to its end.
            shown_s: For how many whole seconds it was on the screen.

        Raises:
            console.release.queue.QueueError: When somebody decided first, another job lies there now, or the
                decision could not be signed.
        """
        return self._decide(proposal_id, digest, "approved", "", shown_s, True)

    def reject(self, proposal_id: str, digest: str, reason: str, *, shown_s: int, seen_to_end: bool) -> Decision:
        """Reject a job, with a reason that goes back to the proposer.

        Raises:
            console.release.queue.QueueError: As `approve`, and when the reason is blank.
        """
        return self._decide(proposal_id, digest, "rejected", reason, shown_s, seen_to_end)

    def announce(self) -> str:
        """What deciding does, in words, for while it lasts: whether an agent signs, and waits for a touch."""
        signer = self._signs_with()
        if signer is None:
            return "the decision is being written"
        touch = "; TOUCH YOUR SECURITY KEY when it blinks" if signer.touches() else ""
        return f"your SSH agent is asked to sign the decision{touch}"

    def abandon(self) -> None:
        """Wait for the agent no longer: a decision that is not signed yet is none."""
        if self._signer is not None:
            self._signer.stop()

    def _signs_with(self) -> Signer | None:
        from console import settings
        from console.release import signing

        try:
            self._signer = signing.signer_of(settings.load().signing)
        except settings.SettingsError as error:
            raise signing.SigningError(f"signing: {error}") from None
        return self._signer

    def _decide(
        self, proposal_id: str, digest: str, word: str, reason: str, shown_s: int, seen_to_end: bool
    ) -> Decision:
        from console.release import deciding, queue, signing

        stamp = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}"
        decision = queue.Decision(
            proposal_id, digest, word, self.operator, reason, stamp, self.terminal, shown_s, seen_to_end
        )
        decision = signing.signed(self._run_dir, decision, self._signer or self._signs_with())
        self.final = deciding.decide(self._run_dir, decision)
        return decision

    def ask(self, verb: str, text: str, attempt_id: str = "") -> None:
        """Ask the conductor to do something; it becomes a HUMAN_INTERVENTION in the log.

        Args:
            verb: One of console.release.requests.VERBS.
            text: The operator's words.
            attempt_id: What it is about, empty for the run.

        Raises:
            OSError: When the request cannot be written.
        """
        from console.release import requests

        requests.ask(self._run_dir, verb, self.operator, text, time=self._clock.now(), attempt_id=attempt_id)

    def look_at(self, attempt_id: str, what: str) -> None:
        """Say once more that somebody looks at a job's file, so that the conductor reads it. It blocks.

        Args:
            attempt_id: The attempt.
            what: Which of its files, as in `console.release.output_paths`.

        Raises:
            OSError: When that cannot be written.
        """
        from console.release import leases

        self._beats += 1
        leases.write(self._run_dir, leases.Lease(attempt_id, what), self._beats)

    def look_away(self) -> None:
        """Say that nobody looks any more.

        Raises:
            OSError: When that cannot be written.
        """
        from console.release import leases

        leases.end(self._run_dir)

    def close(self) -> None:
        """Give the lock back."""
        self._lock.close()


class Session:
    """One console on one run.

    Args:
        run_dir: The run folder.
        desk: Where decisions are written; None makes the session read-only.
        read_only_because: Why there is no desk, in words for the screen.
        clock: The clocks.

    Attributes:
        snapshot: The run as it was last read.
    """

    def __init__(
        self, run_dir: Path, desk: Desk | None, *, read_only_because: str = "", clock: Clock | None = None
    ) -> None:
        self.run_dir = run_dir
        self.desk = desk
        self.read_only_because = "" if desk is not None else read_only_because or "this session only looks on"
        self.clock = clock or Clock()
        self._reader = Reader(run_dir)
        self.snapshot: Snapshot = self._reader.first()

    @property
    def exports(self) -> Path:
        """Where exports go: into the run folder where this session may write, else into the current folder."""
        return self.run_dir / folder.EXPORTS_NAME if self.desk is not None else Path.cwd()

    def poll(self) -> Snapshot:
        """Read what changed, in a thread; the screens take the result when it is assigned to `snapshot`."""
        return self._reader.poll()

    def close(self) -> None:
        """Give back what the session holds."""
        if self.desk is not None:
            self.desk.close()


def open_session(run_dir: Path, *, read_only: bool = False, clock: Clock | None = None) -> Session:
    """Open a run: to decide where that is possible, else to look on, saying why.

    Args:
        run_dir: The run folder.
        read_only: Look on only, whoever else is there.
        clock: The clocks.
    """
    clock = clock or Clock()
    if read_only:
        return Session(run_dir, None, read_only_because="opened to look on", clock=clock)
    holder = folder.holder(run_dir, "console")
    if holder is not None:
        return Session(run_dir, None, read_only_because=f"{holder} has the console", clock=clock)
    try:
        desk = Desk(run_dir, clock)
    except folder.Locked as error:
        return Session(run_dir, None, read_only_because=f"{error.holder or 'somebody'} has the console", clock=clock)
    except OSError as error:
        why = f"the run folder cannot be written to ({error.strerror})"
        return Session(run_dir, None, read_only_because=why, clock=clock)
    return Session(run_dir, desk, clock=clock)
