"""What is said where a log cannot be replayed."""

from __future__ import annotations

from console.release.folder import FolderError


class ReplayError(FolderError):
    """A log cannot be replayed. One line: which file, what was expected, what to do."""
