"""The state of a release: a pure fold over its work log.

There is one source of truth, the log. The state is what the log says so far, nothing else; resuming a run is
reading its log, and replaying one is folding a part of it. `specdec_state.json` is this state, written after
each entry for other programs and for the screen.

Only the standard library is imported here: the console reads states on the way to its first frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

SCHEMA_VERSION = 1
STAGES = ("setup", "stage_target", "train", "freeze", "bench", "closeout")

ASKED = "asked"
"""Where a job says its stage: another program asked for it, and it belongs to no stage of the flow."""


class StageStatus(StrEnum):
    """Where a stage stands."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


class Outcome(StrEnum):
    """What became of an attempt so far."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    INVALIDATED = "invalidated"
    SUBMITTING = "submitting"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    NOT_SUBMITTED = "not submitted"
    SUBMITTED = "submitted"
    RESULTS_READ = "results read"
    RESULT_MISSING = "result missing"


class ReleaseVerdict(StrEnum):
    """The three verdicts of a release."""

    DRAFTER_READY = "DRAFTER_READY"
    INFEASIBLE = "INFEASIBLE"
    ANOMALOUS = "ANOMALOUS"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file that was read: where it lay, and the digest of the bytes that were kept."""

    kind: str
    path: str
    sha256: str
    size: int
    copy: str
    time: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One exact job of a task.

    Attributes:
        attempt: 1 for the first job of its task.
        kind: "sbatch", or "command" for work on the login node.
        id: Name of its folder in `submissions/`.
        digest: SHA-256 of the exact job.
        token: Unique token of its submission.
        job_id: Slurm's id once it is known.
        experiment_id: A launcher's experiment, where one started the job.
        outcome: What became of it.
        job_state: Slurm's state as last seen, verbatim, with `job_reason` and `node`.
        said: What the proposer, the operator or Slurm said about it last.
        change: What triage changed against the attempt before.
        gpus: GPUs asked for, over all nodes.
        limit_s: Time limit in seconds, 0 for none.
        expires_at: From when on nobody can decide on it any more, empty for never.
        first_by: Who gave the first of two approvals, empty while nobody has or one is enough.
    """

    attempt: int
    kind: str
    id: str
    digest: str
    token: str
    stage: str
    task: str
    summary: str = ""
    job_id: str | None = None
    experiment_id: str | None = None
    outcome: Outcome = Outcome.PROPOSED
    proposer: str = ""
    proposed_at: str = ""
    decided_by: str = ""
    decided_at: str = ""
    submitted_at: str = ""
    ended_at: str = ""
    job_state: str = ""
    job_reason: str = ""
    node: str = ""
    said: str = ""
    change: str = ""
    gpus: int = 0
    limit_s: int = 0
    job_dir: str = ""
    results: tuple[ResultFile, ...] = ()
    reopened: bool = False
    expires_at: str = ""
    first_by: str = ""


@dataclass(frozen=True, slots=True)
class GateRecord:
    """What a gate decided, as the log holds it.

    Attributes:
        name: The gate.
        id: The attempt whose results it read, or the stage's name where there was no job.
        sha256: Digest of the file it read; of the first where there are several, all are in `files`.
        checks: As in `gates.verdict.Verdict.to_json`.
    """

    name: str
    id: str
    passed: bool
    failure_class: str | None
    detail: str
    sha256: str
    time: str
    files: tuple[Mapping[str, Any], ...] = ()
    checks: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Triage:
    """What follows from a failure: decided before it is done."""

    id: str
    failure_class: str
    step: str
    detail: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the flow."""

    name: str
    status: StageStatus = StageStatus.NOT_STARTED
    detail: str = ""
    started_at: str = ""
    ended_at: str = ""
    attempts: tuple[Attempt, ...] = ()
    gates: tuple[GateRecord, ...] = ()
    triage: tuple[Triage, ...] = ()

    def latest(self, task: str) -> Attempt | None:
        """The newest attempt of a task."""
        return next((attempt for attempt in reversed(self.attempts) if attempt.task == task), None)

    def gate(self, name: str, attempt_id: str) -> GateRecord | None:
        """The record of a gate over one attempt."""
        return next((gate for gate in self.gates if gate.name == name and gate.id == attempt_id), None)

    def triage_of(self, attempt_id: str) -> Triage | None:
        """What triage decided about one attempt."""
        return next((item for item in reversed(self.triage) if item.id == attempt_id), None)


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that the log says about a release.

    Attributes:
        inputs: Target, algorithm, cluster and the other inputs, as text.
        verdict: None until the release is closed.
        stopped: Why nothing goes on although there is no verdict ("SYSTEMIC: ...", "aborted by ..."), else empty.
        target: What is known of the staged target (path, revision).
        freeze: Source, destination and manifest digest of the frozen drafter, once known.
        setup: What was learned about the cluster.
        interventions: How many HUMAN_INTERVENTION entries there are.
        asked: Jobs that other programs asked for; they belong to no stage, and no verdict rests on them.
        refused: Proposals of other programs that were none, by their names.
        refusals: Name and reason of each of them.
        policy: The policy that was approved (id, digest, since, its limits) and how much of it is used; empty without.
        entries: How many entries the log has, `head` the hash of the last.
    """

    run_id: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    stages: tuple[Stage, ...] = tuple(Stage(name) for name in STAGES)
    verdict: ReleaseVerdict | None = None
    verdict_detail: str = ""
    failure_class: str = ""
    stopped: str = ""
    target: Mapping[str, Any] = field(default_factory=dict)
    freeze: Mapping[str, Any] = field(default_factory=dict)
    setup: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[Attempt, ...] = ()
    refused: tuple[str, ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    interventions: int = 0
    started_at: str = ""
    updated_at: str = ""
    entries: int = 0
    head: str = "0" * 64

    def stage(self, name: str) -> Stage:
        """A stage of the flow by name, or all that other programs asked for, under the name of that."""
        if name == ASKED:
            return Stage(ASKED, attempts=self.asked)
        return next(stage for stage in self.stages if stage.name == name)

    def attempt(self, attempt_id: str) -> Attempt | None:
        """An attempt by the name of its submission."""
        # Not through `attempts`: while a long log is folded, this is asked for nearly every entry.
        for stage in self.stages:
            for item in stage.attempts:
                if item.id == attempt_id:
                    return item
        return next((item for item in self.asked if item.id == attempt_id), None)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts, stage by stage; last those that other programs asked for outside the flow."""
        return (*(item for stage in self.stages for item in stage.attempts), *self.asked)

    @property
    def current(self) -> Stage:
        """The first stage that has not passed; the last one when all have."""
        return next((stage for stage in self.stages if stage.status is not StageStatus.PASSED), self.stages[-1])


