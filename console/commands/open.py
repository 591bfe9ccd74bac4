"""`gonogo open`: look at a run, decide on its jobs; conducts nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo open`."""
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the folder of the run")
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
    from console.release.folder import require_run_folder

    require_run_folder(args.run_dir)
    if args.plain:
        from console.following import follow

        return follow(args.run_dir.absolute(), sys.stdout)
    from console.app import run_console

    return run_console(args.run_dir.absolute(), read_only=args.read_only)
