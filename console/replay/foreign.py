"""Work logs of other programs that follow the ACTION / HUMAN_INTERVENTION convention, in whatever shape.

The convention fixes two words and a file name (`work_log.md`), no layout. So a log is read line by line: an item of a
list, a heading, a row of a table or a plain line that says ACTION or HUMAN_INTERVENTION is an entry, and what of it
looks like a time stamp or a stage is taken for that. What is no entry and belongs to none is kept in a list of its own
with the reason: nothing is left out silently. The same holds for what was assumed, such as a time zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from console.release.journal import Entry, Kind
from console.replay.stamps import Stamp, find_stamp, of_day
from console.safe_text import decode

LONGEST_BYTES = 256_000_000
"""A foreign log longer than this is refused: it is held in memory whole."""

_KIND = re.compile(r"(?<![A-Za-z0-9_])(ACTION|HUMAN[_ -]INTERVENTION)(?![A-Za-z0-9_])")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)")
_ROW = re.compile(r" {0,3}\|(.*)\|?[ \t]*$")
_RULE = re.compile(r"[ \t|:=*_-]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_COMMENT_OPEN, _COMMENT_CLOSE = "<!--", "-->"
_NAMED = re.compile(r"\b(stage|actor|by)\s*[:=]\s*[`*\"']*([\w.:@/-]+)[`*\"']*", re.IGNORECASE)
_BRACKETED = re.compile(r"[\[(]\s*`?([A-Za-z][\w .:/-]{0,38}?)`?\s*[\])]")
_SEPARATORS = " \t|·•—–:;,>-*_`[]()"
_PARTS = re.compile(r"\s+[|·•—–]\s*|\s+--?\s+|\s*[|:]\s+")

STAGES = ("setup", "stage_target", "train", "freeze", "bench", "closeout")
"""Stage names of the flow; they are recognised anywhere between an entry's separators."""


class Unplaced(NamedTuple):
    """A line that is no part of any entry.

    Attributes:
        line: Its number, from 1.
        text: What stands there, as it came.
        why: Why it could not be placed.
    """

    line: int
    text: str
    why: str


class ForeignLog(NamedTuple):
    """A log of another program.

    Attributes:
        entries: Its entries in the order in which they happened; `hash`, `prev` and `data` are empty.
        times: Seconds since 1970 of each, None where it has no time stamp.
        lines: Line at which each begins.
        unplaced: Lines that are part of no entry.
        notes: What was assumed.
    """

    entries: list[Entry]
    times: list[float | None]
    lines: list[int]
    unplaced: list[Unplaced]
    notes: list[str]


class _Draft:
    """An entry that is being read."""

    def __init__(self, line: int, kind: Kind, stamp: Stamp | None, stage: str, actor: str, text: str) -> None:
        self.line, self.kind, self.stamp, self.stage, self.actor = line, kind, stamp, stage, actor
        self.text = [text] if text else []


def parse(data: bytes, stages: Sequence[str] = ()) -> ForeignLog:
    """Read a log of another program.

    Args:
        data: Its bytes.
        stages: Names of stages beside those of the flow, such as a state file names.
    """
    lines = decode(data).removeprefix("\ufeff").split("\n")
    reader = _read(lines, _Reader((*STAGES, *stages)))
    opened = reader.never_closed
    if opened is None:
        return _finish(reader)
    # Taken literally, a block that is opened and never closed would hide every entry behind it.
    log = _finish(_read(lines, _Reader((*STAGES, *stages), opened)))
    note = f"line {opened} begins a code block or comment that never ends; what follows is read as if it did not"
    return log._replace(notes=[*log.notes, note])


def _read(lines: Sequence[str], reader: _Reader) -> _Reader:
    for number, line in enumerate(lines, 1):
        reader.take(number, line.rstrip("\r"))
    return reader


