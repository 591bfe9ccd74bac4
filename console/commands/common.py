"""What several commands share: arguments, output for people and for programs, and reading a run folder."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.release import folder
from console.safe_text import safe

DONE, REFUSED, BAD_INPUT = 0, 1, 2
"""Exit statuses of the commands that print or decide."""


def add_run_dir(parser: argparse.ArgumentParser) -> None:
    """The run folder as the first argument."""
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the folder of the release")


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option for output that programs read."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def print_json(value: Any, *, indent: int | None = 1) -> None:
    """Print a value as JSON in ASCII, so that nothing in it can act on a terminal."""
    print(json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent))


def say(text: str) -> None:
    """A remark beside the output, one line on stderr, made safe."""
    print(safe(text), file=sys.stderr, flush=True)


def require_queue(run_dir: Path) -> None:
    """Make sure that the folder holds proposals to look at or decide on.

    Raises:
        console.release.folder.FolderError: When it does not.
    """
    if not (run_dir / "submissions").is_dir():
        folder.require_run_folder(run_dir)
        raise folder.FolderError(f"{run_dir}: has no folder submissions/, so there is no queue in it")


def stamp() -> str:
    """The time as it is written everywhere, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def terminal() -> str:
    """Terminal and host from which somebody decides."""
    try:
        name = os.ttyname(sys.stdin.fileno())
    except (OSError, ValueError):
        name = "no terminal"
    return f"{name} on {socket.gethostname()}"


def interactive() -> bool:
    """Whether a person sits at this command: input and output are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()
