"""`gonogo cluster confirm`: show the commands of this machine that a clusters file names, and take each by its code."""

from __future__ import annotations

import argparse

from console.commands.common import DONE, REFUSED, interactive, print_json
from console.release import confirmed
from console.release.clusters import Clusters
from console.release.confirmed import Command
from console.safe_text import safe


def confirm(clusters: Clusters, name: str, args: argparse.Namespace) -> int:
    """Show every command of an entry whole; take those whose code is typed, or whose digest was given.

    Returns:
        0 when every command of the entry may run now, 1 when one may not.

    Raises:
        console.release.errors.InputError: When the entry cannot be used, or nobody can say what was confirmed.
        OSError: When a confirmation cannot be written.
    """
    commands = clusters.commands(name)
    own, known = confirmed.is_own(clusters.document.file), confirmed.confirmed()
    rows = []
    for command in commands:
        may = own or command.digest in known
        if not args.json:
            _show(command, may=may, own=own)
        if not may and _takes(command, args):
            confirmed.confirm([command])
            may = True
        rows.append((command, may))
    if args.json:
        print_json(
            [
                {"field": ".".join(one.field), "command": one.shown, "digest": one.digest, "confirmed": may}
                for one, may in rows
            ]
        )
    elif not rows:
        print(f"cluster {safe(name)} of {safe(clusters.document.file)} names no command of this machine")
    return DONE if all(may for _, may in rows) else REFUSED


def _show(command: Command, *, may: bool, own: bool) -> None:
    print(f"{'.'.join(command.field)}: runs on this machine, as you")
    for line in command.shown.split("\n"):
        print(f"    {safe(line)}")
    print(f"  SHA-256 {command.digest}")
    if may:
        print("  the file is your own" if own else "  confirmed before")


def _takes(command: Command, args: argparse.Namespace) -> bool:
    if args.digest:
        same = command.digest in args.digest
        if not args.json:
            print("  confirmed" if same else "  NOT confirmed: this digest was not given")
        return same
    if args.json or not interactive():
        if not args.json:
            print("  not confirmed: nobody can be asked here; add --digest and its 64 hex digits")
        return False
    try:
        typed = input(f"  type its code {command.code} to let it run, anything else refuses> ")
    except EOFError:
        typed = ""
    same = typed.strip() == command.code
    print("  confirmed" if same else "  not confirmed")
    return same
