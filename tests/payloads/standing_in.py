#!/usr/bin/env python3
"""Stands in for programs that need GPUs: Model-Optimizer's training and export, vLLM's server, and srun.

As `python` it runs what it is given, but for those programs: a training writes checkpoints as a trainer does, an export
copies a drafter that was made before, and a server is the demo's. Each call is noted in CALLS with its environment.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

NOTED = ("PYTHONPATH", "HF_HUB_OFFLINE", "TRITON_CACHE_DIR", "SLURM_PROCID", "HEAD_NODE")


def note(words: list[str]) -> None:
    environment = {name: os.environ.get(name, "") for name in NOTED}
    with open(os.environ["CALLS"], "a") as stream:
        stream.write(json.dumps({"words": words, "cwd": os.getcwd(), "environment": environment}) + "\n")


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words else ""


def train(words: list[str]) -> int:
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    run = Path(settings["training.output_dir"])
    steps = 2400
    for step in (500, steps):
        log = [{"step": n, "loss": 8 - 4 * n / steps, "grad_norm": 1.0} for n in range(100, step + 1, 100)]
        folder = run / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        state = {"global_step": step, "max_steps": steps, "log_history": log}
        (folder / "trainer_state.json").write_text(json.dumps(state))
    return int(os.environ.get("TRAINING_ENDS_WITH", "0"))


def export(words: list[str]) -> int:
    assert option(words, "--model_path").endswith("/checkpoint-2400"), words
    destination = Path(option(words, "--export_path"))
    destination.mkdir()
    for file in Path(os.environ["DRAFTER_MADE_BEFORE"]).iterdir():
        (destination / file.name).write_bytes(file.read_bytes())
    return 0


def serve(words: list[str]) -> None:
    command = [sys.executable, os.environ["TINY_SERVER"], "--model", option(words, "--model")]
    command += ["--served-model-name", option(words, "--served-model-name"), "--port", option(words, "--port")]
    command += ["--max-num-seqs", option(words, "--max-num-seqs")]
    if "--speculative-config" in words:
        config = json.loads(option(words, "--speculative-config"))
        assert config["method"] == "dflash", config
        command += ["--drafter", config["model"], "--draft-tokens", str(config["num_speculative_tokens"])]
    os.execv(command[0], command)


def srun(words: list[str]) -> None:
    first = next(index for index, word in enumerate(words) if not word.startswith("--"))
    os.environ["SLURM_PROCID"] = "0"
    command = words[first:]
    os.execv(shutil.which(command[0]) or command[0], command)


def main() -> int:
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    note([name, *words])
    if name == "srun":
        srun(words)
    if name == "scontrol":
        print("node7\nnode8")
        return 0
    if words[:2] == ["-m", "vllm.entrypoints.openai.api_server"]:
        serve(words)
    if words[:2] == ["-m", "accelerate.commands.launch"]:
        return train(words)
    if words[0].endswith("/export_hf_checkpoint.py"):
        return export(words)
    os.execv(sys.executable, [sys.executable, *words])


if __name__ == "__main__":
    sys.exit(main())
