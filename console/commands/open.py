"""`gonogo open`: look at a run, decide on its jobs; conducts nothing.

The folder of another program that follows the convention is shown as far as it can be read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from console.release.folder import LOG_NAME, PREAMBLE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo open`."""
    parser.add_argument(
        "run_dir",
        type=Path,
        nargs="?",
        metavar="RUN_DIR",
        help="the folder of the run; without it, all of them: the fleet",
    )
    parser.add_argument("--read-only", action="store_true", help="look only: decide nothing, ask for nothing")
    parser.add_argument(
        "--plain",
        action="store_true",
        help="the same facts line by line, for screen readers and pipes; read-only; follows the run until it is "
        "closed or ctrl-c. Exit status: 0 DRAFTER_READY, 1 INFEASIBLE, 3 ANOMALOUS, 2 where the log is not sound, "
        "130 when interrupted, 141 when nobody reads any more",
    )


def run(args: argparse.Namespace) -> int:
    """Open the console on a run folder, or print it line by line.

    Returns:
        The exit status: of the console; with `--plain` as its help says.
    """
    if args.run_dir is None:
        from console.commands import fleet

        return fleet.run(argparse.Namespace(roots=[], filter="", json=False, **vars(args)))
    run_dir: Path = args.run_dir.absolute()
    if not _plainly_ours(run_dir):
        from console.replay.foreign_session import is_foreign

        if is_foreign(run_dir):
            return _open_foreign(run_dir, plain=args.plain)
    from console.release.folder import require_run_folder

    require_run_folder(args.run_dir)
    if args.plain:
        from console.following import follow

        return follow(run_dir, sys.stdout)
    from console import starting

    starting.begin()
    from console.app import run_console

    return run_console(run_dir, read_only=args.read_only)


def _plainly_ours(run_dir: Path) -> bool:
    """Whether the log begins as ours do; what looks closer is costly, and stays off the way to the first frame."""
    try:
        with open(run_dir / LOG_NAME, "rb") as stream:
            return stream.read(len(PREAMBLE)) == PREAMBLE
    except OSError:
        return False


def _open_foreign(run_dir: Path, *, plain: bool) -> int:
    """Show a run of another program, and its replay as often as that is asked for.

    Raises:
        console.release.folder.FolderError: For `plain`: what such a run states is printed by its replay.
    """
    if plain:
        from console.release.folder import FolderError

        raise FolderError(
            f"{run_dir}: --plain follows runs of gonogo, and another program keeps this one; "
            f"`gonogo replay --plain {run_dir}` prints what it says"
        )
    from console.replay.foreign_app import run_foreign

    return run_foreign(run_dir).status
