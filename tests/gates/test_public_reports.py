"""The checklist: every way of measuring or gating gone wrong that is known, and the test that catches it.

`CHECKLIST` goes by what went wrong, in our own words; each line names tests, `module::test` or `module::test[case]`,
and a test here makes sure that they are there. What other modules do not catch yet is tested below. The last part holds
for every producer whose files a gate reads: no field that a passing verdict looked at can be removed, of another type,
or not a finite number.
"""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.cli import main
from gates.reading import ResultBytes
from gates.registry import run
from gates.verdict import FailureClass, Verdict
from tests.catalog.catalogs import MODEL, atom, bar, catalog, entry, failing, judge, score, server_info, vllm
from tests.gates import passing
from tests.gates.benchmark import BARS, READ_BY
from tests.gates.test_formats_reports import sampled
from tests.gates.test_gate_mutations import SPOILT, changes, put, walk
from tests.results import foreign_files as foreign
from tests.results.every_producer import SAMPLES

TESTS = Path(__file__).parents[1]
REPORTS, HERE = "gates/test_formats_reports", "gates/test_public_reports"
LOOKS_LIKE = f"{REPORTS}::test_a_result_that_looks_like_that_report_fails_with_its_class_and_field"
GONE_WRONG = f"{REPORTS}::test_a_measurement_gone_wrong_is_invalid_and_names_the_field"
GATES, CATALOG = "catalog/test_gates", "catalog/test_catalog"

