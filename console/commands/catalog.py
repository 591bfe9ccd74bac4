"""`gonogo catalog`: check a catalog of thresholds, propose one from what was measured before, import another tool's."""

from __future__ import annotations

import argparse
import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from console.commands.common import DONE, REFUSED, add_json, print_json, say
from console.release.catalog_file import catalog_bytes
from console.safe_text import safe
from gates.catalog.against import check_against
from gates.catalog.atom import looks, read_atom
from gates.catalog.check import Finding, check_catalog, errors
from gates.catalog.model import Catalog, read_catalog, to_json
from gates.catalog.propose import Proposal, propose
from gates.reading import ResultBytes, Unread
from gates.results.documents import Layout, load
from gates.results.fields import Problem, ResultError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Sub-commands of `gonogo catalog`."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="find what is wrong with a catalog; ATOM's catalogs are read too")
    check.add_argument("file", type=Path, metavar="FILE", help="the catalog, JSON or YAML")
    check.add_argument(
        "--against", type=Path, metavar="EARLIER", help="also find bars that were lowered or dropped since this state"
    )
    add_json(check)
    offer = actions.add_parser("propose", help="propose bars from a history: smallest healthy value less a margin")
    offer.add_argument("history", type=Path, metavar="HISTORY", help="a history of releases, or a list of runs as JSON")
    offer.add_argument("--output", type=Path, metavar="FILE", help="write the catalog here; never over another file")
    offer.add_argument(
        "--least", type=_least, default=3, metavar="N", help="fewest healthy runs for a bar (default: 3)"
    )
    _add_day(offer)
    add_json(offer)
    take = actions.add_parser("import", help="turn one of ATOM's accuracy catalogs into a catalog of gonogo")
    take.add_argument("file", type=Path, metavar="FILE", help="ATOM's catalog")
    take.add_argument("--output", type=Path, metavar="FILE", required=True, help="new file for the catalog")
    _add_day(take)


def _add_day(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--day", type=_day, metavar="YYYY-MM-DD", help="date of the bars (default: today, UTC)")


def _day(text: str) -> str:
    try:
        return f"{date.fromisoformat(text)}"
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day like 2026-07-08") from None


def _least(text: str) -> int:
    if text.isascii() and text.isdecimal() and 3 <= int(text[:4]) <= 1000:
        return int(text[:4])
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 3 to 1000")


def run(args: argparse.Namespace) -> int:
    """Do what was asked for.

    Returns:
        0, or 1 when a catalog has errors or nothing could be proposed.

    Raises:
        gates.results.fields.ResultError: When a file cannot be read as what it should be.
    """
    if args.action == "check":
        return _check(args)
    day = args.day or f"{datetime.now(UTC):%Y-%m-%d}"
    return _propose(args, day) if args.action == "propose" else _import(args, day)


def read_any(file: ResultBytes, day: str) -> tuple[Catalog, list[Finding]]:
    """A catalog of gonogo or of ATOM, whichever the file is, and what is wrong with it.

    Raises:
        ResultError: When it is neither.
    """
    loaded = load(file)
    if not isinstance(loaded, Unread) and loaded.layout is Layout.LIST and loaded.parts:
        if not any(looks(part.root) for part in loaded.parts):
            raise ResultError(file.name, [Problem("", "a catalog of gonogo or of ATOM", "another list")])
        return read_atom(file, day=day)
    catalog = read_catalog(file)
    return catalog, check_catalog(catalog)


def _check(args: argparse.Namespace) -> int:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    catalog, findings = read_any(catalog_bytes(args.file), today)
    if args.against is not None:
        earlier, _ = read_any(catalog_bytes(args.against), today)
        findings = [*findings, *check_against(catalog, earlier)]
    wrong = errors(findings)
    if args.json:
        print_json(
            {
                "file": str(args.file),
                "ok": not wrong,
                "entries": len(catalog.entries),
                "findings": [finding.to_json() for finding in findings],
            }
        )
    else:
        for finding in sorted(findings, key=lambda finding: finding.error):
            word = "ERROR" if finding.error else "warning"
            print(
                f"{word}: {safe(args.file.name)}: {safe(finding.field)} ({safe(finding.entry)}): {safe(finding.text)}"
            )
        counted = f"{len(wrong)} errors, {len(findings) - len(wrong)} warnings"
        print(f"{safe(args.file.name)}: {len(catalog.entries)} entries, {counted}")
    return REFUSED if wrong else DONE


def _propose(args: argparse.Namespace, day: str) -> int:
    from console.release.history_runs import read_runs

    made = propose(read_runs(args.history), day=day, least=args.least)
    catalog = to_json(Catalog(args.history.name, f"Proposed from {args.history.name}", made.entries))
    if args.output is not None and made.entries:
        write_new(args.output, catalog)
    if args.json:
        left = [{name: getattr(one, name) for name in one.__slots__} for one in made.left_out]
        print_json({"catalog": catalog if made.entries else None, "left_out": left, "refused": list(made.refused)})
    else:
        print("\n".join(_told(made, args.output)))
    return DONE if made.entries else REFUSED


def _told(made: Proposal, output: Path | None) -> list[str]:
    """A proposal for people."""
    lines = []
    for entry in made.entries:
        lines.append(safe(entry.words))
        for name, bar in entry.bars.items():
            lines.append(f"  {name}: {bar.bars[0]:g} ({bar.source}; smallest {bar.minimum[0]:g})")
    if made.left_out:
        lines.append("left out:")
        lines += [
            f"  {safe(one.run)} of {safe(one.day)}: {safe(one.entry)}: {one.measure}: {safe(one.why)}"
            for one in made.left_out
        ]
    lines += [f"refused: {safe(words)}" for words in made.refused]
    if not made.entries:
        lines.append("nothing to propose")
    elif output is not None:
        lines.append(f"written to {safe(str(output))}")
    return lines


def _import(args: argparse.Namespace, day: str) -> int:
    catalog, findings = read_atom(catalog_bytes(args.file), day=day)
    write_new(args.output, to_json(catalog))
    for finding in findings:
        word = "error" if finding.error else "warning"
        say(f"{word}: {args.file.name}: {finding.field} ({finding.entry}): {finding.text}")
    print(f"{len(catalog.entries)} entries written to {safe(str(args.output))}")
    if wrong := errors(findings):
        say(f"{len(wrong)} errors were taken over as they are; `gonogo catalog check` names them until they are mended")
        return REFUSED
    return DONE


def write_new(path: Path, value: Any) -> None:
    """Write a file of JSON that must not be there yet, whole or not at all.

    Raises:
        ResultError: When there is something of that name, or it cannot be written.
    """
    data = json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            fresh.write_bytes(data)
            os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    except FileExistsError:
        raise ResultError(str(path), [Problem("", "a new file", "one that is there; name another")]) from None
    except OSError as error:
        raise ResultError(str(path), [Problem("", "a file that can be written", f"{error.strerror}")]) from None
