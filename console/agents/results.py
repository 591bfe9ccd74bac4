"""The bytes of result files, and of nothing else.

A path is walked folder by folder from `results/` with descriptors, never by name as a whole, and no step follows a
link: so what is opened lies below `results/`, whatever the path says and whatever is renamed meanwhile.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from console.agents.agent import Agent
from console.agents.arguments import refuse
from console.release.state import ResultFile, RunState

MAX_READ_BYTES = 256 << 10
"""Of one answer; longer files are read in parts."""

MAX_LISTED = 2000
_DEEPEST = 6
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a named pipe that somebody put there would hold the server for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def list_results(agent: Agent) -> dict[str, Any]:
    """Every result file that was kept, with what the log says of it."""
    logged = _logged(agent.state())
    found: list[dict[str, Any]] = []
    try:
        root = os.open(agent.run_dir / "results", _FOLDER)
    except OSError:
        return {"files": [], "complete": False}
    try:
        for path, size in _walk(root, "", 1):
            if len(found) == MAX_LISTED:
                return {"files": found, "complete": False}
            found.append({"path": path, "size": size, **_said(logged.get(path))})
    finally:
        os.close(root)
    return {"files": found, "complete": True}


def _walk(folder: int, prefix: str, depth: int) -> Iterator[tuple[str, int]]:
    for name in sorted(os.listdir(folder)):
        if not _PART.fullmatch(name):
            continue
        try:
            seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode):
            yield prefix + name, seen.st_size
        elif stat.S_ISDIR(seen.st_mode) and depth < _DEEPEST:
            try:
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:
                continue
            try:
                yield from _walk(inner, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(inner)


def read_result(agent: Agent, *, path: str, offset: int, length: int) -> dict[str, Any]:
    """A part of one result file: as text where its bytes are UTF-8, else as base64.

    Raises:
        console.release.errors.InputError: When there is no such file below `results/`.
    """
    logged = _logged(agent.state()).get(path)
    with _opened(agent, path) as file:
        size = os.fstat(file).st_size
        data = os.pread(file, length, offset)
        digest = _digest(file) if offset == 0 else ""
    text, used = _text(data, offset + len(data) >= size)
    answer: dict[str, Any] = {"path": path, "size": size, "offset": offset, **_said(logged)}
    if digest:
        answer |= {"sha256": digest, "as_logged": None if logged is None else digest == logged.sha256}
    answer |= {"text": text} if text is not None else {"base64": base64.b64encode(data).decode("ascii")}
    return answer | {"next_offset": offset + used if offset + used < size else None}


@contextmanager
def _opened(agent: Agent, path: str) -> Iterator[int]:
    """A regular file below `results/`, open for reading."""
    where = "read_result: path"
    parts = path.split("/")
    if len(parts) > _DEEPEST or not all(_PART.fullmatch(part) for part in parts):
        raise refuse(where, "the path of a result file, as list_results names it", repr(path))
    opened: list[int] = []
    try:
        try:
            opened.append(os.open(agent.run_dir / "results", _FOLDER))
            for part in parts[:-1]:
                opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
            opened.append(os.open(parts[-1], _FILE, dir_fd=opened[-1]))
        except OSError as error:
            raise refuse(where, "a result file that can be read", f"{path}: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            raise refuse(where, "a result file", f"{path}: not a regular file")
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _digest(file: int) -> str:
    found, position = hashlib.sha256(), 0
    while data := os.pread(file, 1 << 20, position):
        found.update(data)
        position += len(data)
    return found.hexdigest()


def _text(data: bytes, complete: bool) -> tuple[str | None, int]:
    """The bytes as text and how many of them were used: a character that the part cuts is left to the next part."""
    for cut in range(1 if complete else 4):
        try:
            return data[: len(data) - cut].decode("utf-8"), len(data) - cut
        except UnicodeDecodeError:
            continue
    return None, len(data)


def _logged(state: RunState) -> dict[str, ResultFile]:
    every = (result for attempt in state.attempts for result in attempt.results)
    return {result.copy.removeprefix("results/"): result for result in every}


def _said(logged: ResultFile | None) -> dict[str, Any]:
    return {} if logged is None else {"kind": logged.kind, "logged_sha256": logged.sha256}
