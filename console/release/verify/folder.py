"""The files of a run folder against the log: every byte either follows from it, or is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from console.release import folder, leases, queue, spool
from console.release.canonical import canonical, sha256
from console.release.journal import Entry
from console.release.report import render_report
from console.release.rules import Rules, rules_of
from console.release.signing import Signers
from console.release.state import Attempt, RunState
from console.release.state_text import state_bytes
from console.release.submission import outcome_of
from console.release.thresholds import CATALOG_NAME
from console.release.verify.facts import Fact, Facts, kept, not_checked, ok, read, told, wrong
from console.release.verify.rules import check_rules
from console.release.verify.signatures import check_signatures

PASSING = (folder.LIVE_NAME, "conductor.lock", "console.lock", leases.NAME, spool.FOLDER, folder.EXPORTS_NAME)
"""What is about the present, or about what somebody looked at: not part of the record."""

_RECORD = (folder.LOG_NAME, folder.STATE_NAME, folder.REPORT_NAME, folder.RELEASE_NAME)
_FOLDERS = ("submissions", "results", "requests")


def check_top(run_dir: Path, state: RunState, entries: list[Entry]) -> Facts:
    """The files that lie in the run folder itself."""
    yield _same(folder.STATE_NAME, read(run_dir / folder.STATE_NAME), state_bytes(state), "follows from the log")
    release = read(run_dir / folder.RELEASE_NAME)
    wanted = str(state.inputs.get("release_sha256", ""))
    yield _digest(folder.RELEASE_NAME, release, wanted, "the inputs that the log names")
    catalog = str(state.inputs.get("catalog_sha256", ""))
    if catalog:
        yield _digest(CATALOG_NAME, read(run_dir / CATALOG_NAME), catalog, "the thresholds that the log names")
    report = read(run_dir / folder.REPORT_NAME)
    if state.verdict is not None:
        yield _same(folder.REPORT_NAME, report, render_report(state, entries).encode("utf-8"), "follows from the log")
    elif report is not None:
        yield wrong(folder.REPORT_NAME, "there is a report of a release that has no verdict")
    for name in _names(run_dir):
        if name in PASSING:
            yield not_checked(name, "about the present or for whoever looked, not part of the record")
        elif name.startswith("work_log.torn-"):
            yield not_checked(name, "an entry that was cut off while it was written; nothing of it was done")
        elif name not in _RECORD and name not in _FOLDERS and not (catalog and name == CATALOG_NAME):
            yield wrong(name, "expected nothing of this name")
    for name in _names(run_dir / "requests"):
        yield wrong(f"requests/{name}", "a request that was never handled; the log knows nothing of it")


def _names(place: Path) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except OSError:
        return []


def _same(name: str, data: bytes | None, wanted: bytes, text: str) -> Fact:
    if data is None:
        return wrong(name, f"expected a file that {text}, found none that can be read")
    at = next((i for i, (a, b) in enumerate(zip(data, wanted, strict=False)) if a != b), min(len(data), len(wanted)))
    return told(data == wanted, name, text, f"it is not what {text}: the first difference is at byte {at}")


def _digest(name: str, data: bytes | None, wanted: str, text: str) -> Fact:
    if data is None:
        return wrong(name, f"expected {text}, found no file that can be read")
    if not wanted:
        return not_checked(name, "the log holds no digest of it")
    found = sha256(data)
    return told(found == wanted, name, f"holds {text}", f"expected {text}, SHA-256 {wanted}, found {found}")


def check_submissions(run_dir: Path, state: RunState, entries: list[Entry], signers: Signers | None = None) -> Facts:
    """Every proposal: the job that was logged, the decision that was logged, used as the log says."""
    known = {attempt.id: attempt for attempt in state.attempts}
    rules = rules_of(state.inputs)
    for name in _names(run_dir / "submissions"):
        about = f"submissions/{name}"
        if name in known:
            attempt = known.pop(name)
            yield from _check_proposal(run_dir, attempt, entries, rules)
            yield from check_signatures(attempt, _events(entries, name), rules, signers, state.run_id)
        elif name in state.refused:
            yield not_checked(about, "another program's proposal that was refused; no job of this release")
        elif name.startswith((".set-aside-", ".new-")):
            yield not_checked(about, "left over from before it was logged; no job of this release")
        else:
            yield wrong(about, "the log knows no proposal of this name")
    for name in known:
        yield wrong(f"submissions/{name}", "the log knows this proposal, but its folder is gone")


def _check_proposal(run_dir: Path, attempt: Attempt, entries: list[Entry], rules: Rules) -> Facts:
    about = f"submissions/{attempt.id}"
    place = run_dir / "submissions" / attempt.id
    logged = _events(entries, attempt.id)
    proposed = logged.get("job_proposed", [{}])[0]
    yield _digest(f"{about}/job.json", read(place / "job.json"), attempt.digest, "the job that was proposed")
    wanted = str(proposed.get("proposal_sha256", ""))
    yield _digest(f"{about}/proposal.json", read(place / "proposal.json"), wanted, "what was proposed, by whom and why")
    yield from _check_uploads(run_dir, attempt)
    yield from _check_decision(place, attempt, logged, about)
    yield from check_rules(place, attempt, logged, rules)
    outcome = outcome_of(entries, attempt.id)
    yield kept(f"{about}/outcome.json", place / "outcome.json", None if outcome is None else canonical(outcome))
    allowed = {"job.json", "proposal.json", "uploads", "first.json", "decision.json", "used.json", "outcome.json"}
    for name in _names(place):
        if name not in allowed:
            yield wrong(f"{about}/{name}", "expected nothing of this name")


def _events(entries: list[Entry], attempt_id: str) -> dict[str, list[Mapping[str, Any]]]:
    """The records of one attempt by their event."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        if entry.data.get("id") == attempt_id:
            found.setdefault(str(entry.data["event"]), []).append({**entry.data, "time": entry.time})
    return found


