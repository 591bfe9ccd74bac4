"""`make bench-watch`: what 500 watched files and 50 jobs cost a cluster, and how soon a result has its verdict.

A real Slurm and a real OpenSSH (`tests.cluster`, so root is needed) behind a link that makes every byte late. The
console's side is the product's own: one connection, the queue monitor, the watcher, the log and the gates. Time runs
from the rename of a result file on the cluster to the gate's entry in the log, on disk. Beside it, the same work by one
`ssh` command for each poll over a ControlMaster connection.

Exit status 0 when every limit was kept, 1 when one was not, 2 when nothing could be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from backends.hosts.ssh import SshHost
from console.release.connecting import connect
from console.release.opening import check_inputs
from console.release.proposing import Release
from tests.benchmarks.login_node import LoginNode, login_node
from tests.benchmarks.watch_console import conducted
from tests.benchmarks.watch_peer import polled
from tests.cluster.errors import ClusterError
from tests.cluster.jobs import target_of
from tests.cluster.running import open_cluster
from tests.gates import passing
from tests.kills.releases import write_recipe

JOBS, FILES, ROUND_TRIP_S = 50, 500, 0.05
OTHERS = FILES // JOBS - 1
GAP_S = 0.5
"""Mean time between two results, which come at random moments: about four at each look."""

MOST_CONNECTIONS, MOST_CHANNELS, MOST_QUERIES, MOST_LOAD, MARGIN_S = 1, 3, 4, 0.01, 0.2


@dataclass
class Job:
    """One job and its files on the cluster.

    Attributes:
        job_id: Slurm's number.
        token: Its token; its name carries eight digits of it.
        result: The file that gets a verdict.
        others: Files that are only watched; every other one is there.
    """

    job_id: str
    token: str
    result: Path
    others: list[Path]


@dataclass
class Measured:
    """What one way of watching came to.

    Attributes:
        latencies: Seconds from a rename to its verdict.
        passed: How many verdicts were GO.
        seconds: How long it watched.
        processor_s: Processor time of the account's logins meanwhile, seconds.
        connections: Logins.
        channels: Most channels at the same time.
        sessions: All channels.
        queries: Most Slurm queries in any minute.
    """

    latencies: list[float] = field(default_factory=list)
    passed: int = 0
    seconds: float = 0.0
    processor_s: float = 0.0
    connections: int = 0
    channels: int = 0
    sessions: int = 0
    queries: int = 0

    @property
    def load(self) -> float:
        """Share of one core of the login node."""
        return self.processor_s / self.seconds

    def percentile(self, share: float) -> float:
        """The smallest latency that so many are no longer than."""
        return sorted(self.latencies)[math.ceil(share * len(self.latencies)) - 1]


async def submit(node: LoginNode, count: int = JOBS) -> list[tuple[str, str]]:
    """Start the jobs; their ids and tokens."""
    tokens = [secrets.token_hex(8) for _ in range(count)]
    script = (
        'for token in "$@"; do sbatch --parsable -A research -p batch -t 30 -o /dev/null'
        ' -J "gonogo-watched-data-$(printf %.8s "$token")" --wrap "sleep 1500" || exit 1; done'
    )
    host = SshHost(target_of(node.cluster, node.account))
    try:
        result = await host.run(script, tokens, timeout=60)
    finally:
        await host.close()
    ids = result.stdout.decode().split()
    if len(ids) != count:
        raise ClusterError(f"{count} jobs were submitted, Slurm took {len(ids)}: {result.stderr.decode()}")
    return list(zip(ids, tokens, strict=True))


def prepare(node: LoginNode, name: str, jobs: list[tuple[str, str]]) -> list[Job]:
    """Make the folders of a round, with what is there from the beginning."""
    made = []
    for number, (job_id, token) in enumerate(jobs):
        folder = node.home / "work" / name / f"job-{number}"
        folder.mkdir(parents=True)
        others = [folder / f"other-{other}.json" for other in range(OTHERS)]
        for path in others[::2]:
            path.write_text('{"not": "asked for"}')
        (folder / ".data.json").write_text(json.dumps(passing.data() | {"token": token}))
        made.append(Job(job_id, token, folder / "data.json", others))
    return made


async def rename_all(jobs: list[Job], random_: random.Random, gap_s: float = GAP_S) -> dict[str, float]:
    """Let each job's result appear at a random moment; when, by token."""
    moments = sorted(random_.uniform(0, gap_s * len(jobs)) for _ in jobs)
    renamed: dict[str, float] = {}
    start = time.monotonic()
    for moment, job in zip(moments, random_.sample(jobs, len(jobs)), strict=True):
        await asyncio.sleep(max(0.0, start + moment - time.monotonic()))
        renamed[job.token] = time.monotonic()
        (job.result.parent / ".data.json").rename(job.result)
    return renamed


def make_release(node: LoginNode, place: Path, **settings: float) -> Release:
    """A release of the instant recipe on this cluster, with every interval as it is by default."""
    write_recipe(place / "recipe")
    entry = {
        "login_node": "127.0.0.1", "user": node.account.name, "ssh_key": str(node.cluster.layout.key),
        "workspace": f"{node.home}/work", "slurm": {"default_account": "research", "default_partition": "batch"},
        "gonogo": {"port": node.port, "known_hosts": str(node.known_hosts), "ssh_config": "/dev/null",
                   "python": "/usr/bin/python3", "slurm_path": str(node.programs), **settings},
    }  # fmt: skip
    (place / "clusters.yaml").write_text(json.dumps({"clusters": {"proving": entry}}))
    inputs = {"target": "demo/tiny", "revision": "a" * 40, "algorithm": "dflash2", "budget": "dev"}
    (place / "release.yaml").write_text(json.dumps({**inputs, "recipe": str(place / "recipe")}))
    return check_inputs(place / "release.yaml", place / "run", "watched", place / "clusters.yaml")[0]


