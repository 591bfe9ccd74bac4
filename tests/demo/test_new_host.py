"""A release on a cluster that nobody knows yet: the console asks, and what is answered decides whether it begins."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from console.app import GonogoApp
from console.commands.conducting import _conduct, utc
from console.commands.demo import prepare_cluster, release_text
from console.release.folder import read_state
from console.release.journal import Kind
from console.release.opening import Opened, start_run
from console.screen_operator import ScreenOperator
from console.screens.login import HostKey
from console.session import open_session
from tests.console.driving import send
from tests.console.runs import Time
from tests.demo.test_demo import ended


@dataclass
class Release:
    """A release in an open console, at the question for its cluster's key."""

    opened: Opened
    known_hosts: Path
    app: GonogoApp
    pilot: Pilot[int]
    time: Time

    async def until(self, condition, what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"in vain: {what}"
            await self.pilot.pause()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def release(tmp_path: Path) -> AsyncIterator[Release]:
    place = tmp_path / "cluster"
    with ended(place):
        clusters = prepare_cluster(place)
        known_hosts = tmp_path / "mine" / "known_hosts"
        data = json.loads(clusters.read_text())
        data["clusters"]["demo"]["gonogo"]["known_hosts"] = str(known_hosts)
        clusters.write_text(json.dumps(data))
        (tmp_path / "release.yaml").write_text(release_text("dflash2", ""))
        opened = start_run(
            tmp_path / "release.yaml", run_dir=tmp_path / "run", clusters_file=clusters, approve="each", clock=utc
        )
        clock, operator = Time(), ScreenOperator()
        session = open_session(tmp_path / "run", clock=clock.clock)
        app = operator.app = GonogoApp(session, lambda: _conduct(opened, None, lambda text: None, operator))
        try:
            async with app.run_test(size=(100, 30)) as pilot:
                made = Release(opened, known_hosts, app, pilot, clock)
                await made.until(lambda: isinstance(app.screen, HostKey) and app.screen.query("Input"), "it is asked")
                await pilot.pause()
                yield made
        finally:
            session.close()


async def test_a_key_that_is_taken_lets_the_release_begin_and_stands_in_its_log(tmp_path: Path) -> None:
    async with release(tmp_path) as made:
        send(made.pilot, *"trust")
        await made.pilot.pause()
        made.time.go(3)
        send(made.pilot, "enter")
        await made.until(lambda: made.opened.writer.state.setup, "the cluster was looked at")
        (entry,) = [entry for entry in made.opened.writer.entries if entry.kind is Kind.HUMAN_INTERVENTION]
        assert entry.data["event"] == "host_key_accepted"
        assert entry.data["fingerprint"] in entry.text
        assert made.known_hosts.read_text().count("\n") == 1
        made.app._leave(True)
        await made.until(lambda: made.app._exit, "the console is left")


async def test_a_key_that_is_refused_stops_the_release_with_a_clear_line(tmp_path: Path) -> None:
    async with release(tmp_path) as made:
        send(made.pilot, "escape")
        await made.until(lambda: made.app._exit_status is not None, "the conductor has ended")
        assert made.app._exit_status == 4
    state = read_state(tmp_path / "run")
    assert state is not None
    assert "was not accepted" in state.stopped
    assert "gonogo cluster trust" in state.stopped
    assert not made.known_hosts.exists()
