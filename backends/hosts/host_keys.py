"""What the host key of one login means: known, new, changed or revoked; and taking a new one when the operator does.

asyncssh reports an unknown key and a changed one alike. So the known-hosts files are asked here, exactly as the
library asked them, and only a host of which they hold nothing at all is new. A changed key is a hard stop: nothing
here, and no dialog above, can accept it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncssh

from backends.errors import NeedsOperator
from backends.hosts.known_hosts import (
    DEFAULT_PORT,
    append_entry,
    entry_of,
    fingerprint,
    keys_of,
    places_of,
    read_known_hosts,
)
from backends.hosts.operator import NewHostKey, Operator, UnknownHostKey
from backends.hosts.ssh_target import SshTarget
from backends.quoting import quote

HOST_KEY = "host key"
"""What a NeedsOperator error about a host key was about."""


class KnownKeys:
    """The known keys of one target, as asyncssh asks for them, and what it was told.

    Args:
        target: The target; its files are read here.

    Raises:
        NeedsOperator: When a known-hosts file is there and cannot be read.
    """

    def __init__(self, target: SshTarget) -> None:
        self._target = target
        self.files: tuple[Path, ...] = (target.known_hosts, *target.other_known_hosts)
        self._asked: tuple[str, str, int | None] | None = None
        try:
            self._known = read_known_hosts(*self.files)
        except OSError as error:
            path = error.filename or target.known_hosts
            advice = f"make {path} readable, or name another file as known_hosts in clusters.yaml"
            raise NeedsOperator(target.name, "read the known hosts", str(error), advice) from None

    def __call__(self, host: str, address: str, port: int | None) -> Any:
        """The known keys; under an alias neither address nor port count, as with OpenSSH."""
        alias = self._target.host_key_alias
        self._asked = (host, address, port) if alias is None else (alias, "", None)
        return keys_of(self._known, *self._asked)

    @property
    def asked(self) -> tuple[str, str, int | None]:
        """Name, address and port that were looked up; before a connection those of the target."""
        if self._asked is None:
            self(self._target.host, "", self._target.port)
        assert self._asked is not None
        return self._asked

    @property
    def found(self) -> Any:
        """What was found for them."""
        return keys_of(self._known, *self.asked)

    def entry_name(self) -> tuple[str, bool]:
        """The name under which an entry was found, and whether that is one without the port that it was asked for.

        The library takes an entry without a port where there is none with it.
        """
        host, address, port = self.asked
        names = [name for name in (host, address) if name]
        marked = [f"[{name}]:{port}" for name in names] if port not in (None, DEFAULT_PORT) else names
        for name in marked:
            if any(keys_of(self._known, name, "", None)):
                return name, False
        bare = next((name for name in names if any(keys_of(self._known, name, "", None))), names[0])
        return bare, marked != names


def problem(target: SshTarget, known: KnownKeys, shown: Any, error: Exception) -> NeedsOperator:
    """What a refused host key means.

    Args:
        target: The host.
        known: What is known of it.
        shown: The key that it showed, None where it was a certificate or there was none.
        error: asyncssh's own.
    """
    place = f"{target.known_as} port {target.port}"
    files = " or ".join(map(str, known.files))
    keys, authorities, revoked = known.found[:3]
    mark = f" ({fingerprint(shown)})" if shown is not None else ""
    if "revoked" in str(error) or (shown is not None and shown in revoked):
        where = _where(known, revoked if shown is None else [shown])
        advice = f"STOP: {place} shows a key{mark} that {where or files} has revoked; ask its administrators"
        return NeedsOperator(target.name, HOST_KEY, str(error), advice)
    if keys or authorities or any(known.found[3:]):
        where = _where(known, [*keys, *authorities])
        advice = (
            f"STOP: {place} shows another key{mark} than {files} has{f': {where}' if where else ''}; "
            f"ask its administrators, and only when they changed it: {_removal(target, known, [*keys, *authorities])}"
        )
        return NeedsOperator(target.name, HOST_KEY, str(error), advice)
    if isinstance(error, asyncssh.KeyExchangeFailed) or shown is None:
        advice = f"{place} and gonogo have no algorithm in common; `ssh -v` shows what it offers"
        return NeedsOperator(target.name, HOST_KEY, str(error), advice)
    return _new(target, known, shown, str(error), f"{place} is not in {files}")


def _where(known: KnownKeys, keys: list[Any]) -> str:
    return ", ".join(
        f"{place.fingerprint} in {place.file} line {place.line}" for place in places_of(keys, known.files, *known.asked)
    )


def _removal(target: SshTarget, known: KnownKeys, keys: list[Any]) -> str:
    """The command that takes the old key out of each file that has it, and what else the entry may be."""
    name, other = known.entry_name()
    files = dict.fromkeys(place.file for place in places_of(keys, known.files, *known.asked))
    commands = [f"ssh-keygen -R {quote(name)} -f {quote(str(file))}" for file in files] or ["ssh-keygen -R"]
    words = " and ".join(f"`{command}`" for command in commands)
    if other:
        words += (
            f" (that entry names {name} without port {target.port}: where it is another server's, give this one a "
            "HostKeyAlias in your SSH configuration instead)"
        )
    return words


def _new(target: SshTarget, known: KnownKeys, shown: Any, said: str, where: str) -> NeedsOperator:
    mark = fingerprint(shown)
    file = target.known_hosts
    if file == Path("/dev/null"):
        advice = f"{where}, and no known-hosts file is in use; name one as known_hosts in clusters.yaml"
        return NeedsOperator(target.name, HOST_KEY, said, advice)
    try:
        entry = entry_of(target.known_as, None if target.host_key_alias is not None else target.port, shown)
    except ValueError as error:
        return NeedsOperator(target.name, HOST_KEY, said, f"{where}; {error}; add it by hand")
    key = NewHostKey(
        target.name,
        target.known_as,
        target.port,
        shown.get_algorithm(),
        shown.get_fingerprint(),
        file,
        known.files,
        entry,
    )
    advice = f"{where}; compare its fingerprint ({mark}), then take it with `gonogo cluster trust`, or add it with ssh"
    return UnknownHostKey(said, advice, key)


async def take(unknown: UnknownHostKey, operator: Operator) -> None:
    """Ask the operator whether a new key is taken, and write it down when it is.

    Raises:
        NeedsOperator: When they did not take it, or it cannot be written.
    """
    key = unknown.key
    if not await operator.accepts(key):
        said = f"the host key was not accepted ({key.algorithm} {key.fingerprint})"
        raise NeedsOperator(key.host, HOST_KEY, said, unknown.advice)
    try:
        await asyncio.to_thread(append_entry, key.file, key.entry)
    except OSError as error:
        advice = f"make {key.file} writable, or name another file as known_hosts in clusters.yaml"
        raise NeedsOperator(key.host, "write the known hosts", str(error), advice) from None
