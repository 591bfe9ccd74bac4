"""`gonogo freeze`: freeze a drafter on this machine, or verify a frozen one.

Runs the very program that a release runs on the cluster, as a process of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from console.commands.common import BAD_INPUT, DONE, REFUSED, add_json, print_json, say
from console.safe_text import safe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo freeze`."""
    parser.add_argument("source", nargs="?", type=Path, metavar="SOURCE", help="folder of the exported drafter")
    parser.add_argument("destination", nargs="?", type=Path, metavar="DESTINATION", help="new folder for the copy")
    parser.add_argument("--verify", type=Path, metavar="DIR", help="check a frozen drafter instead")
    parser.add_argument("--manifest-sha256", metavar="HEX", help="what the freeze said its manifest's SHA-256 is")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Freeze or verify.

    Returns:
        0 done, 1 refused or not what it was, 2 input that cannot be used.
    """
    arguments = _arguments(args)
    if arguments is None:
        return BAD_INPUT
    status, result, said = _call(arguments)
    if result is None:
        say(f"gonogo freeze: the freeze program left no result (exit status {status}): {said or 'it said nothing'}")
        return BAD_INPUT
    if args.json:
        print_json(result)
    else:
        _print(result)
    return status if status in (DONE, REFUSED, BAD_INPUT) else BAD_INPUT


def _arguments(args: argparse.Namespace) -> list[str] | None:
    """Arguments of the program; None, with a remark, where they make no sense together."""
    if args.verify is not None:
        if args.source is not None or args.manifest_sha256 is None:
            say("gonogo freeze: --verify DIR needs --manifest-sha256 HEX and nothing else")
            return None
        if not re.fullmatch(r"[0-9a-f]{64}", args.manifest_sha256):
            say("gonogo freeze: --manifest-sha256: expected 64 hex digits, in lower case")
            return None
        return ["--verify", str(args.verify), "--manifest-sha256", args.manifest_sha256]
    if args.source is None or args.destination is None or args.manifest_sha256 is not None:
        say("gonogo freeze: give SOURCE and DESTINATION, or --verify DIR with --manifest-sha256 HEX")
        return None
    return [str(args.source), str(args.destination)]


def _call(arguments: list[str]) -> tuple[int, dict[str, Any] | None, str]:
    """Run the freeze program; returns its exit status, its result if it left one, and what it said."""
    program = resources.files("backends.payloads").joinpath("freeze.py")
    with resources.as_file(program) as path, tempfile.TemporaryDirectory() as work:
        output = Path(work) / "freeze.json"
        done = subprocess.run(
            [sys.executable, str(path), *arguments, "--output", str(output)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        said = done.stderr.decode("utf-8", "replace").strip()
        try:
            result = json.loads(output.read_bytes())
        except (OSError, ValueError):
            return done.returncode, None, said
    return done.returncode, result if isinstance(result, dict) else None, said


def _print(result: dict[str, Any]) -> None:
    """The result for people."""
    for key in ("status", "failure", "detail", "source", "destination", "manifest_sha256", "bytes"):
        if result.get(key) not in (None, ""):
            print(f"{key.replace('_', ' ')}: {safe(str(result[key]))}")
    for file in result.get("files") or ():
        if isinstance(file, dict):
            print(safe(f"  {file.get('sha256')}  {file.get('path')}  {file.get('size')} bytes"))