CHECKLIST: dict[str, tuple[str, ...]] = {
    # Bars that guard nothing.
    "a bar of exactly 1 lets a drafter through of which nothing is ever taken": (
        f"{HERE}::test_a_bar_at_the_floor_is_refused_before_it_can_let_anything_through",
        f"{CATALOG}::test_what_guards_nothing_is_an_error",
    ),
    "a bar a hair above 1, from a reference that is itself noise": (
        f"{HERE}::test_a_bar_at_the_floor_is_refused_before_it_can_let_anything_through",
        "gates/test_gate_smoke::test_a_bar_at_or_under_the_noise_is_a_configuration_error",
    ),
    "bars that were lowered because they flaked": (
        "catalog/test_against::test_a_bar_falls_only_with_a_new_source_and_a_later_date",
        "catalog/test_against::test_a_bar_is_given_up_only_where_dropped_says_why_and_when",
    ),
    "a value that equals its bar passes": (
        f"{HERE}::test_a_score_that_equals_its_bar_passes_and_one_of_three_does_not_decide",
        f"{GATES}::test_sixty_per_cent_passes_six_tenths_exactly",
        f"{REPORTS}::test_the_command_lets_60_per_cent_pass_six_tenths_and_59_99_not",
    ),
    "a good build a standard error under its bar": (
        f"{HERE}::test_a_good_build_within_its_noise_fails_and_the_noise_is_told",
        f"{GATES}::test_the_noise_is_told_beside_the_verdict",
    ),
    "a bar is set and its number is not in the file": (
        f"{LOOKS_LIKE}[an accuracy bar whose accuracy is not in the file]",
        "gates/test_gate_train::test_a_bar_whose_number_is_missing_never_passes",
        f"{GATES}::test_missing_is_a_regression_and_null_and_text_never_pass",
    ),
    "a model that the catalog does not have, or has twice": (
        f"{GATES}::test_what_the_catalog_does_not_have_is_answered_with_what_it_has",
        "catalog/test_atom_catalogs::test_a_name_twice_is_an_error_whatever_the_drafter",
    ),
    "an entry that drafts without a bar on acceptance, a threshold of 0, one without a drafter": (
        "catalog/test_atom_catalogs::test_what_their_validator_lets_through_is_an_error_here",
        f"{CATALOG}::test_what_guards_nothing_is_an_error",
    ),
    # Regressions.
    "acceptance falls from 61 to 36 per cent while accuracy stays": (
        f"{GATES}::test_the_drop_that_accuracy_did_not_see",
        f"{HERE}::test_a_drop_in_acceptance_is_a_regression_whatever_the_accuracy[the rate of ATOM]",
    ),
    "an acceptance length far under the one that was held before": (
        f"{HERE}::test_a_drop_in_acceptance_is_a_regression_whatever_the_accuracy[a length from 3.53]",
    ),
    "a chat template unlike that of the training: half of the reference": (
        f"{HERE}::test_a_drop_in_acceptance_is_a_regression_whatever_the_accuracy[half of the reference]",
        f"{LOOKS_LIKE}[the arms ran with different templates]",
    ),
    "greedy output that differs with the drafter": (
        f"{HERE}::test_outputs_that_part_more_often_than_the_target_from_itself_are_the_drafters_doing",
    ),
    # Definitions and units.
    "one name for per cent in one script and a fraction in another": (
        f"{GATES}::test_the_unit_follows_from_producer_and_field_never_from_the_size",
        "results/test_atom::test_the_other_rate_is_a_fraction",
    ),
    "per cent and fractions in one file": (
        f"{GATES}::test_one_file_of_vllm_with_two_units",
        "results/test_vllm::test_a_small_rate_is_still_in_per_cent",
    ),
    "tokens a forward that changed their meaning": (
        f"{HERE}::test_a_length_that_does_not_fit_its_rate_has_changed_its_meaning",
        "results/test_atom::test_tokens_per_forward_that_do_not_count_the_bonus_token",
    ),
    "a mean without the bonus token, so below 1": (
        f"{GONE_WRONG}[a length that flaked below one]",
        f"{GONE_WRONG}[a mean without the bonus token]",
    ),
    "two acceptance lengths in one report": (
        f"{HERE}::test_two_lengths_of_one_server_that_differ_are_no_measurement",
        "results/test_atom::test_two_lengths_in_one_file_must_agree",
    ),
    "the mean of the requests is not the mean of the steps": (
        "results/test_specdec_acceptance::test_the_mean_of_the_requests_is_not_the_mean_of_the_steps",
    ),
    "a newer version of the tool counts differently": (
        "results/test_specdec_acceptance::test_the_newer_definition_is_told_apart",
    ),
    "a score of the average run, not of its end": (
        "results/test_trainer_state::test_the_mean_of_the_run_is_not_its_final_loss",
    ),
    # Made-up and meaningless acceptance.
    "an engine that was told to pretend": (
        f"{REPORTS}::test_acceptance_that_the_engine_was_told_to_pretend_never_counts",
        "payloads/test_other_engines::test_acceptance_that_sglang_was_told_to_pretend_never_counts",
    ),
    "only two neighbouring lengths": (f"{GONE_WRONG}[two neighbouring lengths only]",),
    "random text": (f"{GONE_WRONG}[random prompts by the newer key]", f"{GONE_WRONG}[random text]"),
    # Drafters that do nothing.
    "a missing head: exactly 1.00 with HTTP 200": (
        f"{LOOKS_LIKE}[a missing head drafts at random: length exactly one]",
    ),
    "a length of 1.04 on a model that also sees": (f"{HERE}::test_a_length_at_the_noise_is_no_acceptance",),
    "a compact export served at 1.01 on every prompt": (
        f"{LOOKS_LIKE}[a compact export with a wrong format: length 1.01]",
    ),
    "acceptance silently 0 on one path of the engine": (
        f"{LOOKS_LIKE}[an engine path that accepts nothing]",
        f"{HERE}::test_a_drafter_that_never_drafted_is_named",
    ),
    "a server without drafter, healthy all the same": (
        "payloads/test_engine_faults::test_another_server_than_was_asked_for_is_named_before_anything_is_asked_of_it",
        "payloads/test_other_engines::test_the_silently_inactive_drafter_of_llama_cpp_is_found_before_anything_is_asked",
    ),
    "a head of its own that the target's overwrites": (
        f"{LOOKS_LIKE}[a head of its own that the target's overwrites]",
    ),
    # Arms and settings.
    "the temperature is not stated, or differs": (
        f"{LOOKS_LIKE}[the temperature is not stated]",
        f"{LOOKS_LIKE}[the temperature is another]",
    ),
    "graphs that were lowered in one arm": (f"{LOOKS_LIKE}[graphs were lowered in one arm]",),
    "graphs that are off, or nobody states": (
        f"{REPORTS}::test_every_decode_server_must_be_as_asked_not_only_the_first",
        "results/test_sglang::test_a_setting_that_is_absent_is_not_false",
        "payloads/test_engine_faults::test_graphs_that_are_off_though_required_invalidate_the_run_and_are_named",
    ),
    "no reference against itself": (f"{LOOKS_LIKE}[no control arm]",),
    "a concurrency that was never reached": (
        f"{GONE_WRONG}[32 at a time with fewer prompts]",
        f"{GONE_WRONG}[32 at a time that were never seen]",
    ),
    "a speedup above the acceptance length": (
        "gates/test_gate_bench::test_alone_nothing_is_sped_up_by_more_than_its_acceptance_length",
    ),
    "a speedup below 1 is a finding": (
        "gates/test_gate_bench::test_a_speedup_below_one_is_a_finding_not_a_fault_of_the_measurement",
    ),
    "one arm is a copy of the other": ("gates/test_gate_bench::test_an_arm_that_is_a_copy_of_the_other",),
    # Counters.
    "counters of one of several engines": (f"{GONE_WRONG}[counters of one of two engines]",),
    "counters that hold other traffic": (f"{GONE_WRONG}[the counters saw more than the answers hold]",),
    "times beside counters": (
        "results/test_vllm::test_counters_are_summed_over_engines_and_times_are_not_counters",
        "payloads/test_counters::test_counters_are_summed_over_engines_and_their_twins_left_out",
    ),
    "a position without a series": ("results/test_vllm::test_a_position_without_a_series_is_zero_and_moves_nothing",),
    "a rank that says nothing, or is dead": (
        f"{GONE_WRONG}[a rank that says nothing]",
        f"{REPORTS}::test_the_worst_rank_counts_in_a_benchmark_too",
    ),
    "an absent length that has two causes": ("results/test_sglang::test_an_absent_length_has_two_causes",),
    "absent speculation keys that have three causes": (
        "results/test_vllm::test_no_speculation_keys_have_three_causes",
    ),
    "minus one stands for nothing": ("results/test_sglang::test_minus_one_stands_for_nothing",),
    # Training.
    "NaN behind a loss of 0 or a repeated mean": (
        f"{LOOKS_LIKE}[a loss of zero hides NaN]",
        f"{LOOKS_LIKE}[the same mean again and again]",
        "results/test_trainer_state::test_a_loss_of_zero_with_a_gradient_is_what_some_trainers_write",
    ),
    "a norm of the gradient that is NaN": (f"{LOOKS_LIKE}[the last gradients are NaN]",),
    "a loss near 0 from the first step on": (f"{LOOKS_LIKE}[a loss near zero from the first step on]",),
    "an accuracy of 1 from an empty mask": (f"{LOOKS_LIKE}[an accuracy of one: the mask is empty]",),
    "a training that stopped early": (
        f"{LOOKS_LIKE}[the training stopped early]",
        "results/test_trainer_state::test_a_run_that_is_not_at_its_end",
    ),
    "an export of an earlier step": (f"{LOOKS_LIKE}[the export is that of an earlier step]",),
    # Exports and targets.
    "another vocabulary, also by its padding": (
        f"{LOOKS_LIKE}[another vocabulary]",
        f"{LOOKS_LIKE}[a padded vocabulary]",
    ),
    "a layer that the target does not have": (f"{LOOKS_LIKE}[a layer that the target does not have]",),
    "a rope base a hundred times off": (f"{LOOKS_LIKE}[a rope base a hundred times off]",),
    "the newer name without the newer tensors": (f"{LOOKS_LIKE}[the newer name without the newer tensors]",),
    "missing shards, and an index that is stale": (
        f"{HERE}::test_shards_that_are_not_there_or_another_size_are_named",
        "gates/test_gate_target::test_missing_shards_are_named",
    ),
    "an error page, or a pointer, saved as weights": (
        f"{HERE}::test_what_was_saved_in_the_place_of_weights_is_no_export",
        f"{LOOKS_LIKE}[a pointer in place of weights]",
    ),
    "a checkpoint that does not load": (f"{LOOKS_LIKE}[the checkpoint did not load]",),
    "401 and 403 told as not found": (
        f"{LOOKS_LIKE}[no access to the model]",
        f"{LOOKS_LIKE}[no valid token]",
        "gates/test_gate_target::test_what_the_hub_answers_says_what_to_do",
    ),
    "a branch in the place of a revision": (f"{LOOKS_LIKE}[a branch is no pin]",),
    # Stale and foreign.
    "a server left over on the port": (f"{GONE_WRONG}[a leftover server that had served nothing]",),
    "another server on the port": (f"{LOOKS_LIKE}[another server was on the port]",),
    "another drafter than the one that was meant": ("catalog/test_drafter_path::test_the_stated_drafter_is_compared",),
    "a busy port": (
        f"{LOOKS_LIKE}[the port was taken]",
        "payloads/test_engine_faults::test_a_busy_port_is_a_matter_of_the_machine",
    ),
    "a file that an earlier run left": (f"{GONE_WRONG}[two runs in one folder]",),
    "a file of another attempt": ("gates/test_gate_mutations::test_a_missing_file_and_a_foreign_token",),
    "a healthy server that dies on the first request": (
        "payloads/test_engine_faults::test_a_server_that_is_healthy_and_dies_on_the_first_request_died",
    ),
    "a stream with HTTP 200 and an error in its last event": (
        "payloads/test_engine_faults::test_a_worker_that_dies_amid_the_requests_is_a_server_that_died",
        "payloads/test_engine_faults::test_a_stream_that_breaks_off_on_a_server_that_lives_on_is_no_answer",
    ),
    # Text.
    "NaN and Infinity that pass every comparison": (
        f"{HERE}::test_no_field_that_a_verdict_looked_at_can_be_spoilt",
        "gates/test_gate_mutations::test_a_number_that_is_not_finite_never_passes_and_is_named",
    ),
    "numbers as text": (
        "results/test_specdec_others::test_statistics_are_texts_in_seconds",
        "results/test_lm_eval_and_golden::test_the_time_is_a_text_and_a_score_is_none",
    ),
    "keys that come twice, marks before the text, text behind it": (
        "results/test_every_producer::test_a_key_that_comes_twice",
        "results/test_every_producer::test_what_cannot_be_taken_apart",
        "results/test_every_producer::test_text_behind_the_document",
    ),
    "appended lists, lines and documents": (
        "results/test_specdec_acceptance::test_appended_runs_are_not_one_run",
        "results/test_sglang::test_lines_that_were_appended",
        "results/test_vllm::test_appended_documents",
    ),
    "a script that is no JSON, and YAML with numbers as keys": (
        "results/test_atom::test_a_script_is_read_as_one",
        "results/test_lm_eval_and_golden::test_keys_are_whole_numbers",
    ),
}


