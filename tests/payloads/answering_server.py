"""A real HTTP server with vLLM's paths that knows the answers: what it says to each question is told beforehand."""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

K = 4
LOCK = threading.Lock()
COUNTED: dict[str, Any] = {"drafts": 7, "positions": [6, 2, 1, 0]}
"""Counters start above 0: what was served before must not be counted."""


def metrics() -> str:
    drafts, positions = COUNTED["drafts"], COUNTED["positions"]
    lines = [
        f"vllm:spec_decode_num_drafts_total {drafts}",
        f"vllm:spec_decode_num_draft_tokens_total {drafts * K}",
        f"vllm:spec_decode_num_accepted_tokens_total {sum(positions)}",
    ]
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    return "\n".join([*lines, *(f'{name}{{position="{i}"}} {positions[i]}' for i in range(K)), ""])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: dict[str, str]
    seen: Path

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.send(200, json.dumps({"data": [{"id": "m", "root": "/m", "max_model_len": 4096}]}))
        elif self.path == "/metrics":
            self.send(200, metrics())
        else:
            self.send(200 if self.path == "/health" else 404, "{}")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = asked["prompt"].rpartition("Question: ")[2].removesuffix("\nAnswer:")
        with LOCK:
            COUNTED["drafts"] += 10
            COUNTED["positions"] = [a + b for a, b in zip(COUNTED["positions"], (5, 2, 1, 0), strict=True)]
            with self.seen.open("a") as stream:
                stream.write(json.dumps(asked) + "\n")
        text = self.answers[question]
        if text == "FAIL":
            self.send(500, '{"error": {"message": "EngineCore encountered an issue"}}')
            return
        choice = {"text": text, "finish_reason": "stop", "token_ids": list(range(18))}
        self.send(200, json.dumps({"choices": [choice], "usage": {"completion_tokens": 18}}))

    def send(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--seen", type=Path, required=True)
    parser.add_argument("--drafter", default="")
    args = parser.parse_args()
    Handler.answers, Handler.seen = json.loads(args.answers.read_text()), args.seen
    ThreadingHTTPServer(("127.0.0.1", args.port), Handler).serve_forever()


main()
