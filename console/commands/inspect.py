"""`gonogo inspect`: what a file of another project's tool is, what it states, and what is odd about it.

The exit status says how far one came: 0 it is known and nothing in it speaks against its numbers, 1 it is known and no
use as a measurement, 2 it could not be read, or nobody can tell who wrote it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from console.commands.common import BAD_INPUT, DONE, REFUSED, add_json, print_json, say
from console.commands.gate import read_file
from console.safe_text import cut, safe
from gates.reading import ResultBytes
from gates.results.fields import Reading, Remark, ResultError
from gates.results.meaning import Histogram, Meaning, Number, Series, Table, Unit
from gates.results.producers import BY_NAME, Detected, Producer, detect
from gates.results.statements import Stated, Statement, statements, to_json

_SHOWN: Final = 8
"""So many numbers of a list, and so many entries of a table, are printed; --json has all of them."""

_ENDS: Final = 3
"""So many of the first and last runs, log entries and so on are printed; --json has all of them."""

_LONGEST: Final = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo inspect`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file that another tool wrote")
    parser.add_argument(
        "--as",
        dest="producer",
        choices=sorted(BY_NAME),
        metavar="PRODUCER",
        help=f"read it as what this tool writes, whatever it looks like: {', '.join(sorted(BY_NAME))}",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Inspect one file.

    Returns:
        0 known and usable, 1 known and unusable, 2 unreadable or unknown.
    """
    file = read_file(args.file)
    found = detect(file)
    producer = _decide(found, args.producer)
    if producer is None or found.unread is not None:
        return _unknown(file, found, as_json=args.json)
    try:
        reading = producer.read(file)
    except ResultError as error:
        return _refused(file, found, producer, error, as_json=args.json)
    return _known(file, found, producer, reading, as_json=args.json)


def _decide(found: Detected, named: str | None) -> Producer | None:
    """Who wrote it: the one who is named, or the only one whose shape it has."""
    if named is not None:
        return BY_NAME[named]
    return found.producers[0] if len(found.producers) == 1 else None


def _unknown(file: ResultBytes, found: Detected, *, as_json: bool) -> int:
    """Say why nobody can tell what it is."""
    names = [producer.name for producer in found.producers]
    if found.unread is not None:
        fault = f"{found.unread.fault}: " if file.data is not None else ""
        why = f"cannot be read: {fault}{found.unread.why}"
    elif names:
        why = f"has the shapes of {len(names)} tools: {', '.join(names)}; --as NAME reads it as one of them"
    else:
        why = f"is of no known tool ({found.layout}); --as NAME says why a tool's reader does not take it"
    if found.hint:
        why += f"; looks like {found.hint}"
    if as_json:
        print_json({"file": file.name, "producer": None, "candidates": names, "usable": False, "why": why})
    else:
        say(f"gonogo inspect: {file.name}: {why}")
    return BAD_INPUT


def _refused(file: ResultBytes, found: Detected, producer: Producer, error: ResultError, *, as_json: bool) -> int:
    """Say why a file of a known tool is not taken."""
    if as_json:
        problems = [
            {"field": problem.field, "expected": problem.expected, "found": problem.found} for problem in error.problems
        ]
        print_json({**_head(file, found, producer), "usable": False, "problems": problems})
    else:
        print(_title(file, found, producer))
        print("\nnothing of it can be used:")
        for problem in error.problems:
            place = f"{problem.field}: " if problem.field else ""
            print(safe(f"  {place}expected {problem.expected}; found {problem.found}"))
    return REFUSED


def _known(file: ResultBytes, found: Detected, producer: Producer, reading: Reading, *, as_json: bool) -> int:
    """Print what it states."""
    if as_json:
        states = [to_json(statement) for statement in statements(reading)]
        remarks = [
            {"field": remark.field, "text": remark.text, "unusable": remark.unusable} for remark in reading.remarks
        ]
        print_json({**_head(file, found, producer), "usable": reading.usable, "states": states, "remarks": remarks})
    else:
        print("\n".join([_title(file, found, producer), "", *_lines(reading)]))
    return DONE if reading.usable else REFUSED


def _head(file: ResultBytes, found: Detected, producer: Producer) -> dict[str, Any]:
    return {
        "file": file.name,
        "producer": producer.name,
        "written_by": producer.written_by,
        "layout": str(found.layout),
        "objects": found.objects,
    }


def _title(file: ResultBytes, found: Detected, producer: Producer) -> str:
    objects = f", {found.objects} objects" if found.objects > 1 else ""
    return f"{safe(file.name)}: {producer.written_by} ({found.layout}{objects}) [{producer.name}]"


def _lines(reading: Reading) -> Iterator[str]:
    """What a record states and what is odd about it, for people."""
    silent: list[str] = []
    explained: set[Meaning] = set()
    for statement in statements(reading, _ENDS):
        if statement.value is None:
            silent.append(statement.name)
        else:
            yield from _stated(statement, explained)
    if silent:
        yield ""
        yield f"not stated: {', '.join(silent)}"
    yield from _remarks(reading.remarks)
    yield ""
    yield "usable, as far as the file alone can tell" if reading.usable else "NOT usable as a measurement"


def _stated(statement: Statement, explained: set[Meaning]) -> Iterator[str]:
    """One statement, with what it means where that was not said before."""
    value = statement.value
    if not isinstance(value, Number | Series | Table | Histogram):
        word = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        yield f"{statement.name}: {cut(safe(word), _LONGEST)}"
        return
    place = f" ({value.field})" if value.field not in ("", statement.name) else ""
    unit = f" {value.meaning.unit}" if value.meaning.unit is not Unit.NONE else ""
    yield safe(f"{statement.name}{place}: {_numbers(value)}{unit}")
    if value.meaning not in explained:
        explained.add(value.meaning)
        yield f"    {value.meaning.words}"


def _numbers(value: Stated) -> str:
    if isinstance(value, Number):
        written = "" if value.meaning.scale == 1 else f" (written {value.written:.10g})"
        return f"{value.value:.10g}{written}"
    if isinstance(value, Series):
        return _some([f"{number:.6g}" for number in value.values])
    pairs: Sequence[tuple[str | int, float]] = value.written if isinstance(value, Table) else value.counts
    return _some([f"{name}: {number:.6g}" for name, number in pairs])


def _some(items: Sequence[str]) -> str:
    if len(items) <= _SHOWN:
        return ", ".join(items) or "none"
    return f"{', '.join(items[:_SHOWN])}, … ({len(items)} in all)"


def _remarks(remarks: Sequence[Remark]) -> Iterator[str]:
    """What is odd, the worst last, so that it stands above the prompt."""
    if remarks:
        yield ""
    for remark in sorted(remarks, key=lambda remark: remark.unusable):
        place = f"{remark.field}: " if remark.field else ""
        yield safe(f"{'UNUSABLE' if remark.unusable else 'note'}  {place}{remark.text}")
