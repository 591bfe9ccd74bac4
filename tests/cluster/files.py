"""The folders and files of a test cluster, before anything runs."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from pathlib import Path

from tests.cluster import accounts, configs
from tests.cluster.layout import GPUS, NODES, Layout


def make_files(layout: Layout) -> None:
    """Make what is missing: folders with their owners, keys, accounts, and the daemons' configuration."""
    folder = layout.folder
    for name, owner, mode in (
        ("etc", "root", 0o755),
        ("run", "root", 0o755),
        ("run/own", "slurm", 0o755),
        ("log", "root", 0o755),
        ("munge", "munge", 0o755),
        ("keys", "root", 0o700),
        ("home", "root", 0o755),
        ("dev", "root", 0o755),
        ("state", "slurm", 0o700),
        ("spool", "root", 0o755),
        *((f"spool/{node}", "root", 0o755) for node in NODES),
        ("database", "mysql", 0o755),
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(mode)
        shutil.chown(folder / name, owner)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    key = folder / "munge/key"
    if not key.exists():
        put(key, secrets.token_bytes(128), "munge", 0o600)
    for number in range(GPUS):
        _make_device(folder / f"dev/gpu{number}")
    accounts.make_keys(layout)
    accounts.make_accounts(layout)
    for name, text, owner, mode in (
        ("slurm.conf", configs.slurm_conf(layout), "root", 0o644),
        ("gres.conf", configs.gres_conf(layout), "root", 0o644),
        ("slurmdbd.conf", configs.slurmdbd_conf(layout, password(layout)), "slurm", 0o600),
        ("database.conf", configs.database_conf(layout), "root", 0o644),
        ("sshd_config", configs.sshd_config(layout), "root", 0o644),
        ("banner", configs.BANNER, "root", 0o644),
        ("associations", configs.associations(layout), "root", 0o644),
    ):
        put(folder / "etc" / name, text.encode(), owner, mode)


def password(layout: Layout) -> str:
    """The database's password for Slurm's accounting, drawn once."""
    path = layout.folder / "etc/database-password"
    if not path.exists():
        put(path, secrets.token_hex(16).encode(), "root", 0o600)
    return path.read_text()


def put(path: Path, data: bytes, owner: str, mode: int) -> None:
    """Write a file whole, with owner and mode, before anybody can read it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_bytes(data)
    fresh.chmod(mode)
    shutil.chown(fresh, owner)
    fresh.replace(path)


def _make_device(path: Path) -> None:
    """A character device like /dev/null. Where that is forbidden a plain file: jobs then see no GPU numbers."""
    if path.exists():
        return
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.chmod(0o666)
    except PermissionError:
        path.touch()
