"""The fixed `/bin/sh -s` is another shell on other systems: everything that we send must run in each of them."""

from __future__ import annotations

import pytest

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts import ssh
from backends.slurm.model import Accepted, NotSubmitted, Presence, Refused, Unknown
from tests.cluster.jobs import accepted, ended, make_request, reached, running, seen
from tests.cluster.running import Cluster

pytestmark = pytest.mark.xdist_group("cluster")

AS_SH = {
    "bash": 'exec bash -c "exec -a sh bash -s"',
    "bash --posix": "exec bash --posix -s",
    "zsh": 'exec zsh -c "ARGV0=sh exec zsh -s"',
    "busybox": "exec busybox sh -s",
    "mksh": "exec mksh -s",
}
"""How to begin each of them as the system's plain shell."""


@pytest.fixture(params=AS_SH)
def plain_shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make another shell the one that scripts run in."""
    name: str = request.param
    monkeypatch.setattr(ssh, "COMMAND", AS_SH[name])
    return name


async def test_every_script_runs_in_it(cluster: Cluster, plain_shell: str) -> None:
    account = cluster.layout.account(noisy=True)
    home = cluster.layout.home(account)
    async with reached(cluster, account) as (host, slurm):
        words = ["it's", "", "*", "ünï\n-n", "\\t"]
        result = await host.run(
            'cat; for word in "$@"; do printf "[%s]" "$word"; done; exit 7', words, data=b"\x00\xff"
        )
        assert result.stdout == b"\x00\xff" + "".join(f"[{word}]" for word in words).encode()
        assert result.exit_status == 7
        path = f"{home}/file in {plain_shell}"
        await host.write(path, b"\xfe\x00 text\n")
        assert await host.read(path, offset=1, limit=3) == b"\x00 t"
        with pytest.raises(FileMissing):
            await host.read(f"{path} not")
        with pytest.raises(CouldNotAsk, match="Is a directory"):
            await host.write(str(home), b"")

        request = make_request(cluster, account, "sleep 300\n")
        job_id = await accepted(slurm, request)
        assert isinstance(await slurm.submit(request), Unknown)
        assert await slurm.reconcile(request, submitted_at=0, settle_seconds=0) == Accepted(job_id)
        await seen(slurm, job_id, request, running)
        assert "is not ours" in await slurm.cancel(job_id, "f" * 16)
        assert (await slurm.cancel(job_id, request.token)).startswith("cancelled")
        await seen(slurm, job_id, request, ended)
        assert (await slurm.cancel(job_id, request.token)).endswith("had ended before: CANCELLED")
        assert isinstance(await slurm.submit(make_request(cluster, account, qos="nope")), Refused)
        begun = make_request(cluster, account)
        assert isinstance(await slurm.reconcile(begun, submitted_at=None, settle_seconds=600), NotSubmitted)
        await host.run(
            "rm -r $1; mkdir $1; ln -s sbatch $1/go; echo 999999 $(hostname) > $1/process", [begun.claim_dir]
        )
        assert isinstance(await slurm.reconcile(begun, submitted_at=0, settle_seconds=0), NotSubmitted)
        reading = await slurm.jobs({job_id: request.token, "999999": "f" * 16})
        assert reading.jobs["999999"].presence is Presence.COULD_NOT_ASK
        assert reading.problems == ()
        facts = await slurm.facts("batch", "research")
        assert facts.accounts == ("research",)
        assert facts.hostname == cluster.layout.host_name
