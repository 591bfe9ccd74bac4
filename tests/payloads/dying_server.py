"""A real HTTP server that fails as vLLM 0.32 was seen to fail, status by status and byte by byte.

    dying_server.py --port N --drafter DIR [--serves NAME] [--alone] [--eager]
        [--dies first-request|mid-answer|mid-stream] [--after N]

--alone: it does not draft, and then has no counter of it at all. --eager: without graphs.

first-request: healthy until asked; the first request gets HTTP 500, the next look at its health 503, then it exits. So
does a server whose drafter has another hidden size than the target. mid-answer: its worker is killed after some
requests, and those under way get HTTP 500. mid-stream: those under way were answered as streams: HTTP 200, some tokens,
then an event with the error, then the end of the stream as if nothing had happened.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

K = 4
MESSAGE = "EngineCore encountered an issue. See stack trace (above) for the root cause."
ERROR = {"error": {"message": MESSAGE, "type": "InternalServerError", "param": None, "code": 500}}
LOCK = threading.Lock()
SEEN = {"requests": 0, "dead": 0}


def completion(tokens: list[int], reason: str | None) -> dict[str, object]:
    choice = {"index": 0, "text": " #### 7", "token_ids": tokens, "finish_reason": reason}
    return {"object": "text_completion", "choices": [choice], "usage": {"completion_tokens": len(tokens)}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    args: argparse.Namespace

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/health":
            self.health()
        elif self.path == "/v1/models":
            self.send(200, {"data": [{"id": self.args.serves, "root": "/m", "max_model_len": 4096}]})
        elif self.path == "/version":
            self.send(200, {"version": "0.32.0"})
        elif self.path == "/metrics":
            self.metrics()
        elif self.path == "/server_info?config_format=json":
            self.send(200, {"vllm_config": self.settings()})
        else:
            self.send(404, {"detail": "Not Found"})

    def health(self) -> None:
        with LOCK:
            dead, SEEN["dead"] = SEEN["dead"], SEEN["dead"] * 2
        if not dead:
            self.send(200, None)
            return
        self.send(503, None)
        print("RuntimeError: Engine core died", flush=True)
        os._exit(1)

    def settings(self) -> dict[str, object]:
        eager = self.args.eager
        speculation = {"method": "dflash", "model": self.args.drafter, "num_speculative_tokens": K}
        return {
            "model_config": {"model": "/m", "enforce_eager": eager},
            "compilation_config": {"mode": 0 if eager else 3, "cudagraph_mode": 0 if eager else 2},
            "speculative_config": None if self.args.alone else speculation,
        }

    def metrics(self) -> None:
        asked, name = SEEN["requests"], "vllm:spec_decode_num"
        positions = [6 * asked, 3 * asked, asked, 0]
        counts = {"drafts": 10 * asked, "draft_tokens": 10 * K * asked, "accepted_tokens": sum(positions)}
        lines = [f"{name}_{what}_total {count}" for what, count in counts.items()]
        per_position = f"{name}_accepted_tokens_per_pos_total"
        lines += [f'{per_position}{{position="{i}"}} {count}' for i, count in enumerate(positions)]
        if self.args.alone:
            lines = [f"vllm:num_requests_running {asked}"]
        self.send_bytes(200, "\n".join([*lines, ""]).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        dies = self.args.dies
        with LOCK:
            SEEN["requests"] += 1
            if dies and SEEN["requests"] > self.args.after:
                SEEN["dead"] = 1
        if not SEEN["dead"]:
            self.send(200, completion(list(range(20)), "length"))
        elif dies == "mid-stream":
            events = [json.dumps(completion([i], None)) for i in range(20)] + [json.dumps(ERROR), "[DONE]"]
            self.send_bytes(200, "".join(f"data: {event}\n\n" for event in events).encode(), "text/event-stream")
        else:
            self.send(500, ERROR)

    def send(self, status: int, document: object) -> None:
        self.send_bytes(status, b"" if document is None else json.dumps(document).encode())

    def send_bytes(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--drafter", required=True)
    parser.add_argument("--serves", default="m")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--dies", choices=("first-request", "mid-answer", "mid-stream"))
    parser.add_argument("--after", type=int, default=0)
    Handler.args = parser.parse_args()
    ThreadingHTTPServer(("127.0.0.1", Handler.args.port), Handler).serve_forever()
    return 0


sys.exit(main())
