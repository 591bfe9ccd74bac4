"""Every login shell, quiet and noisy: what we send runs as it is, and what comes back is only ours."""

from __future__ import annotations

import pytest

from backends.slurm.model import Accepted
from tests.cluster.jobs import TOOL, ended, make_request, reached, seen
from tests.cluster.layout import SHELLS
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")

every_shell = pytest.mark.parametrize(
    ("shell", "noisy"), [(shell, noisy) for shell in SHELLS for noisy in (False, True)]
)


@every_shell
async def test_bytes_words_and_exit_status_pass_unchanged(cluster: Cluster, shell: str, noisy: bool) -> None:
    account = cluster.layout.account(shell, noisy=noisy)
    words = ["it's", "two  spaces", "$HOME `id` \\ !1", "", "*", "ünï\n-n"]
    async with reached(cluster, account) as (host, _):
        result = await host.run('cat; printf "[%s]" "$@"; exit 7', words, data=b"\x00\xff\n\\n'\"")
        assert result.stdout == b"\x00\xff\n\\n'\"" + "".join(f"[{word}]" for word in words).encode()
        assert result.exit_status == 7
        path = f"{cluster.layout.home(account)}/a file; 'odd' {shell}"
        await host.write(path, b"\xfe\x00 text\n", mode=0o640)
        assert await host.read(path, offset=1, limit=3) == b"\x00 t"
        stat = await host.stat(path)
        assert stat is not None
        assert stat.size == 8


@every_shell
async def test_a_job_is_taken_runs_and_is_seen_to_end(cluster: Cluster, shell: str, noisy: bool) -> None:
    account = cluster.layout.account(shell, noisy=noisy)
    # The variables of a noisy account would send the job to a partition that there is not, and change every answer.
    request = make_request(cluster, account, "pwd\npython3 tool.py\n")
    async with reached(cluster, account) as (host, slurm):
        outcome = await slurm.submit(request)
        assert isinstance(outcome, Accepted)
        status = await seen(slurm, outcome.job_id, request, ended)
        assert (status.state_text, status.limit) == ("COMPLETED", 300)
        output = await host.read(f"{request.job_dir}/slurm-{outcome.job_id}.out")
        # Slurm gives a job the login's own environment, so a talkative one may talk before the job does.
        assert output.decode().splitlines()[-2:] == [request.job_dir, "the tool ran"]
        assert await host.read(f"{request.job_dir}/tool.py") == TOOL
        assert (await slurm.facts("batch", "research")).accounts == ("research",)