@pytest.mark.parametrize("subject", CHECKLIST)
def test_every_line_of_the_checklist_names_tests_that_there_are(subject: str) -> None:
    for named in CHECKLIST[subject]:
        module, _, test = named.partition("::")
        source = (TESTS / f"{module}.py").read_text()
        name, _, case = test.partition("[")
        functions = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
        assert name in functions, named
        assert not case or f'"{case.removesuffix("]")}"' in source, named


@pytest.mark.parametrize("floor", [1.0, 1.001, 1.0097, 1.04])
def test_a_bar_at_the_floor_is_refused_before_it_can_let_anything_through(floor: float, tmp_path: Path) -> None:
    using = catalog(entry(bars={"acceptance_length": bar(floor)}))
    verdict = judge("acceptance", vllm(3.0), using=using, model=MODEL)
    assert verdict.failure_class is FailureClass.USER_CONFIG_ERROR
    assert failing(verdict)["entry_sound"].field == "entries[0].bars.acceptance_length.bar"
    file = tmp_path / "catalog.json"
    file.write_bytes(using.data or b"")
    assert main(["catalog", "check", str(file)]) == 1


DROPS: dict[str, tuple[dict[str, Any], Callable[[], Any], Callable[[], Any]]] = {
    "the rate of ATOM": ({"acceptance_rate": bar(0.6)}, lambda: atom(61.2), lambda: atom(36.0)),
    "a length from 3.53": ({"acceptance_length": bar(2.7)}, lambda: vllm(62.5), lambda: vllm(48.0)),
    "half of the reference": ({"acceptance_length": bar(2.4)}, lambda: vllm(60.0), lambda: vllm(24.0)),
}


