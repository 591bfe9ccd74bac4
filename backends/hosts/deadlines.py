"""Time limits that stand still while a person is asked: nobody types a code within the limit of a queue query."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from backends.hosts.operator import Answers, NewHostKey, Operator, Question


class Deadlines:
    """The time limits that are open on one host."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Timeout, float] = {}
        self._asking = 0

    @property
    def asking(self) -> bool:
        """Whether the operator is being asked now."""
        return self._asking > 0

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Do something within so many seconds, not counting those in which the operator is asked.

        Raises:
            TimeoutError: When they have passed.
        """
        async with asyncio.timeout(None if self._asking else seconds) as limit:
            self._open[limit] = seconds
            try:
                yield
            finally:
                del self._open[limit]

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop every clock for as long as this lasts."""
        loop = asyncio.get_running_loop()
        self._asking += 1
        if self._asking == 1:
            for limit in self._open:
                when = limit.when()
                if when is not None and not limit.expired():
                    self._open[limit] = max(0.0, when - loop.time())
                    limit.reschedule(None)
        try:
            yield
        finally:
            self._asking -= 1
            if self._asking == 0:
                for limit, left in self._open.items():
                    if not limit.expired():
                        limit.reschedule(loop.time() + left)


class Patient:
    """An operator for whom the clocks stand still.

    Args:
        operator: Who is asked.
        deadlines: The clocks.

    Attributes:
        asked: Whether they were asked for anything to type.
    """

    def __init__(self, operator: Operator, deadlines: Deadlines) -> None:
        self.asked = False
        self._operator = operator
        self._deadlines = deadlines

    async def accepts(self, key: NewHostKey) -> bool:
        """See `Operator.accepts`."""
        with self._deadlines.standing_still():
            return await self._operator.accepts(key)

    async def answers(self, question: Question) -> Answers | None:
        """See `Operator.answers`."""
        self.asked = True
        with self._deadlines.standing_still():
            return await self._operator.answers(question)

    async def logs_in_again(self, host: str, why: str) -> bool:
        """See `Operator.logs_in_again`."""
        with self._deadlines.standing_still():
            return await self._operator.logs_in_again(host, why)
