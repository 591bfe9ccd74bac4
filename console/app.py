"""The console as a Textual app: it shows a run, follows its changes, and lets the operator decide.

It knows nothing of SSH or Slurm. It reads the run folder, and writes only through the session's desk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual.app import App
from textual.screen import Screen
from textual.worker import Worker, WorkerState

import themes
from console import starting
from console.notifying import notification, title
from console.safe_text import safe
from console.screens.base import Area, bindings
from console.screens.board import Board
from console.screens.taking_along import TakingAlong
from console.session import Session, open_session
from console.settings import Settings, load
from console.snapshot import Snapshot
from console.widgets.header import Conducting

if TYPE_CHECKING:
    from console.screen_operator import ScreenOperator

REFRESH_SECONDS = 0.25
"""At most so often is the screen drawn again because files changed."""

LOOK_SECONDS = 1.0
"""So often we look at the files even when the file system told us nothing (network file systems never do)."""

STOP_SECONDS = 15.0
"""For so long we wait for the conductor to stop cleanly."""

WAITING, INTERRUPTED = 5, 130
"""Exit statuses of a console that was left while its conductor ran: a job waited for the operator, or not."""

StartConductor = Callable[[], Awaitable[int]]


def _area(name: str) -> Screen[Any]:
    """Make one of the areas other than the board, when it is shown for the first time."""
    if name == "log":
        from console.screens.log import Log

        return Log()
    if name == "plots":
        from console.screens.plots import Plots

        return Plots()
    from console.screens.tables import Files, Jobs

    return Jobs() if name == "jobs" else Files()


class GonogoApp(TakingAlong):
    """The console on one run.

    Args:
        session: The run.
        start_conductor: Conducts the run and returns its exit status; started after the first frame and cancelled
            when the operator leaves. None where somebody else conducts.
        theme: Name of one of our themes; empty for the one that is set.
        settings: What the operator has set; None for the defaults.
    """

    TITLE = "gonogo"
    CSS_PATH = themes.BASE_CSS
    ENABLE_COMMAND_PALETTE = False  # ours is a verb like any other, and takes no key away from dialogs
    BINDINGS = bindings("app")
    DEFAULT_MODE = "board"
    BOARD: ClassVar[type[Area]] = Board
    MODES = {  # noqa: RUF012
        "jobs": partial(_area, "jobs"),
        "files": partial(_area, "files"),
        "log": partial(_area, "log"),
        "plots": partial(_area, "plots"),
    }

    def __init__(
        self,
        session: Session,
        start_conductor: StartConductor | None = None,
        *,
        theme: str = "",
        settings: Settings | None = None,
    ) -> None:
        # With NO_COLOR Textual would draw greys; told that colours are the terminal's own, it draws none.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for palette in themes.PALETTES.values():
            self.register_theme(themes.to_theme(palette))
        self.settings = settings or Settings()
        self._set_first_theme(theme or self.settings.theme)
        if not self.settings.animations:
            self.animation_level = "none"
        self.session = session
        self._start_conductor = start_conductor
        self._conductor: asyncio.Task[int] | None = None
        self._exit_status: int | None = None
        self.error: BaseException | None = None
        """What ended the conductor, where it was an error."""
        self.wants_fleet = False
        self._known: set[str] | None = None
        self._changed = asyncio.Event()
        self._looks = 0

    def _set_first_theme(self, name: str) -> None:
        """Set the theme before there is anything to draw again.

        Assigning `theme` would have the style sheet parsed twice more on the way to the first frame.
        """
        self.set_reactive(App.theme, name)
        dark = self.current_theme.dark
        self.update_classes({f"-theme-{name}": True, "-dark-mode": dark, "-light-mode": not dark}, update=False)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables for a theme that lacks them."""
        colours = themes.PALETTES[themes.DEFAULT].colours
        return {f"gonogo-{name}": value for name, value in colours.items()}

    def on_mount(self) -> None:
        """Show the run, and only then begin with everything that takes time."""
        self._name_terminal()
        self.set_interval(1.0, self._tick, name="clock")
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Without this the terminal would be left in its raw mode, and a conductor in the middle of a step.
            asyncio.get_running_loop().add_signal_handler(number, self._leave, True)
        self.call_after_refresh(starting.painted)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.add_mode(self.DEFAULT_MODE, self.BOARD)
        work = partial(self.run_worker, exit_on_error=False)
        work(self._follow(), name="follow", group="follow", description="follow the run folder")
        work(self._notice(), name="notice", group="notice", description="notice changed files")
        if self._start_conductor is not None:
            self.conducting = Conducting(running=True)
            self._conductor = asyncio.create_task(self._conduct(), name="conductor")
            self._conductor.add_done_callback(self._conductor_ended)
            self._tick()

    def _tick(self) -> None:
        """Let clocks go on, with animations on or off."""
        screen = self.screen if self.is_running and self.screen_stack else None
        if isinstance(screen, Area):
            screen.update_view()

    async def _follow(self) -> None:
        """Read the run folder whenever it may have changed, at most a few times a second."""
        while True:
            try:
                snapshot = await asyncio.to_thread(self.session.poll)
            except Exception as error:  # whatever it is, the screen lives on and says that it shows old facts
                self.problem = f"reading the run folder failed, what you see is old: {error or type(error).__name__}"
            else:
                self.problem = ""
                self.take(snapshot)
                if snapshot.log.more:
                    continue
            self._looks += 1
            await asyncio.sleep(REFRESH_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS - REFRESH_SECONDS):
                    await self._changed.wait()
            self._changed.clear()

    async def _notice(self) -> None:
        """Wake the reader when a file changes. Where that cannot be told, it looks once a second anyway."""
        watchfiles = await asyncio.to_thread(__import__, "watchfiles")
        async for _ in watchfiles.awatch(self.session.run_dir, step=50, debounce=200, recursive=True):
            self._changed.set()

    def take(self, snapshot: Snapshot) -> None:
        """Show a new snapshot, and call the operator to what has begun to wait."""
        if snapshot == self.session.snapshot and self._known is not None:
            return
        self.session.snapshot = snapshot
        waiting = {item.id for item in snapshot.waiting}
        # What waited before the console was opened stands in the header; a call is for what arrives.
        fresh = waiting - self._known if self._known is not None else set()
        self._known = waiting
        self._name_terminal()
        for screen in self.screen_stack:
            if isinstance(screen, Area):
                screen.run_changed()
        self._tick()
        if fresh:
            jobs = "1 job waits" if len(waiting) == 1 else f"{len(waiting)} jobs wait"
            self.call_operator(f"{jobs} for you: press w")

    def call_operator(self, text: str) -> None:
        """Call the operator to what has begun to wait. The text may be foreign."""
        if self.settings.bell:
            self.bell()
        self._to_terminal(notification(text, self.settings.desktop, os.environ))
        self.say(text, severity="warning")

    def _to_terminal(self, sequence: str) -> None:
        if sequence and self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def _name_terminal(self) -> None:
        """Name the run, and how many jobs wait, in the terminal's title."""
        count = len(self.session.snapshot.waiting)
        self.write_title(f"gonogo {self.session.snapshot.run.run_id or self.session.run_dir.name}", count)

    def write_title(self, name: str, count: int) -> None:
        """Name what is shown, which may be foreign text, and how much of it waits, in the terminal's title."""
        self.title = f"({count}) {safe(name)}" if count else safe(name)
        if self.settings.title:
            self._to_terminal(title(name, count, os.environ))

    async def _conduct(self) -> int:
        """Run the conductor inside this console."""
        await asyncio.to_thread(_import_conductor)
        assert self._start_conductor is not None
        return await self._start_conductor()

    def _conductor_ended(self, task: asyncio.Task[int]) -> None:
        if task.cancelled():
            self.conducting = Conducting(ended="the conductor was stopped; the run can be resumed")
        elif (error := task.exception()) is not None:
            self.error = error
            self.conducting = Conducting(ended=str(error) or type(error).__name__, failed=True)
        else:
            self._exit_status = task.result()
            self.conducting = Conducting(ended=f"the conductor has ended with status {task.result()}")
        self._changed.set()
        self._tick()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say how a worker ended: none dies unseen."""
        worker = event.worker
        if event.state is WorkerState.ERROR and worker.name != "notice":
            self.say(f"{worker.description}: {worker.error}", severity="error")

    def say(self, text: str, *, severity: Any = "information") -> None:
        """Show a short message, as text and nothing else."""
        self.notify(safe(text), severity=severity, markup=False, timeout=6)

    async def action_verb(self, verb_id: str) -> None:
        """Run a verb of the scope "app" by its key."""
        if isinstance(self.screen, Area):
            await self.screen.run_verb(verb_id)

    def get_default_screen(self) -> Area:
        """The board: made here and not as a mode, since that would parse the style sheet once more at the start."""
        return self.BOARD()

    async def do_board(self) -> None:
        """Show the board."""
        await self.switch_mode(self.DEFAULT_MODE)

    async def do_jobs(self) -> None:
        """Show the jobs."""
        await self.switch_mode("jobs")

    async def do_files(self) -> None:
        """Show the result files."""
        await self.switch_mode("files")

    async def do_log(self) -> None:
        """Show the work log."""
        await self.switch_mode("log")

    async def do_plots(self) -> None:
        """Show what was measured."""
        await self.switch_mode("plots")

    async def do_back(self) -> None:
        """Go back to the board."""
        await self.do_board()

    async def do_waiting(self) -> None:
        """Go to what waits, without opening it; a job that is open is closed."""
        await self.do_board()
        while isinstance(self.screen, Area) and not isinstance(self.screen, Board):
            await self.pop_screen()
        if isinstance(self.screen, Board):
            self.screen.focus_queue()

    def do_help(self) -> None:
        """Explain the screen."""
        from console.screens.help import Help

        if isinstance(self.screen, Area):
            self.push_screen(Help(self.screen))

    def do_palette(self) -> None:
        """Find a verb by name."""
        from textual.command import CommandPalette

        from console.screens.palette import VerbProvider

        self.push_screen(CommandPalette(providers=[VerbProvider], placeholder="What do you want to do?"))

    def do_theme(self) -> None:
        """Change to the next of our themes."""
        names = themes.names()
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]

    def do_output(self) -> None:
        """Show the output of the job under the cursor."""
        from console.screens.output import Output

        if isinstance(self.screen, Area):
            self.push_screen(Output(self.screen.target))

    def do_note(self) -> None:
        """Ask for a note."""
        self._ask("note")

    def do_abort(self) -> None:
        """Ask whether to abort."""
        self._ask("abort")

    def do_cancel(self) -> None:
        """Ask whether to cancel the job under the cursor."""
        self._ask("cancel")

    def do_retry(self) -> None:
        """Ask whether to try the attempt under the cursor again."""
        self._ask("retry")

    def do_settle(self) -> None:
        """Ask what became of a submission."""
        self._ask("settle")

    def _ask(self, verb_id: str) -> None:
        from console.screens.dialogs import Request

        if isinstance(self.screen, Area) and self.session.desk is not None:
            self.push_screen(Request(verb_id, self.screen.situation(), self.session.desk, self.session.clock))

    def do_fleet(self) -> None:
        """Leave for the fleet."""
        if self.leads_back:
            self.wants_fleet = True
            self.exit(0)

    def do_quit(self) -> None:
        """Leave; a conductor inside this console is stopped only after asking."""
        if self._conductor is None or self._conductor.done():
            self.exit(self._exit_status if self._exit_status is not None else 0)
            return
        from console.screens.dialogs import Leave

        self.push_screen(Leave(), self._leave)

    async def action_quit(self) -> None:
        """Textual's own way to quit asks too."""
        self.do_quit()

    def _leave(self, sure: bool | None) -> None:
        if sure:
            self.run_worker(
                self._stop_and_exit(),
                name="leave",
                group="leave",
                exit_on_error=False,
                description="stop the conductor",
            )

    async def _stop_and_exit(self) -> None:
        task = self._conductor
        if task is not None and not task.done():
            self.say("stopping the conductor; the run can be resumed")
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_SECONDS)
        waits = task is not None and bool(self.session.snapshot.waiting)
        self.exit(self._exit_status if self._exit_status is not None else WAITING if waits else INTERRUPTED)


