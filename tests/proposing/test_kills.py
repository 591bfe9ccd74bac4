"""Proposer, operator and console die together at every crash point of an asked job: decided once, submitted once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console.release import deciding, queue
from console.release.asking.building import is_asked
from console.release.state import Outcome
from tests.asking.desks import Desk
from tests.release.fake_cluster import Killed
from tests.release.making import Clock, decision
from tests.release.submitting import Process, decided, killed_at, make_release, run_before_its_first_job


def proposals(desk: Desk) -> list[queue.Proposal]:
    return [queue.load(desk.run_dir, name) for name in queue.ids(desk.run_dir) if is_asked(name)]


def work(desk: Desk) -> None:
    """A program asks unless its proposal is there, an operator decides unless that is done, the conductor works."""
    if not proposals(desk):
        desk.ask()
    desk.look()
    for proposal in proposals(desk):
        if not decided(desk.process.writer, proposal.id):
            deciding.decide(desk.run_dir, decision(proposal))
    for _ in range(6):
        desk.look()


def killed_and_resumed(folder: Path, point: int, loop: asyncio.Runner) -> bool:
    """Kill at one point, go on, and ask the oracle.

    Returns:
        False when there are not so many points.
    """
    folder.mkdir()
    release = make_release(folder)
    run_before_its_first_job(release.run_dir)
    desk = Desk(release, loop)
    died = False
    try:
        with killed_at(point):
            work(desk)
    except Killed:
        died = True
        desk.process = Process(release, desk.cluster, Clock(), loop)
    if not proposals(desk):
        # Where the program died before its proposal was published, nothing of it is there, and it asks again.
        desk = Desk(release, loop)
    cluster = desk.cluster
    work(desk)
    (proposal,) = proposals(desk)
    (attempt,) = desk.asked
    decisions = [entry for entry in desk.process.writer.entries if entry.data["event"] == "job_decided"]
    assert [entry.data["decision"] for entry in decisions] == ["approved"], point
    # What was surely never submitted stays so: its OK is used up, and the program has to ask again.
    assert len(cluster.accepted) == (1 if attempt.outcome is Outcome.SUBMITTED else 0), (point, attempt.outcome)
    assert attempt.outcome in (Outcome.SUBMITTED, Outcome.NOT_SUBMITTED), (point, attempt.outcome)
    assert queue.is_used(proposal)
    return died


@pytest.mark.timeout(300)
def test_killed_anywhere_it_is_decided_once_and_submitted_at_most_once(tmp_path: Path) -> None:
    point = 1
    with asyncio.Runner() as loop:
        while killed_and_resumed(tmp_path / f"at-{point}", point, loop):
            point += 1
    assert point > 20, "an asked job passes that many points at least"
