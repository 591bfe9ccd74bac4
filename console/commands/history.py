"""`gonogo history`: what releases of a model measured, one after the other; `gonogo history add RUN_DIR` adds one."""

from __future__ import annotations

import argparse
from pathlib import Path

from console.commands.common import BAD_INPUT, DONE, add_json, print_json, say
from console.release import history
from console.safe_text import safe

ADD = "add"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo history`."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help="the target, as releases name it; none lists all")
    parser.add_argument("run_dir", nargs="?", type=Path, metavar="RUN_DIR", help=f"after `{ADD}`: the closed release")
    parser.add_argument("--file", type=Path, metavar="FILE", help="another history than that of this account")
    parser.add_argument("--cluster", metavar="NAME", help="only releases on this cluster")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print a history, or add to it.

    Raises:
        console.release.history.HistoryError: When there is no history, or it cannot be used.
    """
    path = args.file or history.default_path()
    if args.model == ADD:
        return _add(path, args)
    if args.run_dir is not None:
        say(f"gonogo: {args.run_dir}: only `gonogo history {ADD} RUN_DIR` takes a folder")
        return BAD_INPUT
    if args.model is None:
        return _list(path, args.json)
    return _show(path, args)


def _add(path: Path, args: argparse.Namespace) -> int:
    from console.release.history_adding import release_of

    if args.run_dir is None:
        say(f"gonogo: `gonogo history {ADD}` needs the folder of a release")
        return BAD_INPUT
    release = release_of(args.run_dir)
    fresh = history.add(path, release)
    if args.json:
        print_json({"run_id": release.run_id, "added": fresh, "file": str(path)})
    else:
        print(f"{safe(release.run_id)}: {'added to' if fresh else 'is already in'} {safe(str(path))}")
    return DONE


def _list(path: Path, as_json: bool) -> int:
    found = history.models(path)
    if as_json:
        print_json([{"model": model, "releases": count, "last": day} for model, count, day in found])
    else:
        for model, count, day in found:
            print(f"{safe(model)}  {count} releases, the last on {safe(day)}")
    return DONE


def _show(path: Path, args: argparse.Namespace) -> int:
    from console.release.errors import suggestion
    from console.release.history_view import lines, series_of, to_json

    releases = [one for one in history.read(path, args.model) if args.cluster in (None, one.cluster)]
    if not releases:
        known = [model for model, _, _ in history.models(path)]
        where = "" if args.cluster is None else f" on {args.cluster}"
        raise history.HistoryError(f"{path}: holds no release of {args.model}{where}; {suggestion(args.model, known)}")
    series = series_of(releases)
    if args.json:
        print_json(to_json(args.model, series))
    else:
        print("\n".join(lines(args.model, series)))
    return DONE
