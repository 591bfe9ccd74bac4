"""The work log: `work_log.md`, append-only, each entry chained to the one before by hash.

The file is Markdown that a person can read. Each entry is rendered from one record, and carries that record as
canonical JSON in an HTML comment, so a parser reads back exactly what was written. An entry counts only if
rendering its record again gives the very bytes that stand in the file; so an edit anywhere shows, in the
readable part too. The log is tamper-evident against accidents and later edits, not tamper-proof: whoever owns
the disk can write a whole new chain. The head of the chain is therefore also kept in the state and the report.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from console.release import effects, folder
from console.release.canonical import canonical, sha256
from console.safe_text import safe

LOG_NAME = folder.LOG_NAME
GENESIS = "0" * 64
"""What the first entry names as the hash before it."""

PREAMBLE = folder.PREAMBLE
"""What a log begins with."""

_RECORD = re.compile(rb"<!-- gonogo (\{.*\}) -->\n")


class Kind(StrEnum):
    """The two kinds of entries."""

    ACTION = "ACTION"
    HUMAN_INTERVENTION = "HUMAN_INTERVENTION"


class LogError(Exception):
    """The log cannot be read, or is not what was written. The text says where and what to do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One step.

    Attributes:
        seq: 1 for the first entry.
        time: UTC, ISO 8601 with microseconds and Z.
        kind: ACTION or HUMAN_INTERVENTION.
        actor: Who did it: `conductor`, `operator:NAME`, `policy`, `proposer:NAME`.
        stage: Name of the stage, empty where it belongs to none.
        text: What was done and why, for people.
        data: The same for programs; `event` names it. JSON values only.
        prev: Hash of the entry before.
        hash: SHA-256 over `prev` and the canonical record.
    """

    seq: int
    time: str
    kind: Kind
    actor: str
    stage: str
    text: str
    data: Mapping[str, Any]
    prev: str
    hash: str

    def to_json(self) -> dict[str, Any]:
        """The documented JSON form of `gonogo log --json`, plus `prev`."""
        return {
            "seq": self.seq,
            "time": self.time,
            "kind": str(self.kind),
            "actor": self.actor,
            "stage": self.stage,
            "text": self.text,
            "data": dict(self.data),
            "prev": self.prev,
            "hash": self.hash,
        }


def make_entry(
    seq: int, time: datetime, kind: Kind, actor: str, stage: str, text: str, data: Mapping[str, Any], prev: str
) -> Entry:
    """Build an entry and compute its hash.

    The entry holds what a reader of the log will read: lists for tuples, and halves of surrogate pairs that met
    in foreign text joined, since JSON cannot keep them apart.

    Raises:
        TypeError: When data holds anything but JSON values.
        ValueError: When it holds a number that is not finite.
    """
    stamp = time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    actor, stage, text, data = json.loads(canonical([actor, stage, text, data], floats=True))
    entry = Entry(seq, stamp, kind, actor, stage, text, data, prev, "")
    return Entry(seq, stamp, kind, actor, stage, text, data, prev, _hash(entry.to_json()))


def _hash(record: dict[str, Any]) -> str:
    body = {key: value for key, value in record.items() if key not in ("hash", "prev")}
    return sha256(record["prev"].encode("ascii") + b"\n" + canonical(body, floats=True))


# An underscore within a word is just that; anywhere else it could begin or end emphasis.
_MARKDOWN = re.compile(r"[\\`*\[\]<>|&#~]|(?<![^\W_])_|_(?![^\W_])")
# What begins a list, a heading or a rule at the start of a line, also behind spaces.
_LINE_START = re.compile(r"^ *(?=[-+=])|^ *\d+(?=[.)](?: |$))")


def markdown_text(text: str) -> str:
    """Foreign text as one line of Markdown that shows it and does nothing else."""
    return _LINE_START.sub(r"\g<0>\\", markdown_inline(text))


def markdown_inline(text: str) -> str:
    """The same within a line or a table's cell, where nothing of it stands at the beginning."""
    return _MARKDOWN.sub(r"\\\g<0>", safe(text))


