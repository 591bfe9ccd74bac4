"""Smoke test of a drafter: does the server come up with it, does it answer, does the target take what it drafts?

    python3 smoke.py --server-command 'SERVE --port {port}' --model NAME --drafter DIR --draft-tokens K \
        --prompts FILE.jsonl --max-tokens N --server-timeout S [--reference-command 'SERVE ALONE'] [--output smoke.json]

Works with vLLM and servers that have its paths, with SGLang and with llama.cpp (--engine). With a reference command
the target alone answers the same prompts afterwards, and the outputs are compared token by token. The environment
variable SERVER_TIMEOUT overrides --server-timeout. The result file is written in any case, and a server that was
started here is ended in any case. Exit status: 0 done, 1 anything else.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable
    from backends.payloads.endpoint import Completion
    from backends.payloads.load import Answers, Question, Sampling, counted, read_questions, send
    from backends.payloads.processes import at_signals
    from backends.payloads.results import write_result
    from backends.payloads.serving import Server, Stop, Wanted, add_server_options, identify, needs_ids, timeout_from
else:
    from counters import Counters, Unreadable
    from endpoint import Completion
    from load import Answers, Question, Sampling, counted, read_questions, send
    from processes import at_signals
    from results import write_result
    from serving import Server, Stop, Wanted, add_server_options, identify, needs_ids, timeout_from

PRODUCER = "smoke"
VARIABLE = "SERVER_TIMEOUT"


def run(args: argparse.Namespace, body: Dict[str, Any]) -> None:
    """Run the smoke test and fill in the result.

    Raises:
        Stop: When it cannot go on.
    """
    args.server_timeout = timeout_from(VARIABLE, args.server_timeout)
    try:
        questions = read_questions(args.prompts, args.num_prompts)
    except (OSError, ValueError) as error:
        raise Stop("unexpected", f"prompts cannot be read: {error}") from None
    body["prompts_expected"] = len(questions)
    sampling = Sampling(args.max_tokens, args.ignore_eos)
    answers = measure(args, body, questions, sampling)
    if args.reference_command:
        add_reference(args, body, questions, sampling, answers)


def measure(args: argparse.Namespace, body: Dict[str, Any], questions: List[Question], sampling: Sampling) -> Answers:
    """Start the server with the drafter, let it answer, and count what was drafted and accepted.

    Raises:
        Stop: When it cannot go on.
    """
    wanted = Wanted(args.model, args.drafter, args.draft_tokens, tuple(args.require))
    needs_ids(args.engine)
    if args.base_url:
        server = Server(args.base_url, engine=args.engine)
    else:
        server = Server.start(args.server_command, "server.log", args.port, args.engine)
    try:
        server.wait(args.server_timeout)
        identity = identify(server, wanted)
        body["server"].update(
            model=identity.model,
            drafter=identity.drafter,
            num_draft_tokens=identity.draft_tokens,
            version=identity.version,
            settings=identity.settings,
            speculation=identity.speculation,
        )
        before = server.counters()
        answers = send(server.endpoint, args.model, questions, sampling, args.concurrency)
        body["outputs"] = [output(question, c) for question, c in zip(questions, answers.completions)]
        body["prompts_passed"] = len(answers.good)
        if len(answers.good) < len(questions):
            server.check_alive_after_failure()
            failed = len(questions) - len(answers.good)
            raise Stop("generation_failed", f"{failed} of {len(questions)} prompts failed: {answers.first_error}")
        count(body, counted(before, server.counters(), answers.completions))
        return answers
    except Unreadable as error:
        raise Stop("metrics_unreadable", str(error)) from None
    finally:
        server.stop()
        body["server"].update(server.to_json())


def count(body: Dict[str, Any], counters: Counters) -> None:
    """Put counters, and what follows from them, into the result.

    Raises:
        Stop: When nothing was drafted.
    """
    body["counters"] = counters.to_json()
    body["acceptance_length"] = counters.acceptance_length
    body["acceptance_rate"] = counters.acceptance_rate
    if not counters.drafts or not counters.draft_tokens:
        raise Stop("drafter_inactive", "all prompts were answered, and nothing was drafted")
    body["per_position_rates"] = [number / counters.drafts for number in counters.per_position]


def output(question: Question, completion: Completion) -> Dict[str, Any]:
    """An answer as it is written."""
    said = {"token_ids": completion.token_ids, "finish_reason": completion.finish_reason, "error": completion.error}
    return {"id": question.id, "reference_token_ids": None, **said}


def add_reference(
    args: argparse.Namespace, body: Dict[str, Any], questions: List[Question], sampling: Sampling, answers: Answers
) -> None:
    """Let the target alone answer the same prompts, and compare token by token.

    A reference that could not be made is a problem of this test, not of the drafter.
    """
    try:
        server = Server.start(args.reference_command, "reference.log", engine=args.engine)
        try:
            server.wait(args.server_timeout)
            identify(server, Wanted(args.model))
            reference = send(server.endpoint, args.model, questions, sampling, args.concurrency)
        finally:
            server.stop()
    except Stop as stop:
        if stop.stage == "unexpected":
            raise
        body["problems"].append(f"no reference: {stop}")
        return
    if reference.first_error:
        body["problems"].append(f"no reference: {reference.first_error}")
        return
    for row, completion in zip(body["outputs"], reference.completions):
        row["reference_token_ids"] = completion.token_ids
    pairs = zip(answers.completions, reference.completions)
    body["reference_identical"] = sum(own.token_ids == alone.token_ids for own, alone in pairs)


def blank(args: argparse.Namespace) -> Dict[str, Any]:
    """The result of a test that has not begun."""
    server = {"base_url": args.base_url or "", "model": "", "drafter": None, "num_draft_tokens": 0, "version": ""}
    server.update(command=args.server_command or "", exit_status=None, log_tail="", started_in_s=None)
    server["timeout_s"] = args.server_timeout
    return {
        "stage": "unexpected",
        "detail": "",
        "problems": [],
        "server": server,
        "requested": {"model": args.model, "drafter": args.drafter, "num_draft_tokens": args.draft_tokens},
        "prompts_expected": 0,
        "prompts_passed": 0,
        "outputs": [],
        "counters": Counters(0, 0, 0, ()).to_json(),
        "acceptance_length": None,
        "acceptance_rate": None,
        "per_position_rates": [],
        "reference_identical": None,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Smoke test of a drafter behind an OpenAI-compatible server.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--server-command", help="shell command that starts the server; {port} stands for the port")
    which.add_argument("--base-url", help="use a server that runs already")
    parser.add_argument("--reference-command", help="shell command that starts the target alone")
    parser.add_argument("--port", type=int, default=0, help="port that the server must take; 0 for a free one")
    parser.add_argument("--model", required=True, help="name under which the target is served")
    parser.add_argument("--drafter", required=True, help="folder of the drafter")
    parser.add_argument("--draft-tokens", type=int, required=True, help="tokens that it drafts a step")
    parser.add_argument("--prompts", required=True, help="prompts, one JSON object a line")
    parser.add_argument("--num-prompts", type=int, help="how many of them; default all")
    parser.add_argument("--max-tokens", type=int, required=True, help="most tokens of an output")
    parser.add_argument("--ignore-eos", action="store_true", help="go on behind the end of the text")
    parser.add_argument("--concurrency", type=int, default=1, help="requests at a time")
    parser.add_argument("--server-timeout", type=float, default=600.0, help="seconds until the server must be healthy")
    add_server_options(parser)
    parser.add_argument("--output", default="smoke.json")
    return parser.parse_args()


def _ended(number: int) -> NoReturn:
    raise Stop("unexpected", f"told to end by signal {number}")


def main() -> int:
    """Test as the command line says."""
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
    passed = f"{body['prompts_passed']} of {body['prompts_expected']} prompts"
    print(f"{body['stage']}: {passed}, acceptance length {body['acceptance_length']} {body['detail']}")
    return 0 if body["stage"] == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
