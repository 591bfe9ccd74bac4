"""The smoke test, as a job would run it, over a real vLLM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gates.registry import run as run_gate
from tests.engine.install import engine_python
from tests.engine.recipe import tiny_qwen
from tests.engine.releasing import RECIPE, TARGET
from tests.payloads.running import TOKEN, K, processes_in, result, start

PATIENCE_S = 420.0
SEED = 1


def served(folder: Path, drafter: bool) -> str:
    return f"exec sh '{RECIPE}/serve_vllm.sh' {{port}} {f'{folder}/drafter' if drafter else ''}"


def begin(folder: Path, command: str, *more: object, method: str = "dflash") -> Any:
    """Make the target, and start the smoke test over a server."""
    tiny_qwen.make("target", str(folder / "target"), SEED)
    variables = {"ENGINE": str(engine_python()), "TARGET": TARGET, "TARGET_PATH": str(folder / "target")}
    variables |= {"METHOD": method, "DRAFT_TOKENS": str(K), "MAX_NUM_SEQS": "8", "MAX_MODEL_LEN": "1024"}
    return start(
        "smoke.py", "--server-command", command, "--model", TARGET, "--drafter", folder / "drafter",
        "--draft-tokens", K, "--prompts", folder / "target" / "prompts.jsonl", "--ignore-eos", "--server-timeout", 300,
        *more, cwd=folder, **variables,
    )  # fmt: skip


def end(folder: Path, process: Any) -> tuple[dict[str, Any], Any]:
    """Wait for it; gives its result and the gate's verdict, and makes sure that it left no server."""
    said, _ = process.communicate(timeout=PATIENCE_S)
    document = result(folder / "smoke.json")
    assert process.returncode == (0 if document["stage"] == "done" else 1), said
    assert not processes_in(folder)
    expected = {"token": TOKEN, "drafter": str(folder / "drafter"), "draft_tokens": K, "model": TARGET}
    return document, run_gate("smoke", {"smoke": (folder / "smoke.json").read_bytes()}, expected)