class _Reader:
    """Goes through the lines and remembers what stands over them.

    Args:
        stages: Names of stages.
        no_block_from: From this line on nothing begins a code block or a comment; None for nowhere.
    """

    def __init__(self, stages: Sequence[str], no_block_from: int | None = None) -> None:
        self._no_block_from = no_block_from
        self._opened_at = 0
        self._stages = {name.casefold(): name for name in stages}
        self.drafts: list[_Draft] = []
        self.unplaced: list[Unplaced] = []
        self.assumed_day = False
        self._open: _Draft | None = None
        self._fence = ""
        self._comment = False
        self._day: datetime | None = None
        self._stage = ""
        self._columns: list[str] | None = None
        self._in_table = False
        self._under_heading = False

    @property
    def never_closed(self) -> int | None:
        """Line of the code block or comment that is still open; None where none is."""
        return self._opened_at if self._fence or self._comment else None

    def take(self, number: int, line: str) -> None:
        """Take up one line."""
        if self._literal(number, line) or not line.strip():
            self._in_table = self._in_table and bool(line.strip())
            return
        heading, row, item = _HEADING.match(line), _ROW.match(line), _ITEM.match(line)
        if row is not None and "|" in row[1]:
            self._row(number, line, [cell.strip() for cell in row[1].rstrip(" \t|").split("|")])
            return
        self._in_table = False
        if heading is not None:
            self._heading(number, line, heading[2])
        elif _RULE.match(line):
            self._open = None
        elif (found := _KIND.search(line)) is not None and self._begins(line, found, item is not None):
            self._begin(number, item[1] if item is not None else line)
        elif self._open is not None and (item is None or line[:1] in " \t" or self._belongs(line)):
            self._open.text.append(line.strip())
        else:
            self._lay_aside(number, line, item is not None)

    def _literal(self, number: int, line: str) -> bool:
        """Fenced code and comments are text of the entry above, whatever stands in them."""
        fence = _FENCE.match(line)
        if not self._fence and not self._comment:
            if self._no_block_from is not None and number >= self._no_block_from:
                return False
            self._opened_at = number
        if self._fence:
            self._fence = "" if fence is not None and fence[1] == self._fence else self._fence
        elif self._comment:
            self._comment = _COMMENT_CLOSE not in line
        elif fence is not None:
            self._fence = fence[1]
        elif line.lstrip().startswith(_COMMENT_OPEN):
            self._comment = _COMMENT_CLOSE not in line
        else:
            return False
        if self._open is not None:
            self._open.text.append(line.strip())
        elif line.strip() and fence is None:
            self.unplaced.append(Unplaced(number, line, "a code block or comment that belongs to no entry"))
        return True

    def _begins(self, line: str, found: re.Match[str], item: bool) -> bool:
        """Whether a line with one of the two words begins an entry, rather than speaking of one in a sentence."""
        if line[:1] in " \t" and self._open is not None and not item:
            return False
        before = line[: found.start()]
        stamp = find_stamp(before)
        rest = before if stamp is None else before[: stamp.start] + before[stamp.end :]
        return len(re.findall(r"[A-Za-z]{2,}", rest)) <= (6 if item or stamp is not None else 1)

    def _belongs(self, line: str) -> bool:
        """Whether an item without a word of the convention goes with the entry above: details under a heading."""
        return self._open is not None and self._under_heading and find_stamp(line) is None

    def _heading(self, number: int, line: str, text: str) -> None:
        if _KIND.search(text) is not None:
            self._begin(number, text)
            self._under_heading = True
            return
        self._open = None
        stamp = find_stamp(text)
        if stamp is not None and stamp.moment is not None:
            self._day = stamp.moment
        stage = self._named_stage(text)
        if stage:
            self._stage = stage
        elif stamp is None and len(line) - len(line.lstrip("#")) <= 2:
            self._stage = ""
        if stamp is None and not stage and self.drafts:
            self.unplaced.append(
                Unplaced(number, line, "a heading without a date, a stage or a word of the convention")
            )

    def _row(self, number: int, line: str, cells: list[str]) -> None:
        if not self._in_table:
            self._columns = None
        self._in_table = True
        if all(_RULE.match(cell) for cell in cells):
            return
        if _KIND.search(line) is None:
            names = [cell.strip("*_` ").casefold() for cell in cells]
            if self._columns is None and find_stamp(line) is None:
                self._columns = names
                self._open = None
            else:
                self._open = None
                self.unplaced.append(Unplaced(number, line, "a row without ACTION or HUMAN_INTERVENTION"))
            return
        self._begin_row(number, cells)

    def _begin_row(self, number: int, cells: list[str]) -> None:
        columns = self._columns or []
        named = dict(zip(columns, cells, strict=False))
        kind_cell = next(index for index, cell in enumerate(cells) if _KIND.search(cell))
        stage = next((named[name] for name in ("stage", "phase", "step") if named.get(name)), "").strip("*_`[]() ")
        actor = next((named[name] for name in ("actor", "who", "by", "operator") if named.get(name)), "")
        if not stage:
            stage = next((name for cell in cells if (name := self._stages.get(cell.strip("*_`[]() ").casefold()))), "")
        text_names = ("text", "what", "description", "details", "entry", "message", "note", "action", "event")
        texts = [named[name] for name in text_names if named.get(name) and not _is_kind(named[name])]
        stamp = next((found for cell in cells if (found := find_stamp(cell)) is not None), None)
        if not texts:
            rest = [cell for index, cell in enumerate(cells) if index != kind_cell]
            texts = [cell for cell in rest if cell and cell not in (stage, actor) and not _only_stamp(cell)]
        word = _KIND.search(cells[kind_cell])
        assert word is not None
        self._add(number, word[1], stamp, stage or self._stage, actor, " ".join(texts))
        self._open = None

    def _begin(self, number: int, text: str) -> None:
        """An entry in one line: cut out its kind, its time and its stage; the rest is what was done."""
        self._under_heading = False
        found = _KIND.search(text)
        assert found is not None
        head, tail = text[: found.start()], text[found.end() :]
        stamp = find_stamp(head)
        if stamp is not None:
            head = head[: stamp.start] + " " + head[stamp.end :]
        else:
            stamp = find_stamp(tail[:60])
            if stamp is not None:
                tail = tail[: stamp.start] + " " + tail[stamp.end :]
        named = {name.casefold(): value for name, value in _NAMED.findall(head + " " + tail[:200])}
        stage, head, tail = self._stage_of(head, tail, named.get("stage", ""))
        words = " ".join(part for part in (_trimmed(head), _trimmed(tail)) if part)
        self._add(number, found[1], stamp, stage or self._stage, named.get("actor") or named.get("by") or "", words)

    def _stage_of(self, head: str, tail: str, named: str) -> tuple[str, str, str]:
        """The stage of an entry, and what is left of the text before and behind its kind."""
        if named:
            pattern = re.compile(rf"[\[(]?\bstage\s*[:=]\s*[`*\"']*{re.escape(named)}[`*\"']*[\])]?", re.IGNORECASE)
            return self._stages.get(named.casefold(), named), pattern.sub(" ", head), pattern.sub(" ", tail, count=1)
        bracketed = _BRACKETED.search(head) or _BRACKETED.match(tail.lstrip("*_` \t:—–-"))
        if bracketed is not None:
            whole = bracketed[0]
            name = bracketed[1].strip()
            return self._stages.get(name.casefold(), name), head.replace(whole, " ", 1), tail.replace(whole, " ", 1)
        for index, text in enumerate((head, tail)):
            parts = _PARTS.split(text)
            for part in parts[: len(parts) if index == 0 else 3]:
                name = self._stages.get(_trimmed(part).casefold(), "")
                if name:
                    left = text.replace(part, " ", 1)
                    return (name, left, tail) if index == 0 else (name, head, left)
        return "", head, tail

    def _named_stage(self, text: str) -> str:
        for word in re.findall(r"[A-Za-z][\w-]*", text):
            name = self._stages.get(word.casefold())
            if name:
                return name
        return ""

    def _add(self, number: int, word: str, stamp: Stamp | None, stage: str, actor: str, text: str) -> None:
        kind = Kind.ACTION if word == "ACTION" else Kind.HUMAN_INTERVENTION
        if stamp is not None and stamp.moment is None:
            moment = of_day(stamp, self._day)
            stamp = stamp._replace(moment=moment, zoned=self._day is not None and self._day.tzinfo is not None)
            self.assumed_day = self.assumed_day or moment is not None
        elif stamp is not None:
            self._day = stamp.moment
        self._open = _Draft(number, kind, stamp, stage, actor, text)
        self.drafts.append(self._open)

    def _lay_aside(self, number: int, line: str, item: bool) -> None:
        self._open = None
        if find_stamp(line) is not None:
            why = "it has a time, but neither ACTION nor HUMAN_INTERVENTION"
        elif item:
            why = "an item without ACTION or HUMAN_INTERVENTION"
        elif not self.drafts:
            why = "text before the first entry"
        else:
            why = "text that belongs to no entry"
        self.unplaced.append(Unplaced(number, line, why))


