"""When a job may be decided on: the rules that keep a key typed in haste, or too early, from deciding anything.

Pure logic over a clock; the approval screen reports what happens and asks. Nothing here imports Textual.
"""

from __future__ import annotations

from collections.abc import Callable

GRACE_SECONDS = 0.5
"""After the shown job appeared, changed or was drawn anew, nothing can be decided for so long."""


class ApprovalGuard:
    """Knows what of a job has been shown, and since when it stands still on the screen.

    Args:
        monotonic: Seconds that only go forward.

    Attributes:
        seen_to_end: Whether the end of the job was on the screen.
        void: Why nothing can be decided here any more; empty while it can.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._still_since: float | None = None
        self._shown_since: float | None = None
        self.seen_to_end = False
        self.void = ""

    def hidden(self) -> None:
        """The job is not on the screen, or is being drawn anew: nothing can be decided."""
        self._still_since = None

    def changed(self) -> None:
        """Another job will be shown: nothing of it has been seen."""
        self.hidden()
        self._shown_since = None
        self.seen_to_end = False
        self.void = ""

    def painted(self) -> None:
        """The job is on the screen, drawn as it will stay."""
        now = self._monotonic()
        self._still_since = now
        if self._shown_since is None:
            self._shown_since = now

    def end_shown(self) -> None:
        """Its end is on the screen."""
        if self._still_since is not None:
            self.seen_to_end = True

    @property
    def shown_s(self) -> int:
        """For how many whole seconds it has been shown."""
        return 0 if self._shown_since is None else int(self._monotonic() - self._shown_since)

    def against_reject(self) -> str:
        """Why the job cannot be rejected now, in words; empty when it can."""
        if self.void:
            return self.void
        if self._still_since is None:
            return "the job is not on the screen yet"
        if self._monotonic() - self._still_since < GRACE_SECONDS:
            return "wait a moment: this has only just appeared"
        return ""

    def against_approve(self) -> str:
        """Why the job cannot be approved now, in words; empty when it can."""
        return self.against_reject() or ("" if self.seen_to_end else "read the job to its end first")


class TypingGuard:
    """Tells an answer that somebody typed from one that was pasted or came from a stuck key.

    Args:
        monotonic: Seconds that only go forward.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._first: float | None = None

    def opened(self) -> None:
        """The field was opened, empty."""
        self._first = None

    def typed(self, text: str) -> None:
        """The field holds this text now."""
        if not text:
            self._first = None
        elif self._first is None:
            self._first = self._monotonic()

    def against_enter(self) -> str:
        """Why Enter does not count yet; empty when it does."""
        if self._first is None:
            return "the field is empty"
        if self._monotonic() - self._first < GRACE_SECONDS:
            return "too fast to have been typed: nothing was decided; type it again"
        return ""
