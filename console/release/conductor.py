"""The conductor: asks for the next step, carries it out, logs it, and asks again, until there is a verdict.

It decides nothing itself (`decisions`, `triage` and the gates do) and shows nothing (`live.json` and the log are
read by whoever looks on). It can be killed anywhere: what it does next follows from the log alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from backends.errors import CouldNotAsk, NeedsOperator
from console.release import decisions, folder, live, steps, submission, taking
from console.release.decisions import (
    AwaitDecision,
    AwaitOperator,
    CheckTarget,
    Close,
    DecideTriage,
    FindTarget,
    Finished,
    Freeze,
    Judge,
    PassStage,
    Probe,
    Propose,
    ProposePolicy,
    Reconcile,
    StartStage,
    Step,
    StopSystemic,
    Submit,
    VerifyFreeze,
    Watch,
)
from console.release.desk import serve_desk
from console.release.mailbox import Mailbox
from console.release.ports import Connection
from console.release.proposing import Release, make_plan
from console.release.report import render_report
from console.release.serving import serve_requests
from console.release.serving_outputs import serve_outputs
from console.release.signing import Signers
from console.release.state import ReleaseVerdict, StageStatus
from console.release.watching import Monitor, watch_attempt
from console.release.writer import RunWriter

EXIT_STATUS = {ReleaseVerdict.DRAFTER_READY: 0, ReleaseVerdict.INFEASIBLE: 1, ReleaseVerdict.ANOMALOUS: 3}
BAD_INPUT, SYSTEMIC, WAITING = 2, 4, 5
"""The exit statuses of a headless release that ends without a verdict."""

ASK_AGAIN_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between tries of a step that got no answer; after the last one the run stops as SYSTEMIC."""


