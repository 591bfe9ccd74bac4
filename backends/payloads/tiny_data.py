"""Training data for a drafter: texts that the target itself writes, with what its layers computed for every token.

    python3 tiny_data.py --target DIR --texts N [--length N] [--seed N] [--output data.json]

Writes `data.safetensors` beside the result file. A text begins with words drawn at random; one that begins like a
held-out prompt of the target is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, Set, Tuple

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_drafter, tiny_model, tiny_target, tiny_tensors
    from backends.payloads.results import write_by_rename, write_result
    from backends.payloads.tiny_model import Ids
else:
    import tiny_drafter
    import tiny_model
    import tiny_target
    import tiny_tensors
    from results import write_by_rename, write_result

PRODUCER = "tiny_data"
FILE = "data.safetensors"
_TRAINING = 2
_AT_A_TIME = 64


def held_out(folder: str) -> Set[Tuple[int, ...]]:
    """How the held-out prompts of a target begin.

    Raises:
        OSError: When they cannot be read.
        ValueError: When a line is not JSON.
    """
    with open(os.path.join(folder, tiny_target.PROMPTS), encoding="utf-8") as stream:
        prompts = [json.loads(line)["prompt"] for line in stream]
    return {tuple(prompt[: tiny_target.PROMPT_START]) for prompt in prompts}


def training_starts(folder: str, seed: int, count: int) -> Ids:
    """Beginnings of training texts, shape (at most count, words).

    Raises:
        OSError: When the held-out prompts cannot be read.
        ValueError: When they are not JSON.
    """
    avoided = held_out(folder)
    drawn = tiny_target.starts((_TRAINING, seed), count)
    return drawn[[tuple(row) not in avoided for row in drawn.tolist()]]


def make(folder: str, texts: int, length: int, seed: int) -> tiny_tensors.Tensors:
    """Write texts with a target.

    Args:
        folder: The target.
        texts: How many.
        length: Tokens of each.
        seed: Of the words that they begin with.

    Returns:
        `tokens`, shape (texts, length), uint16, and `features`, shape (texts, length - 1, layers x hidden), float16.

    Raises:
        OSError: When the target cannot be read.
        ValueError: When it is not what it should be, or no text is left.
        KeyError: When a size or tensor is missing.
    """
    target = tiny_model.Target.load(folder)
    layers = tiny_drafter.target_layers(target.sizes.num_hidden_layers)
    begun = training_starts(folder, seed, texts)
    if not len(begun) or length <= begun.shape[1]:
        raise ValueError(f"{len(begun)} texts of {length} tokens are no training data")
    tokens, features = [], []
    for first in range(0, len(begun), _AT_A_TIME):
        some = begun[first : first + _AT_A_TIME]
        written, computed = tiny_model.continue_greedily(target, some, length - begun.shape[1], layers)
        tokens.append(written.astype(np.uint16))
        features.append(computed.astype(np.float16))
        print(f"{first + len(some)} of {len(begun)} texts", flush=True)
    return {"tokens": np.concatenate(tokens), "features": np.concatenate(features)}


def main() -> int:
    """Make the data as the command line says; the result file is written in any case."""
    parser = argparse.ArgumentParser(description="Let the tiny target write training data for a drafter.")
    parser.add_argument("--target", required=True, help="folder of the target")
    parser.add_argument("--texts", type=int, required=True)
    parser.add_argument("--length", type=int, default=120, help="tokens of a text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="data.json")
    args = parser.parse_args()
    path = os.path.join(os.path.dirname(os.path.abspath(args.output)), FILE)
    body: Dict[str, Any] = {"status": "ok", "problems": [], "path": path, "sequences": 0, "tokens": 0, "sha256": ""}
    try:
        data = tiny_tensors.encode(make(args.target, args.texts, args.length, args.seed))
        write_by_rename(path, data)
        made = tiny_tensors.load(path)
        body.update(sequences=len(made["tokens"]), tokens=made["tokens"].size, sha256=hashlib.sha256(data).hexdigest())
    except (OSError, ValueError, KeyError) as error:
        body.update(status="error", problems=[f"{type(error).__name__}: {error}"])
    write_result(args.output, PRODUCER, body)
    print(f"{body['sequences']} texts, {body['tokens']} tokens", *body["problems"])
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
