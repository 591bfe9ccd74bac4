"""`gonogo gate`: run one gate over result files, without a console and without a run folder.

The exit status is the verdict: 0 pass, 1 fail, 2 an input could not be read or used. In a GitHub workflow the checks
are added to the step's summary.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from console.commands.common import BAD_INPUT, DONE, REFUSED, add_json, print_json, say
from console.safe_text import safe
from gates.expectations import described, parse, wanted
from gates.reading import MAX_BYTES, ResultBytes
from gates.registry import GATES, Gate, file_name
from gates.registry import run as run_gate
from gates.verdict import Check, Verdict

SUMMARY: Final = "GITHUB_STEP_SUMMARY"
EXPORT_ONLY: Final = "train"
"""The gate that can also look at an export alone."""

CATALOG: Final = "catalog"
SERVER: Final = "server_info"
"""Kinds of files that have options of their own."""

_SETTING: Final = "setting_"
_WIDTHS: Final = (28, 32, 44)


def add_parser(subparsers: Any) -> None:
    """Add `gate` with one sub-command for each gate to the command's subparsers."""
    parser = subparsers.add_parser(
        "gate",
        help="run one gate over result files, without a console",
        description="Run one gate over result files. Exit status: 0 pass, 1 fail, 2 an input could not be read.",
    )
    names = parser.add_subparsers(title="gates", dest="gate", metavar="NAME", required=True)
    for gate in GATES.values():
        _add_gate(names, gate)


def _add_gate(names: Any, gate: Gate) -> None:
    usual = " ".join(file_name(kind) for kind in gate.kinds)
    one = names.add_parser(
        gate.name,
        help=gate.about,
        description=f"Does it hold that {gate.about}? Reads {usual}; docs/results.md says what must be in them.",
        allow_abbrev=False,
    )
    one.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"result files, told apart by name ({usual}), else in that order; KIND=FILE says which one it is",
    )
    if gate.name == EXPORT_ONLY:
        one.add_argument("--export-only", type=Path, metavar="DIR", help="judge this export alone, without a training")
        one.add_argument(
            "--target-config", type=Path, metavar="FILE", help="config.json of the export's target, with --export-only"
        )
    _add_kinds(one, gate)
    add_json(one)
    known = ", ".join(setting.name for setting in fields(gate.settings))
    one.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        type=_expectation(gate),
        help=f"a setting by name, also: {known}",
    )
    for setting in fields(gate.settings):
        what = described(setting)
        default = "" if setting.default is None else f" (default: {_written(setting.default)})"
        one.add_argument(
            f"--{setting.name.replace('_', '-')}",
            dest=_SETTING + setting.name,
            type=_parser(gate, setting.name),
            metavar="VALUE",
            help=f"{what.about}; {wanted(what)}{default}".replace("%", "%%"),
        )


def _add_kinds(parser: argparse.ArgumentParser, gate: Gate) -> None:
    """Options for files that stand beside the measured ones."""
    if CATALOG in gate.kinds:
        words = "catalog of thresholds, JSON or YAML (default: the one that comes with gonogo)"
        parser.add_argument("--catalog", metavar="FILE", help=words)
    if SERVER in gate.kinds:
        words = "what the server said of its settings, for the measurement of the same place; may be repeated"
        parser.add_argument("--server-info", action="append", default=[], metavar="FILE", help=words)


def _beside(args: argparse.Namespace) -> list[str]:
    """Those files as KIND=FILE."""
    catalog = getattr(args, "catalog", None)
    servers = enumerate(getattr(args, "server_info", ()), start=1)
    named = [f"{SERVER}={path}" if number == 1 else f"{SERVER}_{number}={path}" for number, path in servers]
    return named if catalog is None else [*named, f"{CATALOG}={catalog}"]


def _read_kind(kind: str, path: Path) -> ResultBytes:
    if kind != CATALOG:
        return read_file(path)
    from console.release.catalog_file import catalog_bytes
    from gates.results.fields import ResultError

    try:
        return catalog_bytes(path)
    except ResultError as error:
        return ResultBytes(path.name, None, str(error))


def run(args: argparse.Namespace) -> int:
    """Judge, print, add to the step's summary; returns the exit status."""
    gate = GATES[args.gate]
    settings = _settings(args)
    export = getattr(args, "export_only", None)
    if export is not None:
        if args.files:
            say("gonogo: --export-only takes no result files")
            return BAD_INPUT
        verdict = _export_only(export, args.target_config, settings)
    elif getattr(args, "target_config", None) is not None:
        say("gonogo: --target-config goes with --export-only")
        return BAD_INPUT
    else:
        paths = assign(gate, [*args.files, *_beside(args)])
        if isinstance(paths, str):
            say(f"gonogo: {paths}")
            return BAD_INPUT
        verdict = run_gate(gate.name, {kind: _read_kind(kind, path) for kind, path in paths.items()}, settings)
    if args.json:
        print_json(verdict.to_json())
    else:
        print("\n".join(lines(verdict)))
    add_to_summary(verdict)
    if not verdict.readable:
        return BAD_INPUT
    return DONE if verdict.passed else REFUSED


