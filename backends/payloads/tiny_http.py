"""The HTTP side of the tiny server: vLLM's paths, answers and errors, as far as this project's programs use them."""

from __future__ import annotations

import argparse
import json
import os
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Set

if TYPE_CHECKING:
    from backends.payloads import tiny_metrics
    from backends.payloads.tiny_engine import Engine, EngineDead, Request
    from backends.payloads.tiny_vocabulary import Vocabulary
else:
    import tiny_metrics
    from tiny_engine import EngineDead, Request

VERSION = "tiny-1"
THREAD_VARIABLES = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LARGEST_BODY = 1 << 20
_UNSUPPORTED = ("stream", "stop", "logprobs", "echo", "suffix", "best_of")


class Refused(Exception):
    """A request that cannot be served.

    Attributes:
        status: HTTP status.
        kind: What vLLM calls it.
        parameter: What is wrong in the request.
    """

    def __init__(self, status: int, message: str, parameter: Optional[str] = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = {400: "BadRequestError", 404: "NotFoundError", 503: "ServiceUnavailableError"}.get(
            status, "InternalServerError"
        )
        self.parameter = parameter


class Asked(NamedTuple):
    """A request for a completion, checked."""

    prompt: List[int]
    max_tokens: int
    ignore_eos: bool
    return_token_ids: bool


class Served:
    """What the server serves, once it is loaded.

    Attributes:
        args: The command line.
        created: When it was loaded, seconds since 1970.
    """

    def __init__(self, args: argparse.Namespace, engine: Engine, vocabulary: Vocabulary, longest: int) -> None:
        self.args = args
        self.engine = engine
        self.vocabulary = vocabulary
        self.longest = longest
        self.created = time.time()

    def models(self) -> Dict[str, Any]:
        """The answer of `/v1/models`."""
        model = {"id": self.args.served_model_name, "object": "model", "created": int(self.created), "owned_by": "tiny"}
        model.update(root=self.args.model, parent=None, max_model_len=self.longest)
        return {"object": "list", "data": [model]}

    def info(self) -> Dict[str, Any]:
        """The answer of `/server_info`: how the server is set up, with vLLM's names."""
        args, k = self.args, self.engine.draft_tokens
        model = {"model": args.model, "served_model_name": args.served_model_name, "dtype": "float32"}
        model["max_model_len"] = self.longest
        variables = "\n".join(f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ)
        return {
            "vllm_config": {
                "model_config": model,
                "cache_config": {"enable_prefix_caching": False},
                "parallel_config": {"tensor_parallel_size": 1},
                "scheduler_config": {"max_num_seqs": args.max_num_seqs},
                "speculative_config": {"model": args.drafter, "num_speculative_tokens": k} if k else None,
            },
            "system_env": {"vllm_version": VERSION, "env_vars": variables},
        }

    def ask(self, body: Dict[str, Any]) -> Asked:
        """Check a request for a completion.

        Raises:
            Refused: When it cannot be served.
        """
        if body.get("model") != self.args.served_model_name:
            name = self.args.served_model_name
            raise Refused(404, f"The model `{body.get('model')}` does not exist. Valid aliases: {name}.", "model")
        for name in _UNSUPPORTED:
            if body.get(name) not in (None, False):
                raise Refused(400, f"{name} is not supported by this server", name)
        if _number(body.get("temperature")) != 0:
            raise Refused(400, f"temperature must be 0 (greedy decoding), got {body.get('temperature')}", "temperature")
        if body.get("n", 1) != 1:
            raise Refused(400, "n must be 1", "n")
        prompt = self._prompt(body.get("prompt"))
        max_tokens = body.get("max_tokens", 16)
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise Refused(400, f"max_tokens must be a whole number of at least 1, got {max_tokens!r}", "max_tokens")
        if len(prompt) + max_tokens > self.longest:
            asked = f"{len(prompt)} tokens of prompt and max_tokens={max_tokens}"
            raise Refused(400, f"This model's maximum context length is {self.longest} tokens. {asked} exceed it.")
        return Asked(prompt, max_tokens, body.get("ignore_eos") is True, body.get("return_token_ids") is True)

    def _prompt(self, prompt: Any) -> List[int]:
        if isinstance(prompt, str) and prompt:
            return self.vocabulary.encode(prompt)
        if not isinstance(prompt, list) or not prompt:
            raise Refused(400, "Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
        for token in prompt:
            if isinstance(token, bool) or not isinstance(token, int):
                raise Refused(400, "prompt must be one text or one list of token ids", "prompt")
            if not 0 <= token < len(self.vocabulary.tokens):
                raise Refused(400, f"Token id {token} is out of vocabulary")
        return list(prompt)

    def complete(self, asked: Asked) -> Dict[str, Any]:
        """Go on with a text.

        Raises:
            Refused: When the engine fails.
        """
        request = Request(asked.prompt, asked.max_tokens, asked.ignore_eos)
        try:
            self.engine.submit(request)
        except EngineDead as error:
            raise Refused(500, str(error)) from None
        request.done.wait()
        if request.error:
            raise Refused(500, request.error)
        choice: Dict[str, Any] = {"index": 0, "text": self.vocabulary.decode(request.output), "logprobs": None}
        choice.update(finish_reason=request.finish_reason, stop_reason=None)
        choice["token_ids"] = request.output if asked.return_token_ids else None
        choice["prompt_token_ids"] = request.prompt if asked.return_token_ids else None
        usage = {"prompt_tokens": len(request.prompt), "completion_tokens": len(request.output)}
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        answer = {"id": f"cmpl-{uuid.uuid4().hex[:16]}", "object": "text_completion", "created": int(time.time())}
        return {**answer, "model": self.args.served_model_name, "choices": [choice], "usage": usage}


class Server(ThreadingHTTPServer):
    """The HTTP server; `served` is None while the model loads."""

    daemon_threads = True
    request_queue_size = 128
    served: Optional[Served] = None


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # headers and body leave in one piece; two small ones would wait for each other
    server: Server

    def do_GET(self) -> None:
        """Answer what can be asked without a body."""
        self._answer("GET", {"/health", "/version", "/metrics", "/server_info", "/v1/models"})

    def do_POST(self) -> None:
        """Answer a request for a completion."""
        self._answer("POST", {"/v1/completions"})

    def log_message(self, format: str, *args: Any) -> None:
        """Keep single requests out of the log."""

    def _answer(self, method: str, known: Set[str]) -> None:
        path = self.path.split("?")[0]
        body = self.rfile.read(min(_LARGEST_BODY, int(self.headers.get("Content-Length") or 0)))
        served = self.server.served
        try:
            if path not in known:
                other = path == "/v1/completions" if method == "GET" else path.startswith(("/v1/models", "/health"))
                self._send(405 if other else 404, {"detail": "Method Not Allowed" if other else "Not Found"})
            elif served is None or served.engine.failed.is_set():
                raise Refused(503, "Loading model" if served is None else "the engine does not work any more")
            elif path == "/health":
                self._send_bytes(200, b"", "text/plain")
            elif path == "/metrics":
                self._send_bytes(200, _metrics(served), tiny_metrics.CONTENT_TYPE)
            else:
                self._send(200, _document(served, path, body))
        except Refused as refused:
            error = {"message": str(refused), "type": refused.kind, "param": refused.parameter, "code": refused.status}
            self._send(refused.status, {"error": error})

    def _send(self, status: int, document: Dict[str, Any]) -> None:
        self._send_bytes(status, json.dumps(document, separators=(",", ":")).encode("utf-8"), "application/json")

    def _send_bytes(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _document(served: Served, path: str, body: bytes) -> Dict[str, Any]:
    """The JSON answer for a path."""
    if path == "/version":
        return {"version": VERSION}
    if path == "/v1/models":
        return served.models()
    if path == "/server_info":
        return served.info()
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Refused(400, f"JSON decode error: {error}", "body") from None
    if not isinstance(document, dict):
        raise Refused(400, "the body must be a JSON object", "body")
    return served.complete(served.ask(document))


def _metrics(served: Served) -> bytes:
    engine, model = served.engine, served.args.served_model_name
    return tiny_metrics.exposition(engine.counters(), engine.load(), model, served.created).encode("utf-8")


def _number(value: Any) -> Optional[float]:
    return None if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
