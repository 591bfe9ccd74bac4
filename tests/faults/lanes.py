"""Carries out one plan after another: submit under the fault, then ask as the conductor does for a verdict."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from backends.hosts.base import Host
from backends.hosts.ssh import SshHost, SshTarget
from backends.slurm.client import Slurm
from backends.slurm.model import SubmitOutcome, SubmitRequest, Unknown
from tests.faults.children import Child, kill_shells_above
from tests.faults.plans import SETTLE_S, Act, Lengths, Phase, Plan, Then
from tests.faults.proxy import NO_FAULT, Do, FaultProxy, Way
from tests.faults.sites import Site

SUBMIT_TIMEOUT_S = 1.5
ASK_TIMEOUT_S = 3.0
KEEPALIVE_S = 0.5
PATIENCE_S = 12.0
"""How long an outcome is asked for, where nothing keeps it from being found."""

TROUBLED_PATIENCE_S = 2.5
"""How long it is asked for while something lasts that no asking ends; longer than a job must be missing."""

PAUSE_S = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What came of one plan.

    Attributes:
        plan: The plan.
        token: Of the submission.
        struck: Whether the fault struck.
        first: What the submission itself answered, None where its process did not live to tell.
        belief: What asking came to while the trouble lasted.
        final: What asking came to once all was sound again; the belief where that was certain.
        others: What a question without luck, and further processes that submitted the same, came to.
        at: When the belief was formed, seconds since the epoch.
    """

    plan: Plan
    token: str
    struck: bool
    first: SubmitOutcome | None
    belief: SubmitOutcome
    final: SubmitOutcome
    others: tuple[SubmitOutcome, ...]
    at: float

    @property
    def beliefs(self) -> tuple[SubmitOutcome, ...]:
        """Whatever anybody believed at any time."""
        return tuple(item for item in (self.first, self.belief, self.final, *self.others) if item is not None)


class Client(Protocol):
    """What is put to the proof: Slurm's client, or another one to compare it with."""

    def __init__(self, host: Host, *, path: str, submit_timeout: float, ask_timeout: float) -> None: ...

    async def submit(self, request: SubmitRequest) -> SubmitOutcome:
        """Submit once."""
        ...

    async def reconcile(
        self, request: SubmitRequest, *, submitted_at: float | None, settle_seconds: float
    ) -> SubmitOutcome:
        """Find out what became of a submission."""
        ...


class Lane:
    """One proxy before one cluster, for one submission at a time.

    Args:
        site: The cluster.
        proxy: A running proxy before it.
        folder: For the lane's own files.
        seed: Makes tokens of their own in each run.
        client: What submits and asks.
    """

    def __init__(self, site: Site, proxy: FaultProxy, folder: Path, seed: int, client: type[Client] = Slurm) -> None:
        self._site, self._proxy, self._seed, self._client = site, proxy, seed, client
        direct = site.target()
        known = folder / f"known_hosts-{proxy.port}"
        lines = [line.split(maxsplit=1)[1] for line in direct.known_hosts.read_text().splitlines() if line]
        known.write_text("".join(f"[127.0.0.1]:{proxy.port} {line}\n" for line in lines))
        changes = {"port": proxy.port, "known_hosts": known, "keepalive_s": KEEPALIVE_S, "login_timeout_s": 3.0}
        self._target: SshTarget = dataclasses.replace(direct, **changes)  # type: ignore[arg-type]

    def _host(self) -> SshHost:
        # Its clock races, so that it does not wait between two logins.
        return SshHost(self._target, monotonic=itertools.count(0, 1000).__next__)

    def _slurm(self, host: SshHost) -> Client:
        path = str(self._site.programs)
        return self._client(host, path=path, submit_timeout=SUBMIT_TIMEOUT_S, ask_timeout=ASK_TIMEOUT_S)

    async def measure(self) -> Lengths:
        """Bytes of undisturbed submissions.

        Raises:
            AssertionError: When one of them is not accepted at once.
        """
        lengths: dict[tuple[Phase, bool], dict[Way, int]] = {}
        for phase, big in ((Phase.LOGIN, False), (Phase.SUBMIT, False), (Phase.SUBMIT, True)):
            request = self._site.request(_token(f"{self._seed} measure {self._proxy.port} {big} {phase}"), big=big)
            host = self._host()
            if phase is Phase.SUBMIT:
                await host.run("true")
            self._proxy.arm(NO_FAULT)
            outcome = await self._slurm(host).submit(request)
            assert not isinstance(outcome, Unknown), outcome
            lengths[phase, big] = dict(self._proxy.passed)
            self._proxy.arm(NO_FAULT)
            await self._slurm(host).reconcile(request, submitted_at=time.time(), settle_seconds=SETTLE_S)
            lengths[Phase.ASK, False] = dict(self._proxy.passed)
            await host.close()
        return lengths

    async def run(self, plan: Plan) -> Finding:
        """Carry out one plan."""
        token = _token(f"{self._seed} {plan.number}")
        request = self._site.request(token, big=plan.big)
        hang = self._site.programs / "hang" / token
        if plan.hang:
            hang.touch()
        for name, value in plan.knobs:
            self._site.knob(name, value)
        try:
            return await _Run(self, plan, request, hang).finding()
        finally:
            hang.unlink(missing_ok=True)
            self._heal(plan)
            await self._proxy.drop()

    def _heal(self, plan: Plan) -> None:
        for name, _ in plan.knobs:
            self._site.knob(name, None)


