"""A process that submits once, for tests that kill or stop it: logs in, says so, waits for a line, submits."""

from __future__ import annotations

import asyncio
import pickle
import sys

from backends.hosts.ssh import SshHost, SshTarget
from backends.slurm.client import Slurm
from backends.slurm.model import SubmitRequest


async def _main(target: SshTarget, request: SubmitRequest, path: str, deadline: float) -> None:
    host = SshHost(target)
    await host.run("true")
    print("ready", flush=True)
    sys.stdin.buffer.read(1)
    outcome = await Slurm(host, path=path, submit_timeout=deadline).submit(request)
    sys.stdout.buffer.write(pickle.dumps(outcome))
    await host.close()


if __name__ == "__main__":
    asyncio.run(_main(*pickle.load(sys.stdin.buffer)))
