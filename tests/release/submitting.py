"""A real release whose next step is its first job, and conductors for it that can be killed anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from console.release import effects, queue
from console.release.conductor import Conductor
from console.release.decisions import AwaitDecision, AwaitOperator, Reconcile, Session, Step, Watch, next_step
from console.release.folder import publish
from console.release.opening import check_inputs
from console.release.ports import Connection, Host, Scheduler, Watcher
from console.release.proposing import Release
from console.release.writer import RunWriter
from tests.kills.releases import write_recipe
from tests.release.fake_cluster import FakeCluster, Killed
from tests.release.making import RUN_ID, Clock, new_run


def make_release(folder: Path) -> Release:
    """A release of the instant recipe on a cluster that only stands in a file."""
    write_recipe(folder / "recipe")
    entry = {"login_node": "login.example.org", "user": "alice", "workspace": "/work"}
    (folder / "clusters.yaml").write_text(json.dumps({"clusters": {"gpu": {**entry, "gonogo": {"settle_seconds": 0}}}}))
    inputs = {"target": "demo/tiny", "revision": "a" * 40, "algorithm": "dflash2", "budget": "dev"}
    (folder / "release.yaml").write_text(json.dumps({**inputs, "recipe": str(folder / "recipe")}))
    return check_inputs(folder / "release.yaml", folder / RUN_ID, RUN_ID, folder / "clusters.yaml")[0]


def run_before_its_first_job(run_dir: Path) -> None:
    """Make a run folder in which everything before the first job is done."""
    fresh = run_dir.with_name("fresh")
    writer = new_run(fresh)
    writer.record("stage_started", "Stage setup begins", stage="setup")
    writer.record("setup_done", "The cluster answers", stage="setup", facts={"partition": "batch"})
    writer.record("stage_passed", "Stage setup passed", stage="setup", detail="")
    writer.record("stage_started", "Stage stage_target begins", stage="stage_target")
    target = {"path": "/t", "revision": "", "present": False, "found": "absent"}
    writer.record("target_known", "It must be staged", stage="stage_target", target=target)
    publish(fresh, run_dir)


@contextmanager
def killed_at(point: int) -> Iterator[None]:
    """The process dies at the so-manieth crash point from here; 0 for never."""
    passed = 0

    def count(name: str) -> None:
        nonlocal passed
        passed += 1
        if passed == point:
            raise Killed

    with patch.object(effects._injector, "point", count):
        yield


class Process:
    """One conductor's process: all that it knows is what it read from disk when it began."""

    def __init__(self, release: Release, cluster: FakeCluster, clock: Clock, loop: asyncio.Runner) -> None:
        self._loop = loop
        self.writer = RunWriter(release.run_dir, clock)
        self.conductor = Conductor(release, self.writer, self._never)
        self.conductor.session = Session(probed=True)
        nothing: Any = None
        slurm = cast(Scheduler, cluster)
        self.conductor._connection = Connection(cast(Host, nothing), slurm, cast(Watcher, nothing))
        self.conductor.next_round = lambda name: -60  # type: ignore[method-assign]  # no pauses between questions

    async def _never(self) -> Connection:
        raise AssertionError("it is connected")

    @property
    def next(self) -> Step:
        """What it would do next."""
        return next_step(self.writer.state, self.conductor.plan, self.conductor.session)

    def step(self) -> bool:
        """Carry out the next step, if it needs no person.

        Returns:
            False when nothing goes on without somebody: a decision, an operator, an answer, or results.
        """
        step = self.next
        if isinstance(step, Watch | AwaitOperator):
            return False
        if isinstance(step, AwaitDecision) and not decided(self.writer, step.id):
            return False
        before = self.writer.state.entries
        self._loop.run(self.conductor._carry_out(step))
        return not isinstance(step, Reconcile) or self.writer.state.entries > before


def decided(writer: RunWriter, name: str) -> bool:
    """Whether a decision lies beside a proposal."""
    return queue.decision_of(queue.load(writer.run_dir, name)) is not None
