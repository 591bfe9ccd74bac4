"""The login node of the watch benchmark: a real OpenSSH behind a slow link, whose own log says who did what there.

Connections and channels are counted in the log of the server, Slurm's commands by programs of the same names that come
first on the path, and processor time is what the kernel charged to the processes of the account's logins.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.first_frame import ROOT
from tests.cluster.layout import Account, free_port
from tests.cluster.processes import wait_until
from tests.cluster.running import Cluster

QUERIES = ("squeue", "sacct")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class LoginNode:
    """One login node.

    Attributes:
        cluster: The cluster behind it.
        account: The account that is used.
        port: Where it is reached, over the slow link.
        log: What the server says.
        known_hosts: A known-hosts file for it.
        programs: Folder of the counting programs.
    """

    cluster: Cluster
    account: Account
    port: int
    log: Path
    known_hosts: Path
    programs: Path

    @property
    def home(self) -> Path:
        """The account's home."""
        return self.cluster.layout.home(self.account)

    def connections(self) -> int:
        """How many logins there were."""
        return len(re.findall(rf"Accepted publickey for {re.escape(self.account.name)} ", self.log.read_text()))

    def most_channels(self) -> int:
        """How many sessions were open at the same time, at most."""
        now = most = 0
        for line in self.log.read_text().splitlines():
            if line.startswith("Starting session:"):
                now += 1
            elif line.startswith("Close session:"):
                now -= 1
            most = max(most, now)
        return most

    def sessions(self) -> int:
        """How many sessions there were."""
        return self.log.read_text().count("Starting session:")

    def queries(self) -> list[float]:
        """When Slurm was asked, seconds since the epoch."""
        try:
            return [float(line.split()[0]) for line in (self.home / "queries").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def most_queries_a_minute(self) -> int:
        """The most that fell into any minute."""
        times = self.queries()
        return max((sum(start <= moment < start + 60 for moment in times) for start in times), default=0)

    def processor_s(self) -> float:
        """Seconds of processor time of all that runs or ran in the account's open logins, the server's own included."""
        return sum(map(_charged, _with_descendants(self.cluster.logins(self.account)))) / TICKS

    def forget(self) -> None:
        """Count from now on."""
        self.log.write_bytes(b"")
        (self.home / "queries").unlink(missing_ok=True)


def _stat(pid: int) -> list[str]:
    """The words of /proc/PID/stat behind the name, which begins with the third: proc(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _charged(pid: int) -> int:
    """utime, stime, cutime and cstime, in ticks."""
    return sum(map(int, _stat(pid)[11:15]))


def _with_descendants(pids: list[int]) -> set[int]:
    parents = {int(path.name): _stat(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    found = set(pids)
    while True:
        more = {pid for pid, words in parents.items() if words and int(words[1]) in found} - found
        if not more:
            return found
        found |= more


@contextmanager
def login_node(cluster: Cluster, place: Path, delay_s: float) -> Iterator[LoginNode]:
    """Start one.

    Args:
        cluster: A running cluster.
        place: A folder for known hosts.
        delay_s: How late every byte is, each way, seconds.
    """
    layout, account = cluster.layout, cluster.layout.account()
    port, log = free_port(), layout.folder / "log/benchmark-sshd.log"
    words = ["/usr/sbin/sshd", "-D", "-e", "-f", f"{layout.folder}/etc/sshd_config", "-p", str(port)]
    options = ["-o", "LogLevel=VERBOSE", "-o", "PidFile=none"]
    with log.open("ab") as stream:
        server = subprocess.Popen(
            [*words, *options], stdin=subprocess.DEVNULL, stderr=stream, env=layout.environment(), cwd="/"
        )
    link = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.delay", str(port), str(delay_s)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        wait_until(lambda: "Server listening" in log.read_text(), "the server to listen", log)
        assert link.stdout is not None
        far = int(link.stdout.readline())
        known = place / "known_hosts"
        key = (layout.folder / "keys/host_ed25519.pub").read_text().split()
        known.write_text(f"[127.0.0.1]:{far} {key[0]} {key[1]}\n")
        yield LoginNode(cluster, account, far, log, known, _counting_programs(cluster, account))
    finally:
        cluster.end_logins(account)
        for process in (server, link):
            process.kill()
            process.wait()


def _counting_programs(cluster: Cluster, account: Account) -> Path:
    folder = cluster.layout.home(account) / "counting"
    folder.mkdir(exist_ok=True)
    for name in QUERIES:
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$(date +%s.%N) {name}" >> "$HOME/queries"\nexec /usr/bin/{name} "$@"\n')
        program.chmod(0o755)
    return folder
