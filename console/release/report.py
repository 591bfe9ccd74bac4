"""`SPECDEC_REPORT.md`: what a reviewer needs, from the log alone; the same log always gives the same bytes.

No number is computed from anything but what gates recorded of the result files that they read, and what no gate
recorded is called "not recorded".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from console.release.comparison import comparison
from console.release.journal import Entry, Kind, markdown_text
from console.release.markdown import cell, facts, table
from console.release.queue_view import gpu_hours_asked
from console.release.state import Attempt, GateRecord, ReleaseVerdict, RunState, Stage

MEANING = {
    ReleaseVerdict.DRAFTER_READY: "Every gate passed. Ready for review by people; this is not a decision to publish.",
    ReleaseVerdict.INFEASIBLE: "Training, export or serving failed, and no fix was found within the run.",
    ReleaseVerdict.ANOMALOUS: "The measurement stayed invalid after the allowed retries, or the freeze failed.",
}


def render_report(state: RunState, entries: Sequence[Entry]) -> str:
    """The report as Markdown.

    Args:
        state: The fold over the entries.
        entries: The whole log, checked.
    """
    parts = [
        *_verdict(state),
        *_setup(state),
        *_frozen(state),
        "## A | B",
        "",
        *comparison(state),
        *_stages(state),
        *_interventions(entries),
        *_cost(state),
        *_log(state),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _verdict(state: RunState) -> Iterator[str]:
    word = str(state.verdict) if state.verdict is not None else "no verdict yet"
    yield from (f"# {markdown_text(state.run_id) or 'Release'}: {word}", "")
    if state.verdict is not None:
        yield from (MEANING[state.verdict], "")
        yield from (f"Reason: {cell(state.verdict_detail)}", "")
        if state.failure_class:
            yield from (f"Failure class: {cell(state.failure_class)}", "")
        return
    where = f"Stage {state.current.name} is {state.current.status}."
    yield from (f"{where} Stopped: {markdown_text(state.stopped)}" if state.stopped else where, "")


def _setup(state: RunState) -> Iterator[str]:
    yield from ("## Setup", "")
    names = (
        "target", "revision", "algorithm", "budget", "existing_drafter", "cluster", "login", "account", "partition",
        "recipe", "recipe_sha256", "release_sha256", "approve_submissions",
    )  # fmt: skip
    more = sorted(set(state.inputs) - set(names))
    rows = [(name.replace("_", " "), state.inputs[name]) for name in (*names, *more) if name in state.inputs]
    rows += [(f"override of {name}", value) for name, value in sorted(state.overrides.items())]
    rows += [(f"cluster: {name.replace('_', ' ')}", value) for name, value in sorted(state.setup.items())]
    rows += [(f"target: {name.replace('_', ' ')}", value) for name, value in sorted(state.target.items())]
    rows += [("started", state.started_at), ("last step", state.updated_at)]
    yield from facts(rows)


def _frozen(state: RunState) -> Iterator[str]:
    yield from ("## Frozen drafter", "")
    if "manifest_sha256" not in state.freeze:
        yield from ("No drafter was frozen.", "")
        return
    names = ("destination", "manifest_sha256", "source", "bytes")
    yield from facts((name.replace("_", " "), state.freeze.get(name)) for name in names)
    files = [file for file in state.freeze.get("files") or () if isinstance(file, dict)]
    yield from table(("file", "bytes", "SHA-256"), ((f.get("path"), f.get("size"), f.get("sha256")) for f in files))


def _stages(state: RunState) -> Iterator[str]:
    yield from ("## Stages", "")
    rows = [(item.name, item.status, item.started_at, item.ended_at, item.detail or "-") for item in state.stages]
    yield from table(("stage", "status", "from", "to", "detail"), rows)
    for stage in state.stages:
        if stage.attempts or stage.gates or stage.triage:
            yield from _stage(stage)


def _stage(stage: Stage) -> Iterator[str]:
    yield from (f"### {markdown_text(stage.name)}: {stage.status}", "")
    for attempt in stage.attempts:
        yield from _attempt(attempt)
    for gate in stage.gates:
        yield from _gate(stage, gate)
    if stage.triage:
        yield from ("What followed from failures:", "")
        rows = [(item.id, item.failure_class, item.step, item.detail) for item in stage.triage]
        yield from table(("attempt", "failure class", "next step", "why"), rows)


def _attempt(attempt: Attempt) -> Iterator[str]:
    yield from (f"#### {markdown_text(attempt.id)}: {attempt.outcome}", "")
    by = f"{attempt.decided_by} at {attempt.decided_at}" if attempt.decided_by else ""
    seen = " ".join(part for part in (attempt.job_state, attempt.job_reason) if part)
    rows = [
        ("does", attempt.summary),
        ("attempt", attempt.attempt),
        ("changed", attempt.change or "-"),
        ("digest", attempt.digest),
        ("proposed", f"by {attempt.proposer} at {attempt.proposed_at}"),
        ("decided", by),
        ("submitted", attempt.submitted_at),
        ("Slurm job", attempt.job_id),
        ("Slurm said", seen),
        ("node", attempt.node),
        ("ended", attempt.ended_at),
        ("GPU hours asked for", f"{attempt.gpus * attempt.limit_s / 3600:.2f}"),
        ("said", attempt.said or "-"),
    ]
    if attempt.experiment_id:
        rows.append(("experiment", attempt.experiment_id))
    yield from facts(rows)
    if attempt.results:
        files = [(item.kind, item.size, item.sha256, item.copy, item.path) for item in attempt.results]
        yield from table(("result", "bytes", "SHA-256", "copy in this folder", "path on the cluster"), files)


def _gate(stage: Stage, gate: GateRecord) -> Iterator[str]:
    word = "GO" if gate.passed else f"NO-GO ({markdown_text(str(gate.failure_class))})"
    yield from (f"#### Gate {markdown_text(gate.name)} over {markdown_text(gate.id)}: {word}", "")
    yield from (markdown_text(gate.detail), "")
    head = ("check", "held", "measured", "limit", "unit", "file", "field")
    yield from table(head, ([_measured(check.get(key)) for key in _CHECK_KEYS] for check in gate.checks))
    if gate.facts:
        yield from table(("also measured", ""), sorted(gate.facts.items()))
    digests = [(file.get("kind"), file.get("sha256")) for file in gate.files]
    yield from table(("read from", "SHA-256"), digests) if digests else ("It could read no file.", "")


_CHECK_KEYS = ("name", "ok", "measured", "limit", "unit", "file", "field")


def _measured(value: object) -> object:
    return "-" if value == "" else "nothing" if value is None else value


def _interventions(entries: Sequence[Entry]) -> Iterator[str]:
    yield from ("## Interventions", "")
    people = [entry for entry in entries if entry.kind is Kind.HUMAN_INTERVENTION]
    yield from (f"{len(people)} beyond approving jobs as shown.", "")
    if people:
        rows = [(entry.seq, entry.time, entry.actor, entry.stage, entry.text) for entry in people]
        yield from table(("entry", "time (UTC)", "who", "stage", "what"), rows)


def _cost(state: RunState) -> Iterator[str]:
    yield from ("## Cluster time", "")
    jobs = [attempt for attempt in state.attempts if attempt.job_id]
    yield from (f"{gpu_hours_asked(state):.2f} GPU hours asked for, by {len(jobs)} jobs that Slurm took.", "")


def _log(state: RunState) -> Iterator[str]:
    yield from ("## Log", "")
    yield from facts([("entries", state.entries), ("hash of the last", state.head)])
    yield from ("`gonogo log` checks the log against these; result files lie in `results/` as they were read.", "")
