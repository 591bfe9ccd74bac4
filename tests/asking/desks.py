"""A conductor's desk over a cluster that is the oracle, and a program that asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.release import queue
from console.release.asking.building import propose, read_asked
from console.release.desk import _carry_on, _take_up
from console.release.proposing import Release
from console.release.state import Attempt
from tests.release.fake_cluster import FakeCluster
from tests.release.making import Clock
from tests.release.submitting import Process

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SCRIPT = b'#!/bin/bash\n#SBATCH -t 10\necho "$@"\n'


class Desk:
    """A conductor's desk over a cluster that is the oracle, and a program that asks."""

    def __init__(self, release: Release, loop: asyncio.Runner) -> None:
        self.release = release
        self.cluster = FakeCluster()
        self.loop = loop
        self.process = Process(self.release, self.cluster, Clock(), loop)
        writer = self.process.writer
        writer.record("setup_done", "again", stage="setup", facts={"workspace": "/work"})
        login = {**writer.state.inputs, "login": "alice@login.example.org:22", "cluster": "gpu"}
        writer.state = replace(writer.state, inputs=login)

    @property
    def run_dir(self) -> Path:
        return self.process.writer.run_dir

    def ask(self, *words: str, environ: dict[str, str] | None = None, **asked: Any) -> queue.Proposal:
        read = read_asked(words, stdin=SCRIPT, folder=Path("/"), **asked)
        return propose(self.run_dir, self.process.writer.state, read, environ or {}, proposer="robot", now=NOW)

    def look(self) -> None:
        _take_up(self.process.conductor)
        for attempt in self.process.writer.state.asked:
            self.loop.run(_carry_on(self.process.conductor, attempt, {}))

    @property
    def asked(self) -> list[Attempt]:
        return list(self.process.writer.state.asked)
