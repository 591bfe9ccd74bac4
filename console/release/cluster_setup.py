"""The setup stage: is the cluster there, does it take our jobs, can we write to it?

On a resumed run the same questions are asked again before anything else is done. Whatever cannot be asked or
is refused here stops the run as SYSTEMIC, before anything is submitted.
"""

from __future__ import annotations

from typing import Any

from backends.errors import BackendError, CouldNotAsk
from backends.slurm.model import ClusterFacts, Partition
from console.release.job import seconds
from console.release.ports import Connection
from console.release.proposing import Release, make_plan
from console.release.recipe import Task

_WORKSPACE = """
set -u
mkdir -p "$1" || exit 3
probe="$1/.gonogo-probe-$$"
printf probe > "$probe" || exit 4
got=$(cat "$probe"); rm -f "$probe"
[ "$got" = probe ] || exit 5
df -Pk "$1" | awk 'NR==2 {print $4}'
"""


class SetupProblem(Exception):
    """Something about the cluster or the inputs keeps the release from starting.

    The text is one line: what was asked, what came, what to do.

    Attributes:
        systemic: True for the cluster's fault, False for an input that does not fit it.
    """

    def __init__(self, what: str, *, systemic: bool) -> None:
        super().__init__(what)
        self.systemic = systemic


async def probe(release: Release, connection: Connection) -> dict[str, Any]:
    """Ask the cluster everything that setup must know.

    Returns:
        The facts, as they go into the log and the state.

    Raises:
        SetupProblem: When the release cannot run there.
    """
    cluster = release.cluster
    try:
        facts = await connection.slurm.facts(cluster.partition or "", cluster.account or "")
        free_kib = await _workspace(release, connection)
    except CouldNotAsk as error:
        raise SetupProblem(_advise(error), systemic=True) from None
    partition = _partition(release, facts)
    _account(release, facts)
    _limits(release, partition)
    return {
        "host": connection.host.name,
        "hostname": facts.hostname,
        "slurm_version": facts.slurm_version,
        "partition": partition.name,
        "account": cluster.account or "",
        "nodes": partition.nodes,
        "cpus_per_node": partition.cpus_per_node,
        "gpus_per_node": partition.gpus_per_node,
        "workspace": cluster.workspace,
        "workspace_free_bytes": free_kib * 1024,
        "python": facts.python,
        "clock_offset_ms": round(facts.clock_offset * 1000),
        "problems": list(facts.problems),
    }


def _advise(error: CouldNotAsk) -> str:
    advice = getattr(error, "advice", "") or "check the cluster, then `gonogo resume` this run"
    return f"{error}; {advice}"


async def _workspace(release: Release, connection: Connection) -> int:
    """Write to the workspace; returns the free space there in KiB."""
    workspace = release.cluster.workspace
    result = await connection.host.run(_WORKSPACE, [workspace])
    if result.exit_status != 0 or not result.stdout.strip().isdigit():
        said = result.stderr.decode("utf-8", "replace").strip() or f"exit status {result.exit_status}"
        raise SetupProblem(
            f"cluster {release.cluster.name}: workspace {workspace} is not writable: {said}; "
            "correct `workspace` in clusters.yaml or its permissions",
            systemic=False,
        )
    return int(result.stdout.strip())


def _partition(release: Release, facts: ClusterFacts) -> Partition:
    name = release.cluster.partition
    if name is None:
        if len(facts.partitions) == 1:
            return next(iter(facts.partitions.values()))
        raise SetupProblem(
            f"cluster {release.cluster.name}: no partition is named and it has several "
            f"({', '.join(sorted(facts.partitions))}); set slurm.default_partition",
            systemic=False,
        )
    found = facts.partitions.get(name)
    if found is None:
        known = ", ".join(sorted(facts.partitions))
        raise SetupProblem(
            f"cluster {release.cluster.name}: there is no partition {name!r}; it has {known}", systemic=False
        )
    if not found.up:
        raise SetupProblem(f"cluster {release.cluster.name}: partition {name!r} is not up", systemic=True)
    return found


def _account(release: Release, facts: ClusterFacts) -> None:
    account = release.cluster.account
    if account and facts.accounts is not None and account not in facts.accounts:
        raise SetupProblem(
            f"cluster {release.cluster.name}: account {account!r} is not one of yours ({', '.join(facts.accounts)}); "
            "correct slurm.default_account",
            systemic=False,
        )


def _limits(release: Release, partition: Partition) -> None:
    """Refuse tasks that the partition would refuse, or worse, keep pending for ever."""
    planned = {(task.stage, task.task) for task in make_plan(release).tasks}
    for task in release.recipe.tasks:
        if (task.stage, task.task) not in planned:
            continue
        asked = _over(task, partition)
        if asked:
            raise SetupProblem(f"recipe {release.recipe.name}: task {task.stage}/{task.task}: {asked}", systemic=False)


def _over(task: Task, partition: Partition) -> str:
    """What a task asks for that the partition does not have; empty when it fits."""
    if partition.max_seconds is not None and seconds(task.time) > partition.max_seconds:
        return f"asks for {task.time}, partition {partition.name} allows {partition.max_seconds} s"
    if task.nodes > partition.nodes:
        return f"asks for {task.nodes} nodes, partition {partition.name} has {partition.nodes}"
    gpus = partition.gpus_per_node
    if gpus is not None and task.gpus_per_node > gpus:
        return f"asks for {task.gpus_per_node} GPUs on a node, partition {partition.name} has {gpus}"
    return ""


async def reachable(release: Release, connection: Connection) -> None:
    """On a resumed run: make sure that the cluster still answers.

    Raises:
        SetupProblem: When it does not.
    """
    try:
        await connection.slurm.facts(release.cluster.partition or "", release.cluster.account or "")
    except BackendError as error:
        raise SetupProblem(_advise(error) if isinstance(error, CouldNotAsk) else str(error), systemic=True) from None
