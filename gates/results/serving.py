"""What the serving benchmarks of vLLM, SGLang and ATOM have in common: they come from one program."""

from __future__ import annotations

import re

from gates.header import agree
from gates.results.fields import Fields, Notes
from gates.results.meaning import Meaning, Number, Table


def read_latencies(fields: Fields, pattern: re.Pattern[str], meaning: Meaning) -> Table:
    """All latencies whose keys are of one pattern; those that are not finite are left out, with a remark."""
    found = [(key, fields.number(key, meaning)) for key in fields.values if pattern.fullmatch(key)]
    return Table(tuple((key, number.written) for key, number in found if number is not None), meaning, fields.path)


def check_per_second(notes: Notes, stated: Number, count: Number, duration: Number) -> None:
    """Check that a throughput is a count of the same file over its duration."""
    if duration.value <= 0:
        notes.fault(duration.field, "no time passed: nothing a second can be meant")
        return
    implied = count.value / duration.value
    if not agree(stated.value, implied):
        notes.fault(stated.field, f"is {stated.value:g}, and {count.field} over {duration.field} is {implied:g}")


def check_answers(fields: Fields, completed: Number) -> None:
    """Check that anything was answered, and that no request ended in an error that the file keeps."""
    if completed.value == 0:
        fields.notes.fault(completed.field, "0: nothing was answered, so nothing was measured")
    errors = fields.values.get("errors")
    failed = sum(error not in ("", None) for error in errors) if isinstance(errors, list) else 0
    if failed:
        fields.notes.fault(fields.at("errors"), f"{failed} requests ended in an error, and drop out of every mean")
