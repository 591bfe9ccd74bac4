"""Makes the pictures in docs/images from the running console: `make screenshots`.

Without arguments two releases of the demo are made: of one the jobs are approved up to the smoke test, and board,
approval and log show it while that job waits for the operator; the other goes to its end, for plots and replay. The
list of releases has both. Other run folders can be named instead. The pictures hold no path, account or host of the
machine they are made on: a run of the demo is retold with other names (`retelling`), and a picture in which something
of this machine is found all the same is not written.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import html
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from retelling import Names, retell
from textual.pilot import Pilot

from console.app import GonogoApp
from console.fleet.app import FleetApp
from console.fleet.reading import Fleet
from console.fleet.session import FleetSession
from console.release import deciding, folder, queue, requests
from console.replay.app import ReplayApp
from console.replay.recording import open_recording
from console.replay.session import ReplaySession
from console.screens.approval import Approval
from console.session import Clock, Session, open_session

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SIZE = (120, 36)
RUN_NAME, FINISHED_NAME = "tiny-dflash2", "tiny-dflash2-first"
WAITS, NOTED = "004-smoke-1", "003-train-1"
"""The job of the demo that waits in the pictures: by then there is something to see; and the one before it."""

NOTE = "the smoke test decides whether this head is worth a longer training"
"""What the operator of the pictures has to say, so that they show an intervention."""

DEMO_SECONDS = 300.0
DRAW_SECONDS = 30.0
SHOWN_AFTER = timedelta(seconds=2)
"""So long after the conductor's last word the pictures are made, by the clock that they show."""


class PictureError(Exception):
    """No pictures can be made. One line: why, and what to do."""


@contextmanager
def demo_run(place: Path) -> Iterator[Path]:
    """A release of the demo, conducted for as long as this lasts, with one job waiting for the operator."""
    from backends.sandbox import lifecycle

    run_dir = place / RUN_NAME
    command = [sys.executable, "-m", "console", "demo", "--headless", "--run-dir", str(run_dir)]
    with open(place / "demo.out", "w+b") as output:
        demo = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            _approve_until(run_dir, WAITS, demo, place / "demo.out")
            yield run_dir
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait()
            lifecycle.stop(run_dir.with_name(f"{RUN_NAME}.cluster"))


def finish_run(place: Path) -> Path:
    """A release of the demo that went to its end, its jobs approved by its own rule.

    Raises:
        PictureError: When it ends with another verdict than DRAFTER_READY.
    """
    from backends.sandbox import lifecycle

    run_dir = place / FINISHED_NAME
    command = [sys.executable, "-m", "console", "demo", "--headless", "--approve-submissions", "none"]
    try:
        ended = subprocess.run(
            [*command, "--run-dir", str(run_dir)],
            check=False,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEMO_SECONDS,
        )
    finally:
        lifecycle.stop(run_dir.with_name(f"{FINISHED_NAME}.cluster"))
    if ended.returncode != 0:
        raise PictureError(f"the demo ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-500:]}")
    return run_dir