def render(entry: Entry) -> bytes:
    """An entry as it stands in the file."""
    title = " · ".join(part for part in (str(entry.seq), entry.time, entry.kind, entry.actor, entry.stage) if part)
    # "--" ends an HTML comment and "<", ">" could open another: all three are written as JSON escapes.
    record = canonical(entry.to_json(), floats=True).replace(b"--", b"-\\u002d")
    record = record.replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
    head = f"## {markdown_text(title)}\n\n{markdown_text(entry.text)}\n\n"
    return head.encode("utf-8") + b"<!-- gonogo " + record + b" -->\n\n"


def parse(data: bytes, after: Entry | None = None) -> Iterator[Entry]:
    """Read the log back, checking every byte.

    Args:
        data: The whole log; or, where `after` is given, what stands behind that entry.
        after: The entry before `data`, checked by an earlier call.

    Raises:
        LogError: At the first byte that is not what was written, naming the entry and the line (counted in `data`).
    """
    position, prev, seq = 0, GENESIS, 0
    if after is not None:
        prev, seq = after.hash, after.seq
    else:
        position = min(len(PREAMBLE), len(data))
        if data[:position] != PREAMBLE[:position]:
            raise LogError(f"{LOG_NAME}: line 1: the heading was changed")
    while position < len(data):
        seq += 1
        entry, end = _one(data, position, seq, prev)
        yield entry
        position, prev = end, entry.hash


def records(data: bytes) -> Iterator[Entry]:
    """Every record in some bytes that has the form of an entry, unchecked: for showing what follows a break."""
    for found in _RECORD.finditer(data):
        try:
            yield entry_from_json(json.loads(found.group(1)))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


def _one(data: bytes, position: int, seq: int, prev: str) -> tuple[Entry, int]:
    found = _RECORD.search(data, position)
    if found is None:
        raise TornLog(f"{_where(data, position, seq)} is incomplete", position)
    try:
        entry = entry_from_json(json.loads(found.group(1)))
        written = render(entry)
        computed = _hash(entry.to_json())
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(f"{_where(data, position, seq)}: its record was changed ({safe(str(error))})") from None
    end = found.end() + 1
    if entry.hash != computed:
        raise LogError(f"{_where(data, position, seq)}: its hash does not fit its record: the record was changed")
    if entry.seq != seq or entry.prev != prev:
        why = "it does not follow the entry before it: an entry was removed, added or moved"
        raise LogError(f"{_where(data, position, seq)}: {why}")
    if data[position:end] != written:
        if data[position:] == written[: len(data) - position]:
            raise TornLog(f"{_where(data, position, seq)} is incomplete", position)
        raise LogError(f"{_where(data, position, seq)}: the readable part was changed")
    return entry, end


def _where(data: bytes, position: int, seq: int) -> str:
    line = data.count(b"\n", 0, position) + 1
    return f"{LOG_NAME}: entry {seq} (line {line})"


