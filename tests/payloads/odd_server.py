"""A real HTTP server with vLLM's paths that is odd in one chosen way: what a measurement may meet on a cluster."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SPECULATION = """vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 40
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 5
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 4
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="3"} 1
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    args: argparse.Namespace

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        args = self.args
        if self.path == "/health":
            if args.oddity == "silent":
                time.sleep(3600)
            self.send(503 if args.oddity == "sick" else 200, b"")
        elif self.path == "/v1/models":
            self.send(200, json.dumps({"data": [{"id": "m", "root": "/m", "max_model_len": 100}]}).encode())
        elif self.path == "/metrics" and args.oddity == "page":
            self.send(200, b"<html>It works!</html>")
        elif self.path == "/metrics" and args.oddity == "no-metrics":
            self.send(404, b"{}")
        elif self.path == "/metrics":
            self.send(200, SPECULATION.encode())
        else:
            self.send(404, b'{"detail": "Not Found"}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.args.oddity == "dies":
            sys.stdout.write("out of memory\n")
            sys.stdout.flush()
            os._exit(9)
        choice = {"text": "x", "finish_reason": "length", "token_ids": [1, 2, 3]}
        if self.args.oddity == "text-only":
            del choice["token_ids"]
        if self.args.oddity == "error":
            self.send(500, b'{"error": {"message": "EngineCore encountered an issue", "code": 500}}')
        else:
            self.send(200, json.dumps({"choices": [choice]}).encode())

    def send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--oddity", default="")
    parser.add_argument("--drafter", default="")
    Handler.args = parser.parse_args()
    ThreadingHTTPServer(("127.0.0.1", Handler.args.port), Handler).serve_forever()


main()
