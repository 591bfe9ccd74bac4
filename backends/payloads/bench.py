"""A|B benchmark of a drafter: A is the target alone, B the target with the drafter.

    python3 bench.py --server-a 'SERVE --port {port}' --server-b 'SERVE --port {port} DRAFTER' --model NAME \
        --drafter DIR --draft-tokens K --manifest-sha256 HEX --prompts FILE.jsonl --concurrency 1,8,32 \
        --requests-per-point N --max-tokens N --exact-prompts N [--output bench.json] [--exact-output exact_match.json]

One server runs at a time, on the same machine, with the same prompts. The arms are measured in rounds, A B, then B A,
and so on, so that a machine that grows slower does not favour either; a point adds up its rounds. What is asked before
the clock starts is not counted anywhere. For the exact match both arms answer the first prompts at one concurrency, and
A once more at another one: the control. The environment variable SERVER_TIMEOUT overrides --server-timeout. Both result
files are written in any case, and servers are ended in any case. Exit status: 0 done, 1 anything else.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn, Optional, Tuple

if TYPE_CHECKING:
    from backends.payloads.arms import Arm, Plan
    from backends.payloads.counters import Unreadable
    from backends.payloads.load import Question, read_questions
    from backends.payloads.processes import at_signals
    from backends.payloads.results import write_result
    from backends.payloads.serving import Stop, Wanted, add_server_options, needs_ids, timeout_from
else:
    from arms import Arm, Plan
    from counters import Unreadable
    from load import Question, read_questions
    from processes import at_signals
    from results import write_result
    from serving import Stop, Wanted, add_server_options, needs_ids, timeout_from

PRODUCER = "bench"
VARIABLE = "SERVER_TIMEOUT"


def run(args: argparse.Namespace, arms: Tuple[Arm, Arm], questions: List[Question]) -> None:
    """Measure both arms in all rounds.

    Raises:
        Stop: When it cannot go on.
    """
    for number in range(args.rounds):
        for arm in arms if number % 2 == 0 else arms[::-1]:
            measure(arm, questions, exact=number == args.rounds - 1)


def measure(arm: Arm, questions: List[Question], exact: bool) -> None:
    """One round of one arm; what goes wrong names the arm.

    Raises:
        Stop: When it cannot go on.
    """
    try:
        arm.measure(questions, exact)
    except Unreadable as error:
        raise Stop("metrics_unreadable", f"arm {arm.name}: {error}") from None
    except Stop as stop:
        raise Stop(stop.stage, f"arm {arm.name}: {stop.detail}") from None


def bench_result(args: argparse.Namespace, arms: Tuple[Arm, Arm]) -> Dict[str, Any]:
    """What `bench.json` says about the arms, as far as they were measured."""
    points_a, points_b = ({p.concurrency: p for p in arm.points if p.completed} for arm in arms)
    speedup = [
        {"concurrency": level, "value": points_b[level].tokens_per_s / points_a[level].tokens_per_s}
        for level in args.concurrency
        if level in points_a and level in points_b
    ]
    return {
        "sampling": {"temperature": 0, "max_tokens": args.max_tokens, "seed": 0, "ignore_eos": True},
        "warmup_requests": args.warmup_requests,
        "rounds": args.rounds,
        "arms": {arm.name: arm.to_json(args.manifest_sha256) for arm in arms},
        "speedup": speedup,
    }


def exact_result(args: argparse.Namespace, arms: Tuple[Arm, Arm], questions: List[Question]) -> Dict[str, Any]:
    """What `exact_match.json` says: the outputs of A, of A again, and of B, and how many are the same."""
    own, control, other = arms[0].exact, arms[0].control, arms[1].exact
    rows: List[Dict[str, Any]] = []
    if own is not None and control is not None and other is not None:
        for i, question in enumerate(questions[: args.exact_prompts]):
            answers = {"a": own[i], "control": control[i], "b": other[i]}
            errors = [f"{name}: {answer.error}" for name, answer in answers.items() if answer.error is not None]
            row: Dict[str, Any] = {"id": question.id, "prompt_sha256": question.sha256}
            row.update({name: answer.token_ids for name, answer in answers.items()})
            rows.append({**row, "error": "; ".join(errors) or None})
    good = [row for row in rows if row["error"] is None]

    def share(name: str) -> Optional[float]:
        return sum(row["a"] == row[name] for row in good) / len(rows) if rows else None

    return {
        "compared": "token_ids",
        "prompts": len(rows),
        "max_tokens": args.max_tokens,
        "concurrency": args.exact_concurrency,
        "control_concurrency": args.control_concurrency,
        "drafter": args.drafter,
        "drafter_manifest_sha256": args.manifest_sha256,
        "num_draft_tokens": args.draft_tokens,
        "outputs": rows,
        "exact_match": share("b"),
        "control_exact_match": share("control"),
    }


def _concurrency(text: str) -> List[int]:
    levels = [int(part) for part in text.split(",")]
    if not levels or min(levels) < 1 or len(set(levels)) < len(levels):
        raise argparse.ArgumentTypeError(f"{text!r}: numbers above 0, each once, with commas between")
    return levels


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A|B benchmark of a drafter behind an OpenAI-compatible server.")
    parser.add_argument("--server-a", required=True, help="shell command: the target alone; {port} stands for the port")
    parser.add_argument("--server-b", required=True, help="shell command: the target with the drafter")
    parser.add_argument("--model", required=True, help="name under which the target is served")
    parser.add_argument("--drafter", required=True, help="folder of the frozen drafter")
    parser.add_argument("--draft-tokens", type=int, required=True, help="tokens that it drafts a step")
    parser.add_argument("--manifest-sha256", required=True, help="digest of the frozen drafter's SHA256SUMS")
    parser.add_argument("--prompts", required=True, help="prompts, one JSON object a line")
    parser.add_argument("--concurrency", type=_concurrency, default=[1, 8, 32], help="requests at a time, like 1,8,32")
    parser.add_argument("--requests-per-point", type=int, help="in each round; default twice the highest concurrency")
    parser.add_argument("--rounds", type=int, default=1, help="how often every point is measured in each arm")
    parser.add_argument("--warmup-requests", type=int, default=8, help="before anything is timed, at each start")
    parser.add_argument("--max-tokens", type=int, required=True, help="tokens of every output")
    parser.add_argument("--exact-prompts", type=int, default=32, help="prompts whose outputs are compared")
    parser.add_argument("--exact-concurrency", type=int, default=8)
    parser.add_argument("--control-concurrency", type=int, default=1)
    parser.add_argument("--server-timeout", type=float, default=600.0, help="seconds until a server must be healthy")
    add_server_options(parser)
    parser.add_argument("--output", default="bench.json")
    parser.add_argument("--exact-output", default="exact_match.json")
    args = parser.parse_args()
    args.drafter = os.path.abspath(args.drafter)
    args.requests_per_point = args.requests_per_point or 2 * max(args.concurrency)
    return args


def _ended(number: int) -> NoReturn:
    raise Stop("unexpected", f"told to end by signal {number}")


def _arms(args: argparse.Namespace) -> Tuple[Arm, Arm]:
    plan = Plan(
        concurrency=tuple(args.concurrency),
        requests=args.requests_per_point,
        warmup_requests=args.warmup_requests,
        max_tokens=args.max_tokens,
        exact_prompts=args.exact_prompts,
        exact_concurrency=args.exact_concurrency,
        control_concurrency=args.control_concurrency,
    )
    require = tuple(args.require)
    drafting = Wanted(args.model, args.drafter, args.draft_tokens, require)
    # What is required of the drafting is not required of the arm that does not draft.
    alone = Wanted(args.model, settings=tuple(pair for pair in require if not pair[0].startswith("spec")))
    return Arm("A", args.server_a, alone, plan, args.engine), Arm("B", args.server_b, drafting, plan, args.engine)


def main() -> int:
    """Measure as the command line says."""
    args = _arguments()
    arms = _arms(args)
    questions: List[Question] = []
    end: Dict[str, Any] = {"stage": "done", "detail": ""}
    digest = None
    at_signals(_ended)
    try:
        timeout = timeout_from(VARIABLE, args.server_timeout)
        needs_ids(args.engine)
        with open(args.prompts, "rb") as stream:
            digest = hashlib.sha256(stream.read()).hexdigest()
        questions = read_questions(args.prompts)
        for arm in arms:
            arm.timeout = timeout
        run(args, arms, questions)
    except Stop as stop:
        end = {"stage": stop.stage, "detail": stop.detail}
    except Exception as error:  # the result files must say so, whatever it is
        traceback.print_exc()
        end = {"stage": "unexpected", "detail": f"{type(error).__name__}: {error}"}
    write_result(args.exact_output, PRODUCER, {**end, **exact_result(args, arms, questions)})
    result = write_result(args.output, PRODUCER, {**end, "prompts_sha256": digest, **bench_result(args, arms)})
    speedup = ", ".join(f"{item['value']:.2f} at {item['concurrency']}" for item in result["speedup"])
    print(f"{end['stage']}: speedup {speedup or 'not measured'} {end['detail']}")
    return 0 if end["stage"] == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
