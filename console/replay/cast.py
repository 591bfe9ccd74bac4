"""Terminal recordings in the form asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): JSON lines.

The first line is the header, each other one `[seconds, "o", text]`: what a terminal receives, and when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from console.replay.errors import ReplayError
from console.replay.player import SPEEDS
from console.replay.recording import Recording

FRAMES_A_SECOND = 10
"""So many frames there are at most in a second of the film."""

LONGEST_FRAMES = 20_000
"""A film of more frames than this is refused: it would be of hundreds of megabytes."""

GOAL_SECONDS = 60.0
"""Without a wish the speed is the lowest at which a film takes no longer than this."""

IDLE_SECONDS = 2.0
"""A gap in which nothing was logged takes at most so long in the film."""


class Frame(NamedTuple):
    """One picture of a film.

    Attributes:
        at: When it is shown, in seconds after the film began.
        second: Which moment it shows, in seconds after the first entry.
        entries: How many entries there are at that moment.
    """

    at: float
    second: float
    entries: int


def fitting_speed(seconds: float) -> float:
    """The lowest speed at which a recording of this length is a film of a minute; the highest where none is."""
    return next((speed for speed in SPEEDS if seconds / speed <= GOAL_SECONDS), SPEEDS[-1])


def frames(recording: Recording, speed: float, idle: float = IDLE_SECONDS) -> list[Frame]:
    """The pictures of a film: whenever an entry comes, and once a second where none does.

    Args:
        recording: What is filmed.
        speed: Recorded seconds in a second of the film.
        idle: Seconds that a gap without entries takes at most.

    Raises:
        ReplayError: When there are too many.
    """
    found = []
    for frame in _frames(recording, speed, idle):
        found.append(frame)
        if len(found) > LONGEST_FRAMES:
            raise ReplayError(
                f"--export: more than {LONGEST_FRAMES} frames at speed {speed:g}; choose a higher --speed (up to 1000)"
            )
    return found


def _frames(recording: Recording, speed: float, idle: float) -> Iterator[Frame]:
    at, second = 0.0, 0.0
    count = recording.count_at(0.0)
    yield Frame(at, second, count)
    while count < len(recording):
        gap = (recording.second_of(count) - second) / speed
        if gap > idle:
            at, second = at + idle, recording.second_of(count)
        elif gap > 1.0:
            at, second = at + 1.0, second + speed
        else:
            passed = max(1 / FRAMES_A_SECOND, gap)
            at, second = at + passed, min(second + passed * speed, recording.seconds)
        count = max(count, recording.count_at(second))
        yield Frame(at, second, count)


def header(width: int, height: int, *, timestamp: int, title: str) -> str:
    """The first line.

    Args:
        width: Columns.
        height: Rows.
        timestamp: When the recorded run began, in seconds since 1970.
        title: What is shown.
    """
    data = {
        "version": 2,
        "width": width,
        "height": height,
        "timestamp": timestamp,
        "title": title,
        "env": {"TERM": "xterm-256color", "SHELL": "/bin/sh"},
    }
    return json.dumps(data, ensure_ascii=True)


def event(at: float, text: str) -> str:
    """One line of output."""
    return json.dumps([round(at, 6), "o", text], ensure_ascii=True)


class Screen:
    """Turns pictures into what a terminal must be sent: all of the first, of the others the rows that changed."""

    def __init__(self) -> None:
        self._before: Sequence[str] = ()

    def output(self, rows: Sequence[str]) -> str:
        """What to send so that the terminal shows these rows, each a text with colours; empty where nothing changed."""
        if len(self._before) != len(rows):
            parts = ["\x1b[?25l\x1b[0m\x1b[2J", *(f"\x1b[{number};1H{row}" for number, row in enumerate(rows, 1))]
        else:
            pairs = enumerate(zip(self._before, rows, strict=True), 1)
            parts = [f"\x1b[{number};1H{row}" for number, (old, row) in pairs if old != row]
        self._before = list(rows)
        return "".join(parts) + ("\x1b[0m" if parts else "")
