"""What happens on one connection while it logs in, and the answers that a person gives: each question once.

A server can ask as often as it likes. So every method is begun once for a login, a dialog has a few rounds, and a
question that comes again means that its answer was not taken: then nothing more is answered, since a second try is
a second wrong one for the server, and the operator's to make. An answer goes to the server and is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import asyncssh

from backends.hosts.known_hosts import fingerprint
from backends.hosts.operator import Answers, Operator, Prompt, Question, Secret, texts
from backends.hosts.ssh_target import SshTarget

MAX_ROUNDS = 4
"""Rounds of one dialog that are answered: a password, a choice of the second factor, its code, and one to spare."""

MAX_SILENT_ROUNDS = 20
"""Rounds without a question, which only say something, after which a dialog is given up."""

LONGEST_PROMPT = 200


class Client(asyncssh.SSHClient):
    """Hears what happens on a connection, and says yes to nothing by itself.

    Args:
        target: The host.
        alive: Called whenever the host has sent something.
        lost: Called with the reason when the connection has ended.
        operator: Who answers; None where nobody can be asked.

    Attributes:
        shown_key: A host key that is not known.
        keys_refused: Whether the server took none of our keys, or there were none.
        wanted: What it asked for beside a key, in words.
        banner: What it said before the login.
        answered: Whether a person's answer was sent.
        gave_up: Why nothing more is answered; empty while it may be.
    """

    def __init__(
        self,
        target: SshTarget,
        alive: Callable[[], None],
        lost: Callable[[str], None],
        operator: Operator | None = None,
    ) -> None:
        self._target = target
        self._alive = alive
        self._lost = lost
        self._operator = operator
        self._connection: Any = None
        self._begun: set[Secret] = set()
        self._seen: set[tuple[str, ...]] = set()
        self._silent = 0
        self._asking: asyncio.Future[Answers | None] | None = None
        self.shown_key: Any = None
        self.keys_refused = False
        self.wanted: list[str] = []
        self.banner = ""
        self.answered = False
        self.gave_up = ""

    def connection_made(self, conn: Any) -> None:
        """Count every byte of the host as a sign of life."""
        self._connection = conn
        # The library resets its keepalive timer at the same place, so answers to keepalives count here too.
        receive = conn.data_received

        def data_received(data: bytes, datatype: Any = None) -> None:
            self._alive()
            receive(data, datatype)

        conn.data_received = data_received

    @property
    def accepted_key(self) -> str:
        """The host key that was known and proven, empty before that."""
        key = self._connection.get_server_host_key() if self._connection is not None else None
        return "" if key is None or self.shown_key is not None else fingerprint(key)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, and end a question that nobody waits for the answer of."""
        if self._asking is not None:
            self._asking.cancel()
        self._lost(str(exc) if exc is not None else "the link was closed")

    def validate_host_public_key(self, host: str, addr: str, port: int, key: Any) -> bool:
        """Remember the key and refuse it: this is called for an unknown key and for a changed one alike."""
        self.shown_key = key
        return False

    def auth_banner_received(self, msg: str, lang: str) -> None:
        """Remember it, unless it could quote what somebody has typed."""
        if not self.answered:
            self.banner = msg

    def public_key_auth_requested(self) -> Any:
        """No further key."""
        self.keys_refused = True
        return None

    async def password_auth_requested(self) -> str | None:
        """The password, from a person."""
        self.wanted.append("a password")
        if not self._begin(Secret.PASSWORD):
            return None
        found = await self._ask(Secret.PASSWORD, (Prompt(f"Password of {self._target.user}"),))
        return found[0] if found else None

    def password_change_requested(self, prompt: str, lang: str) -> Any:
        """Nobody changes a password here."""
        self.gave_up = "it wants the password changed; change it with ssh"
        return NotImplemented

    def kbdint_auth_requested(self) -> str | None:
        """Begin a dialog where somebody can answer it, or where it costs nothing to hear what it asks."""
        if self._operator is not None:
            return "" if self._begin(Secret.DIALOG) else None
        if self.keys_refused:
            # It would only ask for the password instead, and count a wrong one.
            self.wanted.append("a dialog (keyboard-interactive)")
            return None
        return ""

    async def kbdint_challenge_received(self, name: str, instructions: str, lang: str, prompts: Any) -> Any:
        """One round of a dialog."""
        if self.gave_up:
            return None
        if not prompts:
            self._silent += 1
            if self._silent > MAX_SILENT_ROUNDS:
                self.gave_up = "its dialog does not end"
                return None
            return []
        words = " / ".join(" ".join(f"{instructions} {prompt}".split()) for prompt, _ in prompts)
        # Once somebody has typed something, a server could quote it; what it says then goes to the screen only.
        self.wanted.append("one more answer" if self.answered else f'an answer to "{words[:LONGEST_PROMPT]}"')
        asked = tuple(prompt for prompt, _ in prompts)
        if self._operator is None:
            return None
        if asked in self._seen:
            self.gave_up = "the answer was not taken"
        elif len(self._seen) >= MAX_ROUNDS:
            self.gave_up = f"it asked more than {MAX_ROUNDS} times"
        if self.gave_up:
            return None
        self._seen.add(asked)
        fields = tuple(Prompt(prompt, bool(echo)) for prompt, echo in prompts)
        return await self._ask(Secret.DIALOG, fields, title=name, instructions=instructions)

    def _begin(self, kind: Secret) -> bool:
        """Whether to begin a method. One that the server offers again after it was answered has failed."""
        if self._operator is None or self.gave_up:
            return False
        if kind in self._begun:
            self.gave_up = "the answer was not taken"
            return False
        self._begun.add(kind)
        return True

    async def _ask(
        self, kind: Secret, prompts: Sequence[Prompt], *, title: str = "", instructions: str = ""
    ) -> list[str] | None:
        assert self._operator is not None
        question = Question(self._target.name, kind, tuple(prompts), title, instructions)
        self._asking = asyncio.ensure_future(self._operator.answers(question))
        try:
            answers = await self._asking
        finally:
            self._asking.cancel()
            self._asking = None
        found = None if answers is None else texts(answers, prompts)
        if found is None:
            self.gave_up = "no answer was given"
            return None
        self.answered = True
        return found
