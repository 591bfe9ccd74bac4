"""`gonogo submit`: another program asks for a job; an operator decides. Nothing here can decide.

Exit status: 0 Slurm took the job; 1 rejected; 2 bad input; 3 expired; 4 nobody can say yet whether Slurm has it;
5 still waiting when the time was up, or with --no-wait; 6 invalidated (it was changed, or was none); 7 Slurm
refused it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.release import folder
from console.safe_text import safe

if TYPE_CHECKING:
    from console.release.queue import Proposal

ACCEPTED, REJECTED, BAD_INPUT, EXPIRED, UNKNOWN, WAITING, INVALIDATED, SLURM_REFUSED = range(8)
_STATUS = {
    "submitted": ACCEPTED,
    "results read": ACCEPTED,
    "result missing": ACCEPTED,
    "rejected": REJECTED,
    "expired": EXPIRED,
    "invalidated": INVALIDATED,
    "refused": SLURM_REFUSED,
    "not submitted": INVALIDATED,
}
_GOING_ON = ("pending", "approved", "submitting", "unknown")
LOOK_SECONDS = 0.5
RUN_VARIABLE = "GONOGO_RUN"
"""Environment variable that names the run folder, for programs that cannot be given an option."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo submit`."""
    parser.add_argument("--run", type=Path, metavar="RUN_DIR", help=f"the run (default: ${RUN_VARIABLE})")
    parser.add_argument("--summary", default="", metavar="TEXT", help="what the job does and why, for the operator")
    parser.add_argument("--proposer", default="", metavar="NAME", help="who asks (default: this account)")
    parser.add_argument("--upload", action="append", default=[], metavar="FILE", help="a file that travels along")
    parser.add_argument(
        "--result", action="append", default=[], metavar="KIND=PATH", help="a result file, inside the job's folder"
    )
    parser.add_argument("--no-wait", action="store_true", help="print the proposal's name and end; ask with --status")
    parser.add_argument("--wait", type=float, metavar="SECONDS", help="wait no longer than this (default: for ever)")
    parser.add_argument("--status", metavar="ID", help="ask what became of a proposal, instead of making one")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "line", nargs=argparse.REMAINDER, metavar="[--] SBATCH_LINE", help="sbatch's own options, script and arguments"
    )


def run(args: argparse.Namespace) -> int:
    """Propose a job, or ask for one, and say what became of it."""
    run_dir = run_folder(args.run)
    if args.status is not None:
        return _answer(args, follow(run_dir, args.status, None if args.wait is None else args.wait, once=not args.wait))
    line = args.line[1:] if args.line[:1] == ["--"] else args.line
    proposal = ask(
        run_dir,
        line,
        summary=args.summary,
        proposer=args.proposer,
        uploads=_uploads(args.upload),
        results=_results(args.result),
    )
    if not args.json:
        print(f"{proposal.id} waits for a decision; digest {proposal.digest}", file=sys.stderr, flush=True)
    return _answer(args, follow(run_dir, proposal.id, args.wait, once=args.no_wait))


def run_folder(given: Path | None) -> Path:
    """The run that is meant.

    Raises:
        console.release.folder.FolderError: When none is named, or it is none.
    """
    named = given or (Path(os.environ[RUN_VARIABLE]) if os.environ.get(RUN_VARIABLE) else None)
    if named is None:
        raise folder.FolderError(f"which run? name it with --run RUN_DIR, or in the variable {RUN_VARIABLE}")
    folder.require_run_folder(named)
    return named.absolute()