@pytest.mark.parametrize(("bars", "before", "after"), DROPS.values(), ids=DROPS)
def test_a_drop_in_acceptance_is_a_regression_whatever_the_accuracy(
    bars: dict[str, Any], before: Callable[[], Any], after: Callable[[], Any]
) -> None:
    using = catalog(entry(bars=bars))
    assert judge("acceptance", before(), using=using, model=MODEL).passed
    verdict = judge("acceptance", after(), using=using, model=MODEL)
    assert verdict.failure_class is FailureClass.ACCEPTANCE_REGRESSION
    assert set(failing(verdict)) == set(bars)


def test_a_good_build_within_its_noise_fails_and_the_noise_is_told() -> None:
    using = catalog(entry(bars={"acceptance_rate": bar(0.6), "accuracy": bar(0.95, task="gsm8k", samples=1319)}))
    verdict = judge("accuracy", atom(62.5, accuracy=0.9484), using=using, model=MODEL)
    assert verdict.failure_class is FailureClass.ACCURACY_REGRESSION
    assert dict(verdict.facts)["within_one_stderr"] is True
    far = judge("accuracy", atom(62.5, accuracy=0.90), using=using, model=MODEL)
    assert dict(far.facts)["within_one_stderr"] is False


def test_a_score_that_equals_its_bar_passes_and_one_of_three_does_not_decide() -> None:
    repeat = {"runs": 3, "passes": 2}
    using = catalog(entry(draft_tokens=5, bars={"acceptance_length": bar(1.5), "accuracy": bar(0.7)}, repeat=repeat))
    spread = [score(0.7), score(0.635), score(0.864)]

    def verdict(*scores: Any) -> Verdict:
        accounts = {("server_info" if i == 1 else f"server_info_{i}"): server_info() for i in range(1, len(scores) + 1)}
        kinds = ["accuracy", *(f"accuracy_{i}" for i in range(2, 4))]
        files = {kind: ResultBytes(kind, json.dumps(one).encode()) for kind, one in zip(kinds, scores, strict=False)}
        files |= {kind: ResultBytes(kind, json.dumps(one).encode()) for kind, one in accounts.items()}
        return run("accuracy", {**files, "catalog": using}, {"model": MODEL})

    assert verdict(spread[0], spread[1], spread[2]).passed
    undecided = verdict(spread[0], spread[1])
    assert undecided.failure_class is FailureClass.MEASUREMENT_INVALID
    assert dict(undecided.facts)["measure_again"] == 1


