"""A console's hold on a recording. It has no desk and no reader of the run folder, so nothing of it can write."""

from __future__ import annotations

from datetime import UTC, datetime

from console.replay.moment import READING, moment
from console.replay.player import Player
from console.replay.recording import Recording
from console.session import Clock, Session
from console.snapshot import Snapshot

WHY = "a replay: what you see is what the log held at that moment"


class ReplaySession(Session):
    """A session whose present is a moment of a recording.

    Args:
        recording: What is shown; the session closes it.
        clock: The clocks; only the monotonic one is used.

    Attributes:
        recording: The recording.
        player: Where in it we are.
        snapshot: The run at that moment.
    """

    def __init__(self, recording: Recording, clock: Clock | None = None) -> None:
        # On purpose not the constructor of Session: that would read the run folder, which tells of the present.
        self.recording = recording
        self.player = Player(recording)
        self.run_dir = recording.path.parent
        self.desk = None
        self.read_only_because = WHY
        self.clock = Clock(self._now, (clock or Clock()).monotonic)
        self.snapshot = moment(recording, self.player.count)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.player.now, UTC)

    def poll(self) -> Snapshot:
        """The run at the moment where the player is."""
        return moment(self.recording, self.player.count)

    @property
    def behind(self) -> bool:
        """Whether the snapshot lacks what the recording can tell by now."""
        return READING in self.snapshot.unrecorded.values() and self.recording.reaches(self.player.count)

    def show(self) -> None:
        """Make the snapshot that of the moment where the player is."""
        self.snapshot = self.poll()

    def close(self) -> None:
        """Close the log."""
        self.recording.close()
