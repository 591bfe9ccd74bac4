"""Pictures of a replay: what a change does to its look shows in the diff of a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.replay.app import ReplayApp
from console.replay.recording import open_recording
from console.replay.session import ReplaySession
from tests.console import runs
from tests.console.driving import Console

SIZES = [(80, 24), (120, 36), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", ["gonogo-dark", "gonogo-light", "no-colour"])
def test_picture(
    tmp_path: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], theme: str
) -> None:
    """The board in the middle of a release whose smoke test failed later, while the training ran."""
    if theme == "no-colour":
        monkeypatch.setenv("NO_COLOR", "1")
    run = runs.failed(tmp_path / "run")
    session = ReplaySession(open_recording(run.path))
    session.player.to(len(session.recording) * 2 // 3)
    session.show()
    app = ReplayApp(session) if theme == "no-colour" else ReplayApp(session, theme=theme)
    app.animation_level = "none"

    async def settle(pilot: Pilot[int]) -> None:
        driven = Console(app, pilot, run)
        await driven.until(lambda: len(app.screen.query("TooSmall")) == 1, "the screen is complete")
        await driven.until(lambda: app.prepared, "the log is checked")
        app.clear_notifications()
        await driven.still()

    try:
        assert snap_compare(app, terminal_size=size, run_before=settle)
    finally:
        session.close()
        run.close()
