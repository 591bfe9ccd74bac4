"""SSH servers that ask for what only a person can give, and operators that answer from a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from backends.hosts.operator import Answers, NewHostKey, Question
from backends.hosts.ssh_target import SshTarget

Round = Sequence[tuple[str, bool]]


@dataclass
class Asked:
    """An operator who does what a test says, and remembers what they were asked.

    Attributes:
        takes: Whether they take the key of a new host.
        replies: What they type, one entry for each question; None refuses, and so does the end of the list.
        again: Whether they log in again.
    """

    takes: bool = False
    replies: list[tuple[str, ...] | None] = field(default_factory=list)
    again: bool = False
    keys: list[NewHostKey] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    whys: list[str] = field(default_factory=list)
    before: Callable[[], Any] | None = None

    async def accepts(self, key: NewHostKey) -> bool:
        self.keys.append(key)
        if self.before is not None:
            await self.before()
        return self.takes

    async def answers(self, question: Question) -> Answers | None:
        self.questions.append(question)
        if self.before is not None:
            await self.before()
        reply = self.replies.pop(0) if self.replies else None
        return None if reply is None else Answers(reply)

    async def logs_in_again(self, host: str, why: str) -> bool:
        self.whys.append(why)
        return self.again


class Server:
    """An SSH server on loopback.

    Args:
        folder: For its keys, and for the known hosts of who connects.
        key: Whether the client's key is enough.
        password: The password that it takes, None where it takes none.
        rounds: Prompts of its dialog, one entry for each round.
        right: The answers that it takes, one entry for each round.
        endless: The dialog never ends.
        quotes: Code of the disconnection by which it quotes a password.
    """

    def __init__(
        self,
        folder: Path,
        *,
        key: bool = True,
        password: str | None = None,
        rounds: Sequence[Round] = (),
        right: Sequence[tuple[str, ...]] = (),
        endless: bool = False,
        quotes: int | None = None,
        title: str = "Login",
        instructions: str = "Second factor.",
    ) -> None:
        self.folder, self.takes_key, self.password = folder, key, password
        self.rounds, self.right, self.endless, self.quotes = rounds, right, endless, quotes
        self.title, self.instructions = title, instructions
        self.logins = self.dialogs = self.asked = 0
        self.heard: list[tuple[str, ...]] = []
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.user_key = asyncssh.generate_private_key("ssh-ed25519")
        self.user_key.write_private_key(str(folder / "key"))

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def know(self, key: asyncssh.SSHKey, *, marker: str = "", name: str = "") -> None:
        """Write a key into the known hosts, as the only one."""
        words = (marker, name or f"[127.0.0.1]:{self.port}", key.export_public_key().decode().strip())
        self.known_hosts.write_text(" ".join(word for word in words if word) + "\n")

    async def start(self, *, known: bool = True) -> SshTarget:
        self.server = await asyncssh.create_server(
            lambda: Login(self), "127.0.0.1", 0, server_host_keys=[self.host_key], process_factory=_serve, encoding=None
        )
        self.port = self.server.get_port()
        if known:
            self.know(self.host_key)
        return SshTarget("127.0.0.1", self.port, "alice", self.known_hosts, self.folder / "key", agent="")

    def challenge(self, number: int) -> Any:
        self.asked += 1
        return self.title, self.instructions, "", list(self.rounds[number % len(self.rounds)])

    async def stop(self) -> None:
        self.server.close()
        for connection in self.connections:
            connection.abort()
        await self.server.wait_closed()


async def _serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
    shell = await asyncio.create_subprocess_exec("/bin/sh", "-s", stdin=-1, stdout=-1, stderr=-1)
    stdout, stderr = await shell.communicate(await process.stdin.read())
    process.stdout.write(stdout)
    process.stderr.write(stderr)
    process.exit(shell.returncode or 0)


class Login(asyncssh.SSHServer):
    def __init__(self, server: Server) -> None:
        self.server = server

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.server.logins += 1
        self.server.connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return self.server.takes_key

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key == self.server.user_key.convert_to_public()

    def password_auth_supported(self) -> bool:
        return self.server.password is not None

    def validate_password(self, username: str, password: str) -> bool:
        self.server.heard.append((password,))
        if self.server.quotes is not None:
            connection = self.server.connections[-1]
            connection.send_auth_banner(f"you said {password}")
            connection.disconnect(self.server.quotes, f"you said {password}")
        return password == self.server.password

    def kbdint_auth_supported(self) -> bool:
        return bool(self.server.rounds)

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        self.server.dialogs += 1
        self.round = 0
        return self.server.challenge(0)

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> Any:
        self.server.heard.append(tuple(responses))
        self.round += 1
        if self.server.endless:
            return self.server.challenge(self.round)
        if tuple(responses) != self.server.right[self.round - 1]:
            return False
        return True if self.round == len(self.server.rounds) else self.server.challenge(self.round)
