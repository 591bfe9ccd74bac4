"""How a script travels to a host's `/bin/sh -s` over standard input, and how its output is told from noise.

The command that the login shell sees is always the same, so no login shell has to understand our quoting. The
script's own standard input is a here-document of base64, so it cannot swallow the script. What it prints stands
between two random marks; the second one carries the exit status, and without it there is no answer. The marks stand
on standard error too, since start-up files print there as well.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from backends.hosts.base import RunResult
from backends.quoting import quote

COMMAND = "exec /bin/sh -s"
"""The fixed text of the command that is run on every host."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One script, ready to be sent.

    Attributes:
        mark: The random mark around its output.
        stdin: All bytes for the shell's standard input.
    """

    mark: str
    stdin: bytes


def frame(script: str, args: Sequence[str] = (), data: bytes = b"", mark: str | None = None) -> Frame:
    """Wrap a script.

    Args:
        script: POSIX shell text.
        args: What $1, $2... are in it.
        data: What it reads from its standard input.
        mark: The mark; random when left out.
    """
    mark = mark or secrets.token_hex(16)
    words = " ".join(quote(word) for word in args)
    encoded = base64.encodebytes(data).decode("ascii")
    head = f"set -- {words}\nprintf '%s\\n' BEGIN-{mark} >&2\nprintf '%s\\n' BEGIN-{mark}\n"
    if data:
        source, here = f"base64 -d <<'DATA-{mark}' | (", f"{encoded}DATA-{mark}\n"
        # The here-document begins on the line after the one that names it, so the body follows it.
        text = f"{head}{source}\n{here}{script}\n)\n"
    else:
        text = f"{head}(\n{script}\n) </dev/null\n"
    tail = f"ended=$?\nprintf '%s\\n' END-{mark} >&2\nprintf '\\n%s %d\\n' END-{mark} $ended\n"
    return Frame(mark, (text + tail).encode("utf-8", "surrogateescape"))


def opening(script: str, args: Sequence[str] = (), mark: str | None = None) -> Frame:
    """Wrap a script that stays and reads its own standard input, once its mark was seen.

    The shell may read ahead, so nothing may be sent before the script has answered: what came together with it
    would be the shell's.
    """
    mark = mark or secrets.token_hex(16)
    words = " ".join(quote(word) for word in args)
    return Frame(mark, f"set -- {words}\nprintf '%s\\n' BEGIN-{mark}\n{script}\n".encode("utf-8", "surrogateescape"))


def unframe(mark: str, stdout: bytes, stderr: bytes) -> RunResult | None:
    """What a script printed and how it ended; None when either mark is missing."""
    begin = f"BEGIN-{mark}\n".encode()
    end = re.compile(rb"\nEND-%s (\d+)\n" % mark.encode())
    start = stdout.find(begin)
    found = end.search(stdout, start)
    if start < 0 or found is None:
        return None
    return RunResult(stdout[start + len(begin) : found.start()], own_errors(mark, stderr), int(found.group(1)))


def own_errors(mark: str, stderr: bytes) -> bytes:
    """What a script itself printed to standard error; all there is, where its first mark is missing."""
    _, begun, said = stderr.rpartition(f"BEGIN-{mark}\n".encode())
    return said.partition(f"END-{mark}\n".encode())[0] if begun else stderr
