"""The counters of the tiny server in the form and under the names of vLLM's `/metrics`.

Every counter has a twin `..._created`, a gauge with the time it was made, as the Prometheus client writes it. Without
speculation there is no line about it at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Mapping, Tuple

if TYPE_CHECKING:
    from backends.payloads.tiny_engine import Counters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Series = List[Tuple[Mapping[str, str], float]]


def exposition(counters: Counters, load: Tuple[int, int], model: str, created: float) -> str:
    """The text of `/metrics`.

    Args:
        counters: What the engine counted.
        load: Requests that run, and that wait.
        model: Name under which the model is served.
        created: When the counters were made, seconds since 1970.
    """
    common = {"engine": "0", "model_name": model}
    lines: List[str] = []

    def gauge(name: str, about: str, value: float) -> None:
        lines.extend([*_head(name, about, "gauge"), _line(name, common, value)])

    def counter(name: str, about: str, series: Series) -> None:
        lines.extend(_head(f"{name}_total", about, "counter"))
        lines.extend(_line(f"{name}_total", {**common, **labels}, value) for labels, value in series)
        lines.extend(_head(f"{name}_created", about, "gauge"))
        lines.extend(_line(f"{name}_created", {**common, **labels}, created) for labels, _ in series)

    gauge("vllm:num_requests_running", "Number of requests in model execution batches.", load[0])
    gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", load[1])
    positions = counters.accepted_at
    if positions:
        drafted = counters.drafts * len(positions)
        counter("vllm:spec_decode_num_drafts", "Number of spec decoding drafts.", [({}, counters.drafts)])
        counter("vllm:spec_decode_num_draft_tokens", "Number of draft tokens.", [({}, drafted)])
        counter("vllm:spec_decode_num_accepted_tokens", "Number of accepted tokens.", [({}, sum(positions))])
        by_position: Series = [({"position": str(i)}, count) for i, count in enumerate(positions)]
        counter("vllm:spec_decode_num_accepted_tokens_per_pos", "Accepted tokens per draft position.", by_position)
    counter("vllm:prompt_tokens", "Number of prefill tokens processed.", [({}, counters.prompt_tokens)])
    counter("vllm:generation_tokens", "Number of generation tokens processed.", [({}, counters.generation_tokens)])
    ended: Series = [({"finished_reason": reason}, count) for reason, count in counters.finished.items()]
    counter("vllm:request_success", "Count of successfully processed requests.", ended)
    return "\n".join(lines) + "\n"


def _head(name: str, about: str, kind: str) -> List[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown: Dict[str, str] = {key: labels[key].replace("\\", r"\\").replace('"', r"\"") for key in sorted(labels)}
    inside = ",".join(f'{key}="{text}"' for key, text in shown.items())
    return f"{name}{{{inside}}} {float(value)!r}"
