"""A result file as a table: JSON by paths and values, JSON lines and CSV by columns. Nothing here imports Textual.

Numbers are shown as they are written in the file, names that stand twice are shown twice: a table is another look at
the bytes, and no judgement on them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from console.safe_text import safe
from console.widgets.ink import Line, Span, fit, pad

MOST_ROWS = 20_000
"""A table has no more rows; how many more there are is said."""

MOST_COLUMNS = 40
_WIDEST = 48
_MEASURED = 500
_GAP = "  "


class Table(NamedTuple):
    """A table.

    Attributes:
        form: What the file was read as.
        columns: Headings.
        rows: Cells, foreign text as it came.
        left_out: What is not shown, in words; empty for nothing.
    """

    form: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    left_out: str = ""


class NoTable(Exception):
    """The bytes are no table. One line that says why."""


class _Written(str):
    """A number as it is written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object with its names in order, also those that stand twice."""


def _read(text: str) -> Any:
    return json.loads(text, parse_int=_Written, parse_float=_Written, parse_constant=_Written, object_pairs_hook=_Pairs)


def table_of(name: str, data: bytes) -> Table:
    """Read bytes as a table.

    Args:
        name: The file's name; its ending tells CSV.
        data: All bytes of the file.

    Raises:
        NoTable: When they are none.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoTable(f"no UTF-8 text: byte {error.start}") from None
    if name.endswith((".csv", ".tsv")):
        return _separated(text, "\t" if name.endswith(".tsv") else ",")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise NoTable("the file is empty")
    try:
        return _by_paths(_read(text))
    except RecursionError:
        raise NoTable("JSON that is nested too deep") from None
    except ValueError as error:
        first = error
    if len(lines) > 1:
        found = _json_lines(lines)
        if found is not None:
            return found
    raise NoTable(f"neither JSON ({first}) nor JSON lines nor a file named .csv or .tsv")


def _by_paths(document: Any) -> Table:
    rows: list[tuple[str, ...]] = []
    more = 0
    for path, value in _flat(document):
        if len(rows) < MOST_ROWS:
            rows.append((path, value))
        else:
            more += 1
    return Table("JSON", ("path", "value"), rows, f"{more} more values" if more else "")


def _flat(document: Any) -> Iterator[tuple[str, str]]:
    """Every value with its path, in the order of the document."""
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _Pairs) and value:
            stack += [(f"{path}{_name(key, path)}", item) for key, item in reversed(value)]
        elif isinstance(value, list) and not isinstance(value, _Pairs) and value:
            stack += [(f"{path}[{index}]", value[index]) for index in range(len(value) - 1, -1, -1)]
        else:
            yield path or ".", _cell(value)


def _name(key: str, before: str) -> str:
    if key.isascii() and key.replace("_", "a").replace("-", "a").isalnum():
        return f".{key}" if before else key
    return f"[{json.dumps(key, ensure_ascii=False)}]"


def _cell(value: Any) -> str:
    """A value as it could stand in the file."""
    if isinstance(value, _Written):
        return str(value)
    if isinstance(value, _Pairs):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_cell(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_cell, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _json_lines(lines: Sequence[str]) -> Table | None:
    """Lines that are objects; None where one of them is none."""
    names: dict[str, int] = {}
    records: list[_Pairs] = []
    for line in lines:
        try:
            record = _read(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, _Pairs):
            return None
        records.append(record)
        for key, _ in record:
            names.setdefault(key, len(names))
    columns = tuple(names)[:MOST_COLUMNS]
    rows: list[tuple[str, ...]] = []
    for record in records[:MOST_ROWS]:
        cells = [""] * len(columns)
        for key, value in record:
            if names[key] < len(columns):
                before = cells[names[key]]
                cells[names[key]] = f"{before} | {_cell(value)}" if before else _cell(value)
        rows.append(tuple(cells))
    return Table("JSON lines", columns, rows, _left_out(len(records), len(names)))


def _separated(text: str, delimiter: str) -> Table:
    try:
        found = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise NoTable(f"no CSV: {error}") from None
    if not found:
        raise NoTable("the file is empty")
    wide = max(map(len, found))
    head = [*found[0], *(f"column {number + 1}" for number in range(len(found[0]), wide))][:MOST_COLUMNS]
    rows = [tuple([*row, *[""] * (wide - len(row))][:MOST_COLUMNS]) for row in found[1 : MOST_ROWS + 1]]
    return Table("CSV", tuple(head), rows, _left_out(len(found) - 1, wide))


def _left_out(rows: int, columns: int) -> str:
    parts = [f"{rows - MOST_ROWS} more rows"] if rows > MOST_ROWS else []
    parts += [f"{columns - MOST_COLUMNS} more columns"] if columns > MOST_COLUMNS else []
    return ", ".join(parts)


class TableRows:
    """A table as rows of a list.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        sample = [table.columns, *table.rows[:_MEASURED]]
        self._widths = [
            min(_WIDEST, max(cell_len(safe(row[index][: _WIDEST * 2])) for row in sample))
            for index in range(len(table.columns))
        ]

    def __len__(self) -> int:
        return len(self._table.rows)

    def heading(self, width: int) -> Line:
        """The headings."""
        return self._line(self._table.columns, width, "muted")

    def line(self, index: int, width: int) -> Line:
        """One row."""
        return self._line(self._table.rows[index], width, "text")

    def _line(self, row: Sequence[str], width: int, style: str) -> Line:
        cells: list[Span] = []
        for index, (text, size) in enumerate(zip(row, self._widths, strict=True)):
            first, last = index == 0, index == len(row) - 1
            span = Span(
                safe(text[: 4 * max(width, size)]), "muted" if first and style == "text" and not last else style
            )
            cells += (span,) if last else (*pad((span,), size), Span(_GAP))
        return fit(tuple(cells), width)

    def whole(self, index: int) -> str:
        """A row with all of its cells."""
        return "\t".join(map(safe, self._table.rows[index]))

    def key(self, index: int) -> str:
        """The number of the row."""
        return str(index)

    def find(self, key: str) -> int | None:
        """The row of a number."""
        return int(key) if key.isdigit() and int(key) < len(self) else None