def to_json(state: RunState) -> dict[str, Any]:
    """The form of `specdec_state.json`."""
    data = asdict(state)
    data["schema_version"] = SCHEMA_VERSION
    data["log"] = {"entries": data.pop("entries"), "head": data.pop("head")}
    for stage in data["stages"]:
        for gate in stage["gates"]:
            gate["pass"] = gate.pop("passed")
    return data


def from_json(data: Mapping[str, Any]) -> RunState:
    """Read `specdec_state.json` back.

    Raises:
        ValueError: When it is not a state of this schema; the text names the field.
    """
    try:
        if data["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version is {data['schema_version']!r}, wanted {SCHEMA_VERSION}")
        own = {key: value for key, value in data.items() if key in RunState.__dataclass_fields__}
        own["stages"] = tuple(_stage_from_json(stage) for stage in data["stages"])
        own["asked"] = tuple(map(_attempt_from_json, data.get("asked", ())))
        own["refused"] = tuple(data.get("refused", ()))
        own["refusals"] = tuple((name, reason) for name, reason in data.get("refusals", ()))
        own["verdict"] = None if data["verdict"] is None else ReleaseVerdict(data["verdict"])
        entries, head = data["log"]["entries"], data["log"]["head"]
        if type(entries) is not int or not isinstance(head, str):
            raise ValueError("log.entries is not a whole number, or log.head is not text")
        if tuple(stage.name for stage in own["stages"]) != STAGES:
            raise ValueError(f"stages are not {', '.join(STAGES)}")
        return RunState(**own, entries=entries, head=head)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a state of a release: {error!r}") from None


def _attempt_from_json(data: Mapping[str, Any]) -> Attempt:
    results = tuple(ResultFile(**result) for result in data["results"])
    return Attempt(**{**data, "outcome": Outcome(data["outcome"]), "results": results})


def _stage_from_json(data: Mapping[str, Any]) -> Stage:
    attempts = tuple(map(_attempt_from_json, data["attempts"]))
    gates = []
    for item in data["gates"]:
        own = {key: value for key, value in item.items() if key != "pass"}
        own.update(passed=item["pass"], files=tuple(item["files"]), checks=tuple(item["checks"]))
        gates.append(GateRecord(**own))
    triage = tuple(Triage(**item) for item in data["triage"])
    own = {**data, "status": StageStatus(data["status"]), "attempts": attempts}
    return Stage(**{**own, "gates": tuple(gates), "triage": triage})


def put_attempt(state: RunState, attempt: Attempt) -> RunState:
    """The state with one attempt added or replaced."""
    if attempt.stage == ASKED:
        return replace(state, asked=_put(state.asked, attempt))
    stage = state.stage(attempt.stage)
    return put_stage(state, replace(stage, attempts=_put(stage.attempts, attempt)))


def _put(attempts: tuple[Attempt, ...], attempt: Attempt) -> tuple[Attempt, ...]:
    for place, item in enumerate(attempts):
        if item.id == attempt.id:
            return (*attempts[:place], attempt, *attempts[place + 1 :])
    return (*attempts, attempt)


def put_stage(state: RunState, stage: Stage) -> RunState:
    """The state with one stage replaced."""
    return replace(state, stages=tuple(stage if item.name == stage.name else item for item in state.stages))


def fold(entries: Iterable[Any], state: RunState | None = None) -> RunState:
    """The state after some entries (`console.release.journal.Entry`), from the beginning or from a given state."""
    from console.release.events import apply

    state = state or RunState()
    for entry in entries:
        state = apply(state, entry)
    return state
