"""A short run of `python -m tests.proposing.fuzz`, and that its oracle would see a decision."""

from __future__ import annotations

import pytest

from console.release import deciding, queue
from tests.proposing.fuzz import A_RUN, Fuzz, fuzz
from tests.release.making import decision


@pytest.mark.parametrize("seed", range(6))
def test_whatever_a_proposer_sends_nothing_is_decided_or_submitted(seed: int) -> None:
    found = fuzz(seed, A_RUN)
    assert (found["decisions"], found["submissions"]) == (0, 0)
    assert sum(found.values()) == A_RUN
    for kind in ("files: shown as refused with a reason", "calls: refused with a reason", "lines: proposed",
                 "lines: refused with a reason", "calls: answered"):  # fmt: skip
        assert found[kind] > 0, found


def test_the_oracle_sees_a_decision() -> None:
    run = Fuzz(0)
    try:
        run.look()
        waiting = run.desk.asked[0].id
        deciding.decide(run.desk.run_dir, decision(queue.load(run.desk.run_dir, waiting)))
        with pytest.raises(AssertionError, match="submitted"):
            run.look()
    finally:
        run.close()
