"""Slurm over any host: submit exactly once, look at jobs, cancel, describe the cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from backends.errors import CouldNotAsk
from backends.hosts.base import Host
from backends.slurm import scripts
from backends.slurm.model import (
    Accepted,
    Asked,
    ClusterFacts,
    JobStatus,
    NotSubmitted,
    Presence,
    QueueReading,
    Refused,
    SubmitOutcome,
    SubmitRequest,
    Unknown,
)
from backends.slurm.parsing import (
    carries,
    fields,
    is_job_id,
    job_id_of_answer,
    number,
    parse_accounting,
    parse_partitions,
    parse_queue,
    permanent_refusal,
)

__all__ = ["Slurm", "is_job_id"]

SUBMIT_TIMEOUT_S = 120.0
ASK_TIMEOUT_S = 60.0
DAY_S = 86400.0
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\D*", re.ASCII)
"""Seconds since the epoch; a `date` that knows no %N leaves it, or a part of it, behind the point."""

GRACE_LOOKS = 3
"""A job must be missing from queue and accounting, both healthy, in so many looks in a row to be surely gone."""


class Slurm:
    """Slurm on one cluster.

    Args:
        host: The login node.
        path: Folder of the Slurm commands, empty where they are on the PATH.
        wall: Seconds since the epoch, for clock differences and settle times.
        submit_timeout: Seconds after which a submission without an answer is Unknown.
        ask_timeout: Seconds after which any other question counts as not answered.
    """

    def __init__(
        self,
        host: Host,
        *,
        path: str = "",
        wall: Callable[[], float] = time.time,
        submit_timeout: float = SUBMIT_TIMEOUT_S,
        ask_timeout: float = ASK_TIMEOUT_S,
    ) -> None:
        self._host = host
        self._path = path
        self._wall = wall
        self._submit_timeout = submit_timeout
        self._ask_timeout = ask_timeout
        self._missed: dict[str, int] = {}
        self._absent_since: dict[str, float] = {}

    async def submit(self, request: SubmitRequest) -> SubmitOutcome:
        """Submit once. A lost or unclear answer is Unknown; this never raises for one."""
        script, data = scripts.submission(request)
        try:
            result = await self._host.run(script, [self._path], data=data, timeout=self._submit_timeout)
        except CouldNotAsk as error:
            return Unknown(f"no answer to the submission: {error.said or 'none'}")
        answer = fields(result.stdout)
        state = answer.get("state", b"")
        if state == b"sbatch":
            return self._judge_receipt(answer)
        if state == b"claimed":
            return Unknown("this submission was begun before")
        if state == b"not stored":
            said = answer.get("said", b"").decode("utf-8", "replace")
            return NotSubmitted(f"the files of the job could not be stored, so sbatch was not called: {said}")
        said = result.stderr.decode("utf-8", "replace").strip()[-300:]
        return Unknown(f"the answer was not understood (exit status {result.exit_status}): {said}")

    def _judge_receipt(self, answer: Mapping[str, bytes]) -> SubmitOutcome:
        """What sbatch's own words mean: a job id, a permanent refusal, or nothing certain."""
        stdout, stderr = answer.get("stdout", b""), answer.get("stderr", b"")
        status = answer.get("status", b"").decode("ascii", "replace").strip()
        said = stderr.decode("utf-8", "replace").strip()
        found = job_id_of_answer(stdout)
        if status == "0" and found is not None:
            return Accepted(found[0], found[1], said)
        if status not in ("", "0") and not stdout.strip() and permanent_refusal(said):
            return Refused(said, number(status))
        return Unknown(
            f"sbatch ended with {status or 'no status'} and said: {said or stdout.decode('utf-8', 'replace')}"
        )

    async def reconcile(
        self, request: SubmitRequest, *, submitted_at: float | None, settle_seconds: float
    ) -> SubmitOutcome:
        """Find out what became of a submission; fences it off where it surely did not reach sbatch.

        Args:
            request: The submission; its uploads are not needed.
            submitted_at: When it was begun, seconds since the epoch by our clock, None where unknown.
            settle_seconds: How long it must be seen missing everywhere, every time, before it counts as not submitted.
        """
        try:
            result = await self._host.run(scripts.RECONCILE, [request.claim_dir], timeout=self._ask_timeout)
        except CouldNotAsk as error:
            return Unknown("the cluster could not be asked", (Asked("claim", str(error), False),))
        answer = fields(result.stdout)
        state = answer.get("state", b"").decode("ascii", "replace")
        if state == "fenced claim":
            return NotSubmitted("the submission never began on the cluster, and now cannot")
        if state == "fenced go":
            return NotSubmitted("the submission began but sbatch was never called, and now cannot be")
        if state == "sbatch":
            outcome = self._judge_receipt(answer)
            if not isinstance(outcome, Unknown):
                return outcome
            asked = Asked("receipt", outcome.said, True)
        elif state == "running":
            return Unknown("sbatch is still running on the login node", (Asked("process", "alive", True),))
        elif state == "elsewhere":
            # Login nodes behind one name: from here nobody can see whether sbatch still runs over there, so
            # absence is never concluded, only presence.
            other = answer.get("host", b"").decode("utf-8", "replace")
            asked = Asked("process", f"could not ask: sbatch was started on login node {other}", False)
        elif state == "silent":
            asked = Asked("receipt", "none: the login node stopped while sbatch ran", True)
        else:
            said = result.stderr.decode("utf-8", "replace").strip()[-300:]
            return Unknown("the claim could not be read", (Asked("claim", said or state, False),))
        return await self._by_name(request, asked, submitted_at, settle_seconds)

    async def _by_name(
        self, request: SubmitRequest, receipt: Asked, submitted_at: float | None, settle_seconds: float
    ) -> SubmitOutcome:
        """Ask queue and accounting for the job by its name, which holds the token."""
        asked = [receipt]
        ids: set[str] = set()
        for source, script in (("squeue", scripts.QUEUE_BY_NAME), ("sacct", scripts.ACCOUNTING_BY_NAME)):
            try:
                arguments = [self._path, request.job_name, _day_before(submitted_at)]
                result = await self._host.run(script, arguments, timeout=self._ask_timeout)
            except CouldNotAsk as error:
                asked.append(Asked(source, str(error), False))
                continue
            said = result.stderr.decode("utf-8", "replace").strip()
            found = [line.strip() for line in result.stdout.decode("ascii", "replace").splitlines() if line.strip()]
            healthy = result.exit_status == 0 and all(is_job_id(word) for word in found)
            asked.append(Asked(source, ", ".join(found) or said or "no such job", healthy))
            ids.update(word for word in found if is_job_id(word))
        if len(ids) == 1:
            return Accepted(ids.pop())
        if ids:
            return Unknown("several jobs carry this token", tuple(asked), tuple(sorted(ids)))
        if submitted_at is not None and self._is_settled(request.token, asked, settle_seconds):
            return NotSubmitted(f"missing from queue and accounting for {settle_seconds:g} s")
        return Unknown("no job carries this token yet", tuple(asked))

    def _is_settled(self, token: str, asked: list[Asked], settle_seconds: float) -> bool:
        """Whether a job that nothing shows now has been missing for so long, with every source alive at every look.

        Counted from the first such look: what was submitted long ago may have reached sbatch a moment ago.
        """
        if not all(item.healthy for item in asked):
            self._absent_since.pop(token, None)
            return False
        now = self._wall()
        return now - self._absent_since.setdefault(token, now) >= settle_seconds

    async def jobs(self, names: Mapping[str, str]) -> QueueReading:
        """Look at jobs with one queue query, and one of accounting for those that it does not show.

        Args:
            names: By job id, the token whose first eight digits the job's name must hold: Slurm may give out a
                number again. A text that is no token is not compared.

        Raises:
            CouldNotAsk: When the queue gave no answer.
        """
        result = await self._host.run(scripts.QUEUE, [self._path], timeout=self._ask_timeout)
        if result.exit_status != 0:
            raise CouldNotAsk(self._host.name, "squeue", result.stderr.decode("utf-8", "replace").strip())
        cluster_time, queue = parse_queue(result.stdout)
        jobs = {name: queue[name] for name, token in names.items() if name in queue and carries(queue[name], token)}
        missing = [name for name in names if name not in jobs]
        problems = [f"job {name} is not ours: it is called {queue[name].name}" for name in missing if name in queue]
        if missing:
            found, problem = await self._accounting(missing)
            problems += [problem] if problem else []
            for name in missing:
                ours = name in found and carries(found[name], names[name])
                jobs[name] = found[name] if ours else self._missing(name, healthy=not problem)
        for name, status in jobs.items():
            if status.presence in (Presence.IN_QUEUE, Presence.IN_ACCOUNTING):
                self._missed.pop(name, None)
        return QueueReading(jobs, cluster_time, tuple(problems), queries=2 if missing else 1)

    async def _accounting(self, missing: list[str]) -> tuple[dict[str, JobStatus], str]:
        try:
            arguments = [self._path, ",".join(missing)]
            result = await self._host.run(scripts.ACCOUNTING, arguments, timeout=self._ask_timeout)
        except CouldNotAsk as error:
            return {}, str(error)
        if result.exit_status != 0:
            return {}, f"sacct: {result.stderr.decode('utf-8', 'replace').strip() or _silence(result.exit_status)}"
        return parse_accounting(result.stdout), ""

    def _missing(self, name: str, *, healthy: bool) -> JobStatus:
        """A job that neither showed: gone only after several healthy looks in a row."""
        if not healthy:
            return JobStatus(name, Presence.COULD_NOT_ASK)
        self._missed[name] = self._missed.get(name, 0) + 1
        gone = self._missed[name] >= GRACE_LOOKS
        return JobStatus(name, Presence.GONE if gone else Presence.COULD_NOT_ASK)

    async def cancel(self, job_id: str, expect_name: str) -> str:
        """Cancel a job, if the job of this id still carries our token.

        Returns:
            What was seen, in words.

        Raises:
            CouldNotAsk: When there was no answer.
            ValueError: When the id is none.
        """
        if not is_job_id(job_id):
            raise ValueError(f"not a job id: {job_id!r}")
        result = await self._host.run(scripts.CANCEL, [self._path, job_id, expect_name], timeout=self._ask_timeout)
        if result.exit_status == scripts.NO_ANSWER:
            raise CouldNotAsk(self._host.name, "squeue", result.stderr.decode("utf-8", "replace").strip())
        said = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
        return said or f"exit status {result.exit_status}"

    async def facts(self, partition: str, account: str) -> ClusterFacts:
        """Describe the cluster.

        Raises:
            CouldNotAsk: When Slurm or the login node gave no answer.
        """
        before = self._wall()
        result = await self._host.run(
            scripts.FACTS, [self._path, str(scripts.ACCOUNTING_TIMEOUT_S)], timeout=self._ask_timeout
        )
        after = self._wall()
        answer = {key: value.decode("utf-8", "replace").strip() for key, value in fields(result.stdout).items()}
        partitions = parse_partitions(answer.get("partitions", ""))
        if result.exit_status != 0 or not partitions:
            said = answer.get("partitions", "") or result.stderr.decode("utf-8", "replace").strip()
            raise CouldNotAsk(self._host.name, "sinfo", said or "no partitions")
        said = answer.get("accounts", "")
        status = answer.get("accounts_status", "")
        # A warning may stand among the accounts, but no account's name has a space in it.
        accounts = [line for line in said.splitlines() if line and " " not in line] if status == "0" else None
        problems = () if accounts is not None else (f"accounts: {said or _silence(status)}",)
        return ClusterFacts(
            slurm_version=answer.get("version", ""),
            partitions=partitions,
            accounts=None if accounts is None else tuple(dict.fromkeys(accounts)),
            hostname=answer.get("hostname", ""),
            home=answer.get("home", ""),
            python=answer.get("python", ""),
            clock_offset=_clock_offset(answer, before, after),
            problems=problems,
        )


def _day_before(moment: float | None) -> str:
    """From when accounting must be asked, as sacct takes it in UTC: clocks may differ by less than a day.

    A submission may be asked for long after its job ended, and sacct shows nothing from before that moment.
    """
    since = DAY_S if moment is None else max(DAY_S, moment - DAY_S)
    return f"{datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%S}"


def _silence(status: int | str) -> str:
    """What to say of a command that ended without a word; 124 is what `timeout` ends with."""
    return f"no answer within {scripts.ACCOUNTING_TIMEOUT_S} s" if str(status) == "124" else f"exit status {status}"


def _clock_offset(answer: Mapping[str, str], before: float, after: float) -> float:
    """Cluster time minus ours in seconds, at the middle of an exchange, however slow what lay between was."""
    found = [_SECONDS.fullmatch(answer.get(key, "")) for key in ("time", "time_after")]
    times = [float(time.group(1)) for time in found if time is not None]
    return sum(times) / len(times) - (before + after) / 2 if times else 0.0
