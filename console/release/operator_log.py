"""What a person did to let a run in, in its log: the acceptance of a host key, and that they were asked at all.

Nothing that was typed is here, and no word of a server: those may hold what belongs to nobody's log.
"""

from __future__ import annotations

from backends.hosts.operator import Answers, NewHostKey, Operator, Question
from console.release.folder import account
from console.release.writer import RunWriter


class LoggedOperator:
    """An operator whose acts become HUMAN_INTERVENTION entries of a run.

    Args:
        operator: Who is asked.
        writer: The run's log.
    """

    def __init__(self, operator: Operator, writer: RunWriter) -> None:
        self._operator = operator
        self._writer = writer

    async def accepts(self, key: NewHostKey) -> bool:
        """See `Operator.accepts`; an acceptance is logged before the key is written down, a refusal likewise."""
        taken = await self._operator.accepts(key)
        place = f"{key.known_as} port {key.port}"
        shown = f"{key.algorithm} {key.fingerprint}"
        if taken:
            text = f"Accepted the host key of {place}: {shown}; it goes into {key.file}"
            self._record("host_key_accepted", text, key)
        else:
            self._record("host_key_refused", f"Did not accept the host key of {place}: {shown}", key)
        return taken

    async def answers(self, question: Question) -> Answers | None:
        """See `Operator.answers`; nothing of it is logged."""
        return await self._operator.answers(question)

    async def logs_in_again(self, host: str, why: str) -> bool:
        """See `Operator.logs_in_again`."""
        return await self._operator.logs_in_again(host, why)

    def _record(self, event: str, text: str, key: NewHostKey) -> None:
        self._writer.record(
            event,
            text,
            stage=self._writer.state.current.name,
            actor=f"operator:{account()}",
            human=True,
            host=key.known_as,
            port=key.port,
            algorithm=key.algorithm,
            fingerprint=key.fingerprint,
            file=str(key.file),
        )
