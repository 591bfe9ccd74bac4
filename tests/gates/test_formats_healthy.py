"""Numbers of healthy releases pass every gate: a bar that refuses them would be wrong, whatever it catches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gates import passing

SHARES = (0.7, 0.2, 0.07, 0.03)
"""How the accepted tokens of a healthy drafter lie on its positions."""


def counted(drafts: int, length: float) -> dict[str, Any]:
    """Counters with an acceptance length, as near as whole tokens allow."""
    return passing.counters(drafts, tuple(round(drafts * (length - 1) * share) for share in SHARES))


@pytest.mark.parametrize("length", [1.68, 1.75, 1.76], ids=["8B, low", "8B, high", "27B"])
def test_smoke_tests_of_healthy_releases_pass_at_their_acceptance_length(length: float) -> None:
    made = passing.smoke()
    counters = counted(100, length)
    made |= {
        "counters": counters,
        "acceptance_length": passing.length(counters),
        "acceptance_rate": counters["accepted_tokens"] / counters["draft_tokens"],
        "per_position_rates": [count / 100 for count in counters["per_position"]],
    }
    verdict = passing.judge("smoke", {"smoke": made})
    assert verdict.passed, verdict.detail
    assert dict(verdict.facts)["acceptance_length"] == pytest.approx(length, abs=0.02)


RELEASES = {
    "8B, slowest": (1.71, {1: 1.36, 8: 1.30, 32: 1.23}),
    "8B, fastest": (1.79, {1: 1.42, 8: 1.38, 32: 1.33}),
    "27B": (1.76, {1: 1.40, 8: 1.29, 32: 1.06}),
}


@pytest.mark.parametrize(("length", "speedups"), RELEASES.values(), ids=RELEASES)
def test_benchmarks_of_healthy_releases_pass_with_their_speedups(length: float, speedups: dict[int, float]) -> None:
    made = passing.bench()
    for a, b in zip(made["arms"]["A"]["points"], made["arms"]["B"]["points"], strict=True):
        tokens = b["output_tokens"]
        b["duration_s"] = a["duration_s"] / speedups[b["concurrency"]]
        b["output_tokens_per_s"] = tokens / b["duration_s"]
        b["counters"] = counted(round(tokens / length), length)
        b["acceptance_length"] = passing.length(b["counters"])
    made["speedup"] = [{"concurrency": level, "value": value} for level, value in speedups.items()]
    verdict = passing.judge("bench", {"bench": made})
    assert verdict.passed, verdict.detail
    facts = dict(verdict.facts)
    assert [facts[f"speedup_c{level}"] for level in speedups] == pytest.approx(list(speedups.values()))


@pytest.mark.parametrize(("prompts", "differ", "share"), [(250, 11, 0.956), (27, 1, 0.963)])
def test_exact_matches_of_healthy_releases_pass_although_they_are_not_all(
    prompts: int, differ: int, share: float
) -> None:
    made = passing.exact_match(prompts, differ=differ, control_differs=differ)
    assert made["exact_match"] == pytest.approx(share, abs=0.0005)
    verdict = passing.judge("correctness", {"exact_match": made})
    assert verdict.passed, verdict.detail


@pytest.mark.parametrize(
    ("first", "final", "accuracy"),
    [(6.9, 6.37, 0.175), (7.1, 6.71, 0.167), (4.2, 2.93, 0.3)],
    ids=["8B, low", "8B, high", "27B"],
)
def test_losses_of_healthy_releases_pass_without_a_common_bar(first: float, final: float, accuracy: float) -> None:
    losses = [first + (final - first) * i / 7 for i in range(8)]
    made = passing.regression_check()
    made |= {"first_loss": first, "final_loss": final, "final_accuracy": accuracy, "thresholds": {}}
    for row, loss in zip(made["log"], losses, strict=True):
        row |= {"loss": loss, "accuracy": accuracy}
    verdict = passing.judge("train", {"regression_check": made})
    assert verdict.passed, verdict.detail
