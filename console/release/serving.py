"""Carries out what operators ask of a running conductor, each as a HUMAN_INTERVENTION in the log.

Beside these it logs the remarks of programs that ask for jobs, each as an ACTION of that program.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from backends.errors import CouldNotAsk
from backends.slurm.client import is_job_id
from console.release import remarks, requests
from console.release.mailbox import Mailbox
from console.release.state import ASKED, Attempt, Outcome
from console.release.submission import mend_outcome

if TYPE_CHECKING:
    from console.release.conductor import Conductor

_DONE_NAME = "request"


async def serve_requests(conductor: Conductor, mailbox: Mailbox, aborted: asyncio.Future[str]) -> None:
    """Handle requests as they arrive, until cancelled."""
    writer = conductor.writer
    handled = {entry.data[_DONE_NAME] for entry in writer.entries if _DONE_NAME in entry.data}
    complained: set[str] = set()
    while True:
        waiting, odd = requests.pending(writer.run_dir)
        for name in set(odd) - complained:
            complained.add(name)
            writer.record("odd_request", f"requests/{name} is not a request; it is left alone", name=name)
        for request in waiting:
            if request.name not in handled:
                handled.add(request.name)
                await _handle(conductor, request, aborted)
            requests.done(writer.run_dir, request.name)
        await mailbox.wait()


async def _handle(conductor: Conductor, request: requests.Request, aborted: asyncio.Future[str]) -> None:
    attempt = conductor.writer.state.attempt(request.id)
    match request.verb:
        case "note":
            _record(conductor, request, "note", f"Note: {request.text}")
        case remarks.REMARK:
            _remark(conductor, request)
        case "abort":
            _record(conductor, request, "stopped", f"Aborted: {request.text}", detail=f"aborted by {request.operator}")
            if not aborted.done():
                aborted.set_result(request.text)
        case "retry":
            _retry(conductor, request, attempt)
        case "settle":
            _settle(conductor, request, attempt)
        case "cancel":
            await _cancel(conductor, request, attempt)


def _record(conductor: Conductor, request: requests.Request, event: str, text: str, **data: object) -> None:
    stage = conductor.writer.state.current.name
    conductor.writer.record(
        event, text, stage=stage, actor=f"operator:{request.operator}", human=True, **data, **{_DONE_NAME: request.name}
    )


def _remark(conductor: Conductor, request: requests.Request) -> None:
    """Nobody of the operators said this, and nothing follows from it."""
    text, actor = f"{request.operator} remarks: {request.text}", f"proposer:{request.operator}"
    done: dict[str, Any] = {_DONE_NAME: request.name}
    conductor.writer.record("remark", text, stage=ASKED, actor=actor, **done)


def _refuse(conductor: Conductor, request: requests.Request, why: str) -> None:
    _record(conductor, request, "request_refused", f"Asked to {request.verb} {request.id}: not done: {why}")


def _retry(conductor: Conductor, request: requests.Request, attempt: Attempt | None) -> None:
    state = conductor.writer.state
    judged = any(gate.id == request.id and not gate.passed for stage in state.stages for gate in stage.gates)
    again = (Outcome.REJECTED, Outcome.REFUSED, Outcome.RESULT_MISSING, Outcome.NOT_SUBMITTED, Outcome.EXPIRED)
    failed = attempt is not None and (attempt.outcome in again or judged)
    newest = attempt is not None and state.stage(attempt.stage).latest(attempt.task) == attempt
    if state.verdict is not None:
        return _refuse(conductor, request, "the release is closed")
    if attempt is None and not judged:
        return _refuse(conductor, request, "there is no such attempt")
    if attempt is not None and not (failed and newest):
        return _refuse(
            conductor, request, f"it is {attempt.outcome}, and only a failed newest attempt can be tried again"
        )
    _record(conductor, request, "retry_requested", f"Try {request.id} again: {request.text}", id=request.id)
    return None


def _settle(conductor: Conductor, request: requests.Request, attempt: Attempt | None) -> None:
    if attempt is None or attempt.outcome is not Outcome.UNKNOWN:
        return _refuse(conductor, request, "only a submission whose outcome is unknown can be settled")
    words = request.text.split()
    job_id = words[1] if words[:1] == ["submitted"] and len(words) > 1 and is_job_id(words[1]) else None
    denied = words[:2] == ["not", "submitted"]
    if job_id is None and not denied:
        return _refuse(conductor, request, "say `submitted JOB_ID` or `not submitted`")
    _record(
        conductor,
        request,
        "submit_outcome",
        f"{request.id} settled by hand: {request.text}",
        id=request.id,
        digest=attempt.digest,
        outcome="accepted" if job_id else "not_submitted",
        job_id=job_id,
        said=f"settled by hand: {request.text}",
    )
    mend_outcome(conductor.writer, request.id)
    return None


async def _cancel(conductor: Conductor, request: requests.Request, attempt: Attempt | None) -> None:
    if attempt is None or attempt.job_id is None:
        return _refuse(conductor, request, "it has no job on the cluster")
    _record(
        conductor,
        request,
        "cancel_requested",
        f"Cancel job {attempt.job_id} ({request.id}): {request.text}",
        id=request.id,
        job_id=attempt.job_id,
    )
    try:
        seen = await conductor.connection.slurm.cancel(attempt.job_id, attempt.token)
    except CouldNotAsk as error:
        seen = f"could not ask: {error}"
    conductor.writer.record(
        "cancel_answered", f"Cancel of job {attempt.job_id}: {seen}", stage=attempt.stage, id=request.id, said=seen
    )
    return None
