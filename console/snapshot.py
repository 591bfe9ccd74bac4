"""What a run looks like at one moment: one frozen record, which the screens draw and compare.

It is built from files that other processes write (`console.reader`), or from a part of a log. Everything in it
that came from a cluster is foreign text as it came; the screens make it safe when they draw it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from console.release.state import RunState

if TYPE_CHECKING:
    from console.release.folder import Holder
    from console.release.journal import Entry

STALE_SECONDS = 5.0
"""`live.json` is rewritten about once a second; older than this, its feed is dead."""


class Link(NamedTuple):
    """The connection to the cluster, in the conductor's words."""

    state: str = ""
    age_s: float | None = None
    detail: str = ""
    host: str = ""


class LiveJob(NamedTuple):
    """A job as the scheduler last described it; `presence` says whether it did."""

    id: str
    job_id: str
    name: str
    presence: str
    state: str
    reason: str
    node: str
    elapsed_s: float | None
    limit_s: float | None
    gpus: int
    hanging: bool


class WatchedFile(NamedTuple):
    """A result file that is being watched; `presence` says whether it was seen, or could not be asked for."""

    id: str
    kind: str
    path: str
    presence: str
    size: int | None
    age_s: float | None


class Live(NamedTuple):
    """The conductor's word on this second, from `live.json`; empty where it said nothing."""

    at: datetime | None = None
    pid: int = 0
    link: Link = Link()
    clock_offset_s: float | None = None
    doing: str = ""
    waiting_for: str = ""
    waiting_what: str = ""
    waiting_since: str = ""
    jobs: tuple[LiveJob, ...] = ()
    files: tuple[WatchedFile, ...] = ()
    problems: tuple[str, ...] = ()

    def age(self, now: datetime) -> float | None:
        """Seconds since it was written; None where there is none."""
        return None if self.at is None else max(0.0, (now - self.at).total_seconds())

    def job(self, attempt_id: str) -> LiveJob | None:
        """The job of an attempt."""
        return next((job for job in self.jobs if job.id == attempt_id), None)


class Waiting(NamedTuple):
    """A proposal that nobody has decided on."""

    id: str
    stage: str
    task: str
    attempt: int
    summary: str
    proposed_at: str
    problem: str = ""


class LogView(Sequence["Entry"]):
    """The log up to some entry. Entries are only ever added behind it, so views share one list.

    Args:
        entries: The list.
        count: How many of them belong to this view.
        verified: How many, from the first on, are what was written.
        problem: What is wrong with the log, empty while nothing is.
        torn: Whether an incomplete entry follows.
        more: Whether there is more to read at once.
        read: Whether the file has been read at all.
    """

    __slots__ = ("_entries", "length", "more", "problem", "read", "torn", "verified")

    def __init__(
        self,
        entries: Sequence[Entry],
        count: int,
        *,
        verified: int = 0,
        problem: str = "",
        torn: bool = False,
        more: bool = False,
        read: bool = True,
    ) -> None:
        self._entries = entries
        self.length = count
        self.verified = verified
        self.problem = problem
        self.torn = torn
        self.more = more
        self.read = read

    def __len__(self) -> int:
        return self.length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogView) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def continues(self, before: LogView) -> bool:
        """Whether this is the same log as in another view, or more of it."""
        return self._entries is before._entries and self.length >= before.length

    def _key(self) -> tuple[object, ...]:
        return id(self._entries), self.length, self.verified, self.problem, self.torn, self.read

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._entries[position] for position in range(*index.indices(self.length))]
        if not -self.length <= index < self.length:
            raise IndexError(index)
        return self._entries[index % self.length]


UNREAD = LogView([], 0, read=False)
"""A log that has not been read yet."""


class Snapshot(NamedTuple):
    """Everything that a screen shows of a run.

    Attributes:
        state: What the log says; None where there is no state.
        live: What is true this second.
        log: The log.
        waiting: Proposals that wait for the operator, oldest first.
        decided: Proposals that somebody decided and the log does not know of yet.
        conductor: Who conducts the run; None when nobody does.
        problems: What could not be read, one line each.
        unrecorded: Stages whose status was not written down in our words, as in runs of other programs, by name: what
            was written instead, empty where nothing was.
    """

    state: RunState | None = None
    live: Live = Live()
    log: LogView = UNREAD
    waiting: tuple[Waiting, ...] = ()
    decided: frozenset[str] = frozenset()
    conductor: Holder | None = None
    problems: tuple[str, ...] = ()
    unrecorded: Mapping[str, str] = MappingProxyType({})

    @property
    def run(self) -> RunState:
        """The state; an empty one where there is none."""
        return self.state if self.state is not None else _EMPTY

    def feed_is_dead(self, now: datetime) -> bool:
        """Whether what `live` says is old: nobody conducts, or the conductor says nothing any more."""
        age = self.live.age(now)
        return self.conductor is None or age is None or age > STALE_SECONDS


_EMPTY = RunState()


def live_from_json(data: Mapping[str, Any]) -> Live:
    """Read `live.json`; a key that is missing or of a wrong type counts as not said."""
    link = _mapping(data.get("link"))
    waiting = _mapping(data.get("waiting"))
    return Live(
        at=_moment(data.get("at")),
        pid=_whole(data.get("pid")) or 0,
        link=Link(_text(link, "state"), _number(link.get("age_s")), _text(link, "detail"), _text(link, "host")),
        clock_offset_s=_number(data.get("clock_offset_s")),
        doing=_text(data, "doing"),
        waiting_for=_text(waiting, "for"),
        waiting_what=_text(waiting, "what"),
        waiting_since=_text(waiting, "since"),
        jobs=tuple(map(_job, _mappings(data.get("jobs")))),
        files=tuple(map(_file, _mappings(data.get("files")))),
        problems=tuple(item for item in _list(data.get("problems")) if isinstance(item, str)),
    )


def _job(data: Mapping[str, Any]) -> LiveJob:
    return LiveJob(
        id=_text(data, "id"),
        job_id=_text(data, "job_id"),
        name=_text(data, "name"),
        presence=_text(data, "presence"),
        state=_text(data, "state"),
        reason=_text(data, "reason"),
        node=_text(data, "node"),
        elapsed_s=_number(data.get("elapsed_s")),
        limit_s=_number(data.get("limit_s")),
        gpus=_whole(data.get("gpus")) or 0,
        hanging=data.get("hanging") is True,
    )


def _file(data: Mapping[str, Any]) -> WatchedFile:
    return WatchedFile(
        id=_text(data, "id"),
        kind=_text(data, "kind"),
        path=_text(data, "path"),
        presence=_text(data, "presence"),
        size=_whole(data.get("size")),
        age_s=_number(data.get("age_s")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if usable else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
