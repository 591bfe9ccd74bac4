"""Tells the conductor that somebody looks at a file, as long as a screen shows it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from console.release.leases import BEAT_SECONDS
from console.session import Session


class Attention:
    """What one screen tells the conductor, again and again, so that it reads on.

    A session that only looks on has no desk and tells nothing.

    Attributes:
        problem: Why the conductor could not be told the last time, empty where it was.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._told_at = float("-inf")

    async def pay(self, session: Session, attempt_id: str, what: str) -> None:
        """Tell it, once a beat."""
        now = session.clock.monotonic()
        if session.desk is None or now - self._told_at < BEAT_SECONDS:
            return
        self._told_at = now
        try:
            await asyncio.to_thread(session.desk.look_at, attempt_id, what)
            self.problem = ""
        except OSError as error:
            self.problem = f"the conductor cannot be asked to read on: {error}"

    def turn(self) -> None:
        """Something else is looked at: tell it at the next chance."""
        self._told_at = float("-inf")

    async def end(self, session: Session) -> None:
        """Nobody looks any more."""
        if session.desk is not None:
            with suppress(OSError):
                await asyncio.to_thread(session.desk.look_away)
