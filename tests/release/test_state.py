"""The state as a fold over the log: what each event means, and that a file of it says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.release.events import apply
from console.release.journal import GENESIS, Kind, make_entry, read_log
from console.release.state import (
    STAGES,
    Outcome,
    ReleaseVerdict,
    RunState,
    StageStatus,
    fold,
    from_json,
    to_json,
)
from tests.release.making import Clock, decide, make_job, new_run, propose, submit


class Folding:
    """Folds events one by one, as they would stand in a log."""

    def __init__(self) -> None:
        self.state = RunState()
        self._clock = Clock()

    def __call__(self, event: str, *, human: bool = False, **data: Any) -> RunState:
        kind = Kind.HUMAN_INTERVENTION if human else Kind.ACTION
        number = self.state.entries + 1
        stage = str(data.pop("stage", ""))
        entry = make_entry(number, self._clock(), kind, "x", stage, event, {"event": event, **data}, self.state.head)
        self.state = apply(self.state, entry)
        return self.state


@pytest.fixture
def after() -> Folding:
    return Folding()


JOB = {
    "attempt": 1,
    "kind": "sbatch",
    "id": "001-train-1",
    "digest": "d" * 64,
    "token": "0" * 16,
    "stage": "train",
    "task": "train",
    "summary": "Train",
    "change": "",
    "gpus": 8,
    "limit_s": 60,
    "job_dir": "/w",
    "proposer": "conductor",
}
GATE = {
    "stage": "train",
    "gate": "train",
    "id": "001-train-1",
    "pass": True,
    "failure_class": None,
    "detail": "3 checks held",
    "sha256": "a" * 64,
    "files": [{"kind": "regression_check", "sha256": "a" * 64}],
    "checks": [{"name": "loss", "ok": True}],
    "facts": {"loss": 0.5},
}


def test_before_the_first_entry_nothing_is_known() -> None:
    state = RunState()
    assert [stage.name for stage in state.stages] == list(STAGES)
    assert {stage.status for stage in state.stages} == {StageStatus.NOT_STARTED}
    assert (state.verdict, state.entries, state.head) == (None, 0, GENESIS)
    assert state.current.name == "setup"


def test_an_unknown_event_counts_and_changes_nothing_else(after: Folding) -> None:
    state = after("something_of_a_later_version", human=True, stage="nowhere")
    assert (state.entries, state.interventions) == (1, 1)
    assert state.stages == RunState().stages


def test_stages_are_entered_and_left(after: Folding) -> None:
    assert after("stage_started", stage="setup").stage("setup").status is StageStatus.RUNNING
    passed = after("stage_passed", stage="setup", detail="")
    assert passed.stage("setup").status is StageStatus.PASSED
    assert passed.stage("setup").started_at < passed.stage("setup").ended_at
    assert passed.current.name == "stage_target"
    failed = after("stage_failed", stage="stage_target", detail="no such model")
    assert (failed.current.status, failed.current.detail) == (StageStatus.FAILED, "no such model")


def test_a_job_from_proposal_to_results(after: Folding) -> None:
    def outcome() -> Outcome:
        attempt = after.state.attempt("001-train-1")
        assert attempt is not None
        return attempt.outcome

    after("job_proposed", **JOB)
    assert outcome() is Outcome.PROPOSED
    after("job_decided", id="001-train-1", decision="approved", by="operator:alice", reason="")
    assert outcome() is Outcome.APPROVED
    after("submit_intent", id="001-train-1")
    assert outcome() is Outcome.SUBMITTING
    after("submit_outcome", id="001-train-1", outcome="unknown", job_id=None, said="no answer")
    assert outcome() is Outcome.UNKNOWN
    after("submit_outcome", id="001-train-1", outcome="accepted", job_id="12", said="")
    after("job_seen", id="001-train-1", state="RUNNING", reason="None", node="n1", ended=False)
    result = {"kind": "data", "path": "/w/data.json", "sha256": "a" * 64, "size": 3, "copy": "results/x"}
    after("result_read", id="001-train-1", **result)
    after("result_read", id="001-train-1", **{**result, "sha256": "b" * 64})
    state = after("results_complete", id="001-train-1")
    attempt = state.attempt("001-train-1")
    assert attempt is not None
    assert (attempt.outcome, attempt.job_id, attempt.job_state) == (Outcome.RESULTS_READ, "12", "RUNNING")
    assert [item.sha256 for item in attempt.results] == ["b" * 64]
    assert attempt.ended_at == ""
    ended = after("job_seen", id="001-train-1", state="COMPLETED", ended=True).attempt("001-train-1")
    assert ended is not None
    assert ended.ended_at > attempt.submitted_at > attempt.decided_at > attempt.proposed_at


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        ({"event": "job_decided", "decision": "rejected", "by": "operator:a", "reason": "no"}, Outcome.REJECTED),
        ({"event": "job_decided", "decision": "expired", "by": "conductor", "reason": ""}, Outcome.EXPIRED),
        ({"event": "job_decided", "decision": "invalidated", "by": "conductor"}, Outcome.INVALIDATED),
        ({"event": "submit_outcome", "outcome": "refused", "said": "bad partition"}, Outcome.REFUSED),
        ({"event": "submit_outcome", "outcome": "not_submitted", "said": "fenced"}, Outcome.NOT_SUBMITTED),
        ({"event": "result_missing", "detail": "none"}, Outcome.RESULT_MISSING),
    ],
)
def test_how_an_attempt_may_end(after: Folding, event: dict[str, Any], outcome: Outcome) -> None:
    after("job_proposed", **JOB)
    attempt = after(event.pop("event"), id="001-train-1", **event).attempt("001-train-1")
    assert attempt is not None
    assert attempt.outcome is outcome


def test_an_event_about_an_attempt_that_is_not_there_changes_no_attempt(after: Folding) -> None:
    after("job_proposed", **JOB)
    before = after.state.attempts
    for event in ("submit_intent", "results_complete"):
        assert after(event, id="009-other-1").attempts == before


def test_a_gate_that_is_asked_again_replaces_its_record(after: Folding) -> None:
    after("job_proposed", **JOB)
    after("gate", **{**GATE, "pass": False, "failure_class": "UNKNOWN"})
    state = after("gate", **GATE)
    assert [(gate.name, gate.passed) for gate in state.stage("train").gates] == [("train", True)]
    assert state.stage("train").gate("train", "001-train-1") is not None
    assert state.stage("train").gate("train", "002-train-2") is None


def test_trying_again_reopens_an_attempt_or_forgets_a_judgement_without_one(after: Folding) -> None:
    after("job_proposed", **JOB)
    after("stopped", detail="SYSTEMIC: down")
    reopened = after("retry_requested", human=True, id="001-train-1")
    assert reopened.attempts[0].reopened
    assert reopened.stopped == ""
    after("gate", **{**GATE, "stage": "freeze", "gate": "freeze", "id": "freeze", "pass": False})
    after("triaged", stage="freeze", id="freeze", failure_class="FREEZE_FAILED", step="verdict", detail="", values={})
    forgotten = after("retry_requested", human=True, id="freeze").stage("freeze")
    assert (forgotten.gates, forgotten.triage) == ((), ())


def test_resuming_clears_why_it_stopped_and_reopens_what_waited_for_a_person(after: Folding) -> None:
    after("job_proposed", **JOB)
    assert after("stopped", detail="aborted by alice").stopped == "aborted by alice"
    assert after("run_resumed", reopened="").stopped == ""
    assert not after.state.attempts[0].reopened
    assert after("run_resumed", human=True, reopened="001-train-1").attempts[0].reopened


def test_the_verdict_closes_the_release(after: Folding) -> None:
    state = after("verdict", verdict="ANOMALOUS", detail="freeze failed", failure_class="FREEZE_FAILED")
    assert (state.verdict, state.failure_class) == (ReleaseVerdict.ANOMALOUS, "FREEZE_FAILED")


def test_what_is_learnt_adds_up(after: Folding) -> None:
    after("target_known", target={"path": "/t", "present": False})
    assert after("target_known", target={"staged": True}).target == {"path": "/t", "present": False, "staged": True}
    after("freeze_known", freeze={"source": "/e"})
    assert after("freeze_known", freeze={"manifest_sha256": "a"}).freeze == {"source": "/e", "manifest_sha256": "a"}
    assert after("setup_done", facts={"host": "h"}).setup == {"host": "h"}


def a_release(run_dir: Path) -> RunState:
    writer = new_run(run_dir)
    writer.record("stage_started", "Stage train begins", stage="train")
    first = propose(writer, "001-train-1", make_job())
    decide(writer, first)
    submit(writer, first)
    writer.record("gate", "Gate train", **GATE)
    second = propose(writer, "002-smoke-1", make_job("smoke", token="f" * 16))
    decide(writer, second, "rejected")
    return writer.state


def test_the_log_alone_gives_the_state_that_the_writer_had(tmp_path: Path) -> None:
    state = a_release(tmp_path / "run")
    assert fold(read_log(tmp_path / "run")) == state
    assert state.interventions == 1
    assert state.entries == len(read_log(tmp_path / "run"))


def test_folding_in_two_parts_gives_the_same_as_in_one(tmp_path: Path) -> None:
    a_release(tmp_path / "run")
    entries = read_log(tmp_path / "run")
    for cut in range(len(entries) + 1):
        assert fold(entries[cut:], fold(entries[:cut])) == fold(entries)


def test_a_state_comes_back_from_its_json_and_keeps_the_documented_keys(tmp_path: Path) -> None:
    state = a_release(tmp_path / "run")
    data = json.loads(json.dumps(to_json(state)))
    assert from_json(data) == state
    assert {"schema_version", "run_id", "verdict", "stages", "overrides", "interventions", "log"} <= set(data)
    assert data["log"] == {"entries": state.entries, "head": state.head}
    train = next(stage for stage in data["stages"] if stage["name"] == "train")
    assert {"attempt", "kind", "digest", "token", "job_id", "experiment_id", "outcome"} <= set(train["attempts"][0])
    assert {"name", "pass", "failure_class", "detail", "sha256"} <= set(train["gates"][0])
    assert data["verdict"] is None


def test_keys_of_a_later_version_at_the_top_are_passed_over(tmp_path: Path) -> None:
    state = a_release(tmp_path / "run")
    assert from_json({**json.loads(json.dumps(to_json(state))), "later": 1}) == state
