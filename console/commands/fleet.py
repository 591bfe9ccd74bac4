"""`gonogo fleet`: all releases below some folders; enter opens one, escape comes back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from console import settings
from console.commands.common import BAD_INPUT, DONE, add_json, print_json, say
from console.settings import RUNS_VARIABLE, Settings
from console.terminal import in_browser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo fleet`."""
    parser.add_argument(
        "roots",
        nargs="*",
        type=Path,
        metavar="ROOT",
        help=f"folders that hold run folders (default: {RUNS_VARIABLE}, else the settings, else gonogo-runs here)",
    )
    parser.add_argument("--read-only", action="store_true", help="look only: open releases without deciding on them")
    parser.add_argument("--filter", default="", metavar="WORDS", help="only releases whose row has all of these words")
    parser.add_argument("--plain", action="store_true", help="one line for each release, once, for pipes")
    add_json(parser)


def roots_of(given: Sequence[Path], settings: Settings) -> list[Path]:
    """The roots: those that were named, else those that are set, else where the commands put their runs."""
    from console.release.folder import RUNS_ROOT

    return [path.absolute() for path in given or settings.runs or (Path(RUNS_ROOT),)]


def run(args: argparse.Namespace) -> int:
    """Show the fleet, or print it.

    Returns:
        0, or 2 where a root cannot be read.
    """
    wanted = settings.load()
    roots = roots_of(args.roots, wanted)
    if args.json or args.plain or not (sys.stdout.isatty() or in_browser()):
        return _print(roots, args.filter, as_json=args.json)
    from console import starting

    starting.begin()
    from console.fleet.app import run_fleet

    return run_fleet(roots, read_only=args.read_only, words=args.filter, settings=wanted)


def _print(roots: Sequence[Path], words: str, *, as_json: bool) -> int:
    from console.fleet.lines import data, lines
    from console.fleet.reading import FleetReader
    from console.session import utc_now

    fleet = FleetReader(roots).poll()
    if as_json:
        print_json(data(fleet, utc_now(), words))
    else:
        for line in lines(fleet._replace(problems=()), utc_now(), words):
            print(line)
    for problem in fleet.problems:
        say(f"gonogo fleet: {problem}")
    return BAD_INPUT if fleet.problems else DONE
