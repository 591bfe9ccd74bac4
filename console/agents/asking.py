"""The two things that an agent can leave in a run: a job that waits for a person, and a remark for the log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from console.agents.agent import Agent
from console.agents.arguments import refuse
from console.release import folder, queue, remarks
from console.release.asking.building import Asked, is_asked, propose, read_asked
from console.release.asking.sbatch_line import read_line
from console.release.folder import FolderError
from console.release.state import Outcome, RunState

TOOL = "propose_job"
MAX_UPLOADS_BYTES = 8 << 20
"""All files of one job together."""

_FROM_STDIN = "/dev/stdin"
_UPLOAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")


def propose_job(
    agent: Agent,
    *,
    options: Sequence[str],
    script: str,
    summary: str,
    arguments: Sequence[str],
    uploads: Mapping[str, str],
    results: Mapping[str, str],
) -> dict[str, Any]:
    """Lay a job into the queue; it waits there for an operator. Returns at once.

    Nothing of this machine goes into the job: the script is the text that was sent, never a file, and no variable
    of this process can be exported.

    Raises:
        console.release.errors.InputError: When it cannot be read or represented, or too many wait already.
        console.release.folder.FolderError: When the run takes no proposals.
        console.release.job.JobError: When it would carry a secret by value.
    """
    state = _open_run(agent)
    _room(agent, state)
    _uploads(uploads)
    _results(results)
    asked = _read(options, script, summary, arguments, uploads, results)
    proposal = propose(agent.run_dir, state, asked, {}, proposer=agent.proposer, now=agent.now())
    return {
        "id": proposal.id,
        "digest": proposal.digest,
        "state": "pending",
        "next": "an operator decides; ask with job_state what became of it",
    }


def _read(
    options: Sequence[str],
    script: str,
    summary: str,
    arguments: Sequence[str],
    uploads: Mapping[str, str],
    results: Mapping[str, str],
) -> Asked:
    line = read_line(options)
    if line.words:
        raise refuse(
            f"{TOOL}: options", "options of sbatch only", repr(line.words[0]),
            "the text of the script goes into `script`, its arguments into `arguments`",
        )  # fmt: skip
    if line.has("wrap"):
        raise refuse(f"{TOOL}: options", "no --wrap", "--wrap", "write the commands into `script`")
    # A script that is named would be a file of this machine: it is always standard input, and that is `script`.
    words = [*options, _FROM_STDIN, *arguments] if arguments else list(options)
    asked = read_asked(
        words,
        stdin=script.encode("utf-8"),
        folder=Path("/nonexistent"),
        summary=summary,
        uploads={name: text.encode("utf-8") for name, text in uploads.items()},
        results=results,
    )
    assert asked.line.words[:1] in ((), (_FROM_STDIN,)), "no file was named"
    return asked


def _uploads(uploads: Mapping[str, str]) -> None:
    for name in uploads:
        if not _UPLOAD.fullmatch(name):
            raise refuse(f"{TOOL}: uploads", "names of letters, digits and . _ -", repr(name))
    size = sum(len(text.encode("utf-8")) for text in uploads.values())
    if size > MAX_UPLOADS_BYTES:
        raise refuse(f"{TOOL}: uploads", f"at most {MAX_UPLOADS_BYTES} bytes together", str(size))


def _results(results: Mapping[str, str]) -> None:
    for kind, path in results.items():
        if not _KIND.fullmatch(kind):
            raise refuse(f"{TOOL}: results", "kinds of lower-case letters, digits and _", repr(kind))
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise refuse(f"{TOOL}: results.{kind}", "a path inside the job's folder", repr(path))


def _open_run(agent: Agent) -> RunState:
    state = agent.state()
    if state.verdict is not None:
        raise FolderError(f"{agent.run_dir}: the release is closed ({state.verdict}); it takes nothing more")
    return state


def _room(agent: Agent, state: RunState) -> None:
    """Make sure that there is room for one more job of another program."""
    outcomes = {attempt.id: attempt.outcome for attempt in state.asked}
    asked = [name for name in queue.ids(agent.run_dir) if is_asked(name)]
    undecided = (Outcome.PROPOSED, None)
    waiting = sum(outcomes.get(name) in undecided for name in asked if name not in state.refused)
    if waiting >= agent.most_waiting:
        raise refuse(
            TOOL, f"fewer than {agent.most_waiting} jobs that wait for a decision", str(waiting),
            "ask again when an operator has decided",
        )  # fmt: skip
    if len(asked) >= agent.most_asked:
        raise refuse(TOOL, f"fewer than {agent.most_asked} jobs of other programs in one run", str(len(asked)))


def write_note(agent: Agent, *, text: str) -> dict[str, Any]:
    """Ask the conductor to log a remark, as this proposer's own act.

    Raises:
        console.release.folder.FolderError: When nobody would log it.
        console.release.errors.InputError: When too many wait already.
    """
    _open_run(agent)
    if folder.holder(agent.run_dir, "conductor") is None:
        raise FolderError(f"{agent.run_dir}: nobody conducts this release now, so nobody would log it; ask again later")
    try:
        waiting = len(os.listdir(agent.run_dir / "requests"))
    except OSError as error:
        raise FolderError(f"{agent.run_dir}: requests/ cannot be read ({error.strerror})") from None
    if waiting >= agent.most_remarks:
        raise refuse("write_note", f"fewer than {agent.most_remarks} requests that wait", str(waiting), "ask again")
    name = remarks.leave(agent.run_dir, agent.proposer, text, time=agent.now())
    return {"request": name, "next": "the conductor logs it as your act; read_log shows it"}
