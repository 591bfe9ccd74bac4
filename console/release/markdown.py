"""Markdown of reports: tables and lists whose foreign text does nothing but show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from console.release.journal import markdown_inline

NOT_RECORDED = "not recorded"


def cell(value: Any) -> str:
    """A value as one cell or one item: text made inert, numbers in their shortest exact form."""
    if value is None or value == "":
        return NOT_RECORDED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(map(cell, value)) or "none"
    return markdown_inline(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A table; a line that says so where it has no rows."""
    lines = [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    if not lines:
        return ["None.", ""]
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines, ""]


def facts(rows: Iterable[tuple[str, Any]]) -> list[str]:
    """Names and values as a table of two columns."""
    return table(("", ""), ((name, value) for name, value in rows))