def _is_kind(cell: str) -> bool:
    found = _KIND.search(cell)
    return found is not None and len(cell) - len(found[0]) <= 6


def _only_stamp(cell: str) -> bool:
    stamp = find_stamp(cell)
    return stamp is not None and stamp.end - stamp.start >= len(cell) - 4


def _trimmed(text: str) -> str:
    """A piece of an entry without the signs that stood between it and its neighbours."""
    return text.strip().lstrip(_SEPARATORS).rstrip(" \t|·•—–:;,-*_`").strip()


def _finish(reader: _Reader) -> ForeignLog:
    drafts, notes = reader.drafts, list[str]()
    moments = [draft.stamp.moment for draft in drafts if draft.stamp is not None and draft.stamp.moment is not None]
    falling = sum(1 for first, second in pairwise(moments) if second < first)
    if falling * 2 > max(1, len(moments) - 1) and len(moments) > 1:
        drafts = drafts[::-1]
        notes.append("the log stands newest first; it is replayed oldest first")
    elif falling:
        notes.append(f"{falling} time stamps are earlier than the one before; the order of the log was kept")
    zoneless = sum(1 for draft in drafts if draft.stamp is not None and draft.stamp.moment and not draft.stamp.zoned)
    if zoneless:
        notes.append(f"{zoneless} time stamps name no time zone and are taken as UTC")
    if reader.assumed_day:
        notes.append("times of day without a date are taken to be of the date above them")
    dateless = [draft for draft in drafts if draft.stamp is None or draft.stamp.moment is None]
    if dateless:
        notes.append(
            f"{len(dateless)} entries have no time that can be placed (the first at line {dateless[0].line}); "
            "they stand where the log has them, at the time of the entry before"
        )
    entries, times = [], list[float | None]()
    for seq, draft in enumerate(drafts, 1):
        moment = draft.stamp.moment if draft.stamp is not None else None
        time = "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
        text = " ".join(draft.text)
        entries.append(Entry(seq, time, draft.kind, draft.actor, draft.stage, text, {}, "", ""))
        times.append(None if moment is None else moment.timestamp())
    return ForeignLog(entries, times, [draft.line for draft in drafts], reader.unplaced, notes)
