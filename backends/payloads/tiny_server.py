"""Serves the tiny target over HTTP like vLLM's OpenAI-compatible server, with or without a drafter.

    python3 tiny_server.py --model DIR --served-model-name NAME --port N [--drafter DIR --draft-tokens K] ...

Paths: /health, /version, /metrics, /server_info, /v1/models, /v1/completions. While the model loads, every path answers
503. Decoding is greedy; what asks for anything else is refused. `--fault` breaks the server on purpose:

* `never-healthy`: it loads, and stays at 503;
* `draft-batch`: every fifth request fails that ends while tokens of several sequences are drafted together.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backends.payloads.tiny_drafter import Drafter
    from backends.payloads.tiny_engine import Engine, positions_for
    from backends.payloads.tiny_http import VERSION, Handler, Served, Server
    from backends.payloads.tiny_model import BEYOND, Target
    from backends.payloads.tiny_vocabulary import Vocabulary
else:
    from tiny_drafter import Drafter
    from tiny_engine import Engine, positions_for
    from tiny_http import VERSION, Handler, Served, Server
    from tiny_model import BEYOND, Target
    from tiny_vocabulary import Vocabulary

FAULTS = ("never-healthy", "draft-batch")


def load(args: argparse.Namespace) -> Served:
    """Load target and drafter and start the engine.

    Raises:
        OSError: When a file cannot be read.
        ValueError: When a file is not what it should be, or the command line asks for too much.
        KeyError: When a size or tensor is missing.
    """
    target = Target.load(args.model)
    drafter = None
    if args.drafter is not None:
        drafter = Drafter.load(args.drafter, target, args.max_num_seqs, positions_for(target))
        if not 1 <= args.draft_tokens < min(drafter.shape.block_size, BEYOND):
            raise ValueError(
                f"a drafter with blocks of {drafter.shape.block_size} cannot draft {args.draft_tokens} tokens"
            )
    engine = Engine(target, drafter, args.draft_tokens, args.max_num_seqs, args.fault == "draft-batch")
    threading.Thread(target=engine.run, name="engine", daemon=True).start()
    return Served(args, engine, Vocabulary.load(args.model), target.sizes.max_position_embeddings)


def serve(args: argparse.Namespace) -> int:
    """Serve until a signal says stop, or the engine fails."""
    server = Server((args.host, args.port), Handler)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    print(f"{VERSION} on {args.host}:{args.port}, loading {args.model}", flush=True)
    served = load(args)
    if args.fault != "never-healthy":
        server.served = served
    drafting = f", drafting {args.draft_tokens} tokens with {args.drafter}" if args.drafter else ""
    print(f"serving {args.served_model_name}{drafting}", flush=True)
    while not ended.wait(0.2):
        if served.engine.failed.is_set():
            # Those who wait for an answer get theirs first.
            time.sleep(0.5)
            return 1
    served.engine.stop()
    server.shutdown()
    return 0


def main() -> int:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description="Serve the tiny target, with or without a drafter.")
    parser.add_argument("--model", required=True, help="folder of the target")
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--max-num-seqs", type=int, default=32, help="most sequences in a batch")
    parser.add_argument("--drafter", help="folder of the drafter; without it the target decodes alone")
    parser.add_argument("--draft-tokens", type=int, default=4)
    parser.add_argument("--fault", default="", choices=("", *FAULTS), help="break the server on purpose")
    args = parser.parse_args()
    try:
        return serve(args)
    except (OSError, ValueError, KeyError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
