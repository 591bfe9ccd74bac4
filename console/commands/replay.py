"""`gonogo replay`: a finished or running release as it went, from its log."""

from __future__ import annotations

import argparse
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.commands.common import DONE, REFUSED, interactive, say
from console.plain import MARKS
from console.release.journal import Entry
from console.replay.marks import KINDS
from console.replay.player import FASTEST, SLOWEST
from console.replay.recording import ForeignRecording, OwnRecording, Recording, open_recording
from console.safe_text import safe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo replay`."""
    parser.add_argument("log", type=Path, metavar="RUN_DIR|LOG", help="the folder of a release, or a work log")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--plain", action="store_true", help="print the entries, line by line, as without a terminal")
    way.add_argument("--json", action="store_true", help="print the index as JSON, for programs")
    way.add_argument("--export", type=Path, metavar="FILE.cast", help="write a film of the replay (asciicast v2)")
    parser.add_argument("--speed", type=_speed, help="recorded seconds in a second, 1 to 1000 (for --export: fitting)")
    parser.add_argument(
        "--size", type=_size, default=(100, 30), metavar="COLUMNSxROWS", help="size of the film (100x30)"
    )
    parser.add_argument("--idle", type=_idle, default=2.0, help="seconds that a gap takes at most in the film (2)")
    parser.add_argument("--force", action="store_true", help="replace the file of the film")
    parser.add_argument("--at", type=_place, metavar="ENTRY|PERCENT%", help="begin at an entry, or a part of the time")


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not SLOWEST <= speed <= FASTEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {SLOWEST:g} to {FASTEST:g}")
    return speed


def _idle(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return seconds


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (60 <= size[0] <= 400 and 18 <= size[1] <= 200):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMNSxROWS from 60x18 to 400x200")
    return size


def _place(text: str) -> tuple[str, float]:
    found = re.fullmatch(r"(\d{1,9})|(\d{1,3}(?:\.\d{1,6})?)%", text)
    if found is None or (found[2] and float(found[2]) > 100) or found[1] == "0":
        raise argparse.ArgumentTypeError(f"{text!r} is neither the number of an entry nor a part like 50%")
    return ("entry", float(found[1])) if found[1] else ("part", float(found[2]) / 100)


def run(args: argparse.Namespace) -> int:
    """Replay a log.

    Returns:
        0; 1 where the log turned out to be other than what was written; the console's own status.
    """
    recording = open_recording(args.log)
    try:
        if args.export is not None:
            return _export(recording, args)
        if args.plain or args.json or not interactive():
            return _print(recording, args.json)
        return _show(recording, args)
    finally:
        recording.close()


def _show(recording: Recording, args: argparse.Namespace) -> int:
    from console.replay.app import show
    from console.replay.session import ReplaySession

    session = ReplaySession(recording)
    if args.speed is not None:
        session.player.set_speed(args.speed, session.clock.monotonic())
    if args.at is not None:
        kind, value = args.at
        if kind == "entry":
            session.player.to(int(value) - 1)
        else:
            session.player.scrub(value)
        session.show()
    return show(session)


def _export(recording: Recording, args: argparse.Namespace) -> int:
    from console.replay import cast
    from console.replay.film import film
    from console.replay.session import ReplaySession

    speed = args.speed or cast.fitting_speed(recording.seconds)
    frames = cast.frames(recording, speed, args.idle)
    film(ReplaySession(recording), args.export, size=args.size, frames=frames, force=args.force)
    seconds = frames[-1].at if frames else 0.0
    say(f"{args.export}: {len(frames)} frames, {seconds:.0f} s at speed {speed:g}")
    return DONE


def _print(recording: Recording, as_json: bool) -> int:
    if isinstance(recording, OwnRecording):
        recording.check_all()
    if as_json:
        _print_json(recording)
    else:
        for entry in recording.entries:
            print(plain_line(entry))
        for note in recording.notes:
            say(f"gonogo replay: assumed: {note}")
        for item in recording.unplaced:
            say(f"gonogo replay: not placed: line {item.line}: {item.why}: {item.text}")
    if recording.problem:
        say(f"gonogo replay: NOT SOUND: {recording.problem}")
        return REFUSED
    return DONE


def plain_line(entry: Entry) -> str:
    """An entry in one line: number, time (UTC), kind, who, stage, what; a dash where something was not recorded."""
    time = f"{safe(entry.time[:10])} {safe(entry.time[11:19])}" if entry.time else "no time recorded   "
    where = f" [{safe(entry.stage)}]" if entry.stage else ""
    return f"{entry.seq:>4} {time} {MARKS[entry.kind]} {safe(entry.actor) or '—'}{where} {safe(entry.text)}"


def _print_json(recording: Recording) -> None:
    """One object; written piece by piece, since a log may have a million entries."""
    head: dict[str, Any] = {
        "log": str(recording.path),
        "form": recording.form,
        "entries": len(recording),
        "begin": _stamp(recording.begin),
        "seconds": round(recording.seconds, 6),
        "chain": _chain(recording),
        "problem": recording.problem,
        "notes": list(recording.notes),
        "unplaced": [item._asdict() for item in recording.unplaced],
        "marks": {kind: [position + 1 for position in recording.marks.of(kind)] for kind in KINDS},
    }
    if isinstance(recording, ForeignRecording):
        head["state_beside"] = recording.beside._asdict()
    text = json.dumps(head, ensure_ascii=True, allow_nan=False, indent=1)
    print(f'{text[:-2]},\n "index": [', end="")
    for position in range(len(recording)):
        comma = "," if position else ""
        print(f"{comma}\n  {json.dumps(_row(recording, position), ensure_ascii=True)}", end="")
    print("\n ]\n}")


def _row(recording: Recording, position: int) -> dict[str, Any]:
    entry = recording.entries[position]
    row: dict[str, Any] = {
        "seq": entry.seq,
        "second": round(recording.second_of(position), 6),
        "time": entry.time,
        "kind": str(entry.kind),
        "stage": entry.stage,
    }
    if isinstance(recording, OwnRecording):
        start, _ = recording.index.span(position)
        return {**row, "event": recording.index.event(position), "offset": start}
    return {**row, "line": recording.lines[position]} if isinstance(recording, ForeignRecording) else row


def _chain(recording: Recording) -> str:
    if not isinstance(recording, OwnRecording):
        return "none"
    return "broken" if recording.problem else "whole"


def _stamp(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
