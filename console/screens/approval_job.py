"""Reads a proposal for the approval screen: what is shown, and how it stands now. Blocks; called in threads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from console.release.state import RunState
from console.widgets.ink import Line, Paragraph, Span, foreign

if TYPE_CHECKING:
    from console.release.job import ExactJob


class Shown(NamedTuple):
    """A job as it is shown.

    Attributes:
        digest: SHA-256 of the bytes that it was made from; a decision names it.
        code: What must be typed.
        banner: What it takes, whether its characters are what they look like, and what it does.
        paragraphs: The whole job.
        problem: Why it cannot be decided on whatever is typed; empty when it can.
        expires_at: From when on nobody can decide on it, UTC; empty for never.
    """

    digest: str
    code: str
    banner: Line
    paragraphs: list[Paragraph]
    problem: str
    expires_at: str = ""


class Standing(NamedTuple):
    """How a proposal stands on disk.

    Attributes:
        digest: SHA-256 of its job now.
        decision: Who decided what, in words; None while nobody has.
        problem: What is wrong with it.
    """

    digest: str = ""
    decision: str | None = None
    problem: str = ""


def read_shown(run_dir: Path, state: RunState | None, proposal_id: str, with_files: bool) -> Shown | str:
    """Read a job for the screen.

    Args:
        run_dir: The run folder.
        state: What the log says.
        proposal_id: The proposal.
        with_files: Show the text of the files that travel with it, too.

    Returns:
        The job; a line of text where it cannot be shown.
    """
    from console.release import queue, queue_view
    from console.release.job import JobError
    from console.release.job_view import attention, job_sections
    from console.widgets.job_document import document

    try:
        proposal = queue.load(run_dir, proposal_id)
        job = proposal.job()
        background = queue_view.background(run_dir, state, proposal)
    except (queue.QueueError, JobError) as error:
        return str(error)
    problem = ""
    files = None
    try:
        files = proposal.uploads()
    except queue.QueueError as error:
        problem = str(error)
    item = queue_view.item(run_dir, state, proposal_id)
    standing = item.problem or ("" if item.state == queue_view.PENDING else f"it is {item.state} already")
    sections = job_sections(job, background, files if with_files else None)
    return Shown(
        proposal.digest,
        job.code,
        _banner(job, attention(job)),
        document(sections, proposal_id),
        standing or problem,
        item.expires_at,
    )


def _banner(job: ExactJob, odd: tuple[str, ...]) -> Line:
    """What it does and what it takes, behind a warning where its characters may not be what they look like."""
    warning: Line = ()
    if odd:
        more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        warning = (Span(f" ▲ {odd[0]}{more} ", "chip-waiting"), Span("  "))
    if job.kind != "sbatch":
        return (*warning, Span("a policy: jobs within it are not asked about  "), foreign(job.summary, "strong"))
    size = (
        f"{job.nodes} node{'s' if job.nodes > 1 else ''}, {job.gpus} GPUs, {job.time} = {job.gpu_hours:.2f} GPU hours"
    )
    ascii_ = "" if odd else " · plain ASCII"
    # What it does stands in full below; what it takes and how it is written must not be cut here.
    return (*warning, Span(f"{size}{ascii_}  "), foreign(job.summary, "strong"))


def standing(run_dir: Path, proposal_id: str) -> Standing:
    """How a proposal stands now."""
    from console.release import queue

    try:
        proposal = queue.load(run_dir, proposal_id)
        decision = queue.decision_of(proposal)
    except queue.QueueError as error:
        return Standing(problem=str(error))
    words = None
    if decision is not None:
        words = f"{decision.decision.upper()} by {decision.operator} at {decision.time}, {decision.terminal}"
    return Standing(proposal.digest, words)
