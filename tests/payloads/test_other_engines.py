"""SGLang, ATOM and llama.cpp: each is read by what it tells, and what it does not tell is not made up.

The servers answer in these engines' shapes, as other_server.py says. tests/engine has the real ones that run here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate
from tests.payloads.other_server_counts import HISTOGRAM, POSITIONS, STEPS, TAKEN
from tests.payloads.running import TOKEN, K, processes_in, result, run

SERVER = Path(__file__).parent / "other_server.py"
PROMPTS = [{"prompt": [i, i + 1]} for i in range(1, 13)]
PROBLEMS = [{"question": f"What is {i}?", "answer": "it is\n#### 7"} for i in range(20)]
ENGINES = ("sglang", "llama.cpp")
"""Those that tell token ids."""

STATED = {"sglang": "", "atom": f"--num-speculative-tokens {K}", "llama.cpp": f"--spec-draft-n-max {K}"}
"""Options that state the draft tokens a step, where nothing else does."""


def command(folder: Path, engine: str, *options: str, drafter: str | None = "", stated: str | None = None) -> str:
    """A shell command that starts such a server, by default with the drafter that was asked for."""
    drafting = "" if drafter is None else f"--drafter '{drafter or folder / 'draft'}'"
    said = STATED[engine] if stated is None else stated
    written = " ".join(f"--odd {option}" for option in options)
    return f"exec '{sys.executable}' '{SERVER}' --port {{port}} --kind {engine} {drafting} {written} {said}"


def smoke(folder: Path, engine: str, served: str, *more: object) -> dict[str, Any]:
    (folder / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS))
    done = run(
        "smoke.py", "--engine", engine, "--server-command", served, "--prompts", folder / "prompts.jsonl",
        "--max-tokens", 21, "--model", "m", "--drafter", folder / "draft", "--draft-tokens", K,
        "--server-timeout", 30, *more, cwd=folder,
    )  # fmt: skip
    document = result(folder / "smoke.json")
    assert done.returncode == (0 if document["stage"] == "done" else 1), done.stdout + done.stderr
    assert not processes_in(folder)
    return document


def accuracy(folder: Path, engine: str, served: str, *more: object) -> dict[str, Any]:
    (folder / "gsm8k.jsonl").write_text("".join(json.dumps(problem) + "\n" for problem in PROBLEMS))
    run(
        "accuracy.py", "--engine", engine, "--server-command", served, "--questions", folder / "gsm8k.jsonl",
        "--samples", 12, "--shots", 2, "--model", "m", "--drafter", folder / "draft", "--draft-tokens", K,
        "--server-timeout", 30, *more, cwd=folder,
    )  # fmt: skip
    return result(folder / "accuracy.json")


def judge(folder: Path, **expected: Any) -> Any:
    wanted = {"token": TOKEN, "drafter": str(folder / "draft"), "draft_tokens": K, **expected}
    return run_gate("smoke", {"smoke": (folder / "smoke.json").read_bytes()}, wanted)


def drafted(engine: str) -> int:
    return 12 * (STEPS * K - (2 if engine == "llama.cpp" else 0))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_drafter_is_measured_by_exactly_what_these_requests_drafted(engine: str, tmp_path: Path) -> None:
    done = smoke(tmp_path, engine, command(tmp_path, engine))
    assert (done["stage"], done["prompts_passed"]) == ("done", 12), done["detail"]
    assert done["counters"] == {
        "drafts": 12 * STEPS,
        "draft_tokens": drafted(engine),
        "accepted_tokens": 12 * TAKEN,
        "per_position": [12 * count for count in POSITIONS],
    }
    assert done["server"]["engine"] == engine
    assert done["server"]["version"]
    assert judge(tmp_path).passed, judge(tmp_path).detail
    assert "SECRET" not in (tmp_path / "smoke.json").read_text()


@pytest.mark.parametrize("engine", ["sglang", "atom", "llama.cpp"])
def test_accuracy_and_acceptance_are_measured_together(engine: str, tmp_path: Path) -> None:
    done = accuracy(tmp_path, engine, command(tmp_path, engine))
    assert (done["stage"], done["answered"], done["correct_strict"]) == ("done", 12, 12), done["detail"]
    assert (done["counters"]["drafts"], done["counters"]["draft_tokens"]) == (12 * STEPS, drafted(engine))
    assert done["acceptance_length"] == pytest.approx(1 + TAKEN / STEPS)
    assert done["counters"]["per_position"] == [12 * count for count in POSITIONS]
    assert done["output_tokens"] == 12 * 21


@pytest.mark.parametrize("engine", ["sglang", "atom", "llama.cpp"])
def test_a_server_without_drafter_is_named_by_what_the_engine_says(engine: str, tmp_path: Path) -> None:
    done = accuracy(tmp_path, engine, command(tmp_path, engine, drafter=None))
    assert (done["stage"], done["answered"]) == ("drafter_inactive", 0)
    told = {"sglang": "speculative_algorithm None", "atom": "enabled: false", "llama.cpp": "speculative: false"}
    assert told[engine] in done["detail"]


def test_the_silently_inactive_drafter_of_llama_cpp_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    """A draft model of another vocabulary: asked for, in the arguments, healthy, answering, and not drafting."""
    done = smoke(tmp_path, "llama.cpp", command(tmp_path, "llama.cpp", "inactive"))
    assert (done["stage"], done["outputs"]) == ("drafter_inactive", [])
    verdict = judge(tmp_path)
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "/slots says speculative: false" in verdict.detail


@pytest.mark.parametrize(
    ("engine", "odd", "stage", "words"),
    [
        ("llama.cpp", "half", "model_mismatch", "slot 1 does not speculate, the others do"),
        ("llama.cpp", "no-metrics", "metrics_unreadable", "start llama-server with --metrics"),
        ("llama.cpp", "no-stop", "generation_failed", "stop_type none"),
        ("sglang", "aborts", "generation_failed", "engine is gone"),
        ("sglang", "contradicts", "generation_failed", "its histogram"),
        ("sglang", "no-histogram", "generation_failed", "no spec_correct_drafts_histogram"),
        ("atom", "contradicts", "metrics_unreadable", "and its distribution"),
    ],
)
def test_what_contradicts_itself_or_is_not_there_is_no_measurement(
    engine: str, odd: str, stage: str, words: str, tmp_path: Path
) -> None:
    done = accuracy(tmp_path, engine, command(tmp_path, engine, odd))
    assert done["stage"] == stage
    assert words in done["detail"]


@pytest.mark.parametrize("engine", ENGINES)
def test_another_drafter_and_another_number_of_draft_tokens(engine: str, tmp_path: Path) -> None:
    done = smoke(tmp_path, engine, command(tmp_path, engine, drafter="/elsewhere"))
    assert done["stage"] == "model_mismatch"
    assert "drafter is /" in done["detail"]
    assert judge(tmp_path).failure_class == "MEASUREMENT_INVALID"
    done = smoke(tmp_path, engine, command(tmp_path, engine), "--draft-tokens", K + 1)
    assert done["stage"] == "model_mismatch"
    assert f"drafts {K} tokens a step, not {K + 1}" in done["detail"]


def test_draft_tokens_that_nobody_states_are_not_guessed(tmp_path: Path) -> None:
    done = smoke(tmp_path, "llama.cpp", command(tmp_path, "llama.cpp", stated=""))
    assert done["stage"] == "model_mismatch"
    assert "nothing tells that it drafts 4 tokens a step" in done["detail"]
    # ATOM's own statistics state them, once something was drafted.
    assert accuracy(tmp_path, "atom", command(tmp_path, "atom", stated=""))["stage"] == "done"


def test_atom_tells_no_token_ids_so_outputs_cannot_be_compared_over_it(tmp_path: Path) -> None:
    done = smoke(tmp_path, "atom", command(tmp_path, "atom"))
    assert (done["stage"], done["outputs"]) == ("engine_unsuited", [])
    assert "token ids" in done["detail"]
    assert judge(tmp_path).failure_class == "USER_CONFIG_ERROR"


@pytest.mark.parametrize("odd", ["old-path", "apart"])
def test_sglang_tells_its_settings_elsewhere_too(odd: str, tmp_path: Path) -> None:
    done = smoke(tmp_path, "sglang", command(tmp_path, "sglang", odd))
    assert done["stage"] == "done", done["detail"]


def test_decode_servers_that_differ_are_not_one_server(tmp_path: Path) -> None:
    served = f"{command(tmp_path, 'sglang', 'apart')} --odd unlike"
    done = smoke(tmp_path, "sglang", served)
    assert done["stage"] == "model_mismatch"
    assert "not set up alike" in done["detail"]


def test_of_a_tree_the_depth_is_the_number_of_draft_tokens(tmp_path: Path) -> None:
    done = smoke(tmp_path, "sglang", command(tmp_path, "sglang", "tree"))
    assert done["stage"] == "done", done["detail"]
    assert done["server"]["num_draft_tokens"] == K
    assert done["server"]["speculation"]["speculative_eagle_topk"] == 3
    assert judge(tmp_path).passed, judge(tmp_path).detail


def test_acceptance_that_sglang_was_told_to_pretend_never_counts(tmp_path: Path) -> None:
    smoke(tmp_path, "sglang", command(tmp_path, "sglang", "simulated"))
    verdict = judge(tmp_path)
    assert verdict.failure_class == "MEASUREMENT_INVALID"
    assert "not_simulated" in verdict.detail


@pytest.mark.parametrize(
    ("odd", "require", "words"),
    [
        ("no-graphs", "disable_cuda_graph=false", "disable_cuda_graph = True, not False"),
        ("tree", "speculative_eagle_topk=1", "speculative_eagle_topk = 3, not 1"),
        ("apart", "cuda_graph_mode=FULL", "does not report cuda_graph_mode"),
        ("apart", "speculative_eagle_topk=true", "speculative_eagle_topk = 1, not True"),
    ],
)
def test_a_setting_that_is_required_is_compared_before_anything_is_asked(
    odd: str, require: str, words: str, tmp_path: Path
) -> None:
    done = smoke(tmp_path, "sglang", command(tmp_path, "sglang", odd), "--require", require)
    assert (done["stage"], done["outputs"]) == ("model_mismatch", [])
    assert words in done["detail"]


def test_required_settings_that_are_so_stop_nothing(tmp_path: Path) -> None:
    asked = ("--require", "disable_cuda_graph=false", "--require", "speculative_eagle_topk=1")
    assert smoke(tmp_path, "sglang", command(tmp_path, "sglang"), *asked)["stage"] == "done"


@pytest.mark.parametrize("engine", ENGINES)
def test_both_arms_are_measured_over_any_engine_that_tells_token_ids(engine: str, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS))
    done = run(
        "bench.py", "--engine", engine, "--server-a", command(tmp_path, engine, drafter=None),
        "--server-b", command(tmp_path, engine), "--model", "m", "--drafter", tmp_path / "draft", "--draft-tokens", K,
        "--manifest-sha256", "0" * 64, "--prompts", tmp_path / "prompts.jsonl", "--concurrency", "1,2",
        "--max-tokens", 21, "--exact-prompts", 8, "--warmup-requests", 2, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    arms = result(tmp_path / "bench.json")["arms"]
    assert arms["A"]["server_config"] == arms["B"]["server_config"]
    assert [point["counters"] for point in arms["A"]["points"]] == [None, None]
    for point in arms["B"]["points"]:
        assert point["acceptance_length"] == pytest.approx(1 + TAKEN / STEPS)
        assert point["counters"]["drafts"] == STEPS * point["requested"]
    assert result(tmp_path / "exact_match.json")["exact_match"] == 1.0


def test_a_drafting_baseline_is_none(tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text(json.dumps(PROMPTS[0]) + "\n")
    for engine in ENGINES:
        run(
            "bench.py", "--engine", engine, "--server-a", command(tmp_path, engine), "--server-b", "false",
            "--model", "m", "--drafter", tmp_path / "draft", "--draft-tokens", K, "--manifest-sha256", "0" * 64,
            "--prompts", tmp_path / "prompts.jsonl", "--max-tokens", 21, cwd=tmp_path,
        )  # fmt: skip
        bench = result(tmp_path / "bench.json")
        assert bench["stage"] == "model_mismatch", engine
        assert "the target alone was asked for" in bench["detail"]


def test_the_numbers_of_the_server_hang_together() -> None:
    assert sum(HISTOGRAM) == STEPS
    assert sum(n * count for n, count in enumerate(HISTOGRAM)) == sum(POSITIONS) == TAKEN
