"""`python -m tests.cluster install | up DIR | down DIR [--delete]`."""

from __future__ import annotations

import argparse
import sys

from tests.cluster import packages, running
from tests.cluster.errors import ClusterError


def main() -> int:
    """Install, start or end a test cluster."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description="A real Slurm and OpenSSH on loopback")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install", help="install the Debian packages that it is made of")
    up = commands.add_parser("up", help="start what does not run of the cluster in DIR")
    down = commands.add_parser("down", help="end the jobs, logins and daemons of the cluster in DIR")
    for part in (up, down):
        part.add_argument("folder", metavar="DIR")
    down.add_argument("--delete", action="store_true", help="delete its accounts and DIR too")
    given = parser.parse_args()
    try:
        if given.command == "install":
            print("installed:", " ".join(packages.install()) or "nothing, all is there")
        elif given.command == "up":
            _up(given.folder)
        else:
            _down(given.folder, given.delete)
    except ClusterError as error:
        print(f"tests.cluster: {error}", file=sys.stderr)
        return 1
    return 0


def _up(folder: str) -> None:
    cluster = running.open_cluster(folder)
    cluster.up()
    layout = cluster.layout
    took = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cluster.timings.items() if seconds >= 0.05)
    print(f"up after {sum(cluster.timings.values()):.1f} s ({took})")
    print(f"export SLURM_CONF={layout.slurm_conf}")
    options = f"-F none -p {layout.ports['sshd']} -i {layout.key} -o UserKnownHostsFile={layout.known_hosts}"
    for account in layout.accounts:
        print(f"ssh {options} {account.name}@127.0.0.1")


def _down(folder: str, delete: bool) -> None:
    cluster = running.find_cluster(folder)
    if cluster is None:
        print(f"no test cluster in {folder}")
        return
    cluster.down(delete=delete)
    print(f"{'deleted' if delete else 'down'}: {cluster.layout.folder}")


if __name__ == "__main__":
    sys.exit(main())
