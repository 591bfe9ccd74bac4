"""Runs the programs for clusters as a job would: each as a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PAYLOADS = Path(__file__).parents[2] / "backends" / "payloads"
ODD_SERVER = Path(__file__).parent / "odd_server.py"
MODEL = "demo/tiny-target"
REVISION = "1b2acaffba10906eb954c3e0085f8d62b52f8f57"
TOKEN = "0123456789abcdef"
K = 4
PATIENCE_S = 60.0

THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Model(NamedTuple):
    """A target and drafters that were trained for it, on this machine, by the real programs."""

    target: Path
    data: Path
    dflash2: Path
    dflash: Path

    @property
    def prompts(self) -> Path:
        return self.target / "prompts.jsonl"


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **THREADS, "GONOGO_TOKEN": TOKEN, **more}


def run(program: str, *arguments: object, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    command = [sys.executable, str(PAYLOADS / program), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def start(program: str, *arguments: object, cwd: Path, **more: str) -> subprocess.Popen[str]:
    """Start a program, in a process group of its own as a job's script is."""
    command = [sys.executable, str(PAYLOADS / program), *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def result(path: Path) -> dict[str, Any]:
    """A result file; it must be strict JSON and carry the job's token."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    document: dict[str, Any] = json.loads(path.read_bytes(), parse_constant=refuse)
    assert (document["schema_version"], document["token"]) == (1, TOKEN)
    return document


def server_command(model: Model, *, drafter: Path | None = None, k: int = K, fault: str = "", name: str = MODEL) -> str:
    """A shell command that starts the tiny server."""
    command = (
        f"exec '{sys.executable}' '{PAYLOADS}/tiny_server.py' --model '{model.target}' --served-model-name '{name}' "
        f"--port {{port}} --fault '{fault}'"
    )
    return command if drafter is None else f"{command} --drafter '{drafter}' --draft-tokens {k}"


def odd_command(*arguments: str) -> str:
    """A shell command that starts a server that is odd in a chosen way."""
    return f"exec '{sys.executable}' '{ODD_SERVER}' --port {{port}} {' '.join(arguments)}"


def until(fact: Callable[[], Any], what: str, patience: float = PATIENCE_S) -> Any:
    """Look until something is so, at most for the patience (seconds); returns what was seen."""
    deadline = time.monotonic() + patience
    while not (seen := fact()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.01)
    return seen


def processes_in(folder: Path) -> list[int]:
    """Processes whose working folder is this one, as that of everything is that was started there."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (
                os.readlink(path / "cwd") == str(folder)
                and (path / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
            ):
                found.append(int(path.name))
        except OSError:
            continue
    return found