def _import_conductor() -> None:
    """Import what conducting needs, in a thread, so that the screen stays alive meanwhile."""
    import importlib

    for name in ("console.release.conductor", "console.release.connecting", "console.release.opening"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def run_console(
    run_dir: Path,
    *,
    read_only: bool = False,
    start_conductor: StartConductor | None = None,
    operator: ScreenOperator | None = None,
) -> int:
    """Open the console on a run folder and stay until the operator leaves.

    Args:
        run_dir: The run folder.
        read_only: Look on only.
        start_conductor: Conducts the run inside this console; None where somebody else does.
        operator: Through whom that conductor asks whoever sits at this console.

    Returns:
        The conductor's exit status where one ended in here; 5 or 130 where it was stopped (a job waited for the
        operator, or not); else 0.

    Raises:
        BaseException: What ended the conductor, once the operator has left, so that it is told like any error.
    """
    left = run_release(run_dir, read_only=read_only, start_conductor=start_conductor, operator=operator)
    return left.status


class Left(NamedTuple):
    """How a console was left.

    Attributes:
        status: The exit status.
        back: Whether the operator wants to go back to the fleet.
    """

    status: int
    back: bool = False


def run_release(
    run_dir: Path,
    *,
    read_only: bool = False,
    start_conductor: StartConductor | None = None,
    operator: ScreenOperator | None = None,
    leads_back: bool = False,
) -> Left:
    """As `run_console`, from the fleet too: then escape on the board leads back there.

    Raises:
        BaseException: As `run_console`.
    """
    settings = load()
    session = open_session(run_dir, read_only=read_only)
    try:
        app = GonogoApp(session, start_conductor, settings=settings)
        app.leads_back = leads_back
        if operator is not None:
            operator.app = app
        status = app.run()
        if app.error is not None:
            raise app.error
        return Left(status if status is not None else app.return_code or 0, app.wants_fleet)
    finally:
        session.close()
