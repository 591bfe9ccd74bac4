"""Which keys a known-hosts file has for a host, and adding one. Format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:%-]*", re.ASCII)
"""Names and addresses that stand for one host in an entry; no pattern, no list, no marker, no comment."""

DEFAULT_PORT = 22


@dataclass(frozen=True, slots=True)
class Place:
    """Where a known key stands.

    Attributes:
        file: The file.
        line: Number of its line, from 1.
        fingerprint: The key's algorithm and fingerprint.
    """

    file: Path
    line: int
    fingerprint: str


def fingerprint(key: Any) -> str:
    """A host key as `ssh-keygen -l` names it, `ssh-ed25519 SHA256:...`; empty for none."""
    return "" if key is None else f"{key.get_algorithm()} {key.get_fingerprint()}"


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


def places_of(
    keys: Collection[Any], paths: Collection[Path], host: str, address: str, port: int | None
) -> Iterator[Place]:
    """Where given keys of a host stand, hashed names included; for words only, nothing is decided by it."""
    import asyncssh

    for path in paths:
        try:
            lines = _text(path).splitlines()
        except OSError:
            continue
        for number, line in enumerate(lines, 1):
            if not _is_entry(line):
                continue
            found = keys_of(asyncssh.import_known_hosts(line), host, address, port)
            # Trusted keys, keys of authorities, revoked keys.
            for key in {key for group in found[:3] for key in group if key in keys}:
                yield Place(path, number, fingerprint(key))


def entry_of(name: str, port: int | None, key: Any) -> str:
    """The line for a host's key.

    Args:
        name: Host name, address or alias.
        port: Port; None for an alias, which stands without one.
        key: The public key, as asyncssh has it.

    Raises:
        ValueError: When the name cannot stand for one host in such a file.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be written as the name of one host")
    place = name if port in (None, DEFAULT_PORT) else f"[{name}]:{port}"
    algorithm, data = key.export_public_key("openssh").decode("ascii").split()[:2]
    return f"{place} {algorithm} {data}"


def append_entry(path: Path, entry: str) -> None:
    """Append one line, with one write, and make it durable.

    The file is never rewritten: others append to it too, and a rename would lose what they wrote meanwhile. Nor can
    half a line do harm: no key is known by it, so that the host stays unknown and is asked about again. A missing
    file is created for this account alone, and so is its folder.

    Raises:
        OSError: When it cannot be written, or is no plain file.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no plain file")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        unfinished = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = ("\n" * unfinished + entry + "\n").encode("ascii")
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path}: only a part of the entry could be written")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
