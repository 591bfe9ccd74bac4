"""The smoke test alone over a real engine: draft models, which it serves as well, and a head of random weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.recipe import tiny_qwen
from tests.engine.smoking import SEED, begin, end, served

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("engine")]


@pytest.mark.parametrize(("noise", "cls"), [(0.02, None), (5.0, "ACCEPTANCE_REGRESSION")], ids=["good", "broken"])
def test_a_draft_model_is_judged_by_what_the_target_takes(tmp_path: Path, noise: float, cls: str | None) -> None:
    tiny_qwen.make("draft", str(tmp_path / "drafter"), SEED, noise)
    more = ("--num-prompts", 8, "--max-tokens", 48)
    done, verdict = end(tmp_path, begin(tmp_path, served(tmp_path, True), *more, method="draft_model"))
    assert (done["stage"], done["prompts_passed"]) == ("done", 8), done["detail"]
    assert verdict.failure_class == cls, verdict.detail
    assert (done["acceptance_length"] > 3.0) == (cls is None)
    assert cls is None or done["acceptance_length"] < 1.1


@pytest.mark.short
def test_a_head_of_random_weights_is_served_and_hardly_ever_right(tmp_path: Path) -> None:
    tiny_qwen.make("random-dflash", str(tmp_path / "drafter"), SEED)
    more = ("--num-prompts", 8, "--max-tokens", 48)
    done, verdict = end(tmp_path, begin(tmp_path, served(tmp_path, True), *more))
    assert (done["stage"], done["prompts_passed"]) == ("done", 8), done["detail"]
    assert verdict.failure_class == "ACCEPTANCE_REGRESSION", verdict.detail
    assert 1.0 <= done["acceptance_length"] < 1.1
