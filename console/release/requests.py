"""What operators ask of a running conductor besides decisions: cancel a job, try again, abort, note, settle.

Each request is a file in `requests/`, created once by the console or the command; the conductor logs it as a
HUMAN_INTERVENTION, does it, and removes the file. The log remembers the request's name, so that one which was
logged just before a crash is not done twice. A remark is no operator's: a program that asks for jobs says
something for the log, as its own act, and nothing follows from it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from console.release import effects, remarks
from console.release.remarks import REMARK

VERBS = {
    "cancel": "cancel a submitted job on the cluster",
    "retry": "propose a task again after a rejection, a refusal or a failure",
    "abort": "stop this run here; it can be resumed",
    "note": "write a note that changes the course into the log",
    "settle": "rule by hand on a submission whose outcome nobody can tell",
    REMARK: "write into the log what a program that asks for jobs has to say",
}
_NAME = re.compile(r"[0-9TZ.]+-[0-9a-f]{8}\.json")


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        name: Its file name, unique.
        verb: One of VERBS.
        id: The attempt that it is about, empty for the run.
        operator: Account of who asked; for a remark the proposer's name.
        text: Their words; for "settle" it begins with "submitted JOB_ID" or "not submitted".
    """

    name: str
    verb: str
    id: str
    operator: str
    text: str


def ask(run_dir: Path, verb: str, operator: str, text: str, *, time: datetime, attempt_id: str = "") -> str:
    """File a request.

    Returns:
        Its name.

    Raises:
        ValueError: For a verb that does not exist.
    """
    if verb not in VERBS:
        raise ValueError(f"no such request: {verb}")
    return remarks.file(run_dir, {"verb": verb, "id": attempt_id, "operator": operator, "text": text}, time)


def pending(run_dir: Path) -> tuple[list[Request], list[str]]:
    """Requests that wait, oldest first, and the names of files that are none."""
    found, odd = [], []
    try:
        names = sorted(os.listdir(run_dir / "requests"))
    except OSError:
        return [], []
    for name in names:
        if name.startswith("."):
            continue
        request = _read(run_dir / "requests" / name, name)
        if request is None:
            odd.append(name)
        else:
            found.append(request)
    return found, odd


def _read(path: Path, name: str) -> Request | None:
    if not _NAME.fullmatch(name):
        return None
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or set(data) != {"verb", "id", "operator", "text"}:
        return None
    if not all(isinstance(value, str) for value in data.values()) or data["verb"] not in VERBS:
        return None
    return Request(name, **data)


def done(run_dir: Path, name: str) -> None:
    """Remove a request that was logged and handled."""
    with effects.effect("remove request"):
        (run_dir / "requests" / name).unlink(missing_ok=True)
