"""`gonogo open --plain`: the facts of the board as lines, what happens after them, and how it ends."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console import following
from console.following import Follower
from console.release.conductor import EXIT_STATUS
from console.release.folder import LIVE_NAME, STATE_NAME
from console.session import Session
from tests.console import runs
from tests.console.runs import Run


class Halted(Exception):
    """The script of a test is at its end, and the command still follows."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(run: Run, *steps: Callable[[], object], stream: io.StringIO | None = None) -> tuple[list[str], int | None]:
    """What is printed while some things happen, and the exit status; None where it would follow on."""
    script: Iterator[Callable[[], object]] = iter(steps)

    def pause() -> None:
        step = next(script, None)
        if step is None:
            raise Halted
        step()

    out = stream or io.StringIO()
    try:
        status = Follower(Session(run.path, None, clock=run.time.clock), out, pause, colour=False).run()
    except Halted:
        status = None
    run.close()
    return out.getvalue().splitlines(), status


def after(lines: list[str]) -> list[str]:
    """What was printed after the run folder was named: what happened while it was followed."""
    return lines[next(index for index, line in enumerate(lines) if line.startswith("Run folder: ")) + 1 :]


def test_the_facts_of_the_board_are_lines_of_their_own(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    lines, status = told(run)
    assert status is None
    assert lines[0] == f"Release {runs.RUN_ID}: dflash for demo/tiny-target on sandbox"
    assert lines[1] == "State: WAITS FOR THE CLUSTER for 0:12: results of 003-train-1"
    for wanted in (
        "Interventions: 0",
        "Link: up, last heard 0.4 s ago",
        "Stage setup: passed, took 0:02, begun at 09:30:13",
        "  Gate data over 002-data-1: GO: 2 checks held",
        "Stage bench: not yet",
        "Job 1003 of 003-train-1: running on node01, 0:12 of 5:00",
    ):
        assert wanted in lines
    assert lines[-2].endswith("[train] Job 1003 is RUNNING")
    assert all(line.isprintable() for line in lines)


def test_a_waiting_job_is_said_with_the_command_that_decides(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    lines, _ = told(run)
    assert f"`gonogo queue approve {run.path} 003-train-1`" in lines[-1]
    assert any(line.startswith("State: WAITS FOR YOU") for line in lines)


def test_what_happens_is_said_once_and_times_alone_are_nothing(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    (job,), waiting = run.live["jobs"], run.live["waiting"]

    def later() -> None:
        run.time.go(1)
        run.say(jobs=[{**job, "elapsed_s": 13}], waiting=waiting)

    def result() -> None:
        run.result("003-train-1", "train")
        run.say(jobs=[{**job, "presence": "ended", "state": "COMPLETED"}], waiting=waiting)

    lines, status = told(run, later, later, result)
    assert status is None
    said = after(lines)
    assert len(said) == len(set(said)), said
    assert [line.split("] ")[1].split(":")[0] for line in said[:3]] == [
        "Read train of 003-train-1", "All results of 003-train-1 are read", "Job of 003-train-1 ended",
    ]  # fmt: skip
    assert said[-1] == "Job 1003 of 003-train-1: ended on node01, — of 5:00"


def test_a_conductor_that_goes_away_is_said(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    said = after(told(run, run.close)[0])
    assert said == ["State: NOT CONDUCTED: nothing goes on", "Link: unknown"]


@pytest.mark.parametrize(("verdict", "status"), [("DRAFTER_READY", 0), ("INFEASIBLE", 1), ("ANOMALOUS", 3)])
def test_it_ends_with_the_verdict(tmp_path: Path, verdict: str, status: int) -> None:
    run = runs.running(tmp_path / "run")

    def close() -> None:
        run.record("verdict", f"{verdict}: so", stage="closeout", verdict=verdict, failure_class="", detail="so")

    lines, ended = told(run, close)
    assert ended == status
    assert f"State: {verdict}: so" in after(lines)


def test_the_exit_status_is_that_of_a_headless_run() -> None:
    assert following.EXIT_STATUS == EXIT_STATUS


def test_a_closed_release_is_not_followed(tmp_path: Path) -> None:
    lines, status = told(runs.ready(tmp_path / "run"))
    assert status == 0
    assert "State: DRAFTER_READY: every gate passed" in lines


def test_a_log_that_was_changed_vouches_for_nothing(tmp_path: Path) -> None:
    run = runs.ready(tmp_path / "run")
    log = run.path / "work_log.md"
    log.write_bytes(log.read_bytes().replace(b"Gate bench over 005-bench-1: GO", b"Gate bench over 005-bench-1: OG", 1))
    lines, status = told(run)
    assert status == following.NOT_SOUND
    assert any(line.startswith("Problem: ") for line in lines)
    assert any(line.startswith("NOT VERIFIED: ") for line in lines)


def test_a_state_that_cannot_be_read_is_said_and_the_log_still_ends_it(tmp_path: Path) -> None:
    run = runs.ready(tmp_path / "run")
    (run.path / STATE_NAME).write_text("{")
    lines, status = told(run)
    assert status == following.NOT_SOUND
    assert any(line.startswith("Problem: ") and STATE_NAME in line for line in lines)


def test_a_terminal_rings_for_a_job_that_begins_to_wait(tmp_path: Path) -> None:
    run = runs.staged(tmp_path / "run")
    first = told(runs.waiting(tmp_path / "other"), stream=Terminal())[0]
    assert "\a" not in "".join(first), "what waited before is no news"
    lines, _ = told(run, lambda: run.propose("train", "data"), lambda: None, stream=Terminal())
    assert "".join(lines).count("\a") == 1


@pytest.mark.parametrize("text", [text for text in runs.HOSTILE if len(text) < 1000])
def test_foreign_text_stays_on_its_line(tmp_path: Path, text: str) -> None:
    run = runs.hostile(tmp_path / "run", text.encode("utf-8", "replace").decode())
    lines, _ = told(run, lambda: run.say(doing="x", problems=[text], link={"state": text, "detail": text}))
    assert all(line.isprintable() for line in lines)


def test_a_closed_pipe_ends_it(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stream:
        with pytest.raises(BrokenPipeError):
            Follower(Session(run.path, None, clock=run.time.clock), stream, lambda: None).run()
        # What could not be written is still in the stream's buffer; its end must not raise in the test either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)
    run.close()


def test_the_command_prints_a_closed_release_and_imports_no_screen(tmp_path: Path) -> None:
    run = runs.ready(tmp_path / "run")
    program = (
        "import sys; from console.cli import main; status = main(['open', '--plain', sys.argv[1]]); "
        "print('textual' in sys.modules, status)"
    )
    done = subprocess.run([sys.executable, "-c", program, run.path], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "False 0"
    assert "State: DRAFTER_READY" in done.stdout
    assert (run.path / LIVE_NAME).exists()