def _check_uploads(run_dir: Path, attempt: Attempt) -> Facts:
    about = f"submissions/{attempt.id}/uploads"
    place = run_dir / "submissions" / attempt.id / "uploads"
    try:
        references = {item.name: item.sha256 for item in queue.load(run_dir, attempt.id).job().uploads}
    except Exception as error:  # whatever lies there is data, and its digest was named wrong above
        yield not_checked(about, f"the job that names them cannot be read: {type(error).__name__}")
        return
    for name, digest in references.items():
        yield _digest(f"{about}/{name}", read(place / name), digest, "the bytes that the job names")
    for name in _names(place):
        if name not in references:
            yield wrong(f"{about}/{name}", "the job names no such file")


def _check_decision(place: Path, attempt: Attempt, logged: Mapping[str, list[Mapping[str, Any]]], about: str) -> Facts:
    """One decision, on this digest, before one submission."""
    receipts = [item["receipt"] for item in logged.get("job_decided", []) if item.get("receipt")]
    yield kept(f"{about}/decision.json", place / "decision.json", canonical(receipts[0]) if receipts else None)
    intents = logged.get("submit_intent", [])
    if not intents:
        yield kept(f"{about}/used.json", place / "used.json", None)
        return
    used = queue.used_bytes(attempt.id, attempt.digest, datetime.fromisoformat(str(intents[0]["time"])))
    yield kept(f"{about}/used.json", place / "used.json", used)
    approvals = [item for item in logged.get("job_decided", []) if item["decision"] == "approved"]
    good = [
        item
        for item in approvals
        if item["digest"] == attempt.digest == (item.get("receipt") or {}).get("digest")
        and str(item["time"]) <= str(intents[0]["time"])
    ]
    by = ", ".join(str(item["by"]) for item in good)
    nobody = f"it was submitted, but the log has no approval of digest {attempt.digest} before that"
    yield told(bool(good), about, f"approved by {by} before it was submitted", nobody)
    once = len(intents) == 1 and len(good) == 1
    counted = f"{len(good)} approvals and {len(intents)} submissions"
    yield told(once, about, "one approval, used once", f"expected one approval and one submission, found {counted}")


def check_results(run_dir: Path, entries: list[Entry]) -> Facts:
    """Every copy of a result has the bytes that the log names, and there is no other file."""
    logged = {
        str(item.data["copy"]): str(item.data["sha256"]) for item in entries if item.data["event"] == "result_read"
    }
    judged = {str(file["sha256"]) for item in entries if item.data["event"] == "gate" for file in item.data["files"]}
    found: set[str] = set()
    for path in _files(run_dir / "results"):
        name = f"results/{path.relative_to(run_dir / 'results')}"
        found.add(name)
        data = read(path)
        if name in logged:
            yield _digest(name, data, logged[name], "the bytes that were read")
        elif data is not None and sha256(data) in judged:
            yield ok(name, "holds bytes that a gate has read")
        else:
            yield wrong(name, "the log knows no such bytes")
    for name in sorted(set(logged) - found):
        yield wrong(name, "the log says that it was kept, but it is gone")


def _files(place: Path) -> Iterator[Path]:
    for base, folders, files in os.walk(place):
        folders.sort()
        yield from (Path(base) / name for name in sorted(files))
        yield from (Path(base) / name for name in folders if (Path(base) / name).is_symlink())
