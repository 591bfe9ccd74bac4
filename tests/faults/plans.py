"""Which submissions are made and what befalls each: a list that follows from a seed and the measured lengths alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.faults.proxy import NO_FAULT, Do, Fault, Way


class Phase(StrEnum):
    """From when bytes are counted: the connection's first one, the submission's, or that of the first question."""

    LOGIN = "login"
    SUBMIT = "submit"
    ASK = "ask"


class Then(StrEnum):
    """When whatever is held back, stopped or hanging goes on."""

    AFTER = "after the verdict"
    MEANWHILE = "meanwhile"


class Act(StrEnum):
    """What is done to a process. KILL and STOP befall a process of its own that submits, SHELL the remote shell."""

    NOTHING = ""
    KILL = "kill"
    STOP = "stop"
    SHELL = "shell"


Lengths = Mapping[tuple[Phase, bool], Mapping[Way, int]]
"""Bytes of an undisturbed exchange, by phase and by whether big files travel along."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One submission and its fault.

    Attributes:
        number: Its place in the list.
        kind: Its row of the table.
        fault: What befalls the link.
        phase: From when its bytes are counted.
        big: Whether files travel along that fill several SSH packets.
        knobs: Trouble of the cluster.
        heals: Whether the cluster's trouble ends while the outcome is asked for.
        act: What befalls a process.
        moment: When an act strikes, seconds after the start; None for at the fault's byte.
        hang: Whether sbatch hangs, until `then`. The fault strikes once it does, whatever byte it names.
        then: When the held goes on.
        pause: For MEANWHILE, seconds after the first question.
        again: Whether a second process submits the same, as soon as the first knows no outcome.
        ask: What befalls the link at the first question, its bytes counted from there; only where `fresh`.
        fresh: Whether the questions come from a new process with a connection of its own.
    """

    number: int
    kind: str
    fault: Fault = NO_FAULT
    phase: Phase = Phase.SUBMIT
    big: bool = False
    knobs: tuple[tuple[str, Any], ...] = ()
    heals: bool = True
    act: Act = Act.NOTHING
    moment: float | None = None
    hang: bool = False
    then: Then = Then.AFTER
    pause: float = 0.0
    again: bool = False
    ask: Fault = NO_FAULT
    fresh: bool = False


Maker = Callable[[int, float], dict[str, Any]]
"""Makes the fields of one plan from its place in its row and a position from 0 to 1."""

SETTLE_S = 1.2
"""How long a job must be missing everywhere before it counts as not submitted."""

LATE_S = 0.8
"""How late queue and accounting are where they are late; it must be less than SETTLE_S."""

_NO_ACCOUNT = "Batch job submission failed: Invalid account or account/partition combination specified"

TROUBLE: dict[str, tuple[tuple[str, Any], ...]] = {
    "accepted, then a time-out": (("submit", {"how": "accept-time-out"}),),
    "accepted slowly, then a time-out": (("submit", {"how": "accept-time-out", "seconds": 0.3}),),
    "accepted, then exit 1": (("submit", {"how": "accept-exit-1"}),),
    "accepted in silence": (("submit", {"how": "accept-silent"}),),
    "a time-out without a job": (("submit", {"how": "time-out", "seconds": 0.1}),),
    "refused": (
        (
            "submit",
            {
                "how": "refuse",
                "said": _NO_ACCOUNT,
            },
        ),
    ),
    "controller down": (("controller", "down"),),
    "accounting down": (("accounting", "down"), ("submit", {"how": "accept-time-out"})),
    "late queue": (("queue_delay_s", LATE_S), ("submit", {"how": "accept-exit-1"})),
    "late queue and accounting": (
        ("queue_delay_s", LATE_S),
        ("accounting_lag_s", LATE_S),
        ("submit", {"how": "accept-time-out"}),
    ),
}


class _Rows:
    """The rows of the table, each with its share and what makes one plan of it."""

    def __init__(self, lengths: Lengths) -> None:
        self._lengths = lengths
        self.rows: list[tuple[str, int, Maker]] = []

    def link(self, text: str, share: int, do: Do, way: Way, /, **fields: Any) -> None:
        """A row of faults of the link alone, spread over the exchange."""
        phase = fields.get("phase", Phase.SUBMIT)

        def make(index: int, place: float) -> dict[str, Any]:
            big = do is not Do.SLICE and phase is Phase.SUBMIT and index % 3 == 2
            fault = self._fault(do, way, place, phase, big)
            return {"fault": fault, "big": big, "fresh": index % 2 == 1, "again": index % 4 == 3, **fields}

        self.rows.append((f"{text}, {way}", share, make))

    def _fault(self, do: Do, way: Way, place: float, phase: Phase = Phase.SUBMIT, big: bool = False) -> Fault:
        return Fault(do, way, round(place * self._lengths[phase, big][way]), seconds=0.15)

    def links(self) -> None:
        for way in Way:
            self.link("link reset", 80, Do.RESET, way)
            self.link("link closed", 70, Do.CLOSE, way)
            self.link("link reset at our side only", 50, Do.HALF, way)
            self.link("swallowed", 40, Do.SWALLOW, way)
            self.link("late", 20, Do.DELAY, way)
            self.link("single bytes", 12, Do.SLICE, way)
            self.link("held back till after the verdict", 40, Do.HOLD, way, then=Then.AFTER, fresh=True)
            self.link("held back for a while", 50, Do.HOLD, way, then=Then.MEANWHILE, fresh=True)
            self.link("login reset", 25, Do.RESET, way, phase=Phase.LOGIN)
            self.link("login closed", 20, Do.CLOSE, way, phase=Phase.LOGIN)
            self.link("login swallowed", 10, Do.SWALLOW, way, phase=Phase.LOGIN)
        self.link("connection refused", 10, Do.REFUSE, Way.UP, phase=Phase.LOGIN)

    def questions(self) -> None:
        """The answer is lost, and so is the one to the first question after it."""
        lost = ((Do.RESET, Way.DOWN), (Do.CLOSE, Way.UP), (Do.HALF, Way.DOWN))
        for way in Way:

            def make(index: int, place: float, way: Way = way) -> dict[str, Any]:
                fault = self._fault(*lost[index % 3], (index * 0.618) % 1)
                do = (Do.RESET, Do.CLOSE, Do.SWALLOW)[index // 3 % 3]
                return {"fault": fault, "ask": self._fault(do, way, place, Phase.ASK), "fresh": True}

            self.rows.append((f"link lost, and again at the first question, {way}", 30, make))

    def troubles(self) -> None:
        """Trouble of the cluster, crossed with faults of the link."""
        crossed = (
            (Do.NOTHING, Way.UP),
            (Do.RESET, Way.DOWN),
            (Do.CLOSE, Way.UP),
            (Do.HALF, Way.DOWN),
            (Do.SWALLOW, Way.DOWN),
        )

        for text, knobs in TROUBLE.items():

            def make(index: int, place: float, knobs: tuple[tuple[str, Any], ...] = knobs) -> dict[str, Any]:
                do, way = crossed[index % len(crossed)]
                # The answers come last, where the link is harmed after sbatch was called.
                fault = self._fault(do, way, place if do is not Do.CLOSE else 0.8 + 0.2 * place)
                return {"fault": fault, "knobs": knobs, "heals": index % 5 != 4, "fresh": index % 2 == 1}

            self.rows.append((f"cluster: {text}", 20, make))

        def late(index: int, place: float) -> dict[str, Any]:
            fault = self._fault(Do.HOLD, Way.UP, place)
            knobs = TROUBLE["late queue and accounting"]
            return {"fault": fault, "knobs": knobs, "moment": SETTLE_S + 0.3}

        self.rows.append(("cluster: late queue and accounting, held back for longer than that", 10, late))

    def processes(self) -> None:
        """What befalls processes."""

        def at_byte(act: Act) -> Maker:
            def make(index: int, place: float) -> dict[str, Any]:
                way = (Way.UP, Way.DOWN)[index % 2]
                then = Then.AFTER if index % 4 < 2 else Then.MEANWHILE
                fault = self._fault(Do.CALL, way, place, Phase.SUBMIT, index % 3 == 2)
                return {"fault": fault, "act": act, "big": index % 3 == 2, "then": then, "fresh": True}

            return make

        def at_moment(act: Act) -> Maker:
            def make(index: int, place: float) -> dict[str, Any]:
                then = Then.AFTER if index % 2 else Then.MEANWHILE
                return {"act": act, "moment": 0.3 * place, "then": then, "fresh": True}

            return make

        for act, text in ((Act.KILL, "submitting process killed"), (Act.STOP, "submitting process stopped")):
            self.rows.append((f"{text} at a byte", 30, at_byte(act)))
            self.rows.append((f"{text} at a moment", 20, at_moment(act)))

        def shell(index: int, _: float) -> dict[str, Any]:
            then = Then.AFTER if index % 2 else Then.MEANWHILE
            return {"act": Act.SHELL, "hang": True, "then": then, "fresh": index % 3 == 0}

        def hanging(index: int, _: float) -> dict[str, Any]:
            do = (Do.RESET, Do.SWALLOW, Do.HALF)[index % 3]
            then = Then.AFTER if index % 2 else Then.MEANWHILE
            return {"fault": Fault(do), "hang": True, "then": then, "fresh": index % 2 == 0}

        self.rows.append(("sbatch hangs, its shell killed", 20, shell))
        self.rows.append(("sbatch hangs, link lost", 20, hanging))


def make_plans(seed: int, count: int, lengths: Lengths) -> list[Plan]:
    """All submissions of a run.

    Args:
        seed: Moves the positions of faults within their strides, and the moments.
        count: About how many; every row gets at least one.
        lengths: As measured.
    """
    rows = _Rows(lengths)
    rows.links()
    rows.questions()
    rows.troubles()
    rows.processes()
    return list(_numbered(rows.rows, random.Random(seed), count))


def _numbered(rows: list[tuple[str, int, Maker]], chance: random.Random, count: int) -> Iterator[Plan]:
    total = sum(share for _, share, _ in rows)
    number = 0
    for kind, share, make in rows:
        size = max(1, -(-share * count // total))
        for index in range(size):
            place = _place(index, size, chance)
            yield Plan(number, kind, pause=chance.uniform(0, 0.4), **make(index, place))
            number += 1


def _place(index: int, size: int, chance: random.Random) -> float:
    """The first byte, the last one, and one at random in each stride between."""
    moved = (index + chance.random()) / size
    if size < 3:
        return moved
    return 0.0 if index == 0 else 1.0 if index == size - 1 else moved
