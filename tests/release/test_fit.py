"""Fitting tasks to nodes: the global batch stays, or the release is refused with the numbers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.release.clusters import choose_cluster, load_clusters
from console.release.errors import InputError
from console.release.fit import Nodes, fit_task, nodes_of
from console.release.recipe_task import Task


def task(gpus: int = 8, nodes: int = 1, *, fit: bool = True) -> Task:
    return Task(
        stage="train",
        task="train",
        summary="Train",
        script="train.sh",
        results={"data": "data.json"},
        time="01:00:00",
        nodes=nodes,
        gpus_per_node=gpus,
        needs_gpu_fit=fit,
    )


def values(batch: Any = 4, accumulation: Any = 1) -> dict[str, Any]:
    return {"per_device_batch": batch, "gradient_accumulation": accumulation, "other": "x"}


def nodes(gpus: int | None, *, whole: bool = False, max_gpus: int | None = None) -> Nodes:
    return Nodes("alpha", "/etc/clusters.yaml", gpus, whole, max_gpus)


def only_line(*arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        fit_task(*arguments)
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("asked", "there", "whole", "gpus", "accumulation"),
    [
        (8, 8, False, 8, 2),
        (8, 8, True, 8, 2),
        (2, 8, False, 2, 2),  # shared nodes: the recipe's own count
        (8, 4, False, 4, 4),  # smaller nodes: twice the accumulation
        (8, 4, True, 4, 4),
        (2, 4, True, 4, 1),  # whole nodes: more GPUs, less accumulation
        (0, 8, True, 0, 2),  # no GPU asked for: none taken
        (8, None, False, 8, 2),  # nobody can tell: as the recipe says
    ],
)
def test_gpus_and_accumulation(asked: int, there: int | None, whole: bool, gpus: int, accumulation: int) -> None:
    fitted = fit_task(task(asked), values(4, 2), nodes(there, whole=whole))
    assert fitted.task.gpus_per_node == gpus
    assert fitted.values == values(4, accumulation)
    assert bool(fitted.change) == (gpus != asked)


def test_the_change_is_told_with_its_numbers() -> None:
    fitted = fit_task(task(8, nodes=2), values(4, 1), nodes(4))
    assert fitted.change == (
        "8 -> 4 GPUs per node, the size of alpha's nodes; gradient_accumulation 1 -> 2 keeps the global batch of 64"
    )


def test_a_task_that_trains_nothing_takes_the_whole_node_and_keeps_its_values() -> None:
    fitted = fit_task(task(2, fit=False), {"other": 1}, nodes(8, whole=True))
    assert fitted.task.gpus_per_node == 8
    assert fitted.values == {"other": 1}


def test_a_batch_that_cannot_be_kept_is_refused_with_the_numbers() -> None:
    said = only_line(task(8, nodes=2), values(4, 1), nodes(6, whole=True))
    assert said.startswith("release.yaml: overrides.per_device_batch: expected ")
    assert "4 x 16 GPUs x 1 = 64, which 4 x 12 GPUs reach only in 1.33 steps" in said


def test_more_gpus_than_the_batch_has_room_for_is_refused() -> None:
    assert "reach only in 0.5 steps" in only_line(task(4), values(4, 1), nodes(8, whole=True))


def test_a_whole_node_cluster_of_unknown_size_is_refused() -> None:
    said = only_line(task(), values(), nodes(None, whole=True))
    assert said.startswith("/etc/clusters.yaml: clusters.alpha.gonogo.gpus_per_node: expected the GPUs of one node")


@pytest.mark.parametrize("whole", [True, False])
def test_a_server_that_needs_more_gpus_than_a_node_has_is_refused(whole: bool) -> None:
    said = only_line(task(8, fit=False), values(), nodes(4, whole=whole))
    assert "expected at most 4 GPUs per node for train/train, the size of alpha's nodes, found 8" in said


def test_a_cluster_without_gpus_is_refused_for_a_task_with_some() -> None:
    assert only_line(task(8), values(), nodes(0)).startswith("release.yaml: cluster: expected a cluster with GPUs")


def test_the_limit_of_gpus_counts_all_nodes_after_the_fit() -> None:
    assert fit_task(task(8, nodes=2), values(4, 2), nodes(4, max_gpus=8)).task.gpus_per_node == 4
    said = only_line(task(8, 3), values(), nodes(8, max_gpus=16))
    assert "expected at most 16 GPUs for train/train (max_gpus of alpha), found 3 nodes x 8 GPUs = 24" in said


def test_a_size_that_a_value_gives_is_named_as_the_override_to_set() -> None:
    sized = task(8, 3).model_copy(update={"sizes": {"nodes": "train_nodes"}})
    assert only_line(sized, values(), nodes(8, max_gpus=16)).startswith("release.yaml: overrides.train_nodes: ")


@pytest.mark.parametrize("wrong", [None, 0, -1, True, "4", 1.5])
def test_values_that_are_no_counts_are_refused(wrong: Any) -> None:
    assert ": overrides.per_device_batch: expected a whole number" in only_line(task(), values(batch=wrong), nodes(4))
    assert ": overrides.gradient_accumulation: " in only_line(task(), values(accumulation=wrong), nodes(4))


def test_what_slurm_tells_comes_before_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "clusters.yaml"
    path.write_text(
        "clusters:\n  alpha:\n    login_node: a.example.com\n    workspace: /work\n    user: me\n"
        "    gonogo: {gpus_per_node: 4, whole_node: true, max_gpus: 9}\n"
    )
    cluster = choose_cluster(load_clusters(path), None)
    assert nodes_of(cluster, 8) == Nodes("alpha", str(path), 8, True, 9)
    assert nodes_of(cluster, None) == Nodes("alpha", str(path), 4, True, 9)
    assert nodes_of(cluster, 0).gpus == 0


COUNTS = st.integers(1, 64)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.booleans())
def test_the_global_batch_is_kept_exactly_or_the_task_is_refused(
    batch: int, accumulation: int, gpus: int, count: int, there: int, whole: bool
) -> None:
    before = batch * gpus * count * accumulation
    expected_gpus = there if whole else min(there, gpus)
    exact = Fraction(before, batch * expected_gpus * count)
    try:
        fitted = fit_task(task(gpus, count), values(batch, accumulation), nodes(there, whole=whole))
    except InputError as error:
        refused = str(error)
    else:
        refused = ""
        after = fitted.values["per_device_batch"] * fitted.values["gradient_accumulation"]  # type: ignore[operator]
        assert after * fitted.task.gpus_per_node * count == before
        assert fitted.task.gpus_per_node == expected_gpus
    assert bool(refused) == (exact.denominator != 1)
    assert not refused or f"= {before}, which" in refused
