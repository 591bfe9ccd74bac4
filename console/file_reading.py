"""The bytes of a result file that the console shows: those that a gate read, or those that are watched right now.

Reading blocks, so the console calls `read_file` in a thread. Nothing here writes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from console.release.output_paths import RESULT
from console.release.spool import place, read_kept
from console.release.state import RunState

MOST_BYTES = 4 * 2**20
"""No more of a file is shown."""


class Contents(NamedTuple):
    """A file as it is shown.

    Attributes:
        data: Its bytes, at most MOST_BYTES of them.
        size: Its size on the cluster, None where nobody knows.
        sha256: Digest of all of it; empty where not all of it is here.
        path: Where it lies on the cluster.
        since: When these bytes were read, ISO 8601.
        judged: Whether these are the bytes that gates read.
        said: What must be known about them: why they are not there, or not all there.
    """

    data: bytes = b""
    size: int | None = None
    sha256: str = ""
    path: str = ""
    since: str = ""
    judged: bool = False
    said: str = ""


def read_file(run_dir: Path, run: RunState, attempt_id: str, kind: str) -> Contents:
    """Read a file as far as this machine has it.

    Args:
        run_dir: The run folder.
        run: The state, which says what was read.
        attempt_id: The attempt that writes it.
        kind: Its kind.
    """
    attempt = run.attempt(attempt_id)
    result = None if attempt is None else next((item for item in attempt.results if item.kind == kind), None)
    if result is None:
        return _watched(run_dir, attempt_id, kind)
    about = Contents(size=result.size, path=result.path, since=result.time, judged=True)
    copy = run_dir / result.copy
    if not copy.resolve().is_relative_to(run_dir.resolve()):
        return about._replace(said=f"{result.copy} leads out of the run folder")
    try:
        data = copy.read_bytes()
    except OSError as error:
        return about._replace(said=f"{result.copy} cannot be read: {error.strerror}")
    digest = hashlib.sha256(data).hexdigest()
    said = "" if digest == result.sha256 else f"these are not the bytes that were read: the log names {result.sha256}"
    return about._replace(data=data[:MOST_BYTES], sha256=digest, said=said or _more(len(data)))


def _more(length: int) -> str:
    return f"{length - MOST_BYTES} more bytes are not shown" if length > MOST_BYTES else ""


def _watched(run_dir: Path, attempt_id: str, kind: str) -> Contents:
    folder, what = place(run_dir, attempt_id), f"{RESULT}{kind}"
    # The name is foreign text: it must not lead elsewhere.
    kept = None if "/" in kind or "\0" in kind or "/" in attempt_id else read_kept(folder, what)
    if kept is None:
        return Contents(said="nothing was read of it yet")
    about = Contents(path=kept.path, since=kept.seen_at)
    if kept.presence != "seen":
        words = {"missing": "it is not there yet, or not any more", "": "the cluster is asked"}
        about = about._replace(said=words.get(kept.presence, f"{kept.presence}: {kept.said}"))
    if not kept.segments:
        return about
    last = kept.segments[-1]
    try:
        with open(folder / kept.file, "rb") as file:
            file.seek(last.at)
            data = file.read(MOST_BYTES)
    except OSError as error:
        return about._replace(said=f"what was read cannot be read again: {error.strerror}")
    whole = last.offset == 0 and len(data) == kept.size
    digest = hashlib.sha256(data).hexdigest() if whole else ""
    part = "" if whole else f"{len(data)} of {kept.size} bytes, from byte {last.offset} on"
    return about._replace(data=data, size=kept.size, sha256=digest, said=about.said or part)
