"""`gonogo run` and `gonogo resume`: conduct a release."""

from __future__ import annotations

import argparse
from pathlib import Path

from console import settings
from console.commands.conducting import add_options, conduct, utc


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo run`."""
    parser.add_argument("release", type=Path, metavar="RELEASE_YAML", help="the inputs of the release")
    parser.add_argument("--clusters", type=Path, metavar="FILE", help="this clusters.yaml, not the one found")
    add_options(parser, new_run=True)


def run(args: argparse.Namespace) -> int:
    """Start a new release."""
    from console.release.opening import start_run

    return conduct(
        args,
        None,
        lambda on_entry: start_run(
            args.release,
            run_dir=args.run_dir,
            clusters_file=args.clusters or settings.load().clusters,
            approve=args.approve_submissions,
            clock=utc,
            on_entry=on_entry,
        ),
    )


def add_resume_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo resume`."""
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the folder of the run")
    add_options(parser, new_run=False)


def resume(args: argparse.Namespace) -> int:
    """Take up a release where its log ends."""
    from console.release.folder import require_run_folder
    from console.release.opening import resume_run

    require_run_folder(args.run_dir)
    return conduct(
        args,
        args.run_dir,
        lambda on_entry: resume_run(args.run_dir, approve=args.approve_submissions, clock=utc, on_entry=on_entry),
    )
