"""docs/readers.md names every producer, and its example is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gates.results.producers import BY_NAME
from tests.results.foreign_files import encode, vllm_bench

TEXT = (Path(__file__).parents[2] / "docs" / "readers.md").read_text()


def test_every_producer_has_one_row_and_no_row_is_of_nobody() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", TEXT, re.MULTILINE)) == sorted(BY_NAME)


def test_the_example_runs_as_it_stands() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {"data": encode(vllm_bench())}
    exec(compile(example, "docs/readers.md", "exec"), names)
    rate = names["rate"]
    said = re.search(r"# (0\.25), Fraction\((\d+), (\d+)\), \"(.*)\"\n", example)
    assert said is not None
    assert (
        f"{rate.value}",
        *map(str, (rate.exact.numerator, rate.exact.denominator, rate.meaning.unit)),
    ) == said.groups()
    assert f'# {rate.written}, "{rate.field}"\n' in example


@pytest.mark.parametrize("link", re.findall(r"\]\(#([a-z-]+)\)", TEXT))
def test_links_lead_somewhere(link: str) -> None:
    headings = [line.removeprefix("## ") for line in TEXT.splitlines() if line.startswith("## ")]
    assert link in [re.sub(r"[^a-z -]", "", heading.lower()).replace(" ", "-") for heading in headings]
