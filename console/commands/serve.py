"""`gonogo serve`: the same console in a browser on this machine, behind a link that is used once."""

from __future__ import annotations

import argparse
import asyncio
import errno
import importlib.util
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from console.commands.common import BAD_INPUT, DONE, say

if TYPE_CHECKING:
    from console.web.doors import Doors

PORT, VISITORS, MOST_VISITORS = 8321, 2, 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo serve`."""
    parser.add_argument(
        "place",
        type=Path,
        nargs="?",
        metavar="RUN_DIR|ROOT",
        help="the folder of one release, or one that holds many; without it, the releases of `gonogo fleet`",
    )
    parser.add_argument("--read-only", action="store_true", help="look only: decide nothing, ask for nothing")
    parser.add_argument(
        "--port", type=_whole(0, 65535), default=PORT, help=f"port on 127.0.0.1 (default {PORT}; 0: any free)"
    )
    parser.add_argument(
        "--visitors",
        type=_whole(1, MOST_VISITORS),
        default=VISITORS,
        metavar="N",
        help=f"how many pages may show a console at once (default {VISITORS}); one of a release decides, others look",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until ctrl-c or SIGTERM.

    Returns:
        0 after it was ended; 2 where it could not begin.

    Raises:
        console.release.folder.FolderError: When the folder cannot be shown.
    """
    if any(importlib.util.find_spec(name) is None for name in ("aiohttp", "textual_serve")):
        say("gonogo serve: needs textual-serve; install it with: pip install 'gonogo[browser]'")
        return BAD_INPUT
    command = [sys.executable, "-m", "console.tethered", *child_arguments(args.place, read_only=args.read_only)]
    from console.web.server import bind

    try:
        listening = bind(args.port)
    except OSError as error:
        why = "another program has it" if error.errno == errno.EADDRINUSE else error.strerror
        say(f"gonogo serve: port {args.port} on 127.0.0.1 cannot be used: {why}; choose one with --port, 0 for any")
        return BAD_INPUT
    title = f"gonogo {args.place.absolute().name}" if args.place else "gonogo"
    return asyncio.run(_serve(listening, command, title, args.visitors))


def child_arguments(place: Path | None, *, read_only: bool) -> list[str]:
    """The `gonogo` command that each visitor sees.

    Args:
        place: A run folder, a folder of run folders, or None for the fleet.
        read_only: Look on only.

    Raises:
        console.release.folder.FolderError: When there is no such folder.
    """
    from console.release.folder import LOG_NAME, STATE_NAME, FolderError

    options = ["--read-only"] if read_only else []
    if place is None:
        return ["fleet", *options]
    path = place.absolute()
    one = path.is_file() or any((path / name).exists() for name in (LOG_NAME, STATE_NAME))
    if not one and not path.is_dir():
        raise FolderError(f"{place}: no such folder; name a run folder, or a folder that holds some")
    return ["open" if one else "fleet", *options, "--", str(path)]


async def _serve(listening: socket.socket, command: list[str], title: str, visitors: int) -> int:
    from console.safe_text import safe, safe_lines
    from console.web.doors import Doors
    from console.web.server import HOST, BrowserServer, begin

    port = listening.getsockname()[1]
    doors = Doors(port, visitors)

    def tell(text: str) -> None:
        for line in safe_lines(text):
            say(f"gonogo serve: {line}")

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    runner = await begin(BrowserServer(command, doors, safe(title), tell).application(), listening)
    try:
        _print_link(doors, HOST, port)
        if sys.stdin.isatty():
            print("Enter: another link, for another browser. Ctrl-c: end, with every console in it.", flush=True)
            loop.add_reader(sys.stdin, _another, doors, HOST, port)
        await ended.wait()
    finally:
        if sys.stdin.isatty():
            loop.remove_reader(sys.stdin)
        await runner.cleanup()
    return DONE


def _another(doors: Doors, host: str, port: int) -> None:
    if sys.stdin.readline():
        _print_link(doors, host, port)
    else:  # no more input will come
        asyncio.get_running_loop().remove_reader(sys.stdin)


def _print_link(doors: Doors, host: str, port: int) -> None:
    """The token stands behind the #, so that browsers send it to nobody by themselves."""
    print(f"Open this once, on this machine: http://{host}:{port}/enter#{doors.new_token()}", flush=True)


def _whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers within limits."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text[:9]) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return read
