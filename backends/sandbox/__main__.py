"""`python -m backends.sandbox`: start, end and trouble an embedded cluster."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from backends.sandbox import lifecycle
from backends.sandbox.place import Place

KNOBS = {
    "submit": 'next submissions: {"how": HOW, "times": 1, "seconds": 0, "said": ""}, HOW being one of '
    "accept-time-out, accept-exit-1, accept-silent, time-out, refuse",
    "queue_delay_s": "seconds until squeue shows a new job",
    "start_delay_s": "seconds until a new job may start",
    "accounting": '"down": accounting refuses',
    "accounting_lag_s": "seconds that accounting is behind",
    "controller": '"down": sbatch, squeue, sinfo and scontrol cannot reach the controller',
    "odd_state": "state that every job is shown in",
    "noise": "text that the login shell prints first",
}


def main() -> int:
    """Run one verb."""
    parser = argparse.ArgumentParser(prog="python -m backends.sandbox", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, about in (
        ("serve", "run the cluster in this process"),
        ("ensure", "start it unless it runs"),
        ("stop", "end its server; its jobs go on"),
        ("knob", "make trouble, or (with null) no trouble any more"),
        ("requeue", "queue a running job again, as after a node failure"),
    ):
        verb = verbs.add_parser(name, help=about)
        verb.add_argument("state_dir", type=Path)
        if name in ("serve", "ensure"):
            verb.add_argument("--idle", type=float, default=lifecycle.IDLE_S, help="seconds unused until it ends")
        if name == "knob":
            verb.add_argument("name", choices=sorted(KNOBS), help="; ".join(f"{k}: {v}" for k, v in KNOBS.items()))
            verb.add_argument("value", help="JSON; null takes the trouble back")
        if name == "requeue":
            verb.add_argument("job_id", type=int)
    return _run(parser.parse_args())


def _run(args: argparse.Namespace) -> int:
    place = Place(args.state_dir.absolute())
    match args.verb:
        case "serve":
            from backends.sandbox import server

            return server.main(place, args.idle)
        case "ensure":
            try:
                info = lifecycle.ensure(args.state_dir, idle_s=args.idle)
            except lifecycle.SandboxError as error:
                print(error, file=sys.stderr)
                return 1
            print(f"{info.user}@{info.host} port {info.port}")
        case "stop":
            print("ended" if lifecycle.stop(args.state_dir) else "it did not run")
        case "knob":
            turn(place, args.name, json.loads(args.value))
        case "requeue":
            return _requeue(place, args.job_id)
    return 0


def turn(place: Place, name: str, value: object) -> None:
    """Set a knob, or take it back with None."""
    from backends.sandbox.store import Store

    if name == "noise":
        if value is None:
            place.noise.unlink(missing_ok=True)
        else:
            place.noise.write_text(str(value), encoding="utf-8")
        return
    store = Store(place)
    store.turn(name, value)
    store.close()


def _requeue(place: Place, job_id: int) -> int:
    from backends.sandbox.commands.scontrol import requeue
    from backends.sandbox.place import poke
    from backends.sandbox.store import Store

    store = Store(place)
    job = store.job(job_id)
    if job is None:
        print(f"no job {job_id}", file=sys.stderr)
        return 1
    requeue(store, job)
    store.close()
    poke(place)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
