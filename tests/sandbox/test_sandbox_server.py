"""The embedded cluster as a login node, and what it outlives."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh
import pytest

from backends.errors import NeedsOperator
from backends.hosts.ssh import SshHost
from backends.sandbox import lifecycle
from backends.sandbox.place import Place
from backends.slurm.client import Slurm
from backends.slurm.model import Accepted
from tests.sandbox.clusters import Cluster


def connect(cluster: Cluster) -> asyncssh.connect:
    info = cluster.info
    return asyncssh.connect(
        info.host,
        info.port,
        username=info.user,
        client_keys=[str(info.key_path)],
        known_hosts=str(info.known_hosts_path),
        config=None,
    )


async def until_there_is_room(connection: asyncssh.SSHClientConnection) -> None:
    """The server may hear of a session's end a moment after we do; each try is a round trip, so this ends."""
    while True:
        try:
            again = await connection.run("echo there is room again", check=True)
        except asyncssh.ChannelOpenError:
            continue
        assert again.stdout == "there is room again\n"
        return


async def test_files_travel_over_sftp(cluster: Cluster) -> None:
    async with connect(cluster) as connection, connection.start_sftp_client() as sftp:
        async with sftp.open(str(cluster.info.home / "note"), "wb") as file:
            await file.write(b"\x00bytes\xff")
        assert (await sftp.stat(str(cluster.info.home / "note"))).size == 7
    assert (cluster.info.home / "note").read_bytes() == b"\x00bytes\xff"


async def test_more_sessions_than_openssh_allows_are_refused(cluster: Cluster) -> None:
    async with connect(cluster) as connection:
        open_sessions = [await connection.create_process("exec /bin/sh -s", encoding=None) for _ in range(10)]
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process("exec /bin/sh -s")
        open_sessions[0].stdin.write_eof()
        await open_sessions[0].wait_closed()
        await until_there_is_room(connection)
        for process in open_sessions[1:]:
            process.close()


async def test_a_host_waits_for_room_where_the_server_has_none(cluster: Cluster, host: SshHost) -> None:
    await host.run("true")
    connection = host._connection
    crowd = [await connection.create_process("exec /bin/sh -s", encoding=None) for _ in range(10)]
    answer = asyncio.create_task(host.run("echo in at last"))
    crowd[0].close()
    assert (await answer).stdout == b"in at last\n"
    for process in crowd[1:]:
        process.close()


async def test_another_key_does_not_open_it(cluster: Cluster, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(stranger))
    target = cluster.target()
    host = SshHost(type(target)(target.host, target.port, target.user, target.known_hosts, stranger))
    with pytest.raises(NeedsOperator):
        await host.run("true")
    await host.close()


async def test_a_command_goes_on_when_the_link_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    gate, done = tmp_path / "gate", tmp_path / "done"
    os.mkfifo(gate)
    os.mkfifo(done)
    async with connect(cluster) as connection:
        process = await connection.create_process("exec /bin/sh -s", encoding=None)
        process.stdin.write(f"trap '' HUP PIPE; echo begun; cat {gate}; echo ended > {done}\n".encode())
        process.stdin.write_eof()
        assert await process.stdout.readline() == b"begun\n"
        connection.abort()
    await asyncio.to_thread(gate.write_text, "go\n")
    assert await asyncio.to_thread(done.read_text) == "ended\n"


async def test_it_and_its_jobs_outlive_a_kill_of_the_server(cluster: Cluster, slurm: Slurm, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    outcome = await slurm.submit(cluster.request(f"cat {gate}"))
    assert isinstance(outcome, Accepted)
    number = int(outcome.job_id)
    await cluster.until(number, "RUNNING")
    keys = {file.name: file.read_bytes() for file in cluster.place.keys.iterdir()}
    assert lifecycle.stop(cluster.place.root, signal.SIGKILL)

    again = lifecycle.ensure(cluster.place.root)
    assert again.port == cluster.info.port
    assert again.pid != cluster.info.pid
    assert {file.name: file.read_bytes() for file in cluster.place.keys.iterdir()} == keys
    assert cluster.job(number).state == "RUNNING"
    await asyncio.to_thread(gate.write_text, "go\n")
    await cluster.until(number, "COMPLETED")
    assert [item["job_id"] for item in cluster.started()] == [number]


async def test_a_job_ends_and_is_recorded_while_the_server_is_down(
    cluster: Cluster, slurm: Slurm, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    outcome = await slurm.submit(cluster.request(f"cat {gate}"))
    assert isinstance(outcome, Accepted)
    await cluster.until(int(outcome.job_id), "RUNNING")
    lifecycle.stop(cluster.place.root)
    await asyncio.to_thread(gate.write_text, "go\n")
    job = await cluster.until(int(outcome.job_id), "COMPLETED")
    assert job.ended is not None


async def test_a_dead_runner_is_a_node_failure(cluster: Cluster, slurm: Slurm) -> None:
    # Nobody ends the script of a dead runner, so this one ends by itself soon.
    outcome = await slurm.submit(cluster.request("sleep 20"))
    assert isinstance(outcome, Accepted)
    number = int(outcome.job_id)
    while (job := await cluster.until(number, "RUNNING")).runner is None:
        await asyncio.sleep(0.02)
    os.kill(job.runner, signal.SIGKILL)
    assert (await cluster.until(number, "NODE_FAIL", "COMPLETED")).state == "NODE_FAIL"


def test_it_ends_by_itself_when_unused(tmp_path: Path) -> None:
    lifecycle.ensure(tmp_path / "c", idle_s=0.1)
    file = os.open(Place(tmp_path / "c").lock, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)  # free once the process is gone; the test's own time limit bounds the wait
    os.close(file)
    assert not lifecycle.is_running(Place(tmp_path / "c"))


def test_started_by_many_at_once_it_runs_once(tmp_path: Path) -> None:
    state = tmp_path / "c"
    with ThreadPoolExecutor(4) as pool:
        pids = {info.pid for info in pool.map(lambda _: lifecycle.ensure(state), range(4))}
    assert len(pids) == 1
    lifecycle.stop(state)


def test_the_wake_command_finds_it_from_any_folder(tmp_path: Path) -> None:
    state = tmp_path / ("a long name, with spaces and 'quotes' " * 3) / "c"
    command = [sys.executable, "-m", "backends.sandbox"]
    said = subprocess.run([*command, "ensure", str(state)], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout.startswith("operator@127.0.0.1 port ")
    assert subprocess.run([*command, "stop", str(state)], capture_output=True, text=True).stdout == "ended\n"


def test_a_port_that_another_program_took_is_one_clear_line(tmp_path: Path) -> None:
    state = tmp_path / "c"
    info = lifecycle.ensure(state)
    lifecycle.stop(state)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", info.port))
        taken.listen()
        with pytest.raises(lifecycle.SandboxError, match="did not start: cannot serve on the port that it had before"):
            lifecycle.ensure(state)
