"""The A|B table: the target alone beside the target with the frozen drafter, from what the gates recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from console.release.markdown import NOT_RECORDED, cell, table
from console.release.state import GateRecord, RunState

COLUMNS = (
    ("A, tokens/s", "tokens_per_s_a", 1),
    ("B, tokens/s", "tokens_per_s_b", 1),
    ("speedup B/A", "speedup", 3),
    ("acceptance length, tokens with bonus", "acceptance_length", 3),
    ("acceptance rate, 0-1", "acceptance_rate", 3),
)
"""Heading, name of the bench gate's fact without `_c<concurrency>`, and decimals."""

_FACT = re.compile(rf"({'|'.join(name for _, name, _ in COLUMNS)})_c(\d+)")


def comparison(state: RunState) -> Iterator[str]:
    """The table and the exact match as Markdown; what no gate recorded is called "not recorded"."""
    bench = _newest(state, "bench")
    if bench is None:
        yield from ("No benchmark was judged.", "")
    else:
        if not bench.passed:
            yield from (f"**Not a valid measurement** ({cell(bench.failure_class)}): {cell(bench.detail)}", "")
        head = ("concurrency", *(title for title, _, _ in COLUMNS))
        rows = [[level, *(_number(value, places) for value, places in row)] for level, row in _rows(bench.facts)]
        yield from table(head, rows) if rows else (f"By concurrency: {NOT_RECORDED}.", "")
    correctness = _newest(state, "correctness")
    if correctness is not None:
        same, control = (
            _number(correctness.facts.get(name), 4) or NOT_RECORDED for name in ("exact_match", "control_exact_match")
        )
        word = "held" if correctness.passed else "did not hold"
        yield from (
            f"Greedy outputs identical with and without the drafter: {cell(same)} of the prompts "
            f"(control, A against A: {cell(control)}); the gate {word}.",
            "",
        )


def _newest(state: RunState, name: str) -> GateRecord | None:
    """The record of a gate over the last attempt that it judged."""
    return next((gate for gate in reversed(state.stage("bench").gates) if gate.name == name), None)


def _rows(facts: Mapping[str, Any]) -> Iterator[tuple[int, list[tuple[Any, int]]]]:
    """By concurrency, the value of each column and its decimals."""
    found = (_FACT.fullmatch(name) for name in facts)
    levels = {int(match[2]) for match in found if match is not None}
    for level in sorted(levels):
        yield level, [(facts.get(f"{name}_c{level}"), places) for _, name, places in COLUMNS]


def _number(value: Any, places: int) -> Any:
    """A number rounded for reading; the gate's own record further down has it in full."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.{places}f}"
    return value
