"""Looks at files for as long as somebody listens, and says one line for each change.

Runs on a login node, under any Python from 3.8 on, with nothing but the standard library. It ends when its input
ends, so a lost connection leaves nothing behind. Commands are JSON lines: {"add": [path...]}, {"drop": [path...]}.
Answers are JSON lines: {"ready": pid}; {"path": p, "stat": [size, inode, mtime_ns, ctime_ns], "stable": bool};
{"path": p, "missing": true}; {"path": p, "odd": "why nobody can say"}; {"beat": looks so far}.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import sys
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

Answer = Dict[str, Any]

SECOND_LOOK_S = 0.05
"""A file that has changed is looked at again so soon: it counts as stable once two looks agree."""

BEAT_S = 5.0


def look(path: str) -> Answer:
    """What one look at a file says, as the answer's own keys."""
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return {"missing": True}
        return {"odd": error.strerror or "cannot be looked at"}
    return {"stat": [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]}


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
        """Look at some of them and say what changed; a change is looked at again before it counts as stable."""
        if list_folders:
            refresh({os.path.dirname(path) for path in paths if "stat" not in (self.said.get(path) or {})})
        for path in paths:
            if path not in self.said:
                continue
            seen = look(path)
            before = self.said[path]
            if "stat" in seen:
                seen["stable"] = before is not None and before.get("stat") == seen["stat"]
            if seen != before:
                self.said[path] = seen
                self.say(dict(seen, path=path))
            if "stat" in seen and not seen["stable"]:
                self.fresh.add(path)
            else:
                self.fresh.discard(path)

    def obey(self, command: Dict[str, List[str]]) -> None:
        """Take files in or leave them out."""
        for path in command.get("add", ()):
            self.said.setdefault(path, None)
            self.fresh.add(path)
        for path in command.get("drop", ()):
            self.said.pop(path, None)
            self.fresh.discard(path)


def main(interval: float) -> None:
    """Look until the input ends."""

    def say(answer: Answer) -> None:
        os.write(1, (json.dumps(answer) + "\n").encode("ascii"))

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
            due = now + interval
        if now >= next_beat:
            say({"beat": looks})
            next_beat = now + BEAT_S


if __name__ == "__main__":
    with contextlib.suppress(OSError, KeyboardInterrupt):  # nobody listens any more
        main(float(sys.argv[1]))
