"""Result files on a real login node, as they are written, replaced and taken away, and while it cannot be asked."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from backends.errors import FileMissing
from backends.hosts.base import Host
from backends.watcher.model import FilePresence, FileReading
from backends.watcher.watcher import ResultWatcher
from tests.cluster.jobs import accepted, holds_in_time, make_request, reached
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")


@asynccontextmanager
async def watching(host: Host, *paths: str) -> AsyncIterator[ResultWatcher]:
    watcher = ResultWatcher(host, interval=0.05)
    for path in paths:
        watcher.register(path)
    try:
        yield watcher
    finally:
        await watcher.close()


async def read_as(watcher: ResultWatcher, path: str, holds: Callable[[FileReading], bool], what: str) -> None:
    await holds_in_time(lambda: holds(watcher.snapshot()[path]), f"reading of {path}: {what}")


def size_of(seen: FileReading) -> int | None:
    return None if seen.stat is None else seen.stat.size


async def test_a_jobs_result_is_seen_grow_and_come_to_rest(cluster: Cluster) -> None:
    account = cluster.layout.account("fish", noisy=True)
    body = "printf '{\"whole\": ' > out.json\nuntil [ -e go ]; do sleep 0.05; done\nprintf 'true}' >> out.json\n"
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account, body)
        path = f"{request.job_dir}/out.json"
        async with watching(host, path) as watcher:
            await read_as(watcher, path, lambda seen: seen.presence is FilePresence.MISSING, "missing")
            await accepted(slurm, request)
            await read_as(watcher, path, lambda seen: seen.stable and size_of(seen) == 10, "half written")
            assert await watcher.fetch(path, limit=100) == b'{"whole": '
            await host.write(f"{request.job_dir}/go", b"")
            await read_as(watcher, path, lambda seen: seen.stable and size_of(seen) == 15, "whole")
            assert await watcher.fetch(path, limit=100) == b'{"whole": true}'
            assert await watcher.fetch(path, limit=14) is None


async def test_a_replaced_file_is_another_even_with_the_same_size_and_time(cluster: Cluster) -> None:
    account = cluster.layout.account()
    path = f"{cluster.layout.home(account)}/replaced"
    async with reached(cluster, account) as (host, _):
        await host.write(path, b"first")
        async with watching(host, path) as watcher:
            await read_as(watcher, path, lambda seen: seen.stable, "at rest")
            before = watcher.snapshot()[path].stat
            times = os.stat(path)
            Path(f"{path}.new").write_bytes(b"other")
            os.utime(f"{path}.new", ns=(times.st_atime_ns, times.st_mtime_ns))
            os.replace(f"{path}.new", path)
            await read_as(watcher, path, lambda seen: seen.stat != before and seen.stable, "another file at rest")
            assert await watcher.fetch(path, limit=100) == b"other"
            os.unlink(path)
            await read_as(watcher, path, lambda seen: seen.presence is FilePresence.MISSING, "missing")
            with pytest.raises(FileMissing):
                await watcher.fetch(path, limit=100)


async def test_while_nobody_can_be_asked_a_file_is_neither_there_nor_missing(cluster: Cluster) -> None:
    account = cluster.layout.account()
    path = f"{cluster.layout.home(account)}/kept"
    async with reached(cluster, account) as (host, _):
        await host.write(path, b"kept")
        async with watching(host, path) as watcher:
            await read_as(watcher, path, lambda seen: seen.stable, "at rest")
            before = watcher.snapshot()[path].stat
            cluster.end("sshd")
            try:
                cluster.end_logins(account)
                await read_as(watcher, path, lambda seen: seen.presence is FilePresence.COULD_NOT_ASK, "no answer")
                assert watcher.snapshot()[path].stat == before
            finally:
                cluster.start("sshd")
            await read_as(
                watcher, path, lambda seen: seen.presence is FilePresence.SEEN and seen.stable, "at rest again"
            )


async def test_hundreds_of_files_are_one_look(cluster: Cluster) -> None:
    account = cluster.layout.account()
    home = cluster.layout.home(account)
    paths = [f"{home}/many/it's file {number}" for number in range(300)]
    async with reached(cluster, account) as (host, _):
        await host.run('cd && mkdir -p many && for n in $(seq 0 2 299); do : > "many/it\'s file $n"; done')
        async with watching(host, *paths) as watcher:
            await holds_in_time(
                lambda: all(seen.looked_at is not None for seen in watcher.snapshot().values()), "reading of all"
            )
            found = [watcher.snapshot()[path].presence is FilePresence.SEEN for path in paths]
            assert found == [number % 2 == 0 for number in range(300)]
