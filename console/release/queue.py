"""Proposals and decisions: one folder each in `submissions/`.

    <id>/job.json        the exact job, canonical; its SHA-256 is what is decided on
    <id>/proposal.json   who proposed it, when, and why
    <id>/uploads/NAME    the bytes that travel with it
    <id>/first.json      created exclusively: the first of two approvals, where the rules ask for two
    <id>/decision.json   created exclusively: the first decision stands; so does the end of the time for one
    <id>/used.json       created exclusively: an OK is used once
    <id>/outcome.json    what became of it

Any process that may write here can propose or decide; the conductor alone submits, and only what a decision
names by its full digest. No decision is ever made by silence: a missing or unreadable decision is none.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from console.release import effects
from console.release.canonical import canonical, sha256

if TYPE_CHECKING:
    from console.release.job import ExactJob

APPROVED, REJECTED = "approved", "rejected"
EXPIRED = "expired"
"""What stands in the place of a decision where nobody made one in time; it is nobody's answer."""

FIRST = "first.json"
_MOST_WORDS, _MOST_JOB, _MOST_UPLOAD = 1 << 20, 64 << 20, 1 << 30
"""Bytes of the longest file that is read: of who proposes or decides, of a job, of an upload."""
_OF_SIGNED = ("run_id", "signature")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class QueueError(Exception):
    """Something about a proposal is not as it must be. One line: which, what was expected, what to do."""


class AlreadyDecided(QueueError):
    """Somebody decided first.

    Attributes:
        decision: The decision that stands.
    """

    def __init__(self, proposal_id: str, decision: Decision) -> None:
        text = f"was {decision.decision} by {decision.operator} at {decision.time}; that decision stands"
        if decision.decision == EXPIRED:
            text = f"expired: {decision.reason}; nobody decided on it, and nobody can any more"
        super().__init__(f"{proposal_id}: {text}")
        self.decision = decision


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal as it lies on disk.

    Attributes:
        id: Name of its folder.
        folder: The folder.
        job_bytes: Bytes of job.json, exactly.
        proposer: Who asked for it.
        time: When, UTC.
        change: What differs from the attempt before, in words.
        expires_at: From when on it cannot be decided on any more, UTC; empty for never.
    """

    id: str
    folder: Path
    job_bytes: bytes
    proposer: str
    time: str
    change: str
    expires_at: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 over the bytes that lie there now."""
        return sha256(self.job_bytes)

    def job(self) -> ExactJob:
        """The job in these bytes; raises console.release.job.JobError when they are not one."""
        from console.release.job import read_job

        return read_job(self.job_bytes, f"submissions/{self.id}/job.json")

    def uploads(self) -> dict[str, bytes]:
        """The bytes that travel with the job, checked against the digests in it.

        Raises:
            QueueError: Naming the file that is missing or changed.
        """
        found = {}
        for reference in self.job().uploads:
            path = self.folder / "uploads" / reference.name
            try:
                data = _bytes(path, _MOST_UPLOAD)
            except OSError as error:
                raise QueueError(f"{self.id}: upload {reference.name} cannot be read ({error.strerror})") from None
            if sha256(data) != reference.sha256:
                raise QueueError(
                    f"{self.id}: upload {reference.name} was changed after the proposal: "
                    f"it has SHA-256 {sha256(data)}, the job names {reference.sha256}"
                )
            found[reference.name] = data
        return found


@dataclass(frozen=True, slots=True)
class Decision:
    """What an operator decided, on which bytes, after seeing what.

    Attributes:
        id: The proposal.
        digest: The full digest that was decided on.
        decision: "approved" or "rejected"; "expired" where the time was up.
        operator: Account of who decided, or "policy"; "conductor" where the time was up.
        reason: Their words; required for a rejection.
        time: UTC.
        terminal: Terminal and host it came from.
        shown_s: Whole seconds for which the job was on the screen, None where nobody measured it.
        seen_to_end: Whether the whole job had been shown, None where nobody measured it.
        run_id: The release, where the decision is signed; else empty.
        signature: An SSH signature over all the rest, armoured; empty where it is not signed.
    """

    id: str
    digest: str
    decision: str
    operator: str
    reason: str
    time: str
    terminal: str
    shown_s: int | None = None
    seen_to_end: bool | None = None
    run_id: str = ""
    signature: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON form of decision.json; the fields of a signature stand in it only where there is one."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return {"schema_version": 1, **{name: own[name] for name in own if own[name] or name not in _OF_SIGNED}}


