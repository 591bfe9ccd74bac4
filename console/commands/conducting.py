"""Conducting a release from the command line: with the console around it, or headless with plain lines."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from console.safe_text import safe

if TYPE_CHECKING:
    from backends.hosts.operator import Operator
    from console.release.conductor import Conductor
    from console.release.journal import Entry
    from console.release.opening import Opened

OpenRun = Callable[["Callable[[Entry], None] | None"], "Opened"]
"""Opens the run, given what is to be called with each log entry."""

INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser, *, new_run: bool) -> None:
    """Options that all commands which conduct a release share."""
    if new_run:
        parser.add_argument(
            "--run-dir", type=Path, metavar="DIR", help="folder for the run (default: new, in gonogo-runs)"
        )
    parser.add_argument("--headless", action="store_true", help="no screen; one line for each step")
    parser.add_argument(
        "--approve-submissions",
        choices=("each", "none"),
        help="each: wait for an OK for every job (default); none: submit without asking",
    )
    parser.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help="headless: stop with exit status 5 when an approval takes longer than this (default: wait for ever)",
    )


def utc() -> datetime:
    """The wall clock, UTC."""
    return datetime.now(UTC)


def conduct(args: argparse.Namespace, run_dir: Path | None, open_run: OpenRun) -> int:
    """Open a run and conduct it in the way that the options ask for.

    Args:
        args: Parsed options.
        run_dir: The run folder where it exists already; then the console shows it before the conductor starts.
        open_run: Opens the run. Called before the screen for a new run, so that bad input is a plain line.

    Returns:
        The exit status.
    """
    if args.headless:
        return _headless(args, open_run)
    from console.app import run_console
    from console.screen_operator import ScreenOperator

    said: list[str] = []
    operator = ScreenOperator()
    if run_dir is None:
        opened = open_run(None)
        run_dir = opened.writer.run_dir

        def start() -> Awaitable[int]:
            return _conduct(opened, None, said.append, operator)

    else:

        def start() -> Awaitable[int]:
            return _conduct(open_run(None), None, said.append, operator)

    status = run_console(run_dir, start_conductor=start, operator=operator)
    _say_where_it_stands(run_dir)
    for line in said:
        print(line)
    return status


def _say_where_it_stands(run_dir: Path) -> None:
    """After the screen is gone: the verdict and the report, or how to go on."""
    from console.release.folder import FolderError, read_state

    try:
        state = read_state(run_dir)
    except FolderError:
        return
    if state is not None and state.verdict is not None:
        print(f"{state.verdict}: gonogo report {shlex.quote(str(run_dir))}")
    elif state is not None:
        print(f"Go on with: gonogo resume {shlex.quote(str(run_dir))}")


def _headless(args: argparse.Namespace, open_run: OpenRun) -> int:
    from console.plain import PlainPrinter

    printer = PlainPrinter(sys.stdout)
    opened = open_run(printer.entry)
    printer.begin(opened.writer.state, opened.writer.run_dir)
    return asyncio.run(_until_signal(_conduct(opened, args.wait, print), opened))


async def _until_signal(work: Awaitable[int], opened: Opened) -> int:
    """Conduct until done; an interrupt or a termination ends the work cleanly, and the run can be resumed."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        waiting = any(item.outcome == "proposed" for item in opened.writer.state.attempts)
        print(f"Stopped. Go on with: gonogo resume {opened.writer.run_dir}", flush=True)
        return 5 if waiting else INTERRUPTED


async def _conduct(
    opened: Opened, wait_s: float | None, say: Callable[[str], None], operator: Operator | None = None
) -> int:
    from console.release.conductor import Conductor
    from console.release.connecting import connect
    from console.release.operator_log import LoggedOperator
    from console.release.recipe import DEMO

    asked = LoggedOperator(operator, opened.writer) if operator is not None else None
    conductor = Conductor(
        opened.release,
        opened.writer,
        lambda: connect(opened.release.cluster, asked),
        approve=opened.approve,
        wait_s=wait_s,
        signers=opened.signers,
    )
    open_until_now = opened.writer.state.verdict is None
    try:
        status = await _with_hooks(conductor, say)
        # A toy's numbers would only be noise among those of real drafters.
        if open_until_now and opened.writer.state.verdict is not None and opened.release.recipe.name != DEMO:
            from console.release.history_adding import remember

            say(await asyncio.to_thread(remember, opened.writer.run_dir))
        return status
    finally:
        opened.lock.close()


async def _with_hooks(conductor: Conductor, say: Callable[[str], None]) -> int:
    """Conduct, and tell the operator's hooks what waits and what happened; nothing waits for them."""
    from console import settings
    from console.release.hooks import Hooks
    from console.release.notices import notice

    told: set[str] = set()

    def problem(text: str) -> None:
        conductor.live.hooks = text
        if text not in told:
            told.add(text)
            say(safe(text))

    hooks = Hooks(settings.load().notify, problem)

    def listen(entry: Entry) -> None:
        found = notice(entry, conductor.writer.state, by_policy=conductor.approve == "none")
        if found is not None:
            hooks.send(found)

    conductor.writer.listen(listen)
    async with hooks.running():
        status = await conductor.run()
    if told:
        conductor.show()
    return status
