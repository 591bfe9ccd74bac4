"""Fitting a task to a cluster's nodes, without changing what is trained.

The global batch of a training task is per-device batch x GPUs x gradient accumulation. On clusters that give
whole nodes, and on nodes with fewer GPUs than the recipe asks for, the GPU count changes; the accumulation is
scaled so that the global batch stays the same. Where that is not a whole number, nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from console.release.clusters import Cluster
from console.release.errors import InputError, Problem
from console.release.recipe_task import GRADIENT_ACCUMULATION, PER_DEVICE_BATCH, Task
from console.release.validation import Scalar


@dataclass(frozen=True, slots=True)
class Nodes:
    """What matters about a cluster's nodes.

    Attributes:
        cluster: The cluster's name, for messages.
        file: Its clusters file, for messages.
        gpus: GPUs of one node, None where nobody could tell.
        whole: Jobs get whole nodes.
        max_gpus: Most GPUs of one job over all its nodes, None for no limit.
    """

    cluster: str
    file: str
    gpus: int | None
    whole: bool = False
    max_gpus: int | None = None


def nodes_of(cluster: Cluster, seen: int | None) -> Nodes:
    """The nodes of a cluster.

    Args:
        cluster: The cluster.
        seen: GPUs per node as Slurm tells, None where it does not; the cluster's own setting stands in then.
    """
    gpus = cluster.gpus_per_node if seen is None else seen
    return Nodes(cluster.name, cluster.file, gpus, cluster.whole_node, cluster.max_gpus)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A task as it will run on a cluster.

    Attributes:
        task: The task, its GPU count fitted.
        values: The recipe values, gradient accumulation fitted.
        change: What was changed and why, one line for the operator; empty when nothing was.
    """

    task: Task
    values: dict[str, Scalar]
    change: str = ""


def fit_task(task: Task, values: Mapping[str, Scalar], nodes: Nodes, *, file: str = "release.yaml") -> Fitted:
    """Fit a task to a cluster's nodes.

    Args:
        task: The task, sized (`console.release.recipe.size_task`).
        values: Recipe values, as `resolve_values` returns them.
        nodes: The cluster's nodes.
        file: Where the values can be overridden, for messages.

    Raises:
        InputError: When the task does not fit: unknown node size, too few GPUs, a global batch that cannot be
            kept, more GPUs than one job may have.
    """
    gpus = _gpus_per_node(task, nodes, file)
    _check_limit(task, gpus, nodes, file)
    if gpus == task.gpus_per_node:
        return Fitted(task, dict(values))
    fitted = task.model_copy(update={"gpus_per_node": gpus})
    change = f"{task.gpus_per_node} -> {gpus} GPUs per node, the size of {nodes.cluster}'s nodes"
    if not task.needs_gpu_fit:
        return Fitted(fitted, dict(values), change)
    before, after, batch = _accumulation(task, gpus, values, file)
    change += f"; {GRADIENT_ACCUMULATION} {before} -> {after} keeps the global batch of {batch}"
    return Fitted(fitted, {**values, GRADIENT_ACCUMULATION: after}, change)


def _gpus_per_node(task: Task, nodes: Nodes, file: str) -> int:
    """GPUs per node that the task will ask for."""
    if task.gpus_per_node == 0:
        return 0
    if nodes.gpus is None:
        if not nodes.whole:
            return task.gpus_per_node
        field = f"clusters.{nodes.cluster}.gonogo.gpus_per_node"
        expected = "the GPUs of one node (whole_node is true, and Slurm does not tell)"
        raise InputError(Problem(nodes.file, field, expected, "nothing", "add this key"))
    if nodes.gpus < task.gpus_per_node and not task.needs_gpu_fit:
        expected = (
            f"at most {nodes.gpus} GPUs per node for {task.stage}/{task.task}, the size of {nodes.cluster}'s nodes"
        )
        raise InputError(Problem(file, _field(task, "gpus_per_node"), expected, str(task.gpus_per_node)))
    if nodes.gpus == 0:
        expected = f"a cluster with GPUs for {task.stage}/{task.task}"
        raise InputError(Problem(file, "cluster", expected, f"{nodes.cluster}, whose nodes have none"))
    return nodes.gpus if nodes.whole else min(nodes.gpus, task.gpus_per_node)


def _check_limit(task: Task, gpus: int, nodes: Nodes, file: str) -> None:
    total = gpus * task.nodes
    if nodes.max_gpus is not None and total > nodes.max_gpus:
        expected = f"at most {nodes.max_gpus} GPUs for {task.stage}/{task.task} (max_gpus of {nodes.cluster})"
        found = f"{task.nodes} nodes x {gpus} GPUs = {total}"
        raise InputError(Problem(file, _field(task, "nodes"), expected, found))


def _accumulation(task: Task, gpus: int, values: Mapping[str, Scalar], file: str) -> tuple[int, int, int]:
    """Gradient accumulation before and after, and the global batch that both give."""
    batch = _count(values, PER_DEVICE_BATCH, task, file)
    before = _count(values, GRADIENT_ACCUMULATION, task, file)
    old, new = task.nodes * task.gpus_per_node, task.nodes * gpus
    whole = batch * old * before
    after = Fraction(whole, batch * new)
    if after.denominator != 1:
        expected = f"a {PER_DEVICE_BATCH} or number of nodes with which {task.stage}/{task.task} keeps its global batch"
        found = (
            f"{batch} x {old} GPUs x {before} = {whole}, which {batch} x {new} GPUs reach only in "
            f"{float(after):.3g} steps"
        )
        raise InputError(Problem(file, f"overrides.{PER_DEVICE_BATCH}", expected, found, "override one of them"))
    return before, int(after), whole


def _count(values: Mapping[str, Scalar], name: str, task: Task, file: str) -> int:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        expected = f"a whole number of at least 1, to fit {task.stage}/{task.task} to the cluster's nodes"
        raise InputError(Problem(file, f"overrides.{name}", expected, "nothing" if value is None else str(value)))
    return value


def _field(task: Task, size: str) -> str:
    """Where the operator can set a size: an override where the recipe offers one."""
    name = task.sizes.get(size)
    return f"tasks.{task.stage}.{task.task}.{size}" if name is None else f"overrides.{name}"
