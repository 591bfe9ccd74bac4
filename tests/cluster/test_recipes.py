"""The recipes for GPU clusters before a real Slurm: it takes every job of theirs, and runs their steps on each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backends.quoting import quote
from console.release.recipe import COMMON
from tests.cluster.jobs import accepted, ended, make_request, reached, seen
from tests.cluster.running import Cluster
from tests.release.test_shared_clusters_file import jobs, what_came_before

pytestmark = pytest.mark.xdist_group("cluster")

__all__ = ["what_came_before"]

# What nodes and partition of the test cluster allow.
SIZES: dict[str, Any] = {"train_cpus": 16, "train_time": "1-00:00:00", "train_nodes": 2, "light_mem": "8G"}


@pytest.mark.usefixtures("what_came_before")
@pytest.mark.parametrize("algorithm", ["dflash", "dflash2"])
@pytest.mark.parametrize("gpus", [4, 2])
async def test_slurm_takes_every_job_of_a_recipe(cluster: Cluster, tmp_path: Path, algorithm: str, gpus: int) -> None:
    async with reached(cluster, cluster.layout.account()) as (host, _):
        for name, job in jobs(tmp_path, algorithm, gpus, **SIZES).items():
            options = " ".join(map(quote, job.sbatch_options()))
            done = await host.run(f"sbatch --test-only {options}", data=job.script.encode())
            assert done.exit_status == 0, f"{name}: {done.stderr.decode()}"
            assert b"to start at" in done.stderr


STEP = f"""
cat > in_container.sh <<'END_OF_STEP'
{(COMMON / "in_container.sh").read_text()}END_OF_STEP
export SAID="it's here"
sh in_container.sh -m "$PWD" sh -c 'printf "%s\\n" "$SAID" > "said.$SLURM_PROCID"'
STEP_NODES=1 sh in_container.sh sh -c 'echo "${{SLURM_STEP_ID-none}}" > once'
"""


async def test_a_step_runs_once_on_each_node_with_what_the_script_exported(cluster: Cluster) -> None:
    account = cluster.layout.account()
    async with reached(cluster, account) as (host, slurm):
        request = make_request(cluster, account, STEP, nodes=2)
        job_id = await accepted(slurm, request)
        status = await seen(slurm, job_id, request, ended)
        done = await host.run('cd "$1" && cat said.0 said.1 once && ls said.*; cat slurm-*.out >&2', [request.job_dir])
        assert done.stdout.decode().splitlines() == ["it's here", "it's here", "none", "said.0", "said.1"], (
            status, done.stderr,
        )  # fmt: skip