async def measure_console(node: LoginNode, place: Path, jobs: list[tuple[str, str]], rounds: int) -> Measured:
    """The product's own way: several runs after each other over one connection."""
    release = make_release(node, place)
    node.forget()
    connection = await connect(release.cluster)
    measured = Measured()
    start = time.monotonic()
    random_ = random.Random(7)
    try:
        for number in range(rounds):
            prepared = prepare(node, f"console-{number}", jobs)
            async with conducted(release, connection, place / f"run-{number}", prepared) as verdicts:
                renamed = await rename_all(prepared, random_)
                found = {token: await verdict for token, verdict in verdicts.items()}
            measured.latencies += [moment - renamed[token] for token, (moment, _) in found.items()]
            measured.passed += sum(passed for _, passed in found.values())
        measured.seconds, measured.processor_s = time.monotonic() - start, node.processor_s()
    finally:
        await connection.watcher.close()
        await connection.host.close()
    return _counted(node, measured)


async def measure_peer(
    node: LoginNode, place: Path, jobs: list[tuple[str, str]], rounds: int, interval: float, poll: float
) -> Measured:
    """One `ssh` command for each poll."""
    node.forget()
    measured = Measured()
    random_ = random.Random(7)
    async with polled(node, place, interval, poll) as peer:
        start = time.monotonic()
        for number in range(rounds):
            prepared = prepare(node, f"peer-{number}", jobs)
            verdicts = peer.watch(prepared)
            renamed = await rename_all(prepared, random_)
            found = {token: await verdict for token, verdict in verdicts.items()}
            measured.latencies += [moment - renamed[token] for token, (moment, _) in found.items()]
            measured.passed += sum(passed for _, passed in found.values())
        measured.seconds, measured.processor_s = time.monotonic() - start, node.processor_s()
    return _counted(node, measured)


def _counted(node: LoginNode, measured: Measured) -> Measured:
    measured.connections, measured.channels = node.connections(), node.most_channels()
    measured.sessions, measured.queries = node.sessions(), node.most_queries_a_minute()
    return measured


def report(ours: Measured, peer: Measured, interval: float) -> bool:
    """Print both; returns whether ours kept every limit."""
    longest = interval + MARGIN_S
    rows = (
        ("connections", "{:.0f}", ours.connections, peer.connections, MOST_CONNECTIONS),
        ("most channels at once", "{:.0f}", ours.channels, peer.channels, MOST_CHANNELS),
        ("most Slurm queries in a minute", "{:.0f}", ours.queries, peer.queries, MOST_QUERIES),
        ("share of a login node's core, %", "{:.2f}", 100 * ours.load, 100 * peer.load, 100 * MOST_LOAD),
        ("rename to verdict, median, s", "{:.3f}", statistics.median(ours.latencies),
         statistics.median(peer.latencies), None),
        ("rename to verdict, 99th percentile, s", "{:.3f}", ours.percentile(0.99), peer.percentile(0.99), longest),
        ("rename to verdict, longest, s", "{:.3f}", max(ours.latencies), max(peer.latencies), None),
        ("sessions opened", "{:.0f}", ours.sessions, peer.sessions, None),
    )  # fmt: skip
    print(f"{'':<40}{'gonogo':>10}{'ssh per poll':>14}   limit")
    met = True
    for name, form, mine, theirs, limit in rows:
        within = limit is None or (mine < limit if isinstance(limit, float) else mine <= limit)
        met = met and within
        shown = "" if limit is None else f"{'<' if isinstance(limit, float) else '<='} {limit:g}: "
        verdict = "" if limit is None else ("kept" if within else "NOT KEPT")
        print(f"{name:<40}{form.format(mine):>10}{form.format(theirs):>14}   {shown}{verdict}")
    counts = [(len(item.latencies), item.passed, item.seconds) for item in (ours, peer)]
    print("results, GO, seconds watched: " + "; ".join(f"{n}, {go}, {s:.0f}" for n, go, s in counts))
    return met and all(n == go for n, go, _ in counts)


@contextmanager
def _cluster_folder() -> Iterator[str]:
    # Not a temporary folder of Python's: those are closed to the accounts whose homes lie in this one.
    folder = tempfile.mkdtemp(prefix="gonogo-watch-", dir="/tmp")
    try:
        yield folder
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.watch", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help=f"rounds of {JOBS} results")
    parser.add_argument("--peer-rounds", type=int, default=6, help="the same for the peer")
    args = parser.parse_args()
    try:
        with _cluster_folder() as folder, tempfile.TemporaryDirectory(prefix="gonogo-bench-") as place:
            cluster = open_cluster(folder)
            try:
                cluster.up()
                with login_node(cluster, Path(place), ROUND_TRIP_S / 2) as node:
                    jobs = asyncio.run(submit(node))
                    ours = asyncio.run(measure_console(node, Path(place), jobs, args.rounds))
                    cluster.end_logins(node.account)
                    settings = make_release(node, Path(place) / "settings").cluster
                    every = (settings.watch_seconds, settings.poll_seconds)
                    peer = asyncio.run(measure_peer(node, Path(place), jobs, args.peer_rounds, *every))
            finally:
                cluster.down(delete=True)
    except ClusterError as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 2
    print(f"{FILES} files and {JOBS} jobs, a round-trip of {1000 * ROUND_TRIP_S:g} ms, a look each {every[0]:g} s")
    return 0 if report(ours, peer, every[0]) else 1


if __name__ == "__main__":
    sys.exit(main())
