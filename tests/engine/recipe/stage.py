"""Stages the tiny target of the engine tests: the first digits of its revision are the seed that it is made from.

python3 stage.py --target NAME --revision HEX --path DIR [--output stage_target.json]
"""

from __future__ import annotations

import argparse
import os
import sys

import tiny_qwen
from results import write_result


def main():
    parser = argparse.ArgumentParser(description="Make the tiny target at a pinned revision.")
    parser.add_argument("--target", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--output", default="stage_target.json")
    args = parser.parse_args()
    tiny_qwen.make("target", args.path, tiny_qwen.seed_of(args.revision))
    files = [
        {"path": name, "size": os.path.getsize(os.path.join(args.path, name))} for name in sorted(os.listdir(args.path))
    ]
    body = {"status": "ok", "http_status": None, "error": "", "target": args.target, "revision": args.revision}
    write_result(args.output, "stage", {**body, "path": os.path.abspath(args.path), "files": files, "detail": "made"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
