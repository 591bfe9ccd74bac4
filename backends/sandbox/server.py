"""The login node: an SSH and SFTP server on loopback, beside the scheduler, in one process.

It stops by itself when nobody has been connected and no job has waited or run for a while; its port and keys
stay, so the next start is found where this one was.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import asyncssh

from backends.sandbox.place import USER, VARIABLE, Place
from backends.sandbox.program import COMMANDS, program
from backends.sandbox.scheduler import Scheduler
from backends.sandbox.store import Store

MAX_SESSIONS = 10
"""Sessions on one connection, as OpenSSH's default."""

TICK_S = 0.5
"""The scheduler looks at least so often; a submission makes it look at once."""


class AlreadyRunning(Exception):
    """Another process runs this cluster."""


def _sftp(channel: Any) -> asyncssh.SFTPServer:
    return asyncssh.SFTPServer(channel)


class _Process(asyncssh.SSHServerProcess[bytes]):
    """One session, which tells when it has ended."""

    def __init__(self, ended: Callable[[], None], place: Place) -> None:
        super().__init__(lambda process: _run_command(process, place), _sftp, 3, False)
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()
        super().connection_lost(exc)


class _Connection(asyncssh.SSHServer):
    def __init__(self, node: LoginNode) -> None:
        self._node = node
        self._sessions = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._node.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._node.connections -= 1
        self._node.last_used = time.monotonic()

    def session_requested(self) -> Any:
        if self._sessions >= MAX_SESSIONS:
            return False
        self._sessions += 1
        return _Process(self._session_ended, self._node.place)

    def _session_ended(self) -> None:
        self._sessions -= 1


async def _run_command(process: asyncssh.SSHServerProcess[bytes], place: Place) -> None:
    """What sshd does: the login shell runs the command. When the link is lost it goes on, as there."""
    with contextlib.suppress(FileNotFoundError):
        noise = place.noise.read_bytes()
        process.stdout.write(noise)
        process.stderr.write(noise)
    command = process.command or "exec /bin/sh"
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=place.home,
        env=login_environment(place),
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    taking = asyncio.ensure_future(_take_in(process.stdin, child.stdin))
    try:
        giving = (_give_out(child.stdout, process.stdout), _give_out(child.stderr, process.stderr))
        await asyncio.gather(*giving)
        status = await child.wait()
        with contextlib.suppress(OSError, asyncssh.Error):
            if status < 0:
                process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
            else:
                process.exit(status)
    finally:
        taking.cancel()
        # A lost link ends this task before it has passed on that there is no more to come.
        child.stdin.close()


async def _take_in(source: asyncssh.SSHReader[bytes], target: asyncio.StreamWriter) -> None:
    """Pass on what the client sends, and that it has ended, in whatever way it ended."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()


async def _give_out(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    """Pass on what the command prints; where nobody takes it any more it is read all the same, as long as it comes."""
    while data := await source.read(65536):
        with contextlib.suppress(OSError, asyncssh.Error):
            target.write(data)
            await target.drain()


def login_environment(place: Place) -> dict[str, str]:
    """Environment of a login: nothing of whoever started the cluster but the search path and the zone."""
    kept = {name: os.environ[name] for name in ("TZ", "LANG") if name in os.environ}
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {
        **kept,
        "HOME": str(place.home),
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/sh",
        "PATH": f"{place.programs}:{path}",
    }


class LoginNode:
    """The running cluster.

    Args:
        place: Its folder.
        idle_s: It ends after so many seconds without connection and job.
    """

    def __init__(self, place: Place, idle_s: float) -> None:
        self.place = place
        self.connections = 0
        self.last_used = time.monotonic()
        self._idle_s = idle_s
        self._poked = asyncio.Event()
        self._stop = asyncio.Event()

    async def serve(self, ready: Callable[[], None]) -> None:
        """Serve until idle or told to end.

        Args:
            ready: Called once logins are taken.

        Raises:
            AlreadyRunning: When another process runs this cluster.
            OSError: When the port that it had is taken by another program.
        """
        lock = os.open(self.place.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(str(self.place.root)) from None
        _write_programs(self.place)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        pipe = _open_pipe(self.place)
        loop.add_reader(pipe, self._heard, pipe)
        store = Store(self.place)
        listener = await asyncssh.listen(
            "127.0.0.1",
            _former_port(self.place),
            server_factory=lambda: _Connection(self),
            server_host_keys=[str(self.place.keys / "host_ed25519")],
            authorized_client_keys=str(self.place.keys / "user_ed25519.pub"),
            encoding=None,
            keepalive_interval=30,
        )
        try:
            self._describe(listener.get_port())
            ready()
            await self._work(store)
        finally:
            listener.close()
            store.close()

    def _heard(self, pipe: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(pipe, 4096)
        self._poked.set()

    def _describe(self, port: int) -> None:
        self.place.info.write_text(json.dumps({"port": port, "pid": os.getpid()}) + "\n", encoding="utf-8")
        public = (self.place.keys / "host_ed25519.pub").read_text(encoding="utf-8").strip()
        known = f"[127.0.0.1]:{port} {public}\n"
        (self.place.keys / "known_hosts").write_text(known, encoding="utf-8")

    async def _work(self, store: Store) -> None:
        scheduler = Scheduler(store)
        while not self._stop.is_set():
            self._poked.clear()
            if scheduler.look() or self.connections:
                self.last_used = time.monotonic()
            if time.monotonic() - self.last_used > self._idle_s:
                return
            await self._pause()

    async def _pause(self) -> None:
        waits = {asyncio.ensure_future(event.wait()) for event in (self._poked, self._stop)}
        await asyncio.wait(waits, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _former_port(place: Place) -> int:
    """The port of the last start, since others have written it down; 0, for any free one, at the first."""
    try:
        return int(json.loads(place.info.read_text(encoding="utf-8"))["port"])
    except (OSError, ValueError, KeyError):
        return 0


def _open_pipe(place: Place) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkfifo(place.poke, 0o600)
    # Opened for writing as well, so that it never reads as ended.
    return os.open(place.poke, os.O_RDWR | os.O_NONBLOCK)


def _write_programs(place: Place) -> None:
    """The commands on the account's search path; written anew at each start, since the interpreter may have moved."""
    place.programs.mkdir(exist_ok=True)
    line = shlex.join(program())
    for name in COMMANDS:
        file = place.programs / name
        text = f'#!/bin/sh\n{VARIABLE}={shlex.quote(str(place.root))} exec {line} {name} "$@"\n'
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)


def make_keys(place: Place) -> None:
    """Fresh keys for host and user, at the first start only."""
    place.keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("host_ed25519", "user_ed25519"):
        private = place.keys / name
        if private.exists() and private.with_suffix(".pub").exists():
            continue
        key = asyncssh.generate_private_key("ssh-ed25519", comment=f"gonogo embedded cluster, {name}")
        key.write_public_key(str(private.with_suffix(".pub")))
        temporary = place.keys / f".{name}"
        key.write_private_key(str(temporary))
        temporary.chmod(0o600)
        temporary.rename(private)


def main(place: Place, idle_s: float) -> int:
    """Run the cluster in this process; says on standard output, in one line, when it is ready."""
    place.home.mkdir(parents=True, exist_ok=True)
    make_keys(place)

    def ready() -> None:
        print("ready", flush=True)

    try:
        asyncio.run(LoginNode(place, idle_s).serve(ready))
    except AlreadyRunning:
        print("running already", flush=True)
        return 3
    except OSError as error:
        print(f"cannot serve on the port that it had before: {error}", file=sys.stderr)
        return 1
    return 0
