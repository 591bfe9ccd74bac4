"""What only a person can answer while a host is logged in to, and the one interface through which they are asked.

Whoever asks passes facts, never markup: names, prompts and instructions are a server's words, and are data. What is
answered is used once, for the question that it answers; nothing here or below keeps it, logs it or gives it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from backends.errors import NeedsOperator


@dataclass(frozen=True, slots=True)
class NewHostKey:
    """The key of a host that no known-hosts file has yet.

    Attributes:
        host: The host as the operator knows it, `user@host:port`.
        known_as: Name that the entry will have, without its port.
        port: Port.
        algorithm: Kind of the key, such as `ssh-ed25519`.
        fingerprint: `SHA256:...`, as `ssh-keygen -l` writes it.
        file: Known-hosts file that the entry will be appended to.
        looked_in: Every file in which the host was looked for.
        entry: The line that will be appended, without its end.
    """

    host: str
    known_as: str
    port: int
    algorithm: str
    fingerprint: str
    file: Path
    looked_in: tuple[Path, ...]
    entry: str

    @property
    def compare_with(self) -> str:
        """What the fingerprint is to be compared with, in words."""
        kind = {"ssh-ed25519": "ed25519", "ssh-rsa": "rsa"}.get(self.algorithm, "*")
        kind = "ecdsa" if self.algorithm.startswith("ecdsa-") else kind
        return (
            "the site's own page, or with what its administrators see there: "
            f"ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub"
        )


class Secret(StrEnum):
    """What kind of answer is asked for."""

    PASSPHRASE = "passphrase"
    PASSWORD = "password"
    DIALOG = "dialog"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One field.

    Attributes:
        text: The words before it; a server's, where the question is a dialog.
        echo: Whether what is typed may be seen.
    """

    text: str
    echo: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One round of questions, answered or refused as a whole.

    Attributes:
        host: Who asks, `user@host:port`; for a passphrase, whom the key is for.
        kind: What is asked for.
        prompts: The fields, at least one.
        title: The server's own heading, empty for none.
        instructions: The server's own words above the fields, empty for none.
    """

    host: str
    kind: Secret
    prompts: tuple[Prompt, ...]
    title: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """What was typed, one text for each prompt; its representation does not show it."""

    texts: tuple[str, ...] = field(repr=False)


class Operator(Protocol):
    """A person who can be asked. Each call is one act of theirs, and may take as long as they like."""

    async def accepts(self, key: NewHostKey) -> bool:
        """Whether the key of a new host is taken; False unless they said so."""
        ...

    async def answers(self, question: Question) -> Answers | None:
        """What they typed; None when they refused."""
        ...

    async def logs_in_again(self, host: str, why: str) -> bool:
        """Whether to begin another login that will ask them something; the link was lost, or the last one failed."""
        ...


class UnknownHostKey(NeedsOperator):
    """No known-hosts file has the host. A changed or revoked key is never this.

    Attributes:
        key: What the host shows.
    """

    def __init__(self, said: str, advice: str, key: NewHostKey) -> None:
        super().__init__(key.host, "host key", said, advice)
        self.key = key


def texts(answers: Answers, prompts: Sequence[Prompt]) -> list[str] | None:
    """The answers as a protocol takes them; None where their number is not that of the prompts."""
    return list(answers.texts) if len(answers.texts) == len(prompts) else None