class _Run:
    """One plan while it is carried out."""

    def __init__(self, lane: Lane, plan: Plan, request: SubmitRequest, hang: Path) -> None:
        self._lane, self._plan, self._request, self._hang = lane, plan, request, hang
        self._proxy = lane._proxy
        self._host = lane._host()
        self._child: Child | None = None
        self._others: list[SubmitOutcome] = []
        self._struck = False

    async def finding(self) -> Finding:
        plan, begun = self._plan, time.time()
        first = await (self._in_child() if plan.act in (Act.KILL, Act.STOP) else self._here())
        self._proxy.disarm()
        asker = self._lane._host() if plan.fresh else self._host
        slurm = self._lane._slurm(asker)
        belief = final = first or Unknown("the submitting process did not live to tell")
        if isinstance(belief, Unknown):
            meanwhile = asyncio.create_task(self._meanwhile())
            if plan.again:
                await self._again()
            if plan.ask.do is not Do.NOTHING:
                await self._ask_in_vain(asker, begun)
            belief = final = await self._ask(slurm, begun, TROUBLED_PATIENCE_S if self._lasts() else PATIENCE_S)
            await meanwhile
        at = time.time()
        await self._sound_again()
        if isinstance(belief, Unknown):
            final = await self._ask(slurm, begun, PATIENCE_S)
        for host in {self._host, asker}:
            await host.close()
        return Finding(plan, self._request.token, self._struck, first, belief, final, tuple(self._others), at)

    def _lasts(self) -> bool:
        """Whether there is trouble that does not end before the verdict."""
        stopped = self._plan.hang or self._plan.act is Act.STOP
        return (stopped and self._plan.then is Then.AFTER) or not self._plan.heals

    async def _here(self) -> SubmitOutcome:
        plan, lane = self._plan, self._lane
        if plan.phase is Phase.LOGIN:
            self._proxy.arm(plan.fault)
        else:
            await self._host.run("true")
            self._proxy.arm(NO_FAULT if plan.hang else plan.fault)
        submitting = asyncio.create_task(lane._slurm(self._host).submit(self._request))
        if plan.hang:
            await until((lane._site.programs / "hung" / self._request.token).exists)
            if plan.act is Act.SHELL:
                self._struck = kill_shells_above(self._request.token) > 0
            else:
                self._struck = self._proxy.harm(plan.fault.do)
        outcome = await submitting
        if not plan.hang:
            self._struck = self._proxy.struck or plan.fault.do is Do.NOTHING
        if plan.moment is not None:
            # What was held arrives now, later than a job must be missing, and is seen to be carried out.
            self._proxy.release()
            await until(Path(self._request.claim_dir, "receipt").exists, 1.5)
        return outcome

    async def _in_child(self) -> SubmitOutcome | None:
        plan = self._plan
        path = str(self._lane._site.programs)
        self._child = child = await Child.start(self._lane._target, self._request, path, SUBMIT_TIMEOUT_S)
        number = signal.SIGKILL if plan.act is Act.KILL else signal.SIGSTOP
        self._proxy.arm(plan.fault, lambda: child.send(number))
        child.go()
        if plan.moment is not None:
            await asyncio.sleep(plan.moment)
            child.send(number)
        await child.struck_or_ended()
        self._struck = child.struck
        if plan.act is Act.KILL or not child.struck:
            return await child.outcome()
        return None

    async def _meanwhile(self) -> None:
        if self._plan.then is Then.MEANWHILE:
            await asyncio.sleep(self._plan.pause)
            self._let_go()

    def _let_go(self) -> None:
        self._proxy.release()
        self._hang.unlink(missing_ok=True)
        if self._child is not None and self._plan.act is Act.STOP:
            self._child.send(signal.SIGCONT)

    async def _again(self) -> None:
        """A second process that submits the same, which nobody should do."""
        host = self._lane._host()
        self._others.append(await self._lane._slurm(host).submit(self._request))
        await host.close()

    async def _sound_again(self) -> None:
        """End whatever trouble is left, and let everything that was on its way arrive."""
        self._let_go()
        self._lane._heal(self._plan)
        if self._child is not None and self._plan.act is Act.STOP and self._child.struck:
            told = await self._child.outcome()
            self._others += [told] if told is not None else []

    async def _ask_in_vain(self, asker: SshHost, begun: float) -> None:
        """Ask once while the link is lost again. What may have come of that is asked for once more."""
        await asker.run("true")
        self._proxy.arm(self._plan.ask)
        told = await self._question(self._lane._slurm(asker), begun)
        self._others.append(told)
        self._struck = self._struck and self._proxy.struck
        self._proxy.disarm()

    async def _question(self, slurm: Client, begun: float) -> SubmitOutcome:
        request = dataclasses.replace(self._request, uploads=())
        return await slurm.reconcile(request, submitted_at=begun, settle_seconds=SETTLE_S)

    async def _ask(self, slurm: Client, begun: float, patience: float) -> SubmitOutcome:
        """Ask as the conductor does, until something is certain."""
        end = time.monotonic() + patience
        for rounds in itertools.count(1):
            outcome = await self._question(slurm, begun)
            if not isinstance(outcome, Unknown) or time.monotonic() > end:
                return outcome
            if rounds == 2 and self._plan.heals:
                # What makes queue and accounting late is no trouble that ends: they are always so late.
                for name, _ in self._plan.knobs:
                    if name in ("controller", "accounting"):
                        self._lane._site.knob(name, None)
            await asyncio.sleep(PAUSE_S)
        raise AssertionError


def _token(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


async def until(holds: Callable[[], bool], patience: float = 10.0) -> None:
    """Wait until something holds, or until patience is at its end."""
    end = time.monotonic() + patience
    while not holds() and time.monotonic() < end:
        await asyncio.sleep(0.02)
