"""One valid file of every producer, and which of its fields it is of no use without."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gates.reading import ResultBytes, step
from tests.results import foreign_files as made
from tests.results.foreign_files import Keys

META = "atom_ci_metadata"
SPEC = ("metrics", "speculative_decoding")


@dataclass(frozen=True)
class Sample:
    """A valid file.

    Attributes:
        make: Its document; a text where it is none.
        needed: Places of numbers (and texts) without which its reader refuses it.
        wrap: From document to the text of the file.
    """

    make: Callable[[], Any]
    needed: tuple[Keys, ...] = ()
    wrap: Callable[[Any], str] = json.dumps

    @property
    def is_document(self) -> bool:
        return not isinstance(self.make(), str)

    def data(self, document: Any = None) -> bytes:
        document = self.make() if document is None else document
        return (document if isinstance(document, str) else self.wrap(document)).encode("utf-8", "surrogatepass")

    def file(self, document: Any = None) -> ResultBytes:
        return ResultBytes("result", self.data(document))


def keys(*names: str) -> tuple[Keys, ...]:
    return tuple((name,) for name in names)


def first(*names: str) -> tuple[Keys, ...]:
    return tuple((0, name) for name in names)


SERVING = (
    "duration",
    "completed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "output_throughput",
)
TIMES = ("E2E Request Time", "TTFT Time", "Number of Output Tokens")
SAMPLES: dict[str, Sample] = {
    "trainer-state": Sample(
        made.trainer_state, (*keys("global_step", "max_steps", "log_history"), ("log_history", 2, "step"))
    ),
    "specdec-acceptance": Sample(
        made.specdec_acceptance,
        (
            *first("Average_AL", "Request_AL", "Acceptance_Length_Histogram"),
            *first("Conditional_Acceptance_Rate", "Joint_Acceptance_Rate"),
        ),
    ),
    "specdec-timing": Sample(
        made.specdec_timing,
        (
            *first("Output TPS", "Output TPS/gpu", *TIMES),
            *((0, name, part) for name in TIMES for part in ("min", "max", "mean", "std", "quantiles")),
            *((0, name, "quantiles", part) for name in TIMES for part in ("0.25", "0.5", "0.75")),
        ),
    ),
    "specdec-aa-timing": Sample(made.specdec_aa_timing, first("AA Output TPS")),
    "specdec-configuration": Sample(made.specdec_configuration, keys("engine", "speculative_algorithm", "model_dir")),
    "speculation-profile": Sample(
        made.speculation_profile,
        keys(
            "schema_version",
            "measured",
            "num_speculative_tokens",
            "conditional_accept_rates",
            "marginal_accept_rates",
            "mean_accept_length",
        ),
    ),
    "vllm-bench": Sample(
        made.vllm_bench,
        keys(
            *("endpoint_type", "model_id", "num_prompts", *SERVING),
            "spec_decode_acceptance_rate",
            "spec_decode_acceptance_length",
            "spec_decode_num_drafts",
            "spec_decode_draft_tokens",
            "spec_decode_accepted_tokens",
            "spec_decode_per_position_acceptance_rates",
        ),
    ),
    "vllm-metrics": Sample(made.vllm_metrics),
    "vllm-request": Sample(
        made.vllm_request,
        (
            ("metrics",),
            SPEC,
            *((*SPEC, name) for name in ("mean_acceptance_length", "draft_acceptance_rate", "acceptance_histogram")),
        ),
    ),
    "sglang-server": Sample(made.sglang_server, keys("internal_states")),
    "sglang-serving": Sample(made.sglang_serving, keys("backend", "total_output_tokens_retokenized", *SERVING)),
    "sglang-one-batch": Sample(
        made.sglang_one_batch,
        keys("run_name", "batch_size", "input_len", "output_len", "latency", "last_ttft", "acc_length"),
    ),
    "sglang-eval": Sample(made.sglang_eval, keys("score", "latency")),
    "sgl-eval": Sample(made.sgl_eval, (("aggregate",), ("aggregate", "score"))),
    "atom-accuracy": Sample(made.atom, keys("results")),
    "atom-native": Sample(made.atom_native, (("results",), (META,), (META, "mtp_acceptance_rate"))),
    "atom-oot": Sample(
        made.atom_oot,
        (("results",), (META,), (META, "mtp_acceptance_overall"), (META, "mtp_per_pos_acceptance")),
    ),
    "atom-sglang": Sample(
        made.atom_sglang, (("results",), (META,), (META, "mtp_acceptance_rate"), (META, "mtp_accept_length"))
    ),
    "atom-serving": Sample(made.atom_serving, keys("model_id", "num_prompts", *SERVING)),
    "atom-dashboard": Sample(
        made.atom_dashboard_data,
        (
            ("entries",),
            ("entries", "Accuracy", 0, "commit", "id"),
            *(("entries", "Accuracy", 0, "benches", 1, name) for name in ("name", "unit", "value")),
        ),
        made.script,
    ),
    "lm-eval": Sample(
        made.lm_eval,
        (("results",), ("results", "gsm8k")),
    ),
    "golden-lengths": Sample(lambda: made.GOLDEN),
}
DOCUMENTS = [name for name, sample in SAMPLES.items() if sample.is_document]


def path(place: Keys) -> str:
    """The path that a reader gives a place."""
    found = ""
    for key in place:
        found = step(found, key)
    return found
