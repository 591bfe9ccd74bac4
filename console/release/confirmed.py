"""Commands of this machine that an entry of clusters.yaml names: run only when they are the operator's own.

A clusters file may come with a project that somebody else wrote, and `wake`, `ssh_proxy` and an SSH configuration of
its own are commands. What stands in the operator's own file (`~/.config/modelopt/clusters.yaml`, or the one that the
settings name) is theirs. From any other file each exact command must have been confirmed once, on this account:
`gonogo cluster confirm` shows it whole. What is kept is its SHA-256, so a command that changes is asked for again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from console import settings
from console.release import effects
from console.release.canonical import canonical, sha256
from console.release.errors import InputError, Problem

STORE = "confirmed-commands"
"""Name of the file beside the settings: a line `SHA-256 <what>` for each command that was confirmed."""

CODE_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Command:
    """Something of an entry by which a command would run on this machine.

    Attributes:
        field: Its place in the entry: ("gonogo", "wake"), ("ssh_proxy",) or ("gonogo", "ssh_config").
        shown: The whole of it, as it is shown; foreign text.
        digest: SHA-256 of everything that it depends on.
    """

    field: tuple[str, ...]
    shown: str
    digest: str

    @property
    def code(self) -> str:
        """What an operator types to confirm it."""
        return self.digest[:CODE_LENGTH]


def wake(command: Sequence[str]) -> Command:
    """The command that makes a cluster reachable."""
    return Command(("gonogo", "wake"), repr(list(command)), _digest({"wake": list(command)}))


def proxy(command: str, host: str, user: str | None, port: int | None) -> Command:
    """The command that reaches a login node; host, user and port are put into it."""
    about = {"ssh_proxy": command, "host": host, "user": user, "port": port}
    into = f" (host {host}, user {user or 'as in the SSH configuration'}, port {port or 'the same'})"
    return Command(("ssh_proxy",), command + into, _digest(about))


def configuration(path: Path) -> Command:
    """An SSH configuration, which can hold commands; those of files that it includes are taken with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        # What is not there runs nothing; whoever reads it says so, and other bytes are another digest.
        return Command(
            ("gonogo", "ssh_config"), f"{path} (cannot be read: {error.strerror})", _digest({"none": str(path)})
        )
    text = data.decode("utf-8", "replace")
    return Command(("gonogo", "ssh_config"), f"{path}:\n{text}", _digest({"ssh_config": str(path), "is": sha256(data)}))


def _digest(about: Mapping[str, object]) -> str:
    return sha256(canonical(dict(about)))


def is_own(file: str) -> bool:
    """Whether a clusters file is the operator's own, so that its commands are theirs.

    Raises:
        console.settings.SettingsError: When the settings, which may name such a file, cannot be used.
    """
    from console.release.clusters import USER_FILE

    own = [Path.home() / USER_FILE]
    named = settings.load().clusters
    if named is not None:
        own.append(named)
    return Path(file).absolute() in [path.absolute() for path in own]


def store_path() -> Path:
    """The file that holds what was confirmed."""
    return settings.path_of().with_name(STORE)


def confirmed() -> frozenset[str]:
    """Digests of the commands that were confirmed.

    Raises:
        InputError: When somebody else can write that file, or it cannot be read: nothing counts as confirmed then.
    """
    path = store_path()
    try:
        with open(path, "rb") as stream:
            about = os.fstat(stream.fileno())
            data = stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError(Problem(str(path), "confirmed commands", "a readable file", found)) from None
    mode = stat.S_IMODE(about.st_mode)
    if about.st_uid != os.geteuid() or mode & 0o022:
        found = f"one of account {about.st_uid}, mode {mode:o}"
        advice = "delete it and confirm the commands again"
        raise InputError(Problem(str(path), "confirmed commands", "a file that only you can write", found, advice))
    return frozenset(line.split(" ", 1)[0] for line in data.decode("ascii", "replace").splitlines() if line)


def confirm(commands: Iterable[Command]) -> None:
    """Remember that commands were seen whole and taken.

    Raises:
        InputError: When somebody else can write the file.
        OSError: When it cannot be written.
    """
    known = confirmed()
    fresh = [command for command in commands if command.digest not in known]
    if not fresh:
        return
    path = store_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{command.digest} {'.'.join(command.field)}\n" for command in fresh)
    effects.append(path, lines.encode("ascii"), "confirmed commands")
