"""`gonogo open`: look at a run, decide on its jobs; conducts nothing.

The folder of another program that follows the convention is shown as far as it can be read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from console.release.folder import LOG_NAME


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo open`."""
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the folder of the run")
    parser.add_argument("--read-only", action="store_true", help="look only: decide nothing, ask for nothing")


def run(args: argparse.Namespace) -> int:
    """Open the console on a run folder."""
    run_dir: Path = args.run_dir.absolute()
    if not _plainly_ours(run_dir):
        from console.replay.foreign_session import is_foreign

        if is_foreign(run_dir):
            return _open_foreign(run_dir)
    from console.app import run_console
    from console.release.folder import require_run_folder

    require_run_folder(args.run_dir)
    return run_console(run_dir, read_only=args.read_only)


def _plainly_ours(run_dir: Path) -> bool:
    """Whether the log begins as ours do; what looks closer is costly, and stays off the way to the first frame."""
    from console.release.journal import PREAMBLE

    try:
        with open(run_dir / LOG_NAME, "rb") as stream:
            return stream.read(len(PREAMBLE)) == PREAMBLE
    except OSError:
        return False


def _open_foreign(run_dir: Path) -> int:
    """Show a run of another program, and its replay as often as that is asked for."""
    from console.replay.app import show
    from console.replay.foreign_app import ForeignApp
    from console.replay.foreign_session import ForeignSession
    from console.replay.recording import open_recording
    from console.replay.session import ReplaySession

    while True:
        app = ForeignApp(ForeignSession(run_dir))
        status = app.run()
        if not app.wants_replay:
            return status if status is not None else app.return_code or 0
        show(ReplaySession(open_recording(run_dir)))
