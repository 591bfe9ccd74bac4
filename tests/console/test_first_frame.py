"""What costs much is not imported on the way to the first frame, and what was promised is on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.console import runs

PROGRAM = """
import gc, json, sys
from console.cli import main
import textual.app

def begin(self):
    costly = ["pydantic", "asyncssh", "watchfiles", "yaml", "numpy", "cryptography", "hashlib",
              "console.release.job", "console.release.job_view", "console.release.conductor", "console.release.journal"]
    width, height = self.size
    rows = ["".join(segment.text for segment in strip) for strip in self.screen._compositor.render_strips()]
    print(json.dumps({"loaded": [name for name in costly if name in sys.modules], "rows": rows,
                      "collected": [str(gc.isenabled()), str(gc.get_freeze_count() > 10_000)]}))
    self.exit()

def run(self):
    type(self)._begin = begin
    return in_terminal(self, headless=True, size=(100, 30))

in_terminal, textual.app.App.run = textual.app.App.run, run
main(["open", sys.argv[1], "--read-only"])
"""


def first_frame(path: Path) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_nothing_costly_is_imported_and_the_run_is_on_it(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    frame = first_frame(run.path)
    run.close()
    assert frame["loaded"] == []
    assert frame["collected"] == ["True", "True"], "garbage is collected from the first frame on, what was there is not"
    text = "\n".join(frame["rows"])
    for words in (runs.RUN_ID, "sandbox", runs.LOGIN, "link", "0 interventions", "Pipeline", "stage_target", "1 board"):
        assert words in text


def test_a_run_folder_without_a_state_is_opened_too(tmp_path: Path) -> None:
    run = runs.Run(tmp_path / "run")
    text = "\n".join(first_frame(run.path)["rows"])
    assert "cluster not known yet" in text
    assert "no conductor is running" in text
