"""The operator's own command that reaches a login node, run as OpenSSH runs a ProxyCommand.

asyncssh splits such a command into words, expands nothing, takes what it prints to its standard error for bytes of
the connection, and the closing of that for the connection's end. So standard error goes to a file here, which also
says why a command failed, and the pipe to asyncssh stays open, unused.
"""

from __future__ import annotations

import re
import tempfile
from types import TracebackType

from backends.quoting import quote

_WORDS_OF_ERRORS = 300
"""Bytes from the end of the command's standard error that go into an error."""


def expand(command: str, *, host: str, port: int, user: str) -> str:
    """A ProxyCommand with its tokens filled in: %h and %n host, %p port, %r user, %% a percent sign."""
    values = {"h": quote(host), "n": quote(host), "p": str(port), "r": quote(user), "%": "%"}
    return re.sub(r"%(.)", lambda found: values.get(found[1], found[0]), command)


class Proxy:
    """A command that reaches a host, and what it says while that is tried; a context manager.

    Args:
        command: The command for a shell, with its tokens filled in.
    """

    def __init__(self, command: str) -> None:
        self._errors = tempfile.NamedTemporaryFile(prefix="gonogo-proxy-")  # noqa: SIM115
        # The shell stays, to hold that pipe: ssh itself would close it. The command ends when its input does.
        self.words = ["/bin/sh", "-c", f'exec 9>&2 2>"$0"\n{command}\nexit $?', self._errors.name]
        """What is run."""

    def said(self) -> str:
        """The end of what the command printed to its standard error."""
        with open(self._errors.name, "rb") as errors:
            return errors.read().decode("utf-8", "replace").strip()[-_WORDS_OF_ERRORS:]

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The command holds its end open; nothing reads what it says from here on.
        self._errors.close()
