"""The operator at the console's screen, as a login asks them: each question is a dialog, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backends.hosts.operator import Answers, NewHostKey, Question
    from console.app import GonogoApp
    from console.screens.login import _Asking
    from console.session import Clock


class ScreenOperator:
    """Asks through dialogs. Nobody is there before the console is, or where it only looks on.

    Attributes:
        app: The console, set when it opens.
    """

    def __init__(self) -> None:
        self.app: GonogoApp | None = None
        self._one = asyncio.Lock()

    async def accepts(self, key: NewHostKey) -> bool:
        """See `backends.hosts.operator.Operator.accepts`."""
        from console.screens.login import HostKey

        return await self._ask(lambda clock: HostKey(key, clock)) is True

    async def answers(self, question: Question) -> Answers | None:
        """See `backends.hosts.operator.Operator.answers`."""
        from backends.hosts.operator import Answers
        from console.screens.login import MOST_FIELDS, Prompts

        if len(question.prompts) > MOST_FIELDS:
            return None
        answer = await self._ask(lambda clock: Prompts(question, clock))
        return answer if isinstance(answer, Answers) else None

    async def logs_in_again(self, host: str, why: str) -> bool:
        """See `backends.hosts.operator.Operator.logs_in_again`."""
        from console.screens.login import LogInAgain

        return await self._ask(lambda clock: LogInAgain(host, why, clock)) is True

    async def _ask(self, make: Callable[[Clock], _Asking]) -> object:
        """Show a dialog and wait for its end; one at a time, and none stays when nobody waits for it any more."""
        app = self.app
        if app is None or not app.is_running or app.session.desk is None:
            return None
        async with self._one:
            answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()

            def end(result: Any) -> None:
                if not answered.done():
                    answered.set_result(result)

            screen = make(app.session.clock)
            app.bell()
            app.call_later(app.push_screen, screen, end)
            try:
                return await answered
            finally:
                if not answered.done() or answered.cancelled():
                    app.call_later(screen.withdraw)
