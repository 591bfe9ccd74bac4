"""The smoke test over a real llama.cpp, whose server goes on without a word when its drafter cannot be used.

Runs where LLAMA_SERVER names a `llama-server`; it is built from source, which takes longer than all else here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate
from tests.engine import gguf
from tests.engine.recipe import tiny_qwen
from tests.engine.smoking import SEED
from tests.payloads.running import TOKEN, K, processes_in, result, run

SERVER = os.environ.get("LLAMA_SERVER", "")
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not SERVER, reason="LLAMA_SERVER names no llama-server"),
]
DRAFTING = "--spec-type draft-simple --spec-draft-n-max"


def judged(folder: Path, *, drafting: bool = True, **draft: Any) -> tuple[dict[str, Any], Any]:
    """Serve the target with a draft model; gives the result of the smoke test and the gate's verdict."""
    tiny_qwen.make("target", str(folder / "target"), SEED)
    gguf.write(folder / "target.gguf", SEED)
    gguf.write(folder / "draft.gguf", SEED, **draft)
    alone = f"exec '{SERVER}' --host 127.0.0.1 --port {{port}} -m '{folder}/target.gguf' -a tiny -c 4096 -np 4 -t 1"
    with_draft = f"{alone} --metrics -md '{folder}/draft.gguf' {DRAFTING} {K}" if drafting else f"{alone} --metrics"
    done = run(
        "smoke.py", "--engine", "llama.cpp", "--server-command", with_draft,
        "--reference-command", f"{alone} --metrics",
        "--model", "tiny", "--drafter", folder / "draft.gguf", "--draft-tokens", K, "--ignore-eos",
        "--prompts", folder / "target" / "prompts.jsonl", "--num-prompts", 12, "--max-tokens", 48,
        "--server-timeout", 60, cwd=folder,
    )  # fmt: skip
    document = result(folder / "smoke.json")
    assert done.returncode == (0 if document["stage"] == "done" else 1), done.stdout + done.stderr
    assert not processes_in(folder)
    expected = {"token": TOKEN, "drafter": str(folder / "draft.gguf"), "draft_tokens": K, "model": "tiny"}
    return document, run_gate("smoke", {"smoke": (folder / "smoke.json").read_bytes()}, expected)


@pytest.mark.parametrize(("noise", "cls"), [(0.02, None), (5.0, "ACCEPTANCE_REGRESSION")], ids=["good", "broken"])
def test_a_draft_model_is_judged_by_what_the_target_takes(tmp_path: Path, noise: float, cls: str | None) -> None:
    done, verdict = judged(tmp_path, noise=noise)
    assert (done["stage"], done["prompts_passed"], done["reference_identical"]) == ("done", 12, 12), done["detail"]
    assert verdict.failure_class == cls, verdict.detail
    assert (done["acceptance_length"] > 3.0) == (cls is None)


@pytest.mark.parametrize("fault", ["another vocabulary", "none"])
def test_a_drafter_that_is_not_in_use_is_named_although_the_server_is_healthy(tmp_path: Path, fault: str) -> None:
    done, verdict = judged(tmp_path, drafting=fault != "none", other_words=True)
    assert (done["stage"], done["outputs"]) == ("drafter_inactive", [])
    assert done["server"]["started_in_s"] is not None
    assert verdict.failure_class == "CHECKPOINT_NOT_SERVABLE"
    assert "/slots says speculative: false" in verdict.detail