def test_a_length_that_does_not_fit_its_rate_has_changed_its_meaning() -> None:
    good, changed = atom(62.5, 2.88), atom(62.5, 1.88)
    assert judge("acceptance", good, using=catalog(), model=MODEL).passed
    verdict = judge("acceptance", changed, using=catalog(), model=MODEL)
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID
    assert "acceptance_identity" in failing(verdict)
    assert not judge(
        "acceptance", foreign.atom_serving() | {"accept_length": 1.875}, using=catalog(), model=MODEL
    ).passed


def test_two_lengths_of_one_server_that_differ_are_no_measurement() -> None:
    twice = foreign.atom(mtp_acceptance_rate=62.5, mtp_accept_length=2.875, avg_tokens_per_forward=2.2)
    verdict = judge("acceptance", twice, using=catalog(), model=MODEL)
    assert verdict.failure_class is FailureClass.MEASUREMENT_INVALID
    assert any("mtp_accept_length" in check.field or "avg_tokens" in check.field for check in failing(verdict).values())


def counted(accepted: int, drafts: int = 100) -> dict[str, Any]:
    made = passing.counters(drafts, (accepted, 0, 0, 0))
    return {
        "counters": made,
        "acceptance_length": passing.length(made),
        "acceptance_rate": made["accepted_tokens"] / made["draft_tokens"],
        "per_position_rates": [accepted / drafts, 0.0, 0.0, 0.0],
    }


def test_a_length_at_the_noise_is_no_acceptance() -> None:
    verdict = passing.judge("smoke", {"smoke": {**passing.smoke(), **counted(4)}})
    passing.assert_fails(verdict, FailureClass.ACCEPTANCE_REGRESSION, "acceptance_length")


def test_a_drafter_that_never_drafted_is_named() -> None:
    nothing = {"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0, "per_position": []}
    verdict = passing.judge("smoke", {"smoke": {**passing.smoke(), "counters": nothing}})
    assert verdict.failure_class is FailureClass.CHECKPOINT_NOT_SERVABLE
    assert "drafter_active" in passing.names(verdict)


def test_outputs_that_part_more_often_than_the_target_from_itself_are_the_drafters_doing() -> None:
    healthy = passing.exact_match(50, differ=2, control_differs=2)
    assert passing.judge("correctness", {"exact_match": healthy}).passed
    verdict = passing.judge("correctness", {"exact_match": passing.exact_match(50, differ=20, control_differs=2)})
    assert verdict.failure_class is FailureClass.CORRECTNESS_MISMATCH
    assert "exact_match" in passing.names(verdict)


@pytest.mark.parametrize(
    "harm",
    [{"ok": False, "size": None}, {"ok": False, "size": 7}, {"size": 7}],
    ids=["not there", "another size, told", "another size, not told"],
)
def test_shards_that_are_not_there_or_another_size_are_named(harm: dict[str, Any]) -> None:
    document = passing.target_check()
    document["shards"][1] |= harm
    verdict = passing.judge("target", {"target_check": document})
    assert not verdict.passed
    assert any(check.field.startswith("shards[1]") for check in passing.failing(verdict)), verdict.detail


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE html><html><body>503</body></html>",
        b'{"error": "Access to this resource is restricted"}',
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
        b"",
        b"\xff" * 4096,
    ],
    ids=["page", "error", "pointer", "empty", "bytes"],
)
def test_what_was_saved_in_the_place_of_weights_is_no_export(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(passing.config()))
    (tmp_path / "model.safetensors").write_bytes(data)
    assert main(["gate", "train", "--export-only", str(tmp_path), "--json"]) in (1, 2)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["pass"], printed["failure_class"]) == (False, "EXPORT_INVALID")
    assert {check["field"] for check in printed["checks"] if not check["ok"]} & {"problems", "lfs_pointer"}


