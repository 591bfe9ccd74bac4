"""The state file's bytes, put together from what was written before, are those of the whole state written anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from console.release.journal import read_log
from console.release.state import RunState, fold, to_json
from console.release.state_text import state_bytes
from tests.console import runs
from tests.release.making import decide, make_job, new_run, propose, submit


def whole(state: RunState) -> bytes:
    return json.dumps(to_json(state), indent=1, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"


@pytest.mark.parametrize("build", [*runs.BUILDERS.values(), lambda path: runs.hostile(path, 'a\n"b"\u2028\\\x01')])
def test_every_state_on_the_way_has_the_same_bytes(build: Callable[[Path], runs.Run], tmp_path: Path) -> None:
    run = build(tmp_path / "run")
    run.close()
    assert state_bytes(RunState()) == whole(RunState())
    state = RunState()
    for entry in read_log(run.path):
        state = fold([entry], state)
        assert state_bytes(state) == whole(state)
    assert state.entries > 0
    assert (run.path / "specdec_state.json").read_bytes() == whole(state)


def test_a_job_that_other_programs_asked_for_is_written_too(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    proposal = propose(writer, "ask-1", make_job(stage="asked"))
    before = writer.state
    decide(writer, proposal)
    submit(writer, proposal)
    # Other records in the same places, then those of before again.
    for state in (writer.state, before, writer.state):
        assert state.asked
        assert state_bytes(state) == whole(state)
