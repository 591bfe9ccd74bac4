"""What the jobs of the instant recipe run: writes result files that pass, in no time.

The releases that are killed at every point are about the conductor, not about drafters: nothing is measured here,
and everything else (SSH, Slurm, queue, log, gates, freeze) is what it always is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tests.gates import passing


def write(name: str, document: dict[str, Any]) -> None:
    """Write one result file by rename, with the token of this attempt."""
    document["token"] = os.environ["GONOGO_TOKEN"]
    temporary = Path(f".{name}.tmp")
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.rename(name)


def stage_target(args: argparse.Namespace) -> None:
    made = passing.stage_target() | {"target": args.target, "revision": args.revision, "path": args.path}
    write("stage_target.json", made)
    write("target_check.json", passing.target_check() | {"path": args.path})


def data(args: argparse.Namespace) -> None:
    write("data.json", passing.data())


def train(args: argparse.Namespace) -> None:
    export = Path(args.export)
    export.mkdir(parents=True)
    files = {"config.json": b'{"a": "drafter"}', "model.safetensors": os.urandom(25000)}
    rows = []
    for name, content in files.items():
        (export / name).write_bytes(content)
        rows.append({"path": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    write("export_check.json", passing.export_check() | {"export_path": args.export, "files": rows})
    write("regression_check.json", passing.regression_check() | {"export_path": args.export})


def smoke(args: argparse.Namespace) -> None:
    made = passing.smoke()
    made["server"]["drafter"] = made["requested"]["drafter"] = args.export
    write("smoke.json", made)


def bench(args: argparse.Namespace) -> None:
    made = passing.bench()
    made["arms"]["B"] |= {"drafter": args.drafter, "drafter_manifest_sha256": args.manifest}
    write("bench.json", made)
    write("exact_match.json", passing.exact_match())


def main() -> None:
    """Do what one job does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["stage_target", "data", "train", "smoke", "bench"])
    for name in ("target", "revision", "path", "export", "drafter", "manifest"):
        parser.add_argument(f"--{name}", default="")
    args = parser.parse_args()
    globals()[args.kind](args)


if __name__ == "__main__":
    main()