PRODUCERS = [(gate, name) for gate, names in READ_BY.items() for name in names]


def sample(name: str) -> Any:
    """A file of a producer that is long enough to count."""
    return sampled({1: 400, 2: 300, 4: 300}) if name == "specdec-acceptance" else SAMPLES[name].make()


def bars_of(gate: str, name: str) -> Any:
    """A catalog with a bar on everything that a producer states, so that all of it is needed."""
    bars = {measure: bar(value) for measure, value in BARS.items()} | {"per_position": bar([0.2])}
    failed = failing(judge_all(gate, sample(name), catalog(entry(draft_tokens=None, bars=bars))))
    if gate == "accuracy" and "acceptance_length" in failed:
        return catalog(entry(draft_tokens=None, drafter=None, bars={"accuracy": bars["accuracy"]}))
    names = {"per_position": "position_1"}
    kept = {measure: one for measure, one in bars.items() if names.get(measure, measure) not in failed}
    return catalog(entry(draft_tokens=None, bars=kept))


def judge_all(gate: str, document: Any, using: Any) -> Verdict:
    return judge(gate, document, using=using, model=MODEL)


def looked_at(verdict: Verdict, document: Any) -> list[tuple[str, tuple[Any, ...], Any]]:
    """The fields of a file that a verdict's checks name."""
    fields = {check.field for check in verdict.checks if check.file != "catalog.json"}
    return [place for place in walk_any(document) if place[0] in fields]


def walk_any(document: Any) -> list[tuple[str, tuple[Any, ...], Any]]:
    if isinstance(document, list):
        return [(f"[0].{path}", (0, *keys), value) for path, keys, value in walk(document[0])]
    return list(walk(document))


@pytest.mark.parametrize(("gate", "name"), PRODUCERS)
def test_no_field_that_a_verdict_looked_at_can_be_spoilt(gate: str, name: str) -> None:
    using, document = bars_of(gate, name), sample(name)
    good = judge_all(gate, document, using)
    assert good.passed, good.detail
    places = looked_at(good, document)
    assert places
    for path, keys, value in places:
        for what, other in changes(value):
            changed = put(document, keys, other)
            # Without the one field by which two of ATOM's scripts differ, a file is a whole one of the other.
            other_script = what == "removed" and path == "atom_ci_metadata.mtp_accept_length"
            if json.dumps(changed) != json.dumps(document) and what != "huge" and not other_script:
                verdict = judge_all(gate, changed, using)
                assert not verdict.passed, (path, what)
                json.dumps(verdict.to_json(), allow_nan=False)
        for spoilt in SPOILT:
            text = json.dumps(put(document, keys, "@spoilt@")).replace('"@spoilt@"', spoilt)
            assert not judge_all(gate, text.encode(), using).passed, (path, spoilt[:9])


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([[], {}, "0.5"])
)


@pytest.mark.parametrize(("gate", "name"), PRODUCERS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_values_in_any_fields_never_raise_and_what_was_looked_at_stays_a_finite_number(
    gate: str, name: str, data: st.DataObject
) -> None:
    document, using = copy.deepcopy(sample(name)), bars_of(gate, name)
    places = walk_any(document)
    path, keys, _ = data.draw(st.sampled_from(places))
    value = data.draw(scalars)
    verdict = judge_all(gate, put(document, keys, value), using)
    json.dumps(verdict.to_json(), allow_nan=False)
    assert verdict.passed == (verdict.failure_class is None)
    needed = {check.field for check in verdict.checks if check.name in BARS}
    if verdict.passed and path in needed:
        assert type(value) in (int, float)
        assert re.fullmatch(r"-?[0-9.e+-]+", json.dumps(value))
