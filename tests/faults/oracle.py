"""Compares what was believed with what the cluster itself wrote down, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from backends.slurm.model import Accepted, NotSubmitted, Refused, Unknown
from tests.faults.lanes import Finding
from tests.faults.sites import Taken

HEAD = ("submissions", "struck", "told at once", "accepted", "none", "UNKNOWN", "for good", "doubled", "lost", "wrong")
"""`UNKNOWN` counts those that were unknown when patience ended, with the trouble still there; `for good` those that
stayed so once all was sound."""


def violations(finding: Finding, taken: Iterable[Taken], starts: Counter[str]) -> list[tuple[str, str]]:
    """What of one submission must not be.

    Args:
        finding: What was believed.
        taken: All that its cluster accepted, at the end of everything.
        starts: How often each job's script was started there.

    Returns:
        Column of the table, and what is wrong, in words.
    """
    jobs = [item for item in taken if item.token == finding.token]
    ids = [item.job_id for item in jobs]
    found = [("doubled", f"accepted as {', '.join(ids)}")] if len(ids) > 1 else []
    found += [("doubled", f"job {name} was started {starts[name]} times") for name in ids if starts[name] > 1]
    for belief in dict.fromkeys(finding.beliefs):
        match belief:
            case Accepted() if belief.job_id not in ids:
                found.append(("wrong", f"believed to be job {belief.job_id}, accepted: {', '.join(ids) or 'none'}"))
            case NotSubmitted() | Refused() if ids:
                late = max(item.at for item in jobs) - finding.at
                when = f"accepted {late:.2f} s after the verdict" if late > 0 else "accepted before the verdict"
                found.append(("lost", f"believed absent ({belief}), but {when} as {', '.join(ids)}"))
    return found


def table(findings: Sequence[Finding], wrong: Sequence[tuple[Finding, str]]) -> list[str]:
    """One line for each kind of fault, and one for all.

    Args:
        findings: All of them.
        wrong: Each violation, by its column.
    """
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        for row in (finding.plan.kind, "all"):
            counts.setdefault(row, Counter()).update(_columns(finding))
    for finding, column in wrong:
        for row in (finding.plan.kind, "all"):
            counts[row][column] += 1
    counts["all"] = counts.pop("all", Counter())
    width = max(len(row) for row in counts)
    lines = [" " * width + "  " + "  ".join(HEAD)]
    lines += [
        f"{row:<{width}}  " + "  ".join(f"{count[name]:>{len(name)}}" for name in HEAD) for row, count in counts.items()
    ]
    return lines


def _columns(finding: Finding) -> list[str]:
    found = ["submissions"] + ["struck"] * finding.struck
    if finding.first is not None and not isinstance(finding.first, Unknown):
        found.append("told at once")
    match finding.final:
        case Accepted():
            found.append("accepted")
        case Unknown():
            found.append("for good")
        case _:
            found.append("none")
    return found + ["UNKNOWN"] * isinstance(finding.belief, Unknown)
