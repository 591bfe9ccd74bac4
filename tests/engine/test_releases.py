"""Whole releases whose jobs serve a tiny target with a real vLLM: the good drafter is ready, the others are stopped.

The drafter is a DFlash head, which is what a release takes: gate export refuses a draft model before it is served.
Nothing is asserted about speed. Without GPUs the ratio of the arms says what else the machine did.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.recipe.tiny_qwen import WORDS
from tests.engine.releasing import TARGET, Released, released

pytestmark = [pytest.mark.timeout(1800), pytest.mark.xdist_group("engine")]


def gates(release: Released) -> list[tuple[str, bool]]:
    return [(gate.name, gate.passed) for stage in release.state.stages for gate in stage.gates]


def tasks(release: Released) -> list[str]:
    return [attempt.task for attempt in release.state.attempts]


@pytest.mark.short
def test_a_good_drafter_served_by_a_real_engine_is_ready(tmp_path: Path) -> None:
    with released(tmp_path, "dflash") as release:
        assert (release.status, release.state.verdict) == (0, "DRAFTER_READY"), release.said[-3000:]
        assert release.state.interventions == 0
        assert tasks(release) == ["stage_target", "export_check", "smoke", "bench"]
        assert all(attempt.decided_by.startswith("operator") for attempt in release.state.attempts)
        assert [name for name, passed in gates(release) if not passed] == []
        smoke, bench, exact = (release.result(f"{name}.json") for name in ("smoke", "bench", "exact_match"))
    assert smoke["acceptance_length"] > 2.5
    assert (smoke["prompts_passed"], smoke["reference_identical"]) == (8, 8)
    assert smoke["server"]["settings"]["dtype"] == "torch.float32"
    arms = bench["arms"]
    assert arms["A"]["server_config"] == arms["B"]["server_config"]
    assert arms["B"]["model"] == TARGET
    assert all(point["acceptance_length"] > 2.5 and point["failed"] == 0 for point in arms["B"]["points"])
    assert (exact["exact_match"], exact["control_exact_match"]) == (1.0, 1.0)


BROKEN = pytest.param("dflash", 5.0, id="broken", marks=pytest.mark.short)


@pytest.mark.parametrize(("kind", "noise"), [BROKEN, pytest.param("random-dflash", 0.0, id="untrained")])
def test_a_drafter_that_drafts_noise_is_stopped_for_its_acceptance_while_every_request_succeeds(
    tmp_path: Path, kind: str, noise: float
) -> None:
    with released(tmp_path, kind, noise) as release:
        ended = (release.status, release.state.verdict, release.state.failure_class)
        assert ended == (1, "INFEASIBLE", "ACCEPTANCE_REGRESSION"), release.said[-3000:]
        assert tasks(release) == ["stage_target", "export_check", "smoke"]
        assert [name for name, passed in gates(release) if not passed] == ["smoke"]
        smoke = release.result("smoke.json")
    assert 1.0 <= smoke["acceptance_length"] < 1.1
    assert smoke["counters"]["drafts"] > 300
    assert (smoke["stage"], smoke["prompts_passed"], smoke["reference_identical"]) == ("done", 8, 8)
    assert all(output["error"] is None for output in smoke["outputs"])
    outputs = [output["token_ids"] for output in smoke["outputs"]]
    # What was drafted for is no loop of one token, and none of the special ones.
    assert all(len(set(ids)) > 12 and max(ids) < WORDS for ids in outputs)
