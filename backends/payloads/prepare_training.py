"""Prepares a training of a drafter: picks the conversations, and makes sure that the training can work with its target.

    python3 prepare_training.py --source FILE.jsonl --samples N --target DIR --algorithm dflash --block-size 16 \
        --draft-tokens 7 --sequence-length 4096 --mask-token-id ID [...] [--output data.json]

The source has one conversation a line: a JSON object with `messages` (or `conversations`), a list of turns with `role`
and `content` (or `from` and `value`). What is picked depends on the seed and on the number of the line alone, and is
written in the order of the source to train.jsonl. overrides.txt gets what the training must be told about the target.
All that a training would only trip over hours later is looked at here. The result file is written in any case. Exit
status: 0 prepared, 1 not.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Set, Tuple

if TYPE_CHECKING:
    from backends.payloads.results import write_by_rename, write_result
    from backends.payloads.training_plan import Wanted, plan, template_problem
else:
    from results import write_by_rename, write_result
    from training_plan import Wanted, plan, template_problem

PRODUCER = "prepare_training"
DATA = "train.jsonl"
OVERRIDES = "overrides.txt"
CONFIGURATION = "configuration"
"""Cause of a failure that whoever wrote the inputs can mend, and nobody else."""

_TOLD = 5
_ASSISTANT = ("assistant", "gpt")


class Failed(Exception):
    """The inputs cannot be used; one text for each reason."""


class Turns(NamedTuple):
    """What counts about a conversation.

    Attributes:
        words: Words of all its turns.
        answered: Whether there is an answer to learn from.
    """

    words: int
    answered: bool


def read_turns(line: str) -> Turns:
    """Read a line of the source.

    Raises:
        ValueError: When it is no conversation.
    """
    document = json.loads(line)
    turns = document.get("messages", document.get("conversations")) if isinstance(document, dict) else None
    if not isinstance(turns, list) or not turns:
        raise ValueError("expected an object with messages or conversations, a list of turns")
    words, answered = 0, False
    for turn in turns:
        role = turn.get("role", turn.get("from")) if isinstance(turn, dict) else None
        content = turn.get("content", turn.get("value")) if isinstance(turn, dict) else None
        if not isinstance(role, str) or not isinstance(content, str):
            raise ValueError("expected turns with the texts role and content")
        words += len(content.split())
        answered = answered or (role in _ASSISTANT and bool(content.strip()))
    return Turns(words, answered)


def lines(path: str) -> Iterator[Tuple[int, str]]:
    """The lines of a file that are not empty, numbered from 1.

    Raises:
        OSError: When it cannot be read.
    """
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield number, line


def choose(path: str, samples: int, seed: int, body: Dict[str, Any]) -> Set[int]:
    """Numbers of the lines to train on; what is wrong with others goes into the result.

    Raises:
        OSError: When the source cannot be read.
        Failed: When lines of it are no conversations, or there is none to learn from.
    """
    best: List[Tuple[int, int]] = []
    problems: List[str] = []
    for number, line in lines(path):
        try:
            turns = read_turns(line)
        except (ValueError, RecursionError) as error:
            problems.append(f"{path}:{number}: {error}")
            if len(problems) == _TOLD:
                break
            continue
        if not turns.answered:
            body["skipped"] += 1
            continue
        # Negated: the heap gives its smallest first, and the largest of those kept is the one to go.
        key = -int.from_bytes(hashlib.sha256(f"{seed}:{number}".encode("ascii")).digest()[:8], "big")
        if len(best) < samples:
            heapq.heappush(best, (key, number))
        else:
            heapq.heappushpop(best, (key, number))
    if problems:
        raise Failed(*problems)
    if len(best) < samples:
        raise Failed(f"{path}: {len(best)} conversations with an answer, {samples} are asked for: override samples")
    return {number for _, number in best}


def write_data(path: str, chosen: Set[int], body: Dict[str, Any]) -> None:
    """Write the conversations that were picked.

    Raises:
        OSError: When that cannot be done.
    """
    digest = hashlib.sha256()
    temporary = f"{DATA}.tmp"
    with open(temporary, "wb") as stream:
        for number, line in lines(path):
            if number in chosen:
                data = (line.rstrip("\r\n") + "\n").encode("utf-8")
                body["sequences"] += 1
                body["tokens"] += max(1, read_turns(line).words)
                digest.update(data)
                stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, DATA)
    body["sha256"] = digest.hexdigest()


def prepare(args: argparse.Namespace, body: Dict[str, Any]) -> None:
    """Prepare the training and fill in the result.

    Raises:
        OSError: When a file cannot be written.
        Failed: When the inputs cannot be used.
    """
    problems: List[str] = []
    body["cause"] = CONFIGURATION
    try:
        with open(os.path.join(args.target, "config.json"), encoding="utf-8") as stream:
            config = json.load(stream)
        if not isinstance(config, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise Failed(f"the target's config.json cannot be read: {error}") from None
    wanted = Wanted(*(getattr(args, name) for name in Wanted._fields))
    overrides, problems = plan(config, wanted)
    if args.answer_only_loss == "true":
        problem = template_problem(args.target, args.chat_template)
        problems += [problem] if problem else []
    if problems:
        raise Failed(*problems)
    try:
        chosen = choose(args.source, args.samples, args.seed, body)
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"the conversations cannot be read: {args.source}: {error}") from None
    body["cause"] = ""
    write_by_rename(OVERRIDES, "".join(f"{line}\n" for line in overrides).encode("ascii"))
    write_data(args.source, chosen, body)
    body.update(status="ok", overrides=overrides)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prepare a training of a drafter with Model-Optimizer.")
    parser.add_argument("--source", required=True, help="conversations, one JSON object a line")
    parser.add_argument("--samples", type=int, required=True, help="how many of them to train on")
    parser.add_argument("--seed", type=int, default=0, help="chooses which")
    parser.add_argument("--target", required=True, help="folder of the target")
    parser.add_argument("--algorithm", required=True, choices=("dflash", "dflash2"))
    parser.add_argument("--block-size", type=int, required=True)
    parser.add_argument("--draft-tokens", type=int, required=True)
    parser.add_argument("--sequence-length", type=int, required=True, help="tokens of a training text")
    parser.add_argument("--mask-token-id", type=int, required=True)
    parser.add_argument("--intermediate-size", type=int, default=0, help="of the drafter; 0 for the target's")
    parser.add_argument("--conv-group-size", type=int, default=1)
    parser.add_argument("--answer-only-loss", choices=("true", "false"), default="true")
    parser.add_argument("--chat-template", default="", help="a file; empty for the target's own")
    parser.add_argument("--output", default="data.json")
    return parser.parse_args()


def main() -> int:
    """Prepare as the command line says."""
    args = _arguments()
    body: Dict[str, Any] = {"status": "error", "detail": "", "cause": "", "problems": [], "sequences": 0, "tokens": 0}
    body.update(tokens_are="words, of which a tokenizer makes at least as many tokens", skipped=0, overrides=[])
    body.update(path=os.path.abspath(DATA), sha256="", source=args.source, seed=args.seed)
    try:
        prepare(args, body)
    except Failed as failed:
        body.update(detail=str(failed.args[0]), problems=[str(text) for text in failed.args])
    except Exception as error:  # the result file must say so, whatever it is
        traceback.print_exc()
        body.update(detail=f"{type(error).__name__}: {error}", cause="")
    write_result(args.output, PRODUCER, body)
    print(f"{body['status']}: {body['sequences']} conversations, {body['skipped']} without an answer passed over")
    for problem in body["problems"]:
        print(f"  {problem}")
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
