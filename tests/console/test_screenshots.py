"""The pictures of the documentation: a run is told again under other names, whole, without a trace of a machine."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from console.release import queue
from console.release.folder import read_state
from console.release.journal import check_anchor, read_log
from tests.console import runs

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def docs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("screenshots")
    for name in ("screenshots", "retelling"):
        sys.modules.pop(name, None)


def test_a_retold_run_is_whole_and_holds_no_old_name(tmp_path: Path, docs: Any) -> None:
    run = runs.rejected(tmp_path / "run")
    run.close()
    names = docs.Names({"/home/demo/work": "/srv/releases", "operator:alice": "operator:bob"}, {"alice": "bob"})
    docs.retell(run.path, tmp_path / "told", names)

    before, after = read_log(run.path), read_log(tmp_path / "told")
    assert [(entry.seq, entry.time, entry.kind) for entry in before] == [
        (entry.seq, entry.time, entry.kind) for entry in after
    ]
    state = read_state(tmp_path / "told")
    assert state is not None
    check_anchor(after, state.entries, state.head)
    for attempt in state.attempts:
        proposal = queue.load(tmp_path / "told", attempt.id)
        decision = queue.decision_of(proposal)
        assert decision is not None
        assert proposal.digest == attempt.digest == decision.digest == proposal.job().digest
        assert proposal.job().job_dir.startswith("/srv/releases/gonogo/")
    for path in (tmp_path / "told").rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert "/home/demo/work" not in text, path
            assert "alice" not in text, path
    # What was measured stays what it was.
    assert [entry.data["checks"] for entry in before if entry.data["event"] == "gate"] == [
        entry.data["checks"] for entry in after if entry.data["event"] == "gate"
    ]


def test_a_picture_that_shows_this_machine_is_refused_also_where_a_path_is_wrapped(
    docs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docs, "traces", lambda: ["/home/someone"])
    good = '<text class="r" x="0" y="20">/home/operator/work</text>'
    docs.refuse_traces(good, "board")
    for rows in (["see&#160;/home/someone/work"], ["/home/so", "&#160;&#160;↪&#160;meone/work"]):
        svg = "".join(f'<text class="r" x="0" y="20">{row}</text>' for row in rows)
        with pytest.raises(docs.PictureError, match="board: /home/someone of this machine"):
            docs.refuse_traces(svg, "board")


async def test_there_is_a_picture_of_every_screen_that_the_run_has(tmp_path: Path, docs: Any) -> None:
    run = runs.waiting(tmp_path / "run")
    session = docs.open_session(run.path, clock=run.time.clock._replace(monotonic=docs.time.monotonic))
    try:
        svg = await docs.picture(session, docs.PICTURES["approval"])
    finally:
        session.close()
        run.close()
    assert json.dumps("read the job to its end first").strip('"').replace(" ", "&#160;") in svg
    assert "003-train-1" in svg
