"""Accuracy on GSM8K with the drafter on, and how much of what it drafts is accepted meanwhile.

    python3 accuracy.py --server-command 'SERVE --port {port}' --model NAME --drafter DIR --draft-tokens K \
        --questions gsm8k.jsonl [--samples 200] [--shots 5] [--seed 0] [--stop TEXT ...] [--output accuracy.json]

The server is made sure of as in the smoke test. Every question is asked once, with the likeliest token each time. A
question without an answer ends the measurement: a mean over what is left would be another number. The environment
variable SERVER_TIMEOUT overrides --server-timeout. The result file is written in any case, and a server that was
started here is ended in any case. Exit status: 0 done, 1 anything else.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn

if TYPE_CHECKING:
    from backends.payloads import gsm8k
    from backends.payloads.counters import Counters, Unreadable
    from backends.payloads.endpoint import Asked, Completion, failed
    from backends.payloads.load import counted
    from backends.payloads.processes import at_signals
    from backends.payloads.results import write_result
    from backends.payloads.serving import Identity, Server, Stop, Wanted, add_server_options, identify, timeout_from
else:
    import gsm8k
    from counters import Counters, Unreadable
    from endpoint import Asked, failed
    from load import counted
    from processes import at_signals
    from results import write_result
    from serving import Server, Stop, Wanted, add_server_options, identify, timeout_from

PRODUCER = "accuracy"
VARIABLE = "SERVER_TIMEOUT"


def ask(server: Server, args: argparse.Namespace, text: str) -> Completion:
    """Ask one question."""
    endpoint = server.endpoint()
    said = endpoint.complete(Asked(args.model, text, args.max_tokens, ignore_eos=False, stop=tuple(args.stop or ())))
    endpoint.close()
    if said.error is None and (not said.text or said.tokens < 1):
        return failed("an answer without text, or without the number of its tokens")
    return said


def run(args: argparse.Namespace, body: Dict[str, Any]) -> None:
    """Measure, and fill in the result.

    Raises:
        Stop: When it cannot go on.
    """
    args.server_timeout = timeout_from(VARIABLE, args.server_timeout)
    try:
        problems = gsm8k.read_problems(args.questions)
        shots, questions = gsm8k.choose(problems, args.shots, args.samples, args.seed)
        with open(args.questions, "rb") as stream:
            body["questions_sha256"] = hashlib.sha256(stream.read()).hexdigest()
    except (OSError, ValueError) as error:
        raise Stop("unexpected", f"questions cannot be read: {error}") from None
    if args.base_url:
        server = Server(args.base_url, engine=args.engine)
    else:
        server = Server.start(args.server_command, "server.log", args.port, args.engine)
    wanted = Wanted(args.model, args.drafter, args.draft_tokens, tuple(args.require))
    try:
        server.wait(args.server_timeout)
        tell(body, identify(server, wanted))
        before = server.counters()
        answers = measure(args, body, server, shots, questions)
        count(body, counted(before, server.counters(), answers))
    except Unreadable as error:
        raise Stop("metrics_unreadable", str(error)) from None
    finally:
        server.stop()
        body["server"].update(server.to_json())


def tell(body: Dict[str, Any], identity: Identity) -> None:
    """Put what the server says of itself into the result; its own names of settings stand beside ours."""
    body["server"].update({**identity.settings, **identity.speculation})
    body["server"].update(
        model=identity.model,
        drafter=identity.drafter,
        num_draft_tokens=identity.draft_tokens,
        version=identity.version,
    )


def measure(
    args: argparse.Namespace,
    body: Dict[str, Any],
    server: Server,
    shots: List[gsm8k.Problem],
    questions: List[gsm8k.Problem],
) -> List[Completion]:
    """Ask all questions, so many at a time, and count what is right by both rules.

    Raises:
        Stop: When a question got no answer.
    """
    with concurrent.futures.ThreadPoolExecutor(args.concurrency) as pool:
        answers = list(pool.map(lambda one: ask(server, args, gsm8k.prompt(shots, one)), questions))
    rows = [_row(problem, said) for problem, said in zip(questions, answers)]
    body["outputs"] = rows
    body["answered"] = sum(said.error is None for said in answers)
    body["output_tokens"] = sum(said.tokens for said in answers)
    for rule in ("strict", "flexible"):
        body[f"correct_{rule}"] = sum(row[rule] == row["number"] for row in rows)
    if body["answered"] < len(questions):
        server.check_alive_after_failure()
        first = next(said.error for said in answers if said.error)
        raise Stop("generation_failed", f"{len(questions) - body['answered']} of {len(questions)} failed: {first}")
    return answers


def _row(problem: gsm8k.Problem, said: Completion) -> Dict[str, Any]:
    """An answer as it is written: what was said, and what was read out of it by which rule."""
    read_out = {"strict": gsm8k.strict(said.text), "flexible": gsm8k.flexible(said.text)}
    told = {"text": said.text, "tokens": said.tokens, "finish_reason": said.finish_reason, "error": said.error or ""}
    return {"line": problem.line, "number": problem.number, **read_out, **told}


def count(body: Dict[str, Any], counters: Counters) -> None:
    """Put the counters, and what follows from them, into the result.

    Raises:
        Stop: When nothing was drafted.
    """
    body["counters"] = counters.to_json()
    body["acceptance_length"] = counters.acceptance_length
    if not counters.drafts or not counters.draft_tokens:
        raise Stop("drafter_inactive", "all questions were answered, and nothing was drafted")


def blank(args: argparse.Namespace) -> Dict[str, Any]:
    """The result of a measurement that has not begun."""
    server = {"base_url": args.base_url or "", "model": "", "drafter": None, "num_draft_tokens": 0, "version": ""}
    server.update(command=args.server_command or "", exit_status=None, log_tail="", started_in_s=None)
    server["timeout_s"] = args.server_timeout
    return {
        "stage": "unexpected",
        "detail": "",
        "problems": [],
        "task": gsm8k.TASK,
        "samples": args.samples,
        "shots": args.shots,
        "seed": args.seed,
        "questions_sha256": "",
        "answered": 0,
        "correct_strict": 0,
        "correct_flexible": 0,
        "requested": {"model": args.model, "drafter": args.drafter, "num_draft_tokens": args.draft_tokens},
        "server": server,
        "output_tokens": 0,
        "counters": Counters(0, 0, 0, ()).to_json(),
        "acceptance_length": None,
        "outputs": [],
    }


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy on GSM8K with a drafter, over an OpenAI-compatible server.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--server-command", help="shell command that starts the server; {port} stands for the port")
    which.add_argument("--base-url", help="use a server that runs already")
    parser.add_argument("--port", type=int, default=0, help="port that the server must take; 0 for a free one")
    parser.add_argument("--model", required=True, help="name under which the target is served")
    parser.add_argument("--drafter", required=True, help="folder of the drafter")
    parser.add_argument("--draft-tokens", type=_count, required=True, help="tokens that it drafts a step")
    parser.add_argument("--questions", required=True, help="the data set, one JSON object a line")
    parser.add_argument("--samples", type=_count, default=200, help="questions to ask")
    parser.add_argument("--shots", type=int, choices=range(65), metavar="N", default=5, help="examples before each")
    parser.add_argument("--seed", type=int, default=0, help="chooses examples and questions")
    parser.add_argument("--max-tokens", type=_count, default=512, help="most tokens of an answer")
    parser.add_argument("--stop", action="append", help="text at which the server ends an answer; may be repeated")
    parser.add_argument("--concurrency", type=_count, default=16, help="requests at a time")
    parser.add_argument("--server-timeout", type=float, default=600.0, help="seconds until the server must be healthy")
    add_server_options(parser)
    parser.add_argument("--output", default="accuracy.json")
    return parser.parse_args()


def _ended(number: int) -> NoReturn:
    raise Stop("unexpected", f"told to end by signal {number}")


def main() -> int:
    """Measure as the command line says."""
    args = _arguments()
    args.drafter = os.path.abspath(args.drafter)
    body = blank(args)
    at_signals(_ended)
    try:
        run(args, body)
        body.update(stage="done", detail="")
    except Stop as stop:
        body.update(stage=stop.stage, detail=stop.detail)
    except Exception as error:  # the result file must say so, whatever it is
        traceback.print_exc()
        body.update(stage="unexpected", detail=f"{type(error).__name__}: {error}")
    write_result(args.output, PRODUCER, body)
    right = f"of {body['samples']} right: {body['correct_flexible']} flexible, {body['correct_strict']} strict"
    print(f"{body['stage']}: {right}, acceptance length {body['acceptance_length']} {body['detail']}")
    return 0 if body["stage"] == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
