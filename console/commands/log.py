"""`gonogo log`: the work log, with every byte of it checked."""

from __future__ import annotations

import argparse
from pathlib import Path

from console.commands.common import DONE, REFUSED, add_json, add_run_dir, print_json, say
from console.plain import entry_line
from console.release import folder, journal
from console.release.journal import Entry, Kind, LogError, TornLog
from console.release.state import RunState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo log`."""
    add_run_dir(parser)
    add_json(parser)
    parser.add_argument(
        "--interventions", action="store_true", help="only what people did beyond approving jobs as shown"
    )


def run(args: argparse.Namespace) -> int:
    """Print the log as far as it is sound.

    Returns:
        0 when all of it is, 1 when it was changed, cut, or ends within an entry.
    """
    # The state first: it is written after the log, so a log that is read later is never behind it.
    state, unknown = _state(args.run_dir)
    entries: list[Entry] = []
    fault: LogError | None = None
    data = journal.read_bytes(args.run_dir)
    try:
        for entry in journal.parse(data):
            entries.append(entry)
            if not args.interventions or entry.kind is Kind.HUMAN_INTERVENTION:
                _print(args, entry)
    except LogError as error:
        fault = error
    complaint = _complaint(args.run_dir, entries, fault, state) or unknown
    if complaint:
        say(f"gonogo log: NOT SOUND: {complaint}")
        return REFUSED
    return DONE


def _state(run_dir: Path) -> tuple[RunState | None, str]:
    """The state, or why there is none to compare the log with: every run has one from its first entry on."""
    try:
        state = folder.read_state(run_dir)
    except folder.FolderError as error:
        return None, f"{error}; so nothing says where the log must end"
    return state, "" if state is not None else f"{folder.STATE_NAME} is gone, so nothing says where the log must end"


def _print(args: argparse.Namespace, entry: Entry) -> None:
    if args.json:
        record = entry.to_json()
        del record["prev"]  # the documented keys; the chain is checked here, not by the reader
        print_json(record, indent=None)
    else:
        print(f"{entry.seq:>4} {entry.time[:10]} {entry_line(entry)}")


def _complaint(run_dir: Path, entries: list[Entry], fault: LogError | None, state: RunState | None) -> str:
    """What is wrong with the log, in one line; empty when nothing is."""
    known = 0 if state is None else state.entries
    if isinstance(fault, TornLog):
        if len(entries) < known:
            return f"{fault}, but the state knows of {known} entries: it was whole once, and was changed or cut"
        # While a conductor works, its newest entry may be half on disk at this moment.
        if folder.holder(run_dir, "conductor") is None:
            return f"{fault}: it was cut off while it was being written; `gonogo resume` sets it aside"
    elif fault is not None:
        return str(fault)
    if state is not None:
        try:
            journal.check_anchor(entries, state.entries, state.head)
        except LogError as error:
            return str(error)
    return ""
