"""A client as one would write it first: sbatch over SSH, tried again on a lost answer. Shows that the faults bite."""

from __future__ import annotations

from backends.errors import CouldNotAsk
from backends.hosts.base import Host, RunResult
from backends.quoting import quote
from backends.slurm.model import Accepted, NotSubmitted, SubmitOutcome, SubmitRequest, Unknown

TRIES = 3


class NaiveSlurm:
    """Submits without a claim, and takes whatever the queue does not show for absent.

    Args:
        host: The login node.
        path: Folder whose sbatch is called.
        submit_timeout: Seconds after which it tries again.
        ask_timeout: Seconds for any other question.
    """

    def __init__(self, host: Host, *, path: str, submit_timeout: float, ask_timeout: float) -> None:
        self._host, self._path = host, path
        self._submit_timeout, self._ask_timeout = submit_timeout, ask_timeout

    async def submit(self, request: SubmitRequest) -> SubmitOutcome:
        """Submit until there is an answer."""
        options = " ".join(quote(option) for option in request.options)
        script = f"PATH={quote(self._path)}:$PATH; mkdir -p {quote(request.job_dir)}; sbatch {options}"
        for _ in range(TRIES):
            try:
                result = await self._host.run(script, data=request.script, timeout=self._submit_timeout)
            except CouldNotAsk:
                continue
            if result.exit_status == 0:
                return Accepted(_number(result))
        return Unknown("no answer")

    async def reconcile(
        self, request: SubmitRequest, *, submitted_at: float | None, settle_seconds: float
    ) -> SubmitOutcome:
        """Look into the queue once."""
        try:
            result = await self._host.run(
                f"squeue -h --name={quote(request.job_name)} -o %A", timeout=self._ask_timeout
            )
        except CouldNotAsk:
            return Unknown("no answer")
        return Accepted(_number(result)) if result.stdout.strip() else NotSubmitted("not in the queue")


def _number(result: RunResult) -> str:
    return result.stdout.decode("ascii", "replace").split()[0]
