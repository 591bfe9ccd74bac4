"""`gonogo open`: look at a run, decide on its jobs; conducts nothing."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo open`."""
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the folder of the run")
    parser.add_argument("--read-only", action="store_true", help="look only: decide nothing, ask for nothing")


def run(args: argparse.Namespace) -> int:
    """Open the console on a run folder."""
    from console.app import run_console
    from console.release.folder import require_run_folder

    require_run_folder(args.run_dir)
    return run_console(args.run_dir.absolute(), read_only=args.read_only)
