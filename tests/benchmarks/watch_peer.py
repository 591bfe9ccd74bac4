"""The peer of the watch benchmark: what is usual, done well. One `ssh` command for each poll, over a ControlMaster.

Each command looks at all files with one `stat`, and brings the bytes of every result that is there and was not read
before; what comes goes to the same gate at once. It keeps no log, and does not look twice whether a file is stable.
The queue is asked by a command of its own, as often as gonogo asks it by default.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backends.quoting import quote
from gates.registry import run as run_gate
from tests.benchmarks.login_node import LoginNode

if TYPE_CHECKING:
    from tests.benchmarks.watch import Job

_LOOK = """
stat -L -c '%n %s %i %.9Y' -- "$@" 2>/dev/null
echo results
for path in {results}; do
  if [ -e "$path" ]; then printf '%s ' "$path"; base64 -w0 -- "$path"; echo; fi
done
"""


class Peer:
    """Watches by one command for each poll.

    Args:
        node: The login node.
        ssh: The command that runs `sh -s` there.
        interval: Seconds between looks at files.
        poll: Seconds between looks at the queue.
    """

    def __init__(self, node: LoginNode, ssh: Sequence[str], interval: float, poll: float) -> None:
        self._node, self._ssh, self._interval, self._poll = node, ssh, interval, poll
        self._files: list[str] = []
        self._open: dict[str, tuple[Job, asyncio.Future[tuple[float, bool]]]] = {}

    def watch(self, jobs: Sequence[Job]) -> dict[str, asyncio.Future[tuple[float, bool]]]:
        """Watch these jobs' files from now on; the verdicts by token."""
        self._files = [str(path) for job in jobs for path in (job.result, *job.others)]
        loop = asyncio.get_running_loop()
        self._open = {str(job.result): (job, loop.create_future()) for job in jobs}
        return {job.token: verdict for job, verdict in self._open.values()}

    async def run_command(self, script: str) -> bytes:
        """Run a script there."""
        process = await asyncio.create_subprocess_exec(
            *self._ssh, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        stdout, _ = await process.communicate(script.encode())
        return stdout

    async def look_at_files(self) -> None:
        """Look at all files at each interval."""
        while True:
            due = time.monotonic() + self._interval
            if self._files:
                script = f"set -- {' '.join(map(quote, self._files))}\n"
                self._take(await self.run_command(script + _LOOK.format(results=" ".join(map(quote, self._open)))))
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def look_at_queue(self) -> None:
        """Look at all jobs at each poll."""
        while True:
            due = time.monotonic() + self._poll
            await self.run_command(f"{self._node.programs}/squeue -h -t all --me -o '%A|%T|%r|%N|%M|%l|%j'\n")
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _take(self, said: bytes) -> None:
        for line in said.partition(b"\nresults\n")[2].splitlines():
            path, _, data = line.partition(b" ")
            job, answered = self._open.pop(path.decode(), (None, None))
            if job is not None and answered is not None:
                verdict = run_gate("data", {"data": base64.b64decode(data)}, {"token": job.token})
                answered.set_result((time.monotonic(), verdict.passed))


@asynccontextmanager
async def polled(node: LoginNode, place: Path, interval: float, poll: float) -> AsyncIterator[Peer]:
    """The peer, with its connection."""
    control, where = place / "control", f"{node.account.name}@127.0.0.1"
    options = ["-F", "none", "-p", str(node.port), "-i", str(node.cluster.layout.key), "-o", "BatchMode=yes"]
    options += ["-o", f"UserKnownHostsFile={node.known_hosts}", "-o", "LogLevel=ERROR", "-S", str(control)]
    master = await asyncio.create_subprocess_exec("ssh", *options, "-M", "-N", where)
    tasks: list[asyncio.Task[None]] = []
    try:
        async with asyncio.timeout(20):
            while not control.exists():
                await asyncio.sleep(0.02)
        peer = Peer(node, ["ssh", *options, where, "exec", "/bin/sh", "-s"], interval, poll)
        tasks = [asyncio.create_task(peer.look_at_files()), asyncio.create_task(peer.look_at_queue())]
        yield peer
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(ProcessLookupError):
            master.terminate()
        await master.wait()