class TornLog(LogError):
    """The last entry was cut off while it was written.

    Attributes:
        position: Byte offset at which it begins.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def entry_from_json(record: Any) -> Entry:
    """Build an entry from its JSON form, refusing anything that is not exactly one."""
    if not isinstance(record, dict) or set(record) != {
        "seq", "time", "kind", "actor", "stage", "text", "data", "prev", "hash",
    }:  # fmt: skip
        raise ValueError("not the keys of an entry")
    for key in ("time", "actor", "stage", "text", "prev", "hash"):
        if not isinstance(record[key], str):
            raise TypeError(f"{key} is not text")
    if type(record["seq"]) is not int or not isinstance(record["data"], dict):
        raise TypeError("seq or data is of a wrong type")
    return Entry(**{**record, "kind": Kind(record["kind"])})


def read_log(run_dir: Path) -> list[Entry]:
    """All entries of a run folder's log, checked.

    A torn last entry is left out here: the writer had not finished it, so nothing that it announces was done.

    Raises:
        LogError: When the log is missing, unreadable, or was changed.
    """
    return scan(read_bytes(run_dir))[0]


def scan(data: bytes, after: Entry | None = None) -> tuple[list[Entry], TornLog | None]:
    """All whole entries, and the complaint about a torn last one if there is one.

    Args:
        data: The whole log; or, where `after` is given, what stands behind that entry.
        after: The entry before `data`.

    Raises:
        LogError: Where a whole entry was changed.
    """
    entries: list[Entry] = []
    found = parse(data, after)
    while True:
        try:
            entries.append(next(found))
        except StopIteration:
            return entries, None
        except TornLog as torn:
            return entries, torn


def read_bytes(run_dir: Path) -> bytes:
    """The log's bytes.

    Raises:
        LogError: When there is none or it cannot be read.
    """
    try:
        return (run_dir / LOG_NAME).read_bytes()
    except OSError as error:
        raise LogError(f"{run_dir / LOG_NAME}: cannot be read ({error.strerror}); is this a run folder?") from None


def check_anchor(entries: list[Entry], count: int, head: str) -> None:
    """Compare the log with the count and head that the state remembers.

    The log may be longer (the state is written after it), never shorter.

    Raises:
        LogError: When entries are missing at the end, or others stand in their place.
    """
    if len(entries) < count:
        raise LogError(
            f"{LOG_NAME}: it ends after entry {len(entries)}, but the state knows of {count}: the end was cut"
        )
    if count and entries[count - 1].hash != head:
        raise LogError(f"{LOG_NAME}: entry {count} is not the one that the state knows: the log was rewritten")


class Journal:
    """The writer of one run's log. Only the holder of the run's lock may have one.

    Args:
        run_dir: The run folder.
        clock: Gives the time of each entry.
        anchor: How many entries the state knows of, and the hash of the last of them.

    Raises:
        LogError: When the log was changed, or is shorter than the state knows. Nothing is written then.
    """

    def __init__(self, run_dir: Path, clock: Callable[[], datetime], anchor: tuple[int, str] = (0, GENESIS)) -> None:
        self._path = run_dir / LOG_NAME
        self._clock = clock
        self.entries: list[Entry] = []
        self._load(run_dir, anchor)

    def _load(self, run_dir: Path, anchor: tuple[int, str]) -> None:
        if not self._path.exists():
            check_anchor([], *anchor)
            effects.append(self._path, PREAMBLE, "log heading")
            return
        data = read_bytes(run_dir)
        if len(data) < len(PREAMBLE) and data == PREAMBLE[: len(data)]:
            effects.append(self._path, PREAMBLE[len(data) :], "log heading")
            return
        self.entries, torn = scan(data)
        check_anchor(self.entries, *anchor)
        if torn is not None:
            self._quarantine(data, torn.position)

    def _quarantine(self, data: bytes, position: int) -> None:
        """Keep a half-written last entry aside and cut it off; what it announced was never done."""
        effects.replace(self._path.with_name(f"work_log.torn-{len(self.entries) + 1}"), data[position:], "torn entry")
        with effects.effect("cut torn entry"), open(self._path, "r+b") as stream:
            stream.truncate(position)
            os.fsync(stream.fileno())

    @property
    def head(self) -> str:
        """Hash of the last entry."""
        return self.entries[-1].hash if self.entries else GENESIS

    def append(self, kind: Kind, actor: str, stage: str, text: str, data: Mapping[str, Any]) -> Entry:
        """Write one entry; when this returns it is on disk."""
        entry = make_entry(len(self.entries) + 1, self._clock(), kind, actor, stage, text, data, self.head)
        effects.append(self._path, render(entry), str(data.get("event", "entry")))
        self.entries.append(entry)
        return entry
