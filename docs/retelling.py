"""Writes a run folder again with other names in it, for pictures that show nothing of the machine they were made on.

Every step, time and measured number stays as it was. Where a folder, an account or a host has another name, the
jobs that name it have other digests, and the log is written anew around them, by the code that writes every log: the
retold run is as whole as the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.release import deciding, folder, journal, queue
from console.release.canonical import sha256
from console.release.job import read_job
from console.release.writer import RunWriter


@dataclasses.dataclass(frozen=True)
class Names:
    """What is called otherwise.

    Attributes:
        parts: Pieces of text and what stands in their place, wherever they are found; the longest goes first.
        whole: Texts that are replaced only where nothing stands beside them, such as the name of a host.
    """

    parts: Mapping[str, str]
    whole: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def swap(self, value: Any) -> Any:
        """A JSON value with the other names in it."""
        if isinstance(value, dict):
            return {key: self.swap(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.swap(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """A text with the other names in it."""
        if text in self.whole:
            return self.whole[text]
        for part in sorted(self.parts, key=len, reverse=True):
            text = text.replace(part, self.parts[part])
        return text

    def knowing(self, digests: Mapping[str, str]) -> Names:
        """The same, and the digests of jobs that are others now."""
        return Names({**self.parts, **digests}, self.whole)


def retell(run_dir: Path, into: Path, names: Names) -> None:
    """Write a run folder again.

    Args:
        run_dir: The run folder as it was; it is only read.
        into: The new folder, which must not exist.
        names: What is called otherwise.

    Raises:
        console.release.folder.FolderError: When the new folder cannot be made.
        console.release.journal.LogError: When the log of the first run is not whole.
        console.release.queue.QueueError: When a job of the first run is not complete.
        console.release.job.JobError: When a job does not hold with the other names.
    """
    entries = journal.read_log(run_dir)
    folder.create_run_folder(into, (run_dir / folder.RELEASE_NAME).read_bytes())
    names = names.knowing(_retell_queue(run_dir, into, names))
    times = iter([_moment(entry.time) for entry in entries])
    writer = RunWriter(into, lambda: next(times))
    for entry in entries:
        data = names.swap(dict(entry.data))
        writer.record(
            data.pop("event"),
            names.text(entry.text),
            stage=entry.stage,
            actor=names.text(entry.actor),
            human=entry.kind is journal.Kind.HUMAN_INTERVENTION,
            **data,
        )
    folder.write_live(into, names.swap(folder.read_live(run_dir)))


def _retell_queue(run_dir: Path, into: Path, names: Names) -> dict[str, str]:
    """Write the proposals and decisions; returns the new digest of every job by its first."""
    digests: dict[str, str] = {}
    for proposal_id in queue.ids(run_dir):
        proposal = queue.load(run_dir, proposal_id)
        # The names that a job may have are plain ASCII, so that replacing them leaves it canonical.
        data = names.text(proposal.job_bytes.decode("utf-8")).encode("utf-8")
        digests[proposal.digest] = sha256(data)
        queue.propose(
            into,
            proposal_id,
            read_job(data, proposal_id),
            proposal.uploads(),
            proposer=proposal.proposer,
            time=_moment(proposal.time),
            change=names.text(proposal.change),
        )
        decision = queue.decision_of(proposal)
        if decision is not None:
            told = names.knowing(digests).swap(dataclasses.asdict(decision))
            deciding.decide(into, queue.Decision(**told))
    return digests


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp).astimezone(UTC)
