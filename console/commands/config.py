"""`gonogo config`: where the settings lie, what they are, and whether they can be used."""

from __future__ import annotations

import argparse

from console import settings
from console.commands.common import BAD_INPUT, DONE, say
from console.safe_text import safe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo config`."""
    verbs = {
        "show": "what is set, with the environment over the file",
        "path": "where the file lies",
        "check": "whether the file can be used",
        "template": "a file with every key, commented",
    }
    parser.add_argument(
        "verb", choices=tuple(verbs), help="; ".join(f"{name}: {words}" for name, words in verbs.items())
    )


def run(args: argparse.Namespace) -> int:
    """Print it.

    Returns:
        0, or 2 where `check` finds no file.

    Raises:
        console.settings.SettingsError: When the settings cannot be used.
    """
    path = settings.path_of()
    if args.verb == "path":
        print(safe(str(path)))
    elif args.verb == "template":
        print(settings.TEMPLATE, end="")
    elif args.verb == "check":
        settings.load()
        if not path.exists():
            say(f"gonogo config: {path}: is not there, so everything is as by default; see `gonogo config template`")
            return BAD_INPUT
        print(f"{safe(str(path))}: can be used")
    else:
        found = settings.load()
        print(f"file = {safe(str(path))}{'' if path.exists() else ' (not there)'}")
        for name, value in found._asdict().items():
            print(f"{name} = {_words(value)}")
    return DONE


def _words(value: object) -> str:
    if isinstance(value, settings.Signing | settings.Notify):
        return "; ".join(f"{name}: {_words(item)}" for name, item in value._asdict().items())
    if isinstance(value, tuple):
        return ", ".join(safe(str(item)) for item in value) or "(not set)"
    if isinstance(value, dict):
        return "; ".join(f"{safe(name)}: {safe(' '.join(item))}" for name, item in value.items()) or "(not set)"
    return "(not set)" if value is None else safe(str(value))
