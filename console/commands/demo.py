"""`gonogo demo`: a whole release on an embedded cluster, with a tiny model, measured for real in about a minute."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from console.commands.conducting import add_options, conduct, utc

if TYPE_CHECKING:
    from console.release.journal import Entry
    from console.release.opening import Opened

FAILURES = ("export", "server", "draft-head", "bench", "freeze")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo demo`."""
    parser.add_argument("--fail", choices=FAILURES, help="make one stage fail for real, to see what follows")
    parser.add_argument("--algorithm", default="dflash2", choices=("dflash", "dflash2"), help="which kind of drafter")
    add_options(parser, new_run=True)


def run(args: argparse.Namespace) -> int:
    """Bring the embedded cluster up and conduct a release on it."""
    if importlib.util.find_spec("numpy") is None:
        print("gonogo demo: needs numpy; install it with: pip install 'gonogo[demo]'", file=sys.stderr)
        return 2
    return conduct(args, None, lambda on_entry: _start(args, on_entry))


def _start(args: argparse.Namespace, on_entry: Callable[[Entry], None] | None) -> Opened:
    from console.release.folder import RUNS_ROOT, require_free
    from console.release.opening import start_run

    run_dir = (args.run_dir or Path(RUNS_ROOT) / f"demo-{utc():%Y%m%d-%H%M%S}").absolute()
    require_free(run_dir)
    place = run_dir.with_name(f"{run_dir.name}.cluster")
    clusters_file = prepare_cluster(place)
    release_file = place / "release.yaml"
    release_file.write_text(release_text(args.algorithm, args.fail or ""), encoding="utf-8")
    return start_run(
        release_file,
        run_dir=run_dir,
        clusters_file=clusters_file,
        approve=args.approve_submissions,
        clock=utc,
        on_entry=on_entry,
    )


def prepare_cluster(place: Path) -> Path:
    """Bring an embedded cluster up in a folder and describe it in a clusters.yaml there.

    Everything after this sees an ordinary cluster behind an SSH port. `wake` is the command by which any
    cluster may be made reachable before the first login; here it starts the embedded one again after a reboot.
    """
    from backends.sandbox.lifecycle import ensure
    from console.release import confirmed

    place.mkdir(parents=True, exist_ok=True)
    info = ensure(place)
    wake = [sys.executable, "-m", "backends.sandbox", "ensure", str(place)]
    entry = {
        "login_node": info.host,
        "user": info.user,
        "ssh_key": str(info.key_path),
        "workspace": str(info.home / "workspace"),
        "slurm": {"default_account": "research", "default_partition": "batch"},
        "gonogo": {
            "port": info.port,
            "known_hosts": str(info.known_hosts_path),
            # A person's own settings for 127.0.0.1 are not meant for this server.
            "ssh_config": os.devnull,
            "hf_local": str(info.home / "hf_local"),
            "python": sys.executable,
            "poll_seconds": 0.5,
            "watch_seconds": 0.3,
            "settle_seconds": 5,
            "result_grace_seconds": 1,
            "wake": wake,
        },
    }
    # The command is ours, not a project's: whoever asked for a demo need not be asked about it.
    confirmed.confirm([confirmed.wake(wake)])
    path = place / "clusters.yaml"
    # JSON is YAML too, and has no surprises with names of folders.
    path.write_text(json.dumps({"default_cluster": "demo", "clusters": {"demo": entry}}, indent=1), encoding="utf-8")
    return path


def release_text(algorithm: str, fail: str) -> str:
    """The inputs of the demo's release."""
    from hashlib import sha1

    revision = sha1(b"demo/tiny-target", usedforsecurity=False).hexdigest()
    lines = [
        "# A drafter for a tiny target, on the embedded cluster.",
        "target: demo/tiny-target",
        f'revision: "{revision}"',
        f"algorithm: {algorithm}",
        "cluster: demo",
        "budget: dev",
        "recipe: demo",
    ]
    if fail:
        lines += ["overrides:", f"  fail: {fail}"]
    return "\n".join(lines) + "\n"
