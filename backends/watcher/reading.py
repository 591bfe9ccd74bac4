"""One file or a part of it, read by one script with what identifies it: where no program of ours stays."""

from __future__ import annotations

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.base import FileStat, Host, RunResult
from backends.hosts.shell import FIND, MISSING, ODD, parse_stat
from backends.watcher.model import Tail

_OPEN = (
    FIND
    + f"""
if [ ! -f "$1" ]; then printf '%s: not a regular file\\n' "$1" >&2; exit {ODD}; fi
( : < "$1" ) || exit {ODD}
size=${{found%% *}}
printf '%s\\n' "$found"
"""
)

# The file is looked at before and after, in the same script: one way there and back instead of three.
_WHOLE = (
    _OPEN
    + """
if [ "$size" -eq 0 ] || [ "$size" -gt "$2" ]; then exit 0; fi
head -c "$2" -- "$1"
printf '\\n'
look "$1"
"""
)

# `tail -c +N` seeks, so the length of the file does not matter.
_TAIL = (
    _OPEN
    + """
start=0; if [ "$size" -gt "$2" ]; then start=$((size - $2)); fi
tail -c "+$((start + 1))" -- "$1" | head -c "$2"
"""
)

_PART = (
    _OPEN
    + """
tail -c "+$(($3 + 1))" -- "$1" | head -c "$2"
"""
)


async def whole(host: Host, path: str, limit: int) -> bytes | None:
    """The bytes of a file, when it did not change while they were read.

    Returns:
        None when it changed meanwhile, is empty, or is larger than the limit (bytes).

    Raises:
        FileMissing: When it is not there.
        CouldNotAsk: When there was no answer.
    """
    before, rest = await _opened(host, _WHOLE, path, limit)
    data, after = rest[: before.size], rest[before.size :]
    if not 0 < before.size <= limit or after[:1] != b"\n" or parse_stat(after[1:]) != before:
        return None
    return data


async def tail(host: Host, path: str, limit: int) -> Tail:
    """The last bytes of a file, at most so many, however long it is.

    Raises:
        FileMissing: When it is not there.
        CouldNotAsk: When there was no answer.
    """
    stat, data = await _opened(host, _TAIL, path, limit)
    return Tail(path, stat, max(0, stat.size - limit), data)


async def part(host: Host, path: str, offset: int, limit: int) -> Tail:
    """A part of a file, at most so many bytes, however long the file is.

    Raises:
        FileMissing: When it is not there.
        CouldNotAsk: When there was no answer.
    """
    stat, data = await _opened(host, _PART, path, limit, offset)
    return Tail(path, stat, offset, data)


async def _opened(host: Host, script: str, path: str, *numbers: int) -> tuple[FileStat, bytes]:
    result = await host.run(script, [path, *map(str, numbers)])
    if result.exit_status == MISSING:
        raise FileMissing(host.name, path)
    line, _, rest = result.stdout.partition(b"\n")
    stat = parse_stat(line)
    if result.exit_status != 0 or stat is None:
        raise CouldNotAsk(host.name, f"read {path}", _said(result))
    return stat, rest


def _said(result: RunResult) -> str:
    said = result.stderr.decode("utf-8", "replace").strip()[-300:]
    return said or f"exit status {result.exit_status}"
