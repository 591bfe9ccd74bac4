"""A cluster that keeps the promises of the submit protocol and no others: it loses, delays and dies on demand.

It is the oracle: `accepted` is what really happened, whatever anybody believes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from backends.slurm.model import Accepted, NotSubmitted, Refused, SubmitOutcome, SubmitRequest, Unknown


class Killed(BaseException):
    """The conductor's process died here."""


@dataclass
class FakeCluster:
    """One cluster.

    Attributes:
        accepted: Every job that it took, in order: its number, and the submission.
        asked: How often it was asked to submit.
        fault: What happens to the next submission, then nothing again.
        mute: Questions get no answer.
        under_way: Submissions that still travel; each may arrive at any time.
    """

    accepted: list[tuple[str, SubmitRequest]] = field(default_factory=list)
    asked: int = 0
    fault: str = ""
    mute: bool = False
    under_way: list[SubmitRequest] = field(default_factory=list)
    claims: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None

    async def submit(self, request: SubmitRequest) -> SubmitOutcome:
        """Take a submission, with the fault that is due."""
        self.asked += 1
        fault, self.fault = self.fault, ""
        if fault == "killed before":
            raise Killed
        if fault == "lost before":
            return Unknown("the link was lost")
        if fault == "delayed":
            self.under_way.append(request)
            return Unknown("no answer in time")
        if fault == "refused" and request.token not in self.claims:
            self.claims[request.token] = "refused"
            return Refused("Invalid qos specification", 1)
        outcome = self._arrive(request)
        if fault == "killed after":
            raise Killed
        return Unknown("the answer was lost") if fault == "lost after" else outcome

    def _arrive(self, request: SubmitRequest) -> SubmitOutcome:
        """The claim is exclusive: whoever comes second changes nothing."""
        if request.token in self.claims:
            return Unknown("this submission was begun before")
        number = str(100 + len(self.accepted))
        self.claims[request.token] = number
        self.accepted.append((number, request))
        return Accepted(number)

    def deliver(self) -> None:
        """What was under way arrives now."""
        while self.under_way:
            self._arrive(self.under_way.pop())

    async def reconcile(
        self, request: SubmitRequest, *, submitted_at: float | None, settle_seconds: float
    ) -> SubmitOutcome:
        """Say what became of a submission; one that never came is fenced off."""
        if self.mute:
            return Unknown("the cluster could not be asked")
        claim = self.claims.setdefault(request.token, "fenced")
        if claim == "fenced":
            return NotSubmitted("the submission never began, and now cannot")
        return Refused("Invalid qos specification", 1) if claim == "refused" else Accepted(claim)
