"""Looks at files for as long as somebody listens, and says one line for each change.

Runs on a login node, under any Python from 3.8 on, with nothing but the standard library. It ends when its input
ends, so a lost connection leaves nothing behind. Commands are JSON lines: {"add": [path...]}, {"drop": [path...]},
{"ask": number, "tail": path, "from": where to begin or null for the end, "bytes": most, "known": stat or null}.
Answers are JSON lines: {"ready": pid}; {"path": p, "stat": [size, inode, mtime_ns, ctime_ns], "stable": bool, "data":
base64 where stable and small}; {"path": p, "missing": true}; {"path": p, "odd": "why nobody can say"}; {"beat": looks
so far}; and to a question {"ask": number} with "stat", "offset" and "data", or "same": true, or "missing" or "odd".
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import select
import stat
import sys
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

Answer = Dict[str, Any]

SECOND_LOOK_S = 0.05
"""A file that has changed is looked at again so soon: it counts as stable once two looks agree."""

BEAT_S = 5.0

MOST_BYTES = 32768
"""A file of at most so many bytes is sent along once it is stable, which saves the way there and back; and one answer
with a part of a file takes no more."""


def identity(found: os.stat_result) -> List[int]:
    """What changes when a file does."""
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def problem(error: OSError) -> Answer:
    """What an error says of a file: it is surely not there, or nobody can say."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return {"missing": True}
    return {"odd": error.strerror or "cannot be looked at"}


def look(path: str) -> Answer:
    """What one look at a file says, as the answer's own keys."""
    try:
        return {"stat": identity(os.stat(path))}
    except OSError as error:
        return problem(error)


def read_at(path: str, known: Optional[List[int]], place: Callable[[int], Tuple[int, int]]) -> Answer:
    """A part of a regular file, with what identifies it, as it was before and after; "odd" for anything else.

    `place` gives where to begin and how many bytes to read, from the size. Nothing is read of what is `known`.
    """
    # Not to wait for whoever writes into a pipe.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode):
            return {"odd": "not a regular file"}
        if identity(before) == known:
            return {"same": True}
        offset, count = place(before.st_size)
        data = os.pread(file, count, offset)
        return {"stat": identity(before), "offset": offset, "data": base64.b64encode(data).decode("ascii")}
    finally:
        os.close(file)


def part(path: str, start: Optional[int], most: int, known: Optional[List[int]]) -> Answer:
    """A part of a file, or its end where no start is given, however long it is."""
    most = max(0, min(most, MOST_BYTES))
    try:
        return read_at(path, known, lambda size: (max(0, size - most) if start is None else max(0, start), most))
    except OSError as error:
        return problem(error)


def whole(path: str, seen: List[int]) -> Optional[str]:
    """A small file's bytes in base64, if it is what was seen, before they were read and after."""
    if not 0 < seen[0] <= MOST_BYTES:
        return None
    try:
        answer = read_at(path, None, lambda size: (0, size))
        same = answer.get("stat") == seen and identity(os.stat(path)) == seen
    except OSError:
        return None
    return answer["data"] if same and len(base64.b64decode(answer["data"])) == seen[0] else None


def refresh(folders: Iterable[str]) -> None:
    """List folders: network file systems remember that a file is not there until somebody does."""
    for folder in folders:
        with contextlib.suppress(OSError):
            os.listdir(folder)


class Files:
    """The files that are looked at, with what was said of each."""

    def __init__(self, say: Callable[[Answer], None]) -> None:
        self.say = say
        self.said: Dict[str, Optional[Answer]] = {}
        self.fresh: Set[str] = set()

    def look(self, paths: List[str], list_folders: bool) -> None:
        """Look at some of them and say what changed; a change is looked at again before it counts as stable.

        What changed first is said first: where much happened since the last look, it has waited longest.
        """
        if list_folders:
            refresh({os.path.dirname(path) for path in paths if "stat" not in (self.said.get(path) or {})})
        changed = []
        for path in paths:
            if path not in self.said:
                continue
            seen = look(path)
            before = self.said[path]
            if "stat" in seen:
                seen["stable"] = before is not None and before.get("stat") == seen["stat"]
            if seen != before:
                self.said[path] = seen
                changed.append((seen["stat"][3] if "stat" in seen else 0, path, seen))
            if "stat" in seen and not seen["stable"]:
                self.fresh.add(path)
            else:
                self.fresh.discard(path)
        for _, path, seen in sorted(changed, key=lambda item: item[0]):
            data = whole(path, seen["stat"]) if seen.get("stable") else None
            self.say(dict(seen, path=path) if data is None else dict(seen, path=path, data=data))

    def obey(self, command: Dict[str, Any]) -> None:
        """Take files in or leave them out, or read a part of one."""
        if "tail" in command:
            answer = part(command["tail"], command["from"], command["bytes"], command["known"])
            self.say(dict(answer, ask=command["ask"]))
        for path in command.get("add", ()):
            self.said.setdefault(path, None)
            self.fresh.add(path)
        for path in command.get("drop", ()):
            self.said.pop(path, None)
            self.fresh.discard(path)


def main(interval: float) -> None:
    """Look until the input ends."""

    def say(answer: Answer) -> None:
        line = (json.dumps(answer) + "\n").encode("ascii")
        while line:
            line = line[os.write(1, line) :]

    files = Files(say)
    say({"ready": os.getpid()})
    waiting = b""
    looks = 0
    due = next_beat = time.monotonic()
    while True:
        now = time.monotonic()
        pause = min(due, next_beat) - now
        if files.fresh:
            pause = min(pause, SECOND_LOOK_S)
        if select.select([0], [], [], max(0.0, pause))[0]:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                files.obey(json.loads(line.decode("ascii")))
        if files.fresh:
            files.look(sorted(files.fresh), False)
        now = time.monotonic()
        if now >= due:
            files.look(list(files.said), True)
            looks += 1
            # From one due time to the next, so that the time that a look takes is not added to the interval.
            due = max(due + interval, now)
        if now >= next_beat:
            say({"beat": looks})
            next_beat = now + BEAT_S


if __name__ == "__main__":
    with contextlib.suppress(OSError, KeyboardInterrupt):  # nobody listens any more
        main(float(sys.argv[1]))
