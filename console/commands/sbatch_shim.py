"""`gonogo sbatch`: stands in for sbatch where a program calls it, and leaves the deciding to the operator.

`gonogo sbatch --install DIR` writes a small `sbatch` into a folder; put that folder first in the program's PATH and
name the run in GONOGO_RUN. It takes sbatch's own command line, waits for the decision, and prints and ends as
sbatch would.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from console.safe_text import safe_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo sbatch`."""
    parser.add_argument("--install", type=Path, metavar="DIR", help="write an executable `sbatch` into this folder")
    parser.add_argument("line", nargs=argparse.REMAINDER, metavar="SBATCH_LINE", help="sbatch's own command line")


def run(args: argparse.Namespace) -> int:
    """Install the look-alike, or be it."""
    return (
        _install(args.install)
        if args.install is not None
        else be_sbatch(args.line[1:] if args.line[:1] == ["--"] else args.line)
    )


def _install(place: Path) -> int:
    place.mkdir(parents=True, exist_ok=True)
    file = place / "sbatch"
    if file.exists() and "gonogo" not in file.read_text(errors="replace"):
        print(f"gonogo sbatch: {file} is there and is not ours; choose another folder", file=sys.stderr)
        return 2
    python = shlex.quote(sys.executable)
    file.write_text(f'#!/bin/sh\n# Proposes the job to gonogo instead.\nexec {python} -m console sbatch -- "$@"\n')
    file.chmod(0o755)
    print(f"{file}\nUse it with: PATH={shlex.quote(str(place.absolute()))}:$PATH GONOGO_RUN=RUN_DIR")
    return 0


def be_sbatch(line: list[str]) -> int:
    """Propose what sbatch was asked for; print and end as sbatch would."""
    from console.commands.submit import ACCEPTED, ask, follow, run_folder, status_of, words
    from console.release.asking.directives import effective
    from console.release.asking.sbatch_line import read_line
    from console.release.errors import InputError
    from console.release.folder import FolderError
    from console.release.job import JobError

    if line in (["--version"], ["-V"]):
        print("slurm 22.05 (gonogo: an operator decides on each job)")
        return 0
    try:
        run_dir = run_folder(None)
        proposal = ask(run_dir, line)
        whole = effective(proposal.job().script, read_line(line))
    except (InputError, FolderError, JobError) as error:
        for text in safe_lines(str(error)):
            print(f"sbatch: error: gonogo: {text}", file=sys.stderr)
        return 1
    print(f"sbatch: gonogo: {proposal.id} waits for the operator's decision", file=sys.stderr, flush=True)
    found = follow(run_dir, proposal.id, None)
    if status_of(found) != ACCEPTED:
        print(f"sbatch: error: Batch job submission failed: gonogo: {words(found)}", file=sys.stderr)
        return 1
    if whole.has("parsable"):
        print(found["job_id"])
    elif not whole.has("quiet"):
        print(f"Submitted batch job {found['job_id']}")
    return 0
