"""The models of `make test-engine`: the same bytes each time, and exports as the gates want them or refuse them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate
from tests.engine.recipe import tiny_qwen
from tests.payloads.running import TOKEN, K, run


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("kind", "noise"), [("target", 0.0), ("draft", 0.02), ("dflash", 0.0), ("dflash", 5.0), ("random-dflash", 0.0)]
)
def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path, kind: str, noise: float) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        tiny_qwen.make(kind, str(tmp_path / name), seed, noise)
    assert digests(tmp_path / "one") == digests(tmp_path / "again")
    assert digests(tmp_path / "one")["model.safetensors"] != digests(tmp_path / "other")["model.safetensors"]


def judge(folder: Path, kind: str, noise: float = 0.0) -> Any:
    tiny_qwen.make("target", str(folder / "target"), 1)
    tiny_qwen.make(kind, str(folder / "drafter"), 1, noise)
    for program, *more in (("check_target.py", "target"), ("check_export.py", "drafter", "--target", "target")):
        done = run(program, *more, cwd=folder)
        assert done.returncode == 0, done.stdout
    files = {"export_check": (folder / "export_check.json").read_bytes()}
    return run_gate("export", files, {"token": TOKEN, "algorithm": "dflash", "draft_tokens": K})


@pytest.mark.parametrize(("kind", "noise"), [("dflash", 0.0), ("dflash", 5.0), ("random-dflash", 0.0)])
def test_a_head_looks_sound_whatever_it_drafts(tmp_path: Path, kind: str, noise: float) -> None:
    """So only serving it can tell them apart."""
    verdict = judge(tmp_path, kind, noise)
    assert verdict.passed, verdict.detail


def test_a_draft_model_is_no_export_that_a_release_takes(tmp_path: Path) -> None:
    verdict = judge(tmp_path, "draft", 0.02)
    assert verdict.failure_class == "MODEL_UNSUPPORTED"
    assert "Qwen3ForCausalLM" in verdict.detail