def propose(
    run_dir: Path,
    proposal_id: str,
    job: ExactJob,
    uploads: Mapping[str, bytes],
    *,
    proposer: str,
    time: datetime,
    change: str = "",
    expires_at: str = "",
) -> Proposal:
    """Put a job into the queue: the folder appears whole, or not at all.

    Raises:
        FileExistsError: When there is a proposal of this id.
    """
    folder = run_dir / "submissions" / proposal_id
    fresh = folder.with_name(f".new-{proposal_id}-{secrets.token_hex(4)}")
    about = {"schema_version": 1, "proposer": proposer, "time": _stamp(time), "change": change, "digest": job.digest}
    if expires_at:
        about["expires_at"] = expires_at
    (fresh / "uploads").mkdir(parents=True)
    try:
        for path, data in (
            (fresh / "job.json", job.to_bytes()),
            (fresh / "proposal.json", canonical(about)),
            *((fresh / "uploads" / name, data) for name, data in uploads.items()),
        ):
            _write_through(path, data)
            effects.share_as(path, folder.parent)
        effects.share_as(fresh / "uploads", folder.parent)
        effects.share_as(fresh, folder.parent)
        effects.sync_folder(fresh / "uploads")
        effects.sync_folder(fresh)
        with effects.effect(f"publish proposal {proposal_id}"):
            _publish(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return load(run_dir, proposal_id)


def _publish(fresh: Path, folder: Path) -> None:
    """Give a complete proposal its name; a rename never replaces a folder that holds anything."""
    try:
        os.rename(fresh, folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, "there is a proposal of this name", str(folder)) from None
        raise
    effects.sync_folder(folder.parent)


def _write_through(path: Path, data: bytes) -> None:
    with open(path, "xb") as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _bytes(path: Path, most: int) -> bytes:
    """The bytes of a file that some program laid there.

    Raises:
        OSError: When there is none, or it is a link, a pipe, a device or too long: reading it might never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(stream.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if about.st_size > most:
            raise OSError(errno.EFBIG, f"it has {about.st_size} bytes, and {most} are the most")
        return stream.read(most)


def ids(run_dir: Path) -> list[str]:
    """Names of all proposals, oldest first by name."""
    try:
        names = sorted(os.listdir(run_dir / "submissions"))
    except OSError:
        return []
    return [name for name in names if _ID.fullmatch(name)]


def load(run_dir: Path, proposal_id: str) -> Proposal:
    """Read a proposal.

    Raises:
        QueueError: When there is none of this id, or it is not complete.
    """
    if not _ID.fullmatch(proposal_id):
        raise QueueError(f"{proposal_id!r} is not the name of a proposal; see `gonogo queue list {run_dir}`")
    folder = run_dir / "submissions" / proposal_id
    try:
        about = json.loads(_bytes(folder / "proposal.json", _MOST_WORDS))
        job_bytes = _bytes(folder / "job.json", _MOST_JOB)
        return Proposal(
            proposal_id,
            folder,
            job_bytes,
            str(about["proposer"]),
            str(about["time"]),
            str(about["change"]),
            str(about.get("expires_at", "")),
        )
    except FileNotFoundError:
        raise QueueError(f"{proposal_id}: no such proposal; see `gonogo queue list {run_dir}`") from None
    except OSError as error:
        raise QueueError(f"{proposal_id}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise QueueError(f"{proposal_id}: proposal.json is not a proposal") from None


def decision_of(proposal: Proposal) -> Decision | None:
    """The decision on a proposal; None while there is none.

    Raises:
        QueueError: When there is a file that is no decision: never an approval.
    """
    return _read_decision(proposal, "decision.json", (APPROVED, REJECTED, EXPIRED))


def first_of(proposal: Proposal) -> Decision | None:
    """The first of two approvals of a proposal; None while there is none.

    Raises:
        QueueError: When there is a file that is no approval.
    """
    return _read_decision(proposal, FIRST, (APPROVED,))


def _read_decision(proposal: Proposal, name: str, words: tuple[str, ...]) -> Decision | None:
    try:
        data = json.loads(_bytes(proposal.folder / name, _MOST_WORDS))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        raise QueueError(f"{proposal.id}: {name} is unreadable, so it decides nothing") from None
    return _decision_from_json(proposal.id, name, words, data)


def _decision_from_json(proposal_id: str, name: str, words: tuple[str, ...], data: Any) -> Decision:
    if not isinstance(data, dict) or data.pop("schema_version", None) != 1:
        raise QueueError(f"{proposal_id}: {name} is not a decision, so it decides nothing")
    texts = ("id", "digest", "decision", "operator", "reason", "time", "terminal")
    of_signed = tuple(key for key in _OF_SIGNED if key in data)
    fits = set(data) == {*texts, *of_signed, "shown_s", "seen_to_end"} and of_signed in ((), _OF_SIGNED)
    fits = fits and all(isinstance(data[key], str) for key in texts) and all(_is_word(data[key]) for key in of_signed)
    if not fits or type(data["shown_s"]) not in (int, NoneType) or type(data["seen_to_end"]) not in (bool, NoneType):
        raise QueueError(f"{proposal_id}: {name} has other fields than a decision, so it decides nothing")
    if data["decision"] not in words or data["id"] != proposal_id:
        raise QueueError(f"{proposal_id}: {name} decides {data['decision']!r} on {data['id']!r}: it counts for nothing")
    return Decision(**data)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != ""


def is_used(proposal: Proposal) -> bool:
    """Whether the OK on this proposal was used up."""
    return (proposal.folder / "used.json").exists()


def write_outcome(proposal: Proposal, outcome: Mapping[str, Any]) -> None:
    """Note in the proposal's folder what became of it."""
    effects.replace(proposal.folder / "outcome.json", canonical(dict(outcome)), f"outcome {proposal.id}")


def says_outcome(proposal: Proposal, outcome: Mapping[str, Any]) -> bool:
    """Whether outcome.json says exactly this."""
    try:
        return (proposal.folder / "outcome.json").read_bytes() == canonical(dict(outcome))
    except OSError:
        return False


def about_digest(proposal: Proposal) -> str:
    """SHA-256 of proposal.json as it lies there; empty where it cannot be read."""
    try:
        return sha256(_bytes(proposal.folder / "proposal.json", _MOST_WORDS))
    except OSError:
        return ""


def used_bytes(proposal_id: str, digest: str, time: datetime) -> bytes:
    """The bytes of used.json."""
    return canonical({"schema_version": 1, "id": proposal_id, "digest": digest, "time": _stamp(time)})


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