def ask(
    run_dir: Path,
    line: Sequence[str],
    *,
    summary: str = "",
    proposer: str = "",
    uploads: Mapping[str, bytes] | None = None,
    results: Mapping[str, str] | None = None,
) -> Proposal:
    """Put the job of an sbatch command line into the queue of a run.

    Raises:
        console.release.errors.InputError: When it cannot be read or represented.
        console.release.folder.FolderError: When the run takes no proposals.
    """
    from console.release.asking.building import propose, read_asked

    state = folder.read_state(run_dir)
    if state is None:
        raise folder.FolderError(f"{run_dir}: it has no state yet; try again in a moment")
    if state.verdict is not None:
        raise folder.FolderError(f"{run_dir}: the release is closed ({state.verdict}); it takes no more jobs")
    asked = read_asked(
        line,
        stdin=_script_on_stdin(line),
        folder=Path.cwd(),
        summary=summary,
        uploads=uploads,
        results=results,
        environ=os.environ,
    )
    who = proposer or folder.account()
    return propose(run_dir, state, asked, os.environ, proposer=who, now=datetime.now(UTC))


def _script_on_stdin(line: Sequence[str]) -> bytes | None:
    """What stands on standard input, where the script comes from there; anything else there is not ours to read."""
    from console.release.asking.building import MAX_SCRIPT_BYTES, reads_stdin
    from console.release.asking.sbatch_line import read_line

    if not reads_stdin(read_line(line)) or sys.stdin is None or sys.stdin.isatty():
        return None
    return sys.stdin.buffer.read(MAX_SCRIPT_BYTES + 1)


def follow(run_dir: Path, name: str, wait_s: float | None, *, once: bool = False) -> dict[str, Any]:
    """What became of a proposal, once that is certain or the time is up.

    Args:
        run_dir: The run.
        name: The proposal.
        wait_s: Seconds; None waits for ever.
        once: Look once.
    """
    from console.release.queue_view import item

    start = time.monotonic()
    while True:
        found = item(run_dir, folder.read_state(run_dir), name)
        if found.state not in _GOING_ON or once or (wait_s is not None and time.monotonic() - start >= wait_s):
            return found.to_json()
        time.sleep(LOOK_SECONDS)


def status_of(found: Mapping[str, Any]) -> int:
    """The exit status that a proposal's state stands for."""
    if found["state"] == "unknown":
        return UNKNOWN
    return _STATUS.get(str(found["state"]), WAITING)


def _answer(args: argparse.Namespace, found: Mapping[str, Any]) -> int:
    if args.json:
        print(json.dumps(found))
    else:
        print(words(found))
    return status_of(found)


def words(found: Mapping[str, Any]) -> str:
    """What became of a proposal, in one line."""
    name, state = safe(str(found["id"])), safe(str(found["state"]))
    if status_of(found) == ACCEPTED:
        return f"{name}: job {found['job_id']}, approved by {safe(str(found['decided_by']))}"
    why = safe(str(found["reason"] or found["problem"]))
    by = f" by {safe(str(found['decided_by']))}" if found["decided_by"] else ""
    return f"{name}: {state}{by}{': ' if why else ''}{why}"


def _uploads(names: Sequence[str]) -> dict[str, bytes]:
    from console.release.asking.building import MAX_UPLOAD_BYTES
    from console.release.errors import InputError, Problem

    found: dict[str, bytes] = {}
    for name in names:
        path = Path(name)
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_UPLOAD_BYTES + 1)
        except OSError as error:
            raise InputError(Problem(name, "upload", "a file that can be read", str(error.strerror))) from None
        if len(data) > MAX_UPLOAD_BYTES:
            raise InputError(Problem(name, "size", f"at most {MAX_UPLOAD_BYTES} bytes", "more"))
        if path.name in found:
            raise InputError(Problem(name, "upload", "files of different names", f"{path.name} twice"))
        found[path.name] = data
    return found


def _results(words: Sequence[str]) -> dict[str, str]:
    from console.release.errors import InputError, Problem

    found: dict[str, str] = {}
    for word in words:
        kind, given, path = word.partition("=")
        if not given or not kind or not path:
            raise InputError(Problem("--result", word, "KIND=PATH", word))
        found[kind] = path
    return found
