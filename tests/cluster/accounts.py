"""Keys, and the unprivileged accounts with their shells."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.cluster.configs import HOST_KEYS, start_up_file
from tests.cluster.errors import ClusterError
from tests.cluster.layout import Account, Layout
from tests.cluster.packages import find

GROUP = "users"
"""Debian's common group: a group of its own for each account would only have to be deleted again."""


def command(layout: Layout, *words: str) -> str:
    """Run a command as root and return what it printed.

    Raises:
        ClusterError: When it fails, with its own words.
    """
    program = find(words[0])
    if program is None:
        raise ClusterError(f"{words[0]} is not installed; `python -m tests.cluster install` installs what is needed")
    try:
        ended = subprocess.run(
            [program, *words[1:]],
            env=layout.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{' '.join(words)}: not done within 120 s") from None
    if ended.returncode != 0:
        said = (ended.stdout + ended.stderr).decode("utf-8", "replace").strip()
        raise ClusterError(f"{' '.join(words)}: exit status {ended.returncode}: {said[-1000:]}")
    return ended.stdout.decode("utf-8", "replace")


def make_keys(layout: Layout) -> None:
    """Host keys of every kind, the operator's key, and the known-hosts file that holds all host keys."""
    folder = layout.key.parent
    for kind in HOST_KEYS:
        _keygen(layout, folder / f"host_{kind}", kind)
    _keygen(layout, layout.key, "ed25519")
    known = [known_host(layout, kind) for kind in HOST_KEYS]
    layout.known_hosts.write_text("".join(known))


def known_host(layout: Layout, kind: str) -> str:
    """The known-hosts line of one kind of host key."""
    public = (layout.key.parent / f"host_{kind}.pub").read_text().split()[:2]
    return f"[127.0.0.1]:{layout.ports['sshd']} {' '.join(public)}\n"


def _keygen(layout: Layout, path: Path, kind: str) -> None:
    if not path.exists():
        command(layout, "ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "test cluster", "-f", str(path))


def make_accounts(layout: Layout) -> None:
    """Create what is missing of the accounts, their homes and start-up files."""
    for account in layout.accounts:
        try:
            entry = pwd.getpwnam(account.name)
        except KeyError:
            _add(layout, account)
            entry = pwd.getpwnam(account.name)
        if entry.pw_dir != str(layout.home(account)):
            raise ClusterError(f"there is an account {account.name} on this machine that is not this cluster's")
        _furnish(layout, account, entry.pw_uid, entry.pw_gid)


def _add(layout: Layout, account: Account) -> None:
    shell = find(account.shell)
    if shell is None:
        raise ClusterError(f"{account.shell} is not installed; `python -m tests.cluster install` installs it")
    # The password "*" is one that nobody has; without one the account would count as locked, and sshd refuse its key.
    options = ["-M", "-N", "-g", GROUP, "-d", str(layout.home(account)), "-s", shell, "-p", "*", "-c", "gonogo tests"]
    command(layout, "useradd", *options, account.name)


def _furnish(layout: Layout, account: Account, uid: int, gid: int) -> None:
    home = layout.home(account)
    (home / ".ssh").mkdir(parents=True, exist_ok=True)
    (home / ".ssh/authorized_keys").write_bytes(layout.key.with_suffix(".pub").read_bytes())
    if account.noisy:
        name, text = start_up_file(account.shell)
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for place, folders, files in os.walk(home):
        os.chown(place, uid, gid)
        for name in (*folders, *files):
            os.chown(os.path.join(place, name), uid, gid, follow_symlinks=False)
    home.chmod(0o755)
    (home / ".ssh").chmod(0o700)
    (home / ".ssh/authorized_keys").chmod(0o600)


def delete_accounts(layout: Layout) -> None:
    """Delete this cluster's accounts, and nobody else's."""
    for account in layout.accounts:
        with contextlib.suppress(KeyError):
            if pwd.getpwnam(account.name).pw_dir == str(layout.home(account)):
                command(layout, "userdel", account.name)


def delete_folder(layout: Layout) -> None:
    """Delete the cluster's folder."""
    shutil.rmtree(layout.folder)