def assign(gate: Gate, arguments: Sequence[str]) -> dict[str, Path] | str:
    """Which file is of which kind, or what is wrong with the choice.

    A file that is given as KIND=FILE, or whose name is the usual one of a kind, is of that kind; the others are taken
    in the gate's order.
    """
    paths: dict[str, Path] = {}
    unnamed: list[Path] = []
    for argument in arguments:
        kind, equals, path = argument.partition("=")
        if not equals or kind not in gate.kinds:
            kind, path = Path(argument).stem, argument
        if kind not in gate.kinds:
            unnamed.append(Path(argument))
        elif kind in paths:
            return f"{argument}: gate {gate.name} reads one {kind}"
        else:
            paths[kind] = Path(path)
    free = [kind for kind in gate.kinds if kind not in paths]
    if len(unnamed) > len(free):
        return f"{unnamed[len(free)]}: gate {gate.name} reads only {', '.join(map(file_name, gate.kinds))}"
    paths.update(zip(free, unnamed, strict=False))
    missing = [file_name(kind) for kind in gate.kinds if kind not in paths and kind not in gate.optional]
    return f"gate {gate.name} needs {' and '.join(missing)}" if missing else paths


def read_file(path: Path) -> ResultBytes:
    """A file's bytes, or why there are none. Of one that is too large to be a result only as much as shows it."""
    try:
        with open(path, "rb") as stream:
            return ResultBytes(path.name, stream.read(MAX_BYTES + 1))
    except OSError as error:
        return ResultBytes(path.name or str(path), None, f"{path}: {error.strerror or error}")


def lines(verdict: Verdict) -> list[str]:
    """A verdict for people: every check in a line, what failed last, so that it stands above the prompt."""
    rows = [_row(check) for check in sorted(verdict.checks, key=lambda check: not check.ok)]
    widths = [min(limit, max((len(row[i]) for row in rows), default=0)) for i, limit in enumerate(_WIDTHS)]
    made = []
    for check, row in zip(sorted(verdict.checks, key=lambda check: not check.ok), rows, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        made.append("  ".join(["PASS" if check.ok else "FAIL", *cells, row[-1]]).rstrip())
    if verdict.facts:
        made += ["", *(f"{safe(name)}: {_measured(value)}" for name, value in verdict.facts)]
    failed = sum(not check.ok for check in verdict.checks)
    count = f"{failed} of {len(verdict.checks)} checks failed" if failed else f"{len(verdict.checks)} checks held"
    return [*made, "", f"{title(verdict)}: {count}"]


def title(verdict: Verdict) -> str:
    """The verdict in a few words."""
    word = "PASS" if verdict.passed else f"FAIL {verdict.failure_class}"
    return f"gate {verdict.gate}: {word}"


def add_to_summary(verdict: Verdict, environ: Mapping[str, str] = os.environ) -> None:
    """Append the checks to the summary of a GitHub workflow's step, where there is one.

    A summary that cannot be written is a warning: it says nothing about the drafter.
    """
    path = environ.get(SUMMARY)
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(summary(verdict))
    except (OSError, ValueError) as error:
        say(f"gonogo: warning: the step summary could not be written: {error}")


def summary(verdict: Verdict) -> str:
    """A verdict as Markdown, all foreign text made inert; failing checks first."""
    from console.release.markdown import table

    checks = sorted(verdict.checks, key=lambda check: check.ok)
    rows = [("PASS" if check.ok else "**FAIL**", *map(_inert, _row(check))) for check in checks]
    head = ("", "check", "measured", "limit", "where")
    made = [f"### {title(verdict)}", "", *_table(head, rows)]
    if verdict.facts:
        made += table(("also measured", ""), ((name, _measured(value)) for name, value in verdict.facts))
    return "\n".join([*made, ""])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def _inert(text: str) -> str:
    from console.release.journal import markdown_inline

    return markdown_inline(text)


def _row(check: Check) -> tuple[str, str, str, str]:
    """Name, measured, limit and place of a check, safe to print."""
    where = ": ".join(part for part in (check.file, check.field) if part)
    measured = _measured(check.measured)
    if check.unit and not isinstance(check.measured, str):
        measured = f"{measured} {safe(check.unit)}"
    return safe(check.name), measured, safe(check.limit), safe(where)


def _measured(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else safe(str(value))


def _written(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _parser(gate: Gate, name: str) -> Callable[[str], object]:
    what = next(described(setting) for setting in fields(gate.settings) if setting.name == name)

    def convert(text: str) -> object:
        try:
            return parse(what, text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not: {wanted(what)}") from None

    return convert


def _expectation(gate: Gate) -> Callable[[str], tuple[str, object]]:
    known = {setting.name for setting in fields(gate.settings)}

    def convert(text: str) -> tuple[str, object]:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in known:
            raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE with one of: {', '.join(sorted(known))}")
        return name, _parser(gate, name)(value)

    return convert


def _settings(args: argparse.Namespace) -> dict[str, object]:
    """What was asked for, by name; an option of its own wins over --expect."""
    settings = dict(args.expect)
    for name, value in vars(args).items():
        if name.startswith(_SETTING) and value is not None:
            settings[name.removeprefix(_SETTING)] = value
    return settings


def _export_only(folder: Path, target_config: Path | None, settings: Mapping[str, object]) -> Verdict:
    from gates.expectations import settle
    from gates.export import GATE, ExportExpected
    from gates.export_folder import judge_folder
    from gates.record import Sheet
    from gates.verdict import FailureClass

    sheet = Sheet(GATE)
    expected = settle(ExportExpected, settings, sheet)
    if expected is None:
        return sheet.verdict(FailureClass.USER_CONFIG_ERROR)
    return judge_folder(folder, None if target_config is None else read_file(target_config), expected)
