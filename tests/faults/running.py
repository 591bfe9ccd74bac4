"""Carries out many plans at once, over several clusters, and judges them once everything has come to rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.slurm.client import Slurm
from tests.faults.lanes import Client, Finding, Lane
from tests.faults.oracle import violations
from tests.faults.plans import Lengths, Plan, make_plans
from tests.faults.proxy import FaultProxy
from tests.faults.sites import Site


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run.

    Attributes:
        findings: By number of their plans.
        wrong: Every violation: of which submission, its column, in words.
    """

    findings: list[Finding]
    wrong: list[tuple[Finding, str, str]]


@dataclass(frozen=True, slots=True)
class Group:
    """A cluster and how many submissions are made on it at once; troubled clusters take one at a time.

    Attributes:
        site: The cluster.
        lanes: So many at once.
        troubled: Whether the plans that make trouble on the cluster are carried out here.
    """

    site: Site
    lanes: int
    troubled: bool


async def run(
    groups: Sequence[Group],
    folder: Path,
    seed: int,
    count: int,
    chosen: Callable[[Plan], bool] = lambda plan: True,
    report: Callable[[Finding], None] = lambda finding: None,
    client: type[Client] = Slurm,
) -> Result:
    """Measure, make the plans, carry them out, judge.

    Args:
        groups: Where. Plans for whose kind there is no group are left out.
        folder: For the lanes' own files.
        seed: Of the plans and tokens.
        count: About how many.
        chosen: Which of the plans are carried out.
        report: Called after each.
        client: What is put to the proof; processes of their own always run ours.

    Raises:
        TimeoutError: When what was started on a cluster does not end.
    """
    async with contextlib.AsyncExitStack() as stack:
        lanes: list[tuple[Group, Lane]] = []
        for group in groups:
            for _ in range(group.lanes):
                target = group.site.target()
                proxy = await stack.enter_async_context(FaultProxy(target.host, target.port))
                lanes.append((group, Lane(group.site, proxy, folder, seed, client)))
        lengths: Lengths = await lanes[0][1].measure()
        waiting = {troubled: [] for troubled in (False, True)}  # type: dict[bool, list[Plan]]
        for plan in filter(chosen, make_plans(seed, count, lengths)):
            waiting[bool(plan.knobs)].append(plan)
        done: list[tuple[Group, Finding]] = []

        async def work(group: Group, lane: Lane) -> None:
            plans = waiting[group.troubled]
            while plans:
                finding = await lane.run(plans.pop(0))
                done.append((group, finding))
                report(finding)

        async with asyncio.TaskGroup() as tasks:
            for group, lane in lanes:
                tasks.create_task(work(group, lane))
    for group in groups:
        await group.site.quiet()
    return _judge(done)


def _judge(done: list[tuple[Group, Finding]]) -> Result:
    wrong: list[tuple[Finding, str, str]] = []
    for site in {id(group.site): group.site for group, _ in done}.values():
        taken, starts = site.accepted(), Counter(site.started())
        for group, finding in done:
            if group.site is site:
                wrong += [(finding, column, text) for column, text in violations(finding, taken, starts)]
    return Result(sorted((finding for _, finding in done), key=lambda item: item.plan.number), wrong)
