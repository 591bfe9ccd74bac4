"""A real HTTP server that answers in the shapes of SGLang, ATOM or llama.cpp, and can be spoilt in chosen ways.

    other_server.py --port N --kind sglang|atom|llama.cpp [--drafter DIR] [--odd WORD ...] and any option of that engine

It drafts 4 tokens a step; without --drafter it does not draft. The counts of each answer are the same: 10 steps, of
which 4 took nothing, 3 one token, 2 two and 1 all four: 11 of 40. What it served before it was looked at is in its own
counters.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from other_server_counts import HISTOGRAM, POSITIONS, STEPS, TAKEN, K

IDS = list(range(20, 41))
LOCK = threading.Lock()
SEEN = {"requests": 3}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    args: argparse.Namespace

    def log_message(self, *_: object) -> None:
        pass

    def odd(self, word: str) -> bool:
        return word in self.args.odd

    @property
    def drafts(self) -> bool:
        return self.args.drafter is not None

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        known = {"/health": {"status": "ok"}, "/v1/models": {"data": [{"id": "m", "object": "model"}]}}
        if path in known:
            self.send(known[path])
            return
        kind = self.args.kind
        if kind == "sglang" and path == ("/get_server_info" if self.odd("old-path") else "/server_info"):
            self.send(self.sglang_info())
        elif kind == "atom" and path == "/debug/mtp_stats":
            self.send(self.atom_stats())
        elif kind == "llama.cpp" and path in ("/slots", "/props"):
            self.send(self.slots() if path == "/slots" else self.props())
        elif kind == "llama.cpp" and path == "/metrics" and not self.odd("no-metrics"):
            self.send_bytes(self.llama_metrics().encode())
        else:
            self.send({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            SEEN["requests"] += 1
        kind, path = self.args.kind, self.path
        if kind == "sglang" and path == "/generate":
            self.send(self.generated(asked))
        elif kind == "atom" and path == "/v1/completions" and isinstance(asked["prompt"], str):
            choice = {"index": 0, "text": " #### 7", "finish_reason": "stop"}
            self.send({"choices": [choice], "usage": {"completion_tokens": len(IDS), "prompt_tokens": 3}})
        elif kind == "llama.cpp" and path == "/completion" and asked["return_tokens"] is True:
            self.send(self.completed())
        else:
            self.send({"error": {"message": "Not Found", "code": 404}}, 404)

    def sglang_info(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"model_path": "/m", "tp_size": 1, "dp_size": 1, "dtype": "bfloat16"}
        settings |= {"disable_cuda_graph": self.odd("no-graphs"), "version": "0.5.23", "api_key": "SECRET"}
        state = {"last_gen_throughput": 10.0, "env_vars": {"HF_TOKEN": "SECRET"}}
        if self.odd("simulated"):
            state["env_vars"]["SGLANG_SIMULATE_ACC_LEN"] = "3"
        if not self.drafts:
            return {**settings, "speculative_algorithm": None, "internal_states": [state]}
        tree = self.odd("tree")
        settings |= {
            "speculative_algorithm": "EAGLE3" if tree else "DFLASH",
            "speculative_draft_model_path": self.args.drafter,
            "speculative_num_steps": K,
            "speculative_eagle_topk": 3 if tree else 1,
            "speculative_num_draft_tokens": 12 if tree else K + 1,
        }
        if self.odd("apart"):
            other = {**settings, "disable_cuda_graph": True} if self.odd("unlike") else settings
            return {"prefill": [{}], "decode": [{**settings, "internal_states": [state]}, other]}
        return {**settings, "internal_states": [{**state, "avg_spec_accept_length": 3.9}]}

    def generated(self, asked: dict[str, Any]) -> dict[str, Any]:
        sampling = asked["sampling_params"]
        assert sampling["temperature"] == 0
        meta: dict[str, Any] = {"id": "x", "finish_reason": {"type": "length", "length": sampling["max_new_tokens"]}}
        meta |= {"prompt_tokens": 3, "completion_tokens": len(IDS), "cached_tokens": 0}
        if self.odd("aborts"):
            meta["finish_reason"] = {"type": "abort", "message": "engine is gone"}
        if self.drafts:
            meta |= {"spec_verify_ct": STEPS, "spec_num_correct_drafts": TAKEN}
            meta |= {"spec_accept_length": 2.1, "spec_accept_rate": TAKEN / (STEPS * K)}
            if not self.odd("no-histogram"):
                meta["spec_correct_drafts_histogram"] = list(HISTOGRAM)
            if self.odd("contradicts"):
                meta["spec_num_correct_drafts"] = TAKEN + 5
        return {"text": " #### 7", "output_ids": IDS, "meta_info": meta}

    def atom_stats(self) -> dict[str, Any]:
        asked = SEEN["requests"]
        if not self.drafts:
            return {"enabled": False}
        taken = asked * TAKEN + (1 if self.odd("contradicts") else 0)
        return {
            "enabled": True,
            "total_draft_tokens": asked * STEPS * K,
            "total_accepted_tokens": taken,
            "acceptance_rate": round(TAKEN / (STEPS * K), 4),
            "average_tokens_per_forward": 1 + TAKEN / STEPS,
            "distribution": {str(n): asked * count for n, count in enumerate(HISTOGRAM) if count},
            "distribution_percent": {str(n): count / STEPS for n, count in enumerate(HISTOGRAM) if count},
        }

    def slots(self) -> list[dict[str, Any]]:
        """With a drafter of another vocabulary it is as if there were none."""
        active = self.drafts and not self.odd("inactive")
        half = active and not self.odd("half")
        params = {"speculative.types": "none,draft-simple" if self.drafts else "none"}
        return [
            {"id": i, "n_ctx": 2048, "speculative": one, "is_processing": False, "params": params}
            for i, one in enumerate((active, half))
        ]

    def props(self) -> dict[str, Any]:
        return {"total_slots": 2, "model_alias": "m", "model_path": "/m.gguf", "build_info": "b0-unknown"}

    def llama_metrics(self) -> str:
        asked = SEEN["requests"] if self.drafts and not self.odd("inactive") else 0
        name = "llamacpp:spec_decode_num_"
        counts = {"draft_tokens": asked * (STEPS * K - 2), "accepted_tokens": asked * TAKEN, "drafts": asked * STEPS}
        lines = [f"# TYPE {name}{what}_total counter\n{name}{what}_total {count}" for what, count in counts.items()]
        if asked:
            lines += [
                f'{name}accepted_tokens_per_pos_total{{position="{i}"}} {count * asked}'
                for i, count in enumerate(POSITIONS)
            ]
        return "\n".join([f"llamacpp:n_decode_total {asked}", *lines, ""])

    def completed(self) -> dict[str, Any]:
        timings: dict[str, Any] = {"predicted_n": len(IDS)}
        if self.drafts and not self.odd("inactive"):
            timings |= {"draft_n": STEPS * K - 2, "draft_n_accepted": TAKEN}
        stop = "none" if self.odd("no-stop") else "limit"
        return {"content": " #### 7", "tokens": IDS, "stop": True, "stop_type": stop, "timings": timings}

    def send(self, document: object, status: int = 200) -> None:
        self.send_bytes(json.dumps(document).encode(), status)

    def send_bytes(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--drafter")
    parser.add_argument("--odd", action="append", default=[])
    Handler.args, _ = parser.parse_known_args()
    ThreadingHTTPServer(("127.0.0.1", Handler.args.port), Handler).serve_forever()
    return 0


sys.exit(main())
