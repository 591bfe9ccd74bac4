"""How many result files a second the gates decide, on one core: `python -m tests.gates.benchmark`.

Each gate over gonogo's own files, passing, failing, and with a number that is none (which takes the slower reader); and
the two gates of the catalog over every producer that they read. Compared, in the same run, with what reading the same
bytes by `json.loads` alone takes. Exit status 1 where a rate is below `--least`, which is 1,000 files a second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from gates.reading import ResultBytes
from gates.registry import run
from tests.catalog import catalogs
from tests.gates import passing
from tests.results.every_producer import SAMPLES

SECONDS = 0.3
"""How long each rate is measured."""

LEAST = 1000.0
ATOM = ("atom-native", "atom-oot", "atom-sglang")
SERVED = ("atom-serving", "vllm-bench", "sglang-serving", "sglang-server", "specdec-acceptance", "speculation-profile")
READ_BY = {"acceptance": (*ATOM, *SERVED), "accuracy": (*ATOM, "lm-eval", "sglang-eval", "sgl-eval")}
"""Producers, besides gonogo, whose files the gates of the catalog judge."""

BARS = {"acceptance_rate": 0.2, "acceptance_length": 1.2, "accuracy": 0.5}


class Case(NamedTuple):
    """What one line of the table is about: which gate, over which files, with which settings."""

    gate: str
    about: str
    files: Mapping[str, ResultBytes]
    expected: Mapping[str, Any]


class Rate(NamedTuple):
    """How fast a case is: bytes and number of its files, files a second by the gate, and by json.loads alone."""

    size: int
    files: int
    decided: float
    parsed: float


def cases() -> Iterator[Case]:
    """Every case of the table."""
    for gate, makers in passing.FILES.items():
        documents = {kind: make() for kind, make in makers.items()}
        last = list(documents)[-1]
        without = {key: value for key, value in documents[last].items() if key != list(documents[last])[-1]}
        spoilt = {**documents[last], "note": float("nan")}
        for about, document in (("passing", documents[last]), ("a field missing", without), ("a NaN", spoilt)):
            files = {
                kind: ResultBytes(f"{kind}.json", passing.encode(one))
                for kind, one in {**documents, last: document}.items()
            }
            yield Case(gate, about, files, passing.EXPECTED[gate])
    bars = {name: catalogs.bar(value) for name, value in BARS.items()}
    using = catalogs.catalog(catalogs.entry(draft_tokens=None, bars=bars))
    for gate, names in READ_BY.items():
        for name in names:
            files = {gate: ResultBytes("result", SAMPLES[name].data()), "catalog": using}
            yield Case(gate, name, files, {"model": catalogs.MODEL})


def rate(work: Callable[[], object]) -> float:
    """Calls a second of one core: processor time, so that what else runs on the machine counts little."""
    work()
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < SECONDS:
        work()
        count += 1
    return count / spent


def read(files: list[bytes]) -> list[object]:
    """The files by Python's own parser."""
    return [json.loads(data) for data in files]


def measure(case: Case) -> Rate:
    """Measure a case. The catalog is no result file: it is the same for all of them, and not counted."""
    files = [file.data or b"" for kind, file in case.files.items() if kind != "catalog"]
    decided = rate(partial(run, case.gate, case.files, case.expected)) * len(files)
    return Rate(sum(map(len, files)), len(files), decided, rate(partial(read, files)) * len(files))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How many result files a second the gates decide, on one core.")
    parser.add_argument("--least", type=float, default=LEAST, help="files a second that every line must reach")
    least = parser.parse_args().least
    print(f"{'gate':12} {'over':20} {'bytes':>8} {'files/s':>9} {'json.loads/s':>13}")
    slow = 0
    for case in cases():
        found = measure(case)
        slow += found.decided < least
        mark = "" if found.decided >= least else f"  below {least:g}"
        print(f"{case.gate:12} {case.about:20} {found.size:8} {found.decided:9.0f} {found.parsed:13.0f}{mark}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
