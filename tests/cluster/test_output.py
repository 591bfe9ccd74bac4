"""A job's output is followed through a real OpenSSH: as it grows, where it is huge, and over a lost link."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.slurm.model import JobState
from backends.watcher.folding import Fold
from backends.watcher.following import FileFollower, Follows, Look
from backends.watcher.model import FilePresence
from backends.watcher.watcher import ResultWatcher
from console.release.output_paths import STDERR, STDOUT, path_of
from console.release.serving_outputs import Followed
from console.release.spool import read_kept
from console.release.submission import to_request
from tests.cluster.jobs import PATIENCE_S, TOOL, accepted, make_job, reached, seen
from tests.cluster.jobs import ended as has_ended
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")


async def look_until(follower: FileFollower, fold: Fold, holds: Callable[[Look], bool]) -> Look:
    """Look again and again until something holds, taking in what was read."""
    end = time.monotonic() + PATIENCE_S
    while True:
        look = await follower.look()
        fold.feed(look.data)
        if holds(look):
            return look
        assert time.monotonic() < end, f"after {PATIENCE_S:g} s it is {look}"
        await asyncio.sleep(0.05)


def texts(fold: Fold) -> list[tuple[bytes, int]]:
    return [(fold.line(number).data, fold.line(number).folded) for number in range(fold.first, fold.end)]


@pytest.mark.parametrize("shell", ["bash", "tcsh", "fish"])
async def test_both_streams_of_a_job_are_followed_from_before_it_starts_to_its_end(
    cluster: Cluster, shell: str
) -> None:
    account = cluster.layout.account(shell, noisy=shell != "bash")
    body = (
        "printf 'begin\\n'; printf '1%%\\r2%%\\r3%%\\n'; printf 'oops \\377\\n' >&2\n"
        "until [ -e go ]; do sleep 0.05; done\necho end\n"
    )
    async with reached(cluster, account) as (host, slurm):
        job = make_job(cluster, account, body, extra_options=("--error=errors-%j",))
        request = to_request(job, {"tool.py": TOOL})
        watcher = ResultWatcher(host, interval=0.1)
        watcher.register(f"{job.job_dir}/nothing")
        try:
            job_id = await accepted(slurm, request)
            out = FileFollower(watcher, path_of(job, job_id, STDOUT))
            errors = FileFollower(watcher, path_of(job, job_id, STDERR))
            told, complained = Fold(), Fold()
            await look_until(out, told, lambda look: told.end >= 2)
            await look_until(errors, complained, lambda look: b"oops" in look.data)
            assert texts(told) == [(b"begin", 0), (b"3%", 2)]
            # Before it may stand what the login shell complains about.
            assert texts(complained)[-1] == (b"oops \xff", 0)
            await host.write(f"{job.job_dir}/go", b"")
            await look_until(out, told, lambda look: told.end >= 3)
            assert texts(told)[2] == (b"end", 0)
            assert (await seen(slurm, job_id, request, has_ended)).state is JobState.COMPLETED
        finally:
            await watcher.close()


async def test_an_output_of_gigabytes_costs_its_end(cluster: Cluster) -> None:
    account = cluster.layout.account()
    path = f"{cluster.layout.home(account)}/huge"
    async with reached(cluster, account) as (host, _):
        await host.run("cd && truncate -s 5G huge && echo end >> huge")
        watcher = ResultWatcher(host, interval=0.1)
        try:
            look = await FileFollower(watcher, path, first=4096).look()
            assert (len(look.data), look.offset, look.skipped) == (4096, 5 * 2**30 + 4 - 4096, 5 * 2**30 + 4 - 4096)
            assert look.data.endswith(b"\0end\n")
        finally:
            await watcher.close()


async def test_over_a_lost_link_it_goes_on_where_it_was_and_what_was_read_is_kept(
    cluster: Cluster, tmp_path: Path
) -> None:
    account = cluster.layout.account()
    path = Path(f"{cluster.layout.home(account)}/growing")
    async with reached(cluster, account) as (host, _):
        await host.run("cd && echo one > growing")
        watcher = ResultWatcher(host, interval=0.1)
        watcher.register(str(path))
        followed = Followed(watcher, tmp_path / "outputs" / "a", "stdout", str(path))

        async def kept_until(presence: FilePresence, data: bytes) -> None:
            end = time.monotonic() + PATIENCE_S
            while True:
                await followed.look("2026-01-01T00:00:00Z")
                kept = read_kept(tmp_path / "outputs" / "a", "stdout")
                assert kept is not None
                found = (tmp_path / "outputs" / "a" / kept.file).read_bytes()
                if (kept.presence, found) == (presence, data):
                    assert [item.why for item in kept.segments] == [Follows.BEGIN]
                    return
                assert time.monotonic() < end, f"after {PATIENCE_S:g} s it is {kept.presence}: {found!r}"
                await asyncio.sleep(0.05)

        try:
            await kept_until(FilePresence.SEEN, b"one\n")
            cluster.end("sshd")
            try:
                cluster.end_logins(account)
                await kept_until(FilePresence.COULD_NOT_ASK, b"one\n")
                with path.open("ab") as file:
                    file.write(b"two\n")
            finally:
                cluster.start("sshd")
            await kept_until(FilePresence.SEEN, b"one\ntwo\n")
        finally:
            await watcher.close()
