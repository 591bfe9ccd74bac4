"""`gonogo plot`: what a release measured, drawn or in words, from the result files that its log names."""

from __future__ import annotations

import argparse
import shutil
import sys
from datetime import UTC, datetime

from console.commands.common import DONE, REFUSED, add_run_dir
from console.plot_reading import PlotReader
from console.release import folder
from console.widgets.ink import plain
from console.widgets.plot_rows import rows, words

HEIGHT = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo plot`."""
    add_run_dir(parser)
    parser.add_argument("--plain", action="store_true", help="in words, line by line, as into a pipe")


def run(args: argparse.Namespace) -> int:
    """Print the plots.

    Returns:
        0; 1 where a result file that was read cannot be drawn any more.

    Raises:
        console.release.folder.FolderError: When it is no run folder.
    """
    folder.require_run_folder(args.run_dir)
    state = folder.read_state(args.run_dir)
    found = [] if state is None else PlotReader(args.run_dir).read(state)
    now = datetime.now(UTC)
    if args.plain or not sys.stdout.isatty():
        lines = list(words(found, now))
    else:
        lines = [plain(line).rstrip() for line in rows(found, now, shutil.get_terminal_size().columns, HEIGHT)]
    print("\n".join(lines))
    return REFUSED if any(drawn.problem for drawn in found) else DONE
