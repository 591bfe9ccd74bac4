"""`gonogo report`: the report of a release, made again from its log."""

from __future__ import annotations

import argparse
from pathlib import Path

from console.commands.common import DONE, REFUSED, add_json, add_run_dir, print_json, say
from console.release import folder, journal
from console.release.report import render_report
from console.release.state import fold


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo report`."""
    add_run_dir(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the report that follows from the log, and say whether the file in the run folder is the same.

    Returns:
        0, or 1 when the release is closed and its report is missing or not the one that follows from its log.

    Raises:
        console.release.journal.LogError: When the log was changed or cut; no report follows from such a log.
    """
    known = folder.read_state(args.run_dir)
    entries = journal.read_log(args.run_dir)
    if known is not None:
        journal.check_anchor(entries, known.entries, known.head)
    state = fold(entries)
    text = render_report(state, entries)
    on_disk = _compare(args.run_dir, text)
    if args.json:
        print_json(
            {
                "run_id": state.run_id,
                "verdict": state.verdict,
                "failure_class": state.failure_class or None,
                "detail": state.verdict_detail,
                "stopped": state.stopped,
                "log": {"entries": state.entries, "head": state.head},
                "file": str(args.run_dir / folder.REPORT_NAME),
                "on_disk": on_disk,
                "markdown": text,
            }
        )
    else:
        print(text, end="")
    if state.verdict is None or on_disk == "same":
        return DONE
    say(f"gonogo report: {args.run_dir / folder.REPORT_NAME} is {on_disk}: this is what follows from the log")
    return REFUSED


def _compare(run_dir: Path, text: str) -> str:
    """Whether the report on disk is "same", "different", "missing" or "unreadable"."""
    try:
        data = (run_dir / folder.REPORT_NAME).read_bytes()
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "unreadable"
    return "same" if data == text.encode("utf-8") else "different"