def _approve_until(run_dir: Path, last: str, demo: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + DEMO_SECONDS
    while time.monotonic() < deadline:
        if demo.poll() is not None:
            raise PictureError(f"the demo ended before {last} was proposed: {output.read_text()[-500:]}")
        if last in str(folder.read_live(run_dir).get("waiting")):
            return
        for name in queue.ids(run_dir):
            proposal = queue.load(run_dir, name)
            if name != last and queue.decision_of(proposal) is None:
                _approve(run_dir, proposal)
                if name == NOTED:
                    requests.ask(run_dir, "note", folder.account(), NOTE, time=datetime.now(UTC))
        time.sleep(0.2)
    raise PictureError(f"the demo did not propose {last} within {DEMO_SECONDS:.0f} s")


def _approve(run_dir: Path, proposal: queue.Proposal) -> None:
    stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    operator = folder.account()
    deciding.decide(
        run_dir, queue.Decision(proposal.id, proposal.digest, queue.APPROVED, operator, "", stamp, "make screenshots")
    )


def demo_names(run_dir: Path) -> Names:
    """Other names for what a run of the demo knows of this machine."""
    cluster = run_dir.with_name(f"{run_dir.name}.cluster")
    account = folder.account()
    parts = {
        f"{cluster}/home": "/home/operator",
        str(cluster): "/home/operator/.cluster",
        str(run_dir.parent): "/home/operator",
        sys.executable: "/usr/bin/python3",
        f"operator:{account}": "operator:alice",
    }
    return Names(parts, {account: "alice", socket.gethostname(): "login"})


def traces() -> list[str]:
    """Texts by which a picture would show something of this machine."""
    found = {str(Path.home()), str(ROOT), sys.prefix, tempfile.gettempdir(), f"operator:{getpass.getuser()}"}
    return sorted(text for text in found if len(text) > 1)


def refuse_traces(svg: str, name: str) -> None:
    """Refuse a picture that shows something of this machine.

    Raises:
        PictureError: Naming the picture and what is in it.
    """
    text = _text(svg)
    for trace in traces():
        # A path may go on in the next row, behind the mark for that.
        if trace in text or trace in re.sub(r" *↪ *", "", text):
            raise PictureError(f"{name}: {trace} of this machine is in the picture; it was not written")


def _text(svg: str) -> str:
    """The words of a picture."""
    return html.unescape("".join(re.findall(r"<text [^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")


async def _until(pilot: Pilot[int], condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DRAW_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise PictureError(f"waited in vain for {DRAW_SECONDS:.0f} s: {what}")
        await pilot.pause(0.02)


async def _still(pilot: Pilot[int]) -> str:
    """The screen once nothing on it changes any more."""
    pilot.app.clear_notifications()
    before, now = "", pilot.app.export_screenshot()
    while before != now:
        await pilot.pause(0.1)
        before, now = now, pilot.app.export_screenshot()
    return now


async def _board(pilot: Pilot[int]) -> None:
    """The board as it opens."""


async def _log(pilot: Pilot[int]) -> None:
    await pilot.press("4")


async def _approval(pilot: Pilot[int]) -> None:
    await pilot.press("w", "enter")
    await _until(pilot, lambda: isinstance(pilot.app.screen, Approval), "the approval screen is open")
    screen = pilot.app.screen
    assert isinstance(screen, Approval)
    await _until(pilot, lambda: screen.guard.shown_s >= 1, "the job is on the screen for a moment")
    screen.update_view()


async def _plots(pilot: Pilot[int]) -> None:
    await pilot.press("p")
    await _until(pilot, lambda: "SHA-256" in _text(pilot.app.export_screenshot()), "the plots are drawn")
    await _until(pilot, lambda: pilot.app.screen.query("TooSmall"), "the screen is complete")


PICTURES: dict[str, Callable[[Pilot[int]], Awaitable[None]]] = {"board": _board, "approval": _approval, "log": _log}
"""Of the run that waits."""


async def picture(session: Session, act: Callable[[Pilot[int]], Awaitable[None]]) -> str:
    """One screen of the console on a run, as SVG."""
    app = GonogoApp(session)
    app.animation_level = "none"
    async with app.run_test(size=SIZE) as pilot:
        await _until(pilot, lambda: session.snapshot.log.read and not session.snapshot.log.more, "the log is read")
        await _until(pilot, lambda: app.screen.query("TooSmall"), "the board is complete")
        await act(pilot)
        return await _still(pilot)


async def replay_picture(run_dir: Path) -> str:
    """A replay, two thirds through."""
    session = ReplaySession(open_recording(run_dir))
    session.player.to(len(session.recording) * 2 // 3)
    session.show()
    app = ReplayApp(session)
    app.animation_level = "none"
    try:
        async with app.run_test(size=SIZE) as pilot:
            await _until(pilot, lambda: app.screen.query("TooSmall"), "the screen is complete")
            await _until(pilot, lambda: app.prepared, "the log is checked")
            return await _still(pilot)
    finally:
        session.close()


async def fleet_picture(place: Path, now: datetime) -> str:
    """The list of all releases in a folder, as if it were the operator's."""
    session = FleetSession([place], read_only=True, clock=Clock(now=lambda: now))
    moved = _elsewhere(session.look(), place)
    session.look = lambda: moved  # type: ignore[method-assign]
    app = FleetApp(session)
    app.animation_level = "none"
    async with app.run_test(size=SIZE) as pilot:
        await _until(pilot, lambda: session.read, "the folders are read")
        await _until(pilot, lambda: app.screen.query("TooSmall"), "the screen is complete")
        return await _still(pilot)


def _elsewhere(fleet: Fleet, place: Path) -> Fleet:
    found = []
    for item in fleet.releases:
        said = item.said.replace(str(place), "/home/operator")
        found.append(item._replace(path=Path("/home/operator") / item.path.relative_to(place), said=said))
    return fleet._replace(releases=tuple(found))


def _now(run_dir: Path) -> datetime:
    """When a run is shown: shortly after its conductor's last word."""
    state = folder.read_state(run_dir)
    stamp = folder.read_live(run_dir).get("at") or (state.updated_at if state is not None else "")
    return datetime.fromisoformat(stamp) + SHOWN_AFTER if stamp else datetime.now(UTC)


def _in_console(run_dir: Path, act: Callable[[Pilot[int]], Awaitable[None]], *, waits: bool = False) -> str:
    now = _now(run_dir)
    session = open_session(run_dir, clock=Clock(now=lambda: now))
    try:
        return "" if waits and not session.poll().waiting else asyncio.run(picture(session, act))
    finally:
        session.close()


def make_pictures(waiting: Path, finished: Path) -> dict[str, str]:
    """The pictures by name. Where no job waits, there is none of an approval.

    Args:
        waiting: The run of board, approval and log.
        finished: The run of plots and replay; it may be the same. The list has all runs beside the first.
    """
    state = folder.read_state(waiting)
    # A run that is not over is conducted in the pictures, as it was when its conductor last spoke.
    over = state is not None and state.verdict is not None
    conductor = None if over else folder.Lock(waiting, "conductor")
    try:
        found = {name: _in_console(waiting, act, waits=name == "approval") for name, act in PICTURES.items()}
        found["plots"] = _in_console(finished, _plots)
        found["replay"] = asyncio.run(replay_picture(finished))
        found["fleet"] = asyncio.run(fleet_picture(waiting.parent, _now(waiting)))
    finally:
        if conductor is not None:
            conductor.close()
    found = {name: svg for name, svg in found.items() if svg}
    for name, svg in found.items():
        refuse_traces(svg, name)
    return found


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(prog="docs/screenshots.py", description=__doc__)
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="this run instead of a new run of the demo")
    parser.add_argument("--finished", type=Path, metavar="DIR", help="this run for plots and replay; else --run-dir's")
    parser.add_argument("--into", type=Path, metavar="DIR", default=IMAGES, help="folder for the pictures")
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as place:
            found = make_pictures(*_retold(args.run_dir, args.finished, Path(place)))
    except (PictureError, folder.FolderError, queue.QueueError) as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return 1
    args.into.mkdir(parents=True, exist_ok=True)
    for name, svg in found.items():
        (args.into / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
        sys.stdout.write(f"{args.into / name}.svg\n")
    return 0


def _retold(run_dir: Path | None, finished: Path | None, place: Path) -> tuple[Path, Path]:
    """The runs to show: given ones, or runs of the demo, either with other names."""
    if run_dir is None:
        with demo_run(place) as made:
            waiting = _retell(made, place)
        return waiting, _retell(finished.absolute() if finished else finish_run(place), place)
    waiting = _retell(run_dir.absolute(), place)
    return waiting, waiting if finished is None else _retell(finished.absolute(), place)


def _retell(run_dir: Path, place: Path) -> Path:
    retold = place / "retold" / run_dir.name
    retell(run_dir, retold, demo_names(run_dir))
    # As they were read: the log knows them by their digests, and a picture shows numbers of them only.
    if (run_dir / "results").is_dir():
        shutil.copytree(run_dir / "results", retold / "results", dirs_exist_ok=True)
    return retold


if __name__ == "__main__":
    sys.exit(main())
