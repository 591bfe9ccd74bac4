"""A clusters file for an embedded cluster, and the answers of a check by name."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from console.release.cluster_check import Answer, Check, check_cluster
from console.release.clusters import load_clusters
from console.release.confirmed import confirm
from console.release.errors import InputError
from tests.sandbox.clusters import Cluster

NEEDED = "sh env grep sha256sum tar base64 stat timeout readlink date df awk cat rm rmdir mkdir dirname id touch sleep"


def entry(cluster: Cluster, **settings: Any) -> dict[str, Any]:
    """The entry of an embedded cluster, complete and right."""
    info = cluster.info
    return {
        "login_node": info.host,
        "user": info.user,
        "ssh_key": str(info.key_path),
        "workspace": f"{info.home}/work",
        "slurm": {"default_account": "research", "default_partition": "batch"},
        "gonogo": {"port": info.port, "known_hosts": str(info.known_hosts_path), "ssh_config": "/dev/null", **settings},
    }


def written(folder: Path, entry: dict[str, Any]) -> Path:
    path = folder / "clusters.yaml"
    path.write_text(yaml.safe_dump({"clusters": {"lab": entry}}), encoding="utf-8")
    return path


async def checked(folder: Path, entry: dict[str, Any], **options: Any) -> tuple[Check, ...]:
    clusters = load_clusters(written(folder, entry))
    with suppress(InputError):
        confirm(clusters.commands("lab"))
    return await check_cluster(clusters, "lab", **options)


def wrong(checks: tuple[Check, ...]) -> dict[str, str]:
    """What is wrong, by name: all that is said of it."""
    return {c.name: f"{c.found} | {c.advice}" for c in checks if c.answer is Answer.WRONG}


def unasked(checks: tuple[Check, ...]) -> dict[str, str]:
    return {c.name: c.found for c in checks if c.answer is Answer.COULD_NOT_ASK}


def plain_path(folder: Path) -> str:
    """A search path that has the needed programs and surely no Slurm."""
    folder.mkdir()
    for name in NEEDED.split():
        found = next(Path(part) / name for part in os.environ["PATH"].split(":") if (Path(part) / name).exists())
        (folder / name).symlink_to(found)
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(folder)
