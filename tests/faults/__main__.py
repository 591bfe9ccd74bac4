"""`make faults`: submit jobs under faults of the network, the cluster and the submitting process, and compare.

Each submission suffers one fault. Then, with the link sound again, its outcome is asked for as a release does,
and what came to be believed is compared with what the cluster itself wrote down. Ends with 1 when a job was
accepted twice, or accepted although it was believed not to be, or believed to be accepted and was not; and when
a kind of fault never struck, since then nothing was proven.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backends.slurm.client import Slurm
from backends.slurm.model import Unknown
from tests.faults.lanes import Finding
from tests.faults.naive import NaiveSlurm
from tests.faults.oracle import table
from tests.faults.plans import Plan
from tests.faults.running import Group, Result, run
from tests.faults.sites import sandbox_site


def main() -> int:
    """Make the submissions and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--count",
        type=int,
        default=1000,
        help="about so many submissions over all kinds of fault; --real leaves out the kinds that trouble the cluster",
    )
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--only", default="", help="numbers of submissions (3,17), or a word of their kind")
    parser.add_argument("--lanes", type=int, default=6, help="so many at once on the sound cluster")
    parser.add_argument("--troubled", type=int, default=2, help="clusters with trouble, one submission at a time")
    parser.add_argument("--real", metavar="DIR", help="submit to the real cluster of `python -m tests.cluster up DIR`")
    parser.add_argument("--naive", action="store_true", help="a client that just tries again, to see faults bite")
    parser.add_argument("--verbose", action="store_true", help="print each submission")
    args = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gonogo-faults-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        if args.real is not None:
            from tests.faults.real import RealSite

            groups = [Group(RealSite(args.real), args.lanes, troubled=False)]
        else:
            sites = [stack.enter_context(sandbox_site(folder / f"cluster-{n}")) for n in range(1 + args.troubled)]
            groups = [Group(site, 1 if index else args.lanes, bool(index)) for index, site in enumerate(sites)]
        report = print_finding if args.verbose else lambda finding: None
        client = NaiveSlurm if args.naive else Slurm
        result = asyncio.run(run(groups, folder, args.seed, args.count, choice(args.only), report, client))
    return summary(result, args.seed, time.monotonic() - begin)


def choice(only: str) -> Callable[[Plan], bool]:
    """Which plans a word chooses: numbers with commas, or part of the name of a kind."""
    numbers = {int(word) for word in only.split(",") if word.strip().isdigit()}
    return lambda plan: plan.number in numbers if numbers else only in plan.kind


def print_finding(finding: Finding) -> None:
    """One submission, in one line."""
    plan = finding.plan
    print(
        f"{plan.number} {plan.kind} at {plan.fault.at}{' big' if plan.big else ''}"
        f"{'' if finding.struck else ' (not struck)'}: {finding.first} -> {finding.belief}"
        + (f" -> {finding.final}" if isinstance(finding.belief, Unknown) else ""),
        flush=True,
    )


def summary(result: Result, seed: int, seconds: float) -> int:
    """Print the table and the violations; the exit status."""
    print("\n".join(table(result.findings, [(finding, column) for finding, column, _ in result.wrong])))
    for finding, column, text in result.wrong:
        print(f"{column}: submission {finding.plan.number} ({finding.plan.kind}): {text}")
        print_finding(finding)
    struck = {finding.plan.kind for finding in result.findings if finding.struck}
    never = sorted({finding.plan.kind for finding in result.findings} - struck)
    for kind in never:
        print(f"proves nothing: no fault of this kind struck: {kind}")
    print(f"{len(result.findings)} submissions, seed {seed}, {seconds:.0f} s: {len(result.wrong)} violations")
    return 1 if result.wrong or never or not result.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
