"""`gonogo version`: what runs here, for reports of faults."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from console.commands.common import DONE, add_json, print_json

DISTRIBUTIONS = ("gonogo", "textual", "asyncssh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo version`."""
    add_json(parser)


def versions() -> dict[str, str]:
    """Names and versions; "not installed" for a distribution that is not there."""
    found = {"gonogo": _version("gonogo"), "python": platform.python_version()}
    return found | {name: _version(name) for name in DISTRIBUTIONS}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def run(args: argparse.Namespace) -> int:
    """Print the versions."""
    found = versions()
    if args.json:
        print_json(found)
    else:
        print("\n".join(f"{name} {version}" for name, version in found.items()))
    return DONE
