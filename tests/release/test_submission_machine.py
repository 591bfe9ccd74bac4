"""Proposing, deciding, submitting, losing, dying and asking, in every order: exactly once, and never without an OK."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from console.release import deciding, queue
from console.release.decisions import AwaitDecision, AwaitOperator, Reconcile, Submit, Watch
from console.release.job import read_job
from console.release.journal import read_log
from console.release.state import Attempt, Outcome, fold
from tests.release.fake_cluster import FakeCluster, Killed
from tests.release.making import Clock, decision
from tests.release.submitting import Process, killed_at, make_release, run_before_its_first_job

FAULTS = ("killed before", "killed after", "lost before", "lost after", "delayed", "refused")

OPEN = (Outcome.PROPOSED, Outcome.APPROVED, Outcome.SUBMITTING, Outcome.UNKNOWN, Outcome.SUBMITTED)

NOT_THERE = (
    Outcome.PROPOSED,
    Outcome.APPROVED,
    Outcome.REJECTED,
    Outcome.INVALIDATED,
    Outcome.REFUSED,
    Outcome.NOT_SUBMITTED,
)
"""What the log says only when the cluster surely has no job of it."""


class Submissions(RuleBasedStateMachine):
    """One release up to its first accepted job, with everything that can go wrong on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="gonogo-machine-"))
        self.release = make_release(self.folder)
        run_before_its_first_job(self.release.run_dir)
        self.cluster = FakeCluster()
        self.clock = Clock()
        self.loop = asyncio.Runner()
        self._restart()
        self.tamperings = 0
        self.approved: dict[str, bytes] = {}

    def teardown(self) -> None:
        """With the trouble over and an operator who says yes, the release gets its one job."""
        self.cluster.mute, self.cluster.fault = False, ""
        self.cluster.deliver()
        for _ in range(40):
            self.go_on(0)
            if isinstance(self.process.next, Watch):
                break
            self.approve(0)
            if isinstance(self.process.next, AwaitOperator):
                self.resume()
        self.nothing_is_doubled_and_nothing_runs_without_its_ok()
        assert isinstance(self.process.next, Watch), self.process.next
        self.loop.close()
        shutil.rmtree(self.folder)

    def _proposed(self) -> bool:
        return isinstance(self.process.next, AwaitDecision)

    def attempts(self) -> list[Attempt]:
        return list(self.process.writer.state.attempts)

    def _restart(self) -> None:
        self.process = Process(self.release, self.cluster, self.clock, self.loop)

    @rule(point=st.integers(0, 14))
    def go_on(self, point: int) -> None:
        """The conductor works until it needs somebody, or dies at a crash point and is started again."""
        try:
            with killed_at(point):
                while self.process.step():
                    pass
        except Killed:
            self._restart()

    @rule(point=st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))
    def one_step(self, point: int) -> None:
        """The conductor takes one step, and something else may happen before its next."""
        try:
            with killed_at(point):
                self.process.step()
        except Killed:
            self._restart()

    @precondition(lambda self: isinstance(self.process.next, AwaitDecision))
    @rule(point=st.sampled_from([0, 0, 0, 1, 2]))
    def approve(self, point: int) -> None:
        self._decide(queue.APPROVED, point)

    @precondition(lambda self: isinstance(self.process.next, AwaitDecision) and len(self.attempts()) < 3)
    @rule(point=st.sampled_from([0, 1, 2]))
    def reject(self, point: int) -> None:
        self._decide(queue.REJECTED, point)

    def _decide(self, word: str, point: int) -> None:
        """Another process decides, on what it was shown; it may die at it as well."""
        for attempt in self.attempts():
            if attempt.outcome is not Outcome.PROPOSED:
                continue
            proposal = queue.load(self.release.run_dir, attempt.id)
            shown = proposal.job_bytes
            try:
                with killed_at(point):
                    deciding.decide(self.release.run_dir, decision(proposal, word))
            except (queue.AlreadyDecided, Killed):
                pass
            made = queue.decision_of(proposal)
            if made is not None and (made.decision, made.digest) == (queue.APPROVED, attempt.digest):
                self.approved[attempt.token] = shown

    @precondition(lambda self: isinstance(self.process.next, Submit) or (self.tamperings < 1 and self._proposed()))
    @rule(change=st.sampled_from([(b'"alice"', b'"mallory"'), (b'"00:05:00"', b'"90:00:00"')]))
    def tamper(self, change: tuple[bytes, bytes]) -> None:
        """Somebody changes the job where it lies."""
        attempt = self.attempts()[-1]
        file = self.release.run_dir / "submissions" / attempt.id / "job.json"
        data = file.read_bytes()
        changed = data.replace(*change)
        self.tamperings += 1
        file.chmod(0o600)
        file.write_bytes(changed)

    @precondition(lambda self: isinstance(self.process.next, Submit | AwaitDecision) and not self.cluster.fault)
    @rule(fault=st.sampled_from(FAULTS))
    def next_submission(self, fault: str) -> None:
        self.cluster.fault = fault

    @precondition(lambda self: isinstance(self.process.next, Reconcile))
    @rule(mute=st.booleans())
    def cluster_answers(self, mute: bool) -> None:
        self.cluster.mute = mute

    @precondition(lambda self: self.cluster.under_way)
    @rule()
    def what_was_delayed_arrives(self) -> None:
        self.cluster.deliver()

    @precondition(lambda self: isinstance(self.process.next, AwaitOperator))
    @rule()
    def resume(self) -> None:
        """A person asks for another try, as `gonogo resume` does."""
        step = self.process.next
        assert isinstance(step, AwaitOperator)
        self.process.writer.record("run_resumed", "Resumed", actor="operator:alice", human=True, reopened=step.id)

    @invariant()
    def nothing_is_doubled_and_nothing_runs_without_its_ok(self) -> None:
        accepted = Counter(request.token for _, request in self.cluster.accepted)
        assert not accepted or max(accepted.values()) == 1, "a job was accepted twice"
        for _, request in self.cluster.accepted:
            shown = self.approved.get(request.token)
            assert shown is not None, "a job was submitted without an OK"
            job = read_job(shown, "job.json")
            sent = (request.digest, request.options, request.script.decode())
            assert sent == (job.digest, job.sbatch_options(), job.script), "another job was submitted than was shown"

    @invariant()
    def what_the_log_says_is_so(self) -> None:
        there = {request.token: number for number, request in self.cluster.accepted}
        for attempt in self.attempts():
            if attempt.outcome in NOT_THERE:
                assert attempt.token not in there, f"{attempt.id} is {attempt.outcome}, but the cluster has it"
            if attempt.outcome is Outcome.SUBMITTED:
                assert there.get(attempt.token) == attempt.job_id

    @invariant()
    def one_job_at_a_time(self) -> None:
        going = [item for item in self.attempts() if item.outcome in OPEN and not item.reopened]
        assert len(going) <= 1, going

    @invariant()
    def the_log_alone_tells_the_state(self) -> None:
        assert fold(read_log(self.release.run_dir)) == self.process.writer.state


Submissions.TestCase.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSubmissions = Submissions.TestCase
