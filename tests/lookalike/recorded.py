"""Recorded command lines of sbatch, read from the files beside this one."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

BODY = 'echo "$@"\n'


@dataclass(frozen=True)
class Recorded:
    """One command line as a program runs it.

    Attributes:
        text: The line as it stands in the file.
        environ: Variables that stand before it.
        words: The words after `sbatch`.
        script: The batch script that it is about.
    """

    text: str
    environ: dict[str, str]
    words: tuple[str, ...]
    script: str

    @property
    def on_stdin(self) -> bool:
        """Whether the script comes from standard input."""
        return not {"job.sh", "./job.sh", "sub/deep.sh"} & set(self.words)

    def put_files(self, folder: Path) -> None:
        """Lay the script where the words look for it."""
        for name in ("job.sh", "sub/deep.sh"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(self.script)


def read_recorded(text: str) -> Recorded:
    """One line of a file."""
    command, _, header = text.partition(" <<< ")
    words = shlex.split(command)
    at = words.index("sbatch")
    environ = dict(word.split("=", 1) for word in words[:at])
    lines = [line for line in re.split(r" \| ?", header) if header]
    script = "#!/bin/sh\n" + "".join(f"{line}\n" for line in lines) + BODY
    return Recorded(text, environ, tuple(words[at + 1 :]), script)


def _lines(name: str) -> list[str]:
    text = (Path(__file__).parent / name).read_text()
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def taken() -> list[Recorded]:
    """Lines that are submitted, or that Slurm itself refuses."""
    return [read_recorded(line) for line in _lines("lines.txt")]


def refused() -> list[tuple[str, Recorded]]:
    """Lines that cannot be represented, each with the word that the refusal names."""
    pairs = [line.split(" | ", 1) for line in _lines("refused.txt")]
    return [(named, read_recorded(text)) for named, text in pairs]