class Stop(Exception):
    """The run ends here without a verdict; `status` is the exit status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Conductor:
    """One process's work on one release.

    Args:
        release: What is released; checked before.
        writer: Log and state, with the run's lock held.
        connect: Connects the cluster; called once.
        approve: "each" waits for decisions, "none" approves by policy.
        signers: Whose signatures count, None where nothing says so.
        wait_s: How long to wait for a person (seconds) before stopping with status 5; None waits for ever.
        monotonic: Seconds that only go forward.
    """

    def __init__(
        self,
        release: Release,
        writer: RunWriter,
        connect: Callable[[], Awaitable[Connection]],
        *,
        approve: str = "each",
        wait_s: float | None = None,
        signers: Signers | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.release = release
        self.writer = writer
        self.approve = approve
        self.wait_s = wait_s
        self.signers = signers
        self.live = live.Live()
        self.session = decisions.Session()
        self.plan = replace(make_plan(release), policy=approve == "none" and release.spec.bounds is not None)
        self._connect = connect
        self.monotonic = monotonic
        self._connection: Connection | None = None
        self._aborted: asyncio.Future[str] | None = None
        self._rounds: dict[str, int] = {}

    @property
    def connection(self) -> Connection:
        """The cluster, connected."""
        assert self._connection is not None, "run() connects first"
        return self._connection

    def now(self) -> str:
        """The time as it is written everywhere."""
        return f"{self.writer.clock():%Y-%m-%dT%H:%M:%SZ}"

    async def run(self) -> int:
        """Work until there is a verdict or nothing can go on.

        Returns:
            The exit status of a headless release.
        """
        self._aborted = asyncio.get_running_loop().create_future()
        self._connection = await self._connect()
        self.monitor = Monitor(self.release, self.writer, self.connection, self.live)
        self.mailbox = Mailbox(self.writer.run_dir)
        helpers = [
            asyncio.create_task(live.publish(self.writer.run_dir, self._snapshot), name="publish"),
            asyncio.create_task(self.mailbox.run(), name="mailbox"),
            asyncio.create_task(self.monitor.run(), name="monitor"),
            asyncio.create_task(serve_requests(self, self.mailbox, self._aborted), name="requests"),
            asyncio.create_task(serve_desk(self), name="desk"),
            asyncio.create_task(serve_outputs(self), name="outputs"),
        ]
        try:
            return await self._until_done(helpers)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            await self.connection.watcher.close()
            await self.connection.host.close()
            self.live.doing = "stopped"
            self.show()

    def show(self) -> None:
        """Write what is true now for the screen, also after the work has ended."""
        folder.write_live(self.writer.run_dir, self._snapshot())

    def _snapshot(self) -> dict[str, object]:
        host = self.connection.host
        now = self.monotonic()
        self.live.files = [
            {
                "id": self.live.watched.get(reading.path, ("", ""))[0],
                "kind": self.live.watched.get(reading.path, ("", ""))[1],
                "path": reading.path,
                "presence": str(reading.presence),
                "size": reading.stat.size if reading.stat is not None else None,
                "age_s": None if reading.looked_at is None else round(now - reading.looked_at, 1),
            }
            for reading in self.connection.watcher.snapshot().values()
        ]
        return live.to_json(self.live, self.writer.state, host, self.now(), self.monotonic())

    async def _until_done(self, helpers: list[asyncio.Task[None]]) -> int:
        """Run the steps; a helper that dies, or an abort, ends them."""
        assert self._aborted is not None
        work = asyncio.create_task(self._steps(), name="steps")
        waited: set[asyncio.Future[Any]] = {work, self._aborted, *helpers}
        done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if work not in done:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            for helper in helpers:
                if helper.done():
                    helper.result()
            return WAITING
        return work.result()

    async def _steps(self) -> int:
        try:
            while True:
                step = decisions.next_step(self.writer.state, self.plan, self.session)
                if isinstance(step, Finished):
                    return self._finish()
                await self._with_patience(step)
        except Stop as stop:
            self._record_stop(stop)
            return stop.status

    def _record_stop(self, stop: Stop) -> None:
        detail = f"SYSTEMIC: {stop}" if stop.status == SYSTEMIC else str(stop)
        if self.writer.state.stopped != detail:
            stage = self.writer.state.current.name
            self.writer.record("stopped", f"Stopped without a verdict: {stop}", stage=stage, detail=detail)

    async def _with_patience(self, step: Step) -> None:
        """Carry out a step; when the cluster does not answer, ask again a few times, then stop as SYSTEMIC."""
        for pause in (*ASK_AGAIN_SECONDS, None):
            try:
                return await self._carry_out(step)
            except NeedsOperator as error:
                raise Stop(SYSTEMIC, f"{error}; {error.advice}") from None
            except CouldNotAsk as error:
                self.live.problems = (str(error),)
                if pause is None:
                    raise Stop(SYSTEMIC, f"{error}; `gonogo resume` goes on when it answers again") from None
                await asyncio.sleep(pause)
            finally:
                self.live.wait("", "", "")

    def next_round(self, name: str) -> int:
        """How often the outcome of a submission was asked for in this session, before this time."""
        asked = self._rounds.get(name, 0)
        self._rounds[name] = asked + 1
        return asked

    async def _carry_out(self, step: Step) -> None:  # noqa: C901 - one arm for each kind of step
        self.live.doing = steps.words(step)
        match step:
            case Probe():
                self.session = await steps.probe(self)
            case StartStage(stage):
                self.writer.record("stage_started", f"Stage {stage} begins", stage=stage)
            case PassStage(stage):
                self.writer.record("stage_passed", f"Stage {stage} passed", stage=stage, detail="")
            case FindTarget():
                await steps.find_target(self)
            case CheckTarget():
                await steps.check_target(self)
            case Propose(task, attempt, change):
                steps.propose(self, task, attempt, change)
            case ProposePolicy(attempt, change):
                steps.propose_policy(self, attempt, change)
            case AwaitDecision(name):
                await taking.await_decision(self, name)
            case Submit(name):
                current = taking.attempt(self, name)
                await submission.submit(self.writer, self.connection.slurm, current, self.signers)
            case Reconcile(name):
                await steps.reconcile(self, name)
            case Watch(name):
                self.live.wait("cluster", f"results of {name}", self.now())
                await watch_attempt(self.release, self.writer, self.connection, self.live, name)
            case Judge(name, gates):
                steps.judge(self, name, gates)
            case DecideTriage(stage, task, name, gate):
                steps.decide_triage(self, stage, task, name, gate)
            case Freeze():
                self.session = await steps.freeze(self)
            case VerifyFreeze():
                self.session = await steps.verify_freeze(self)
            case AwaitOperator(name, why, bad_input):
                await self._await_operator(name, why, bad_input)
            case StopSystemic(_, why):
                raise Stop(SYSTEMIC, why)
            case Close():
                self._close(step)

    async def _await_operator(self, name: str, why: str, bad_input: bool) -> None:
        what = f"{name}: {why}"
        self.live.wait("operator", what, self.now())
        before = self.writer.state.entries
        deadline = None if self.wait_s is None else self.monotonic() + self.wait_s
        while self.writer.state.entries == before:
            left = None if deadline is None else deadline - self.monotonic()
            if left is not None and left <= 0:
                raise Stop(BAD_INPUT if bad_input else WAITING, f"{what}; `gonogo resume` asks again")
            await self.writer.changed(timeout=left)

    def _close(self, step: Close) -> None:
        """Log the end of the stage and the verdict; a process that died between the two left only the first."""
        ended = (StageStatus.PASSED, StageStatus.FAILED)
        if self.writer.state.stage(step.failed_stage or "closeout").status in ended:
            pass
        elif step.failed_stage:
            self.writer.record(
                "stage_failed",
                f"Stage {step.failed_stage} failed: {step.detail}",
                stage=step.failed_stage,
                detail=step.detail,
            )
        else:
            self.writer.record("stage_passed", "Stage closeout passed", stage="closeout", detail=step.detail)
        self.writer.record(
            "verdict",
            f"{step.verdict}: {step.detail}",
            stage="closeout",
            verdict=str(step.verdict),
            failure_class=step.failure_class,
            detail=step.detail,
        )

    def _finish(self) -> int:
        """Write the report (again, if it is not the one that belongs to this log) and give the exit status."""
        from console.release import effects

        state = self.writer.state
        report = render_report(state, self.writer.entries).encode("utf-8")
        path = self.writer.run_dir / folder.REPORT_NAME
        with contextlib.suppress(OSError):
            if path.read_bytes() == report:
                report = b""
        if report:
            effects.replace(path, report, "report")
        assert state.verdict is not None
        return EXIT_STATUS[state.verdict]
