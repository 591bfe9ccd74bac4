"""A player over a recording: where in the log we are, and how fast that moves. It has no clock of its own."""

from __future__ import annotations

import math

from console.replay.recording import Recording

SLOWEST, FASTEST = 1.0, 1000.0
SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""The speeds that "faster" and "slower" go through."""


class Player:
    """Plays a recording.

    Args:
        recording: What is played.

    Attributes:
        second: Where on the time line we are, in seconds after the first entry.
        count: How many entries there are up to here. Several entries may have one time, so this is not in `second`.
        speed: Recorded seconds in one second of the clock, 1 to 1000.
        playing: Whether it moves by itself.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.second = 0.0
        self.count = 1 if len(recording) else 0
        self.speed = SLOWEST
        self.playing = False
        self._clock = 0.0

    @property
    def now(self) -> float:
        """The recorded moment, in seconds since 1970."""
        return self.recording.begin + self.second

    @property
    def at_end(self) -> bool:
        """Whether every entry was played."""
        return self.count >= len(self.recording) and self.second >= self.recording.seconds

    @property
    def fraction(self) -> float:
        """Where on the time line we are, from 0 to 1."""
        whole = self.recording.seconds
        return self.second / whole if whole > 0 else (1.0 if self.at_end else 0.0)

    def play(self, clock: float) -> None:
        """Begin to move; from the end, begin again.

        Args:
            clock: Seconds of a clock that only goes forward.
        """
        if self.at_end:
            self.to_begin()
        self.playing, self._clock = True, clock

    def pause(self) -> None:
        """Stand still."""
        self.playing = False

    def set_speed(self, speed: float, clock: float) -> None:
        """Move at another speed from now on.

        Raises:
            ValueError: When it is no number from 1 to 1000.
        """
        if not (math.isfinite(speed) and SLOWEST <= speed <= FASTEST):
            raise ValueError(f"speed {speed}: expected a number from {SLOWEST:g} to {FASTEST:g}")
        self.advance(clock)
        self.speed = speed

    def faster(self, clock: float) -> None:
        """The next higher of the speeds."""
        self.set_speed(next((speed for speed in SPEEDS if speed > self.speed), FASTEST), clock)

    def slower(self, clock: float) -> None:
        """The next lower of the speeds."""
        self.set_speed(next((speed for speed in reversed(SPEEDS) if speed < self.speed), SLOWEST), clock)

    def advance(self, clock: float) -> bool:
        """Move on to where we are at a time of the clock; returns whether anything moved."""
        if not self.playing:
            return False
        passed, self._clock = max(0.0, clock - self._clock), max(clock, self._clock)
        self.second = min(self.recording.seconds, self.second + passed * self.speed)
        # Entries that were stepped over already stay, although their time is the same as that of the next.
        self.count = max(self.count, self.recording.count_at(self.second))
        if self.at_end:
            self.playing = False
        return passed > 0

    def to(self, position: int) -> None:
        """Go to the moment of an entry, that entry being the last one shown."""
        last = len(self.recording) - 1
        if last < 0:
            return
        position = max(0, min(position, last))
        self.count = position + 1
        self.second = self.recording.second_of(position)

    def step(self, entries: int) -> None:
        """Go some entries on, or back where the number is negative; it stands still from then on."""
        self.pause()
        self.to(self.count - 1 + entries)

    def to_begin(self) -> None:
        """Go to the first entry."""
        self.to(0)

    def to_end(self) -> None:
        """Go to the last entry."""
        self.to(len(self.recording) - 1)

    def scrub(self, fraction: float) -> None:
        """Go to a part of the time line, 0 to 1; what is outside is taken for the nearer end."""
        fraction = max(0.0, min(1.0, fraction)) if math.isfinite(fraction) else 0.0
        self.second = self.recording.seconds * fraction
        found = self.recording.count_at(self.second)
        self.count = len(self.recording) if fraction >= 1.0 else max(found, min(1, len(self.recording)))

    def seek(self, second: float, count: int) -> None:
        """Go to a moment at which a number of entries is there.

        Args:
            second: Seconds after the first entry.
            count: How many entries; at least one, at most all.
        """
        self.second = max(0.0, min(second, self.recording.seconds))
        self.count = max(min(1, len(self.recording)), min(count, len(self.recording)))

    def jump(self, kind: str, forward: bool) -> bool:
        """Go to the next or previous mark of a kind, and stand still there.

        Returns:
            Whether there is one; if not, nothing moved.
        """
        marks, here = self.recording.marks, self.count - 1
        found = marks.after(kind, here) if forward else marks.ahead(kind, here)
        if found is None:
            return False
        self.pause()
        self.to(found)
        return True
