"""The one request that is no operator's: a program that asks for jobs says something for the log.

It is a file in `requests/` like what operators ask for (`console.release.requests`), of a kind that nothing follows
from. It is written here, apart, so that whatever speaks for programs can leave a remark and nothing else.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path

from console.release import effects
from console.release.canonical import canonical

REMARK = "remark"


def leave(run_dir: Path, proposer: str, text: str, *, time: datetime) -> str:
    """File a remark.

    Args:
        run_dir: The run folder.
        proposer: The program's name.
        text: What it has to say.
        time: Now.

    Returns:
        The request's name.
    """
    return file(run_dir, {"verb": REMARK, "id": "", "operator": proposer, "text": text}, time)


def file(run_dir: Path, request: dict[str, str], time: datetime) -> str:
    """Create the file of a request, once, under a name of its own; returns the name."""
    name = f"{time.astimezone(UTC).strftime('%Y%m%dT%H%M%S.%fZ')}-{secrets.token_hex(4)}.json"
    effects.create(run_dir / "requests" / name, canonical(request), f"request {request['verb']}")
    return name
