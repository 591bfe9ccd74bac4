"""`gonogo cluster`: `check` whether one is ready for a release, `trust` a new one's key, `confirm` commands, `list`."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from console.commands.common import DONE, add_json, print_json
from console.release.clusters import Clusters, find_clusters_file, load_clusters
from console.safe_text import cut, safe

CHECK, TRUST, CONFIRM, LIST = "check", "trust", "confirm", "list"
_WIDTH = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo cluster`."""
    parser.add_argument(
        "verb",
        choices=(CHECK, TRUST, CONFIRM, LIST),
        help="check one cluster, take the host key of a new one, take the commands of this machine that a file which "
        "is not your own names, or list all clusters",
    )
    parser.add_argument(
        "cluster", nargs="?", metavar="CLUSTER", help="a cluster's name; needed where there are several"
    )
    parser.add_argument("--clusters", type=Path, metavar="FILE", help="another clusters file than the usual one")
    parser.add_argument(
        "--fingerprint",
        action="append",
        metavar="SHA256:...",
        help="trust: take the key if this is its fingerprint, without asking; once for each new host on the way",
    )
    parser.add_argument(
        "--digest",
        action="append",
        metavar="HEX",
        help="confirm: take a command if this is its full SHA-256, without asking; once for each command",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check a cluster, take its host key or its commands, or list all.

    Returns:
        0 when all is well, 1 when something is wrong or was refused, 4 when something could not be asked.

    Raises:
        console.release.errors.InputError: When there is no such file or cluster.
    """
    clusters = load_clusters(find_clusters_file(args.clusters))
    if args.verb == LIST:
        return _list(clusters, args)
    name = _name(clusters, args.cluster)
    if args.verb == TRUST:
        from console.commands.trust import trust

        return trust(clusters, name, args)
    if args.verb == CONFIRM:
        from console.commands.confirm import confirm

        return confirm(clusters, name, args)
    from console.release.cluster_check import check_cluster, exit_status, to_json

    checks = asyncio.run(check_cluster(clusters, name))
    if args.json:
        print_json(to_json(name, checks))
        return exit_status(checks)
    print(f"cluster {safe(name)} of {safe(clusters.document.file)}")
    for check in checks:
        words = safe(check.found)
        if check.expected:
            words = f"expected {safe(check.expected)}, found {words}"
        print(f"{check.answer:<{_WIDTH}}{check.name:<{_WIDTH}}{safe(check.asked)}: {words}")
        if check.advice:
            print(f"{'':<{2 * _WIDTH}}-> {safe(check.advice)}")
    return exit_status(checks)


def _name(clusters: Clusters, asked: str | None) -> str:
    """The cluster that is meant; where there are several, only the one that is named.

    Raises:
        InputError: When that is none of the file.
    """
    from console.release.errors import InputError, Problem, suggestion

    if asked is None and len(clusters.names) == 1:
        return clusters.names[0]
    if asked is not None and asked in clusters.names:
        return asked
    names = ", ".join(sorted(clusters.names))
    expected = f"one of the clusters of {clusters.document.file} ({names})"
    if asked is None:
        raise InputError(Problem("command line", "CLUSTER", expected, "nothing", "name one"))
    raise InputError(Problem("command line", "CLUSTER", expected, f'"{asked}"', suggestion(asked, clusters.names)))


def _list(clusters: Clusters, args: argparse.Namespace) -> int:
    """Names, with what each entry says as it stands in the file: an entry may still be wrong."""
    entries = clusters.document.data["clusters"]
    rows = []
    for name in clusters.names:
        entry = entries[name] if isinstance(entries[name], dict) else {}
        login, workspace = (str(entry.get(key) or "") for key in ("login_node", "workspace"))
        rows.append({"name": name, "login_node": login, "workspace": workspace, "default": name == clusters.default})
    if args.json:
        print_json({"file": clusters.document.file, "clusters": rows})
        return DONE
    print(f"clusters of {safe(clusters.document.file)}")
    for row in rows:
        default = "  (default_cluster)" if row["default"] else ""
        login = cut(safe(str(row["login_node"])), 40)
        print(f"{safe(str(row['name']))}  {login}  {safe(str(row['workspace']))}{default}")
    return DONE
