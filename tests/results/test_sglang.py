"""SGLang's outputs: lengths since the start, ranks, -1 and null for nothing, and scores written as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gates.results import sglang_eval, sglang_one_batch, sglang_server, sglang_serving
from gates.results.meaning import Bonus, Scope, Unit
from tests.results.foreign_files import (
    drop,
    file,
    put,
    refusal,
    sgl_eval,
)
from tests.results.foreign_files import (
    sglang_eval as evaluation,
)
from tests.results.foreign_files import (
    sglang_eval_repeated as repeated,
)
from tests.results.foreign_files import (
    sglang_one_batch as one_batch,
)
from tests.results.foreign_files import (
    sglang_server as server,
)
from tests.results.foreign_files import (
    sglang_serving as serving,
)


def faults(made: Any) -> list[str]:
    return [remark.field for remark in made.remarks if remark.unusable]


def remarked(made: Any) -> list[str]:
    return [remark.field for remark in made.remarks]


def lines(*documents: Any) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


# /server_info


def test_each_rank_states_its_own_length_since_the_start() -> None:
    made = sglang_server.read(file(server()))
    assert made.usable
    assert made.remarks == ()
    lengths = [state.length for state in made.facts.states]
    assert [length and length.value for length in lengths] == [2.75, 2.5]
    assert lengths[1] is not None
    assert lengths[1].field == "internal_states[1].avg_spec_accept_length"
    assert lengths[1].meaning.bonus is Bonus.WITH
    assert lengths[1].meaning.scope is Scope.SERVER_OR_FLUSH
    assert made.facts.topk is not None
    assert made.facts.topk.value == 1
    assert made.facts.cuda_graph_disabled is False


def test_an_absent_length_has_two_causes() -> None:
    made = sglang_server.read(file(drop(server(), ("internal_states", 0, "avg_spec_accept_length"))))
    assert made.facts.states[0].length is None
    assert made.usable
    assert "fewer verify steps" in made.remarks[0].text


def test_without_an_algorithm_there_is_no_length() -> None:
    made = sglang_server.read(file(put(server(), ("speculative_algorithm",), None)))
    assert faults(made) == [f"internal_states[{rank}].avg_spec_accept_length" for rank in (0, 1)]


def test_a_setting_that_is_absent_is_not_false() -> None:
    made = sglang_server.read(file(drop(server(), ("disable_cuda_graph",))))
    assert made.facts.cuda_graph_disabled is None
    assert remarked(made) == ["disable_cuda_graph"]
    assert remarked(sglang_server.read(file(put(server(), ("disable_cuda_graph",), True)))) == ["disable_cuda_graph"]


def test_decode_servers_apart_from_prefill() -> None:
    inner = server()
    made = sglang_server.read(file({"prefill": [{}], "decode": [inner]}))
    assert [state.field for state in made.facts.states] == [
        "decode[0].internal_states[0]",
        "decode[0].internal_states[1]",
    ]
    assert made.facts.algorithm == "NEXTN"


@pytest.mark.parametrize(("length", "fault"), [(0.9, True), (6.0, False), (6.1, True)])
def test_lengths_that_the_depth_does_not_allow(length: float, fault: bool) -> None:
    made = sglang_server.read(file(put(server(), ("internal_states", 0, "avg_spec_accept_length"), length)))
    assert bool(faults(made)) is fault


def test_simulated_acceptance_where_the_server_shows_its_variables() -> None:
    variables = {"SGLANG_SIMULATE_ACC_LEN": "3", "SGLANG_SIMULATE_ACC_METHOD": ""}
    made = sglang_server.read(file(put(server(), ("internal_states", 0, "env_vars"), variables)))
    assert faults(made) == ["internal_states[0].env_vars"]
    off = {"SGLANG_SIMULATE_ACC_LEN": -1}
    assert sglang_server.read(file(put(server(), ("internal_states", 0, "env_vars"), off))).usable


def test_a_server_without_states() -> None:
    assert faults(sglang_server.read(file(put(server(), ("internal_states",), [])))) == ["internal_states"]
    assert "internal_states" in str(refusal(sglang_server.read, drop(server(), ("internal_states",))))


# bench_serving


def test_the_length_of_a_benchmark_is_that_of_the_server_since_its_start() -> None:
    made = sglang_serving.read(file(serving()))
    assert made.usable
    run = made.runs[0]
    assert run.length is not None
    assert (run.length.value, run.length.meaning.scope) == (2.75, Scope.SERVER_OR_FLUSH)
    texts = {remark.field: remark.text for remark in made.remarks}
    assert "failed requests are not counted" in texts["completed"]
    assert texts["accept_length"] == "is that of one of 2 ranks"
    assert run.server is not None
    assert run.server.states[1].length is not None
    assert run.server.states[1].length.field == "server_info.internal_states[1].avg_spec_accept_length"
    assert run.latencies.meaning.unit is Unit.MILLISECONDS
    assert len(run.latencies.written) == 20


def test_a_bare_infinity_is_no_limit_for_the_rate_and_nothing_elsewhere() -> None:
    assert b"Infinity" in (file(serving()).data or b"")
    made = sglang_serving.read(file(serving()))
    assert made.runs[0].request_rate is None
    assert "request_rate" not in remarked(made)
    refusal(sglang_serving.read, put(serving(), ("output_throughput",), float("inf")))
    refusal(sglang_serving.read, put(serving(), ("request_rate",), "fast"))
    assert sglang_serving.read(file(put(serving(), ("request_rate",), "trace"))).runs[0].traced
    rate = sglang_serving.read(file(put(serving(), ("request_rate",), 2.5))).runs[0].request_rate
    assert rate is not None
    assert rate.value == 2.5
    assert not sglang_serving.read(file(put(serving(), ("request_rate",), float("nan")))).usable


def test_null_is_no_length() -> None:
    made = sglang_serving.read(file(put(serving(), ("accept_length",), None)))
    assert made.runs[0].length is None
    assert made.usable
    assert "accept_length" in str(refusal(sglang_serving.read, drop(serving(), ("accept_length",))))


def test_lines_that_were_appended() -> None:
    made = sglang_serving.read(file(lines(serving(1), serving(8))))
    assert made.usable
    assert made.runs[1].completed.field == "document 2: completed"
    assert not sglang_serving.read(file(lines(serving(8), serving(8)))).usable
    assert sglang_serving.read(file(lines({**serving(8), "tag": "a"}, {**serving(8), "tag": "b"}))).usable


def test_documents_that_are_not_lines_are_refused() -> None:
    assert "JSON objects one after the other" in str(
        refusal(sglang_serving.read, json.dumps(serving(1)) + json.dumps(serving(8)))
    )
    assert "truncated" in str(refusal(sglang_serving.read, lines(serving(1), serving(8))[:-40]))


def test_random_text_says_nothing_of_quality() -> None:
    assert "dataset_name" in remarked(sglang_serving.read(file(put(serving(), ("dataset_name",), "random-ids"))))


def test_a_server_that_could_not_be_asked() -> None:
    made = sglang_serving.read(file(put(serving(), ("server_info",), None)))
    assert made.runs[0].server is None
    assert sglang_serving.read(file(put(serving(), ("server_info",), {"version": "1"}))).usable


@pytest.mark.parametrize(
    ("key", "value"),
    [("output_throughput", 900.0), ("request_throughput", 5.0), ("accept_length", 0.5), ("duration", 0)],
)
def test_benchmarks_that_contradict_themselves(key: str, value: Any) -> None:
    assert key in faults(sglang_serving.read(file(put(serving(), (key,), value))))


# bench_one_batch_server


def test_minus_one_stands_for_nothing() -> None:
    made = sglang_one_batch.read(file(put(put(one_batch(), ("acc_length",), -1), ("last_gen_throughput",), -1)))
    assert made.runs[0].length is None
    assert made.runs[0].last_throughput is None
    assert made.usable
    assert remarked(made) == ["last_gen_throughput", "acc_length"]
    refusal(sglang_one_batch.read, put(one_batch(), ("acc_length",), -2))
    refusal(sglang_one_batch.read, put(one_batch(), ("latency",), -1))


def test_a_batch_of_random_tokens() -> None:
    made = sglang_one_batch.read(file(one_batch()))
    length = made.runs[0].length
    assert length is not None
    assert length.value == 1.25
    assert "random token ids" in length.meaning.name
    assert made.usable
    assert not sglang_one_batch.read(file(put(one_batch(), ("overall_throughput",), 10.0))).usable
    assert not sglang_one_batch.read(file(put(one_batch(), ("acc_length",), 0.5))).usable


def test_batches_that_were_appended() -> None:
    assert sglang_one_batch.read(file(lines(one_batch(1), one_batch(4)))).usable
    assert not sglang_one_batch.read(file(lines(one_batch(4), one_batch(4)))).usable


# Scores


def test_a_score_is_a_fraction() -> None:
    made = sglang_eval.read(file(evaluation()))
    assert (made.score.value, made.score.meaning.unit) == (0.785, Unit.FRACTION)
    assert made.repeats is None
    assert made.usable
    assert "from 0 to 1" in str(refusal(sglang_eval.read, put(evaluation(), ("score",), 78.5)))


def test_scores_of_repeats_are_texts() -> None:
    made = sglang_eval.read(file(repeated()))
    assert made.repeats is not None
    assert made.repeats.values == (0.78, 0.79)
    assert made.score.field == "mean_score"
    assert made.output_throughput is None
    assert made.usable
    assert not sglang_eval.read(file(put(repeated(), ("mean_score",), 0.7))).usable
    refusal(sglang_eval.read, put(repeated(), ("scores",), [0.78, 0.79]))
    refusal(sglang_eval.read, put(repeated(), ("scores",), ["nan", "0.79"]))
    refusal(sglang_eval.read, put(repeated(), ("scores",), []))
    assert "found both" in str(refusal(sglang_eval.read, {**repeated(), **evaluation()}))


def test_the_other_evaluation_program() -> None:
    made = sglang_eval.read_sgl(file(sgl_eval()))
    assert made.score.field == "aggregate.score"
    refusal(sglang_eval.read_sgl, drop(sgl_eval(), ("aggregate", "score")))
