"""Which keys a known-hosts file has for a host. Format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_known_hosts(*paths: Path) -> Any:
    """The entries of known-hosts files, as asyncssh takes them.

    A file that is not there has none: then no key is known. A line that is no entry is passed over, as OpenSSH
    does: it makes nothing known, and must not keep the others from being read.

    Raises:
        OSError: When a file is there and cannot be read.
    """
    import asyncssh

    text = "".join(map(_text, paths))
    try:
        return asyncssh.import_known_hosts(text)
    except ValueError:
        return asyncssh.import_known_hosts("".join(line for line in text.splitlines(True) if _is_entry(line)))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace") + "\n"
    except FileNotFoundError:
        return ""


def _is_entry(line: str) -> bool:
    import asyncssh

    try:
        asyncssh.import_known_hosts(line)
    except ValueError:
        return False
    return True


def keys_of(known: Any, host: str, address: str, port: int | None) -> Any:
    """The keys among them for one host; asyncssh compares, and refuses what is not among them."""
    import asyncssh

    return asyncssh.match_known_hosts(known, host, address, port)
