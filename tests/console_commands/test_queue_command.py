"""`gonogo queue`: lists, shows whole jobs, and decides on full digests only."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from console.release import deciding, folder, queue
from console.release.writer import RunWriter
from tests.release.making import decide, decision, make_job, new_run, propose, submit

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gonogo(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; gives exit status, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return new_run(tmp_path / "run")


def states(run: Run, run_dir: Path) -> dict[str, str]:
    status, out, _ = run("queue", "list", run_dir, "--json")
    assert status == 0
    return {item["id"]: item["state"] for item in json.loads(out)}


def test_a_list_holds_the_documented_keys(gonogo: Run, writer: RunWriter) -> None:
    job = make_job()
    proposal = propose(writer, "001-train-1", job)
    status, out, _ = gonogo("queue", "list", writer.run_dir, "--json")
    assert status == 0
    (item,) = json.loads(out)
    wanted = {
        "id": "001-train-1",
        "digest": job.digest,
        "stage": "train",
        "attempt": 1,
        "kind": "sbatch",
        "state": "pending",
        "summary": "Train the drafter",
        "proposed_at": proposal.time,
        "proposer": "conductor",
    }
    assert wanted.items() <= item.items()


def test_an_empty_queue_is_an_empty_list(gonogo: Run, writer: RunWriter) -> None:
    assert gonogo("queue", "list", writer.run_dir, "--json") == (0, "[]\n", "")
    assert gonogo("queue", "list", writer.run_dir) == (0, "", "No job has been proposed yet.\n")


def test_the_state_follows_files_before_the_log_and_the_log_after(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    assert states(gonogo, writer.run_dir) == {"001-train-1": "pending"}
    deciding.decide(writer.run_dir, decision(proposal))
    assert states(gonogo, writer.run_dir) == {"001-train-1": "approved"}
    assert deciding.use(proposal, writer.clock())
    assert states(gonogo, writer.run_dir) == {"001-train-1": "submitting"}
    common: dict[str, Any] = {"stage": "train", "id": proposal.id}
    for event, word in (
        ({"event": "submit_intent"}, "submitting"),
        ({"event": "submit_outcome", "outcome": "unknown", "job_id": None, "said": "time-out"}, "unknown"),
        ({"event": "submit_outcome", "outcome": "accepted", "job_id": "12", "said": ""}, "submitted"),
        ({"event": "results_complete"}, "results read"),
    ):
        writer.record(str(event.pop("event")), word, **common, **event)
        assert states(gonogo, writer.run_dir) == {"001-train-1": word}


def test_a_proposal_that_the_log_does_not_know_yet_is_listed(gonogo: Run, writer: RunWriter) -> None:
    queue.propose(writer.run_dir, "001-x-1", make_job(), {}, proposer="proposer:script", time=writer.clock())
    status, out, _ = gonogo("queue", "list", writer.run_dir, "--json")
    (item,) = json.loads(out)
    assert (status, item["state"], item["stage"], item["proposer"]) == (0, "pending", "train", "proposer:script")


def test_a_proposal_that_is_broken_is_listed_with_its_problem_and_never_as_pending(
    gonogo: Run, writer: RunWriter
) -> None:
    changed, broken, empty, odd = (
        propose(writer, f"00{number}-train-1", make_job(token=str(number) * 16)) for number in range(1, 5)
    )
    (changed.folder / "job.json").write_bytes(changed.job_bytes.replace(b"batch", b"other"))
    (broken.folder / "job.json").write_bytes(b"{}")
    (empty.folder / "proposal.json").unlink()
    (odd.folder / "decision.json").write_bytes(b"yes")
    (writer.run_dir / "submissions" / "005-foreign").mkdir()
    status, out, _ = gonogo("queue", "list", writer.run_dir, "--json")
    found = {item["id"]: (item["state"], item["problem"]) for item in json.loads(out)}
    assert status == 0
    assert len(found) == 5
    assert all(problem for _, problem in found.values())
    assert [found[name][0] for name in sorted(found)] == ["invalidated"] * 3 + ["pending", "invalidated"]
    _, text, _ = gonogo("queue", "list", writer.run_dir)
    assert text.count("PROBLEM") == 5
    for name in found:
        assert gonogo("queue", "approve", writer.run_dir, name, "--digest", make_job().digest)[0] in (1, 2)
    assert [path.name for path in (writer.run_dir / "submissions").glob("*/decision.json")] == ["decision.json"]


def test_an_approved_job_that_was_changed_afterwards_is_not_shown_as_approved(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    deciding.decide(writer.run_dir, decision(proposal))
    (proposal.folder / "job.json").write_bytes(proposal.job_bytes.replace(b"batch", b"other"))
    assert states(gonogo, writer.run_dir) == {"001-train-1": "invalidated"}


def test_foreign_text_in_a_list_is_inert(gonogo: Run, writer: RunWriter) -> None:
    propose(writer, "001-train-1", make_job(summary="x\x1b[2J\n\u202e"))
    status, text, _ = gonogo("queue", "list", writer.run_dir)
    assert status == 0
    assert "x‹ESC›[2J‹LF›‹U+202E›" in text
    assert len(text.splitlines()) == 2


def test_show_prints_the_whole_job(gonogo: Run, writer: RunWriter) -> None:
    job = make_job()
    first = propose(writer, "001-train-1", job)
    decide(writer, first)
    submit(writer, first)
    later = make_job(token="f" * 16, attempt=2, time="03:00:00")
    propose(writer, "002-train-2", later, "more time")
    status, text, _ = gonogo("queue", "show", writer.run_dir, "002-train-2")
    assert status == 0
    for line in (
        "002-train-2: pending",
        "RISK time: 01:30:00 -> 03:00:00",
        f"digest    {later.digest}",
        "24.00 GPU hours asked for, on top of 12.00 that other jobs of this release asked for",
        "why again    more time",
    ):
        assert line in text
    for option in later.sbatch_options():
        assert option in text
    assert gonogo("queue", "show", writer.run_dir)[1] == text, "the only one that waits needs no name"
    _, before, _ = gonogo("queue", "show", writer.run_dir, "001-train-1")
    assert before.startswith("001-train-1: submitted; decided by alice at ")
    assert "on top of 0.00 that other jobs" in before


def test_show_for_programs_holds_the_job_and_what_changed(gonogo: Run, writer: RunWriter) -> None:
    decide(writer, propose(writer, "001-train-1", make_job()))
    later = make_job(token="f" * 16, attempt=2, nodes=4)
    propose(writer, "002-train-2", later)
    status, out, _ = gonogo("queue", "show", writer.run_dir, "002-train-2", "--json")
    shown = json.loads(out)
    assert status == 0
    assert shown["job"] == later.model_dump(mode="json")
    assert shown["sbatch"] == ["sbatch", *later.sbatch_options()]
    assert (shown["digest"], shown["code"]) == (later.digest, later.digest[:8])
    assert shown["compared_with"] == "001-train-1"
    assert {"field": "nodes", "before": "2", "after": "4"} in shown["changes"]


def test_show_can_print_the_files_that_travel(gonogo: Run, writer: RunWriter) -> None:
    propose(writer, "001-train-1", make_job())
    assert "print('hello')" in gonogo("queue", "show", writer.run_dir, "--uploads")[1]
    assert "print('hello')" not in gonogo("queue", "show", writer.run_dir)[1]


def test_the_full_digest_approves(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    status, out, err = gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", proposal.digest)
    assert (status, f"001-train-1: approved by {folder.account()}" in out) == (0, True)
    assert "No conductor works on this run" in err
    made = queue.decision_of(proposal)
    assert made is not None
    assert (made.decision, made.digest, made.operator) == ("approved", proposal.digest, folder.account())


@pytest.mark.parametrize("digest", [None, "short", "upper", "text", "empty"])
def test_less_than_the_full_digest_never_approves(gonogo: Run, writer: RunWriter, digest: str | None) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    texts = {"short": proposal.digest[:8], "upper": proposal.digest.upper(), "text": "yes", "empty": ""}
    more = [] if digest is None else ["--digest", texts[digest]]
    status, _, err = gonogo("queue", "approve", writer.run_dir, proposal.id, *more)
    assert status == 2
    assert "digest" in err
    assert queue.decision_of(proposal) is None


def test_another_digest_is_refused(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    status, _, err = gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", "0" * 64)
    assert status == 1
    assert proposal.digest in err
    assert queue.decision_of(proposal) is None


def test_a_changed_job_or_upload_is_refused_on_its_old_digest_and_on_its_new(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    (proposal.folder / "uploads" / "tool.py").write_text("other")
    status, _, err = gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", proposal.digest)
    assert (status, "tool.py was changed" in err) == (1, True)
    (proposal.folder / "job.json").write_bytes(proposal.job_bytes.replace(b"batch", b"other"))
    for digest in (proposal.digest, queue.load(writer.run_dir, proposal.id).digest):
        status, _, err = gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", digest)
        assert (status, "job.json was changed after the proposal" in err) == (1, True)
    assert queue.decision_of(proposal) is None


def test_a_rejection_needs_a_reason_and_gives_it(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    for more in ([], ["--reason", "  "]):
        assert gonogo("queue", "reject", writer.run_dir, proposal.id, *more)[0] == 2
    assert gonogo("queue", "reject", writer.run_dir, proposal.id, "--reason", "no", "--digest", "0" * 64)[0] == 1
    assert queue.decision_of(proposal) is None
    assert gonogo("queue", "reject", writer.run_dir, proposal.id, "--reason", "wrong partition")[0] == 0
    made = queue.decision_of(proposal)
    assert made is not None
    assert (made.decision, made.reason) == ("rejected", "wrong partition")


def test_what_is_decided_stays_decided_and_says_by_whom(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    deciding.decide(writer.run_dir, decision(proposal, operator="bob"))
    status, _, err = gonogo("queue", "reject", writer.run_dir, proposal.id, "--reason", "no")
    assert status == 1
    assert "was approved by bob at 2026-01-02T03:05:00Z" in err
    status, out, _ = gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", proposal.digest)
    assert (status, "was approved already by bob" in out) == (0, True)
    assert gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", "0" * 64)[0] == 1
    assert queue.decision_of(proposal) == decision(proposal, operator="bob")


def test_what_the_log_has_closed_cannot_be_decided(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    writer.record(
        "job_decided", "expired", stage="train", id=proposal.id, digest=proposal.digest, decision="expired", by="c"
    )
    status, _, err = gonogo("queue", "approve", writer.run_dir, proposal.id, "--digest", proposal.digest)
    assert (status, "is expired" in err) == (1, True)
    assert gonogo("queue", "reject", writer.run_dir, proposal.id, "--reason", "no")[0] == 1
    assert queue.decision_of(proposal) is None


def test_decisions_for_programs_are_json(gonogo: Run, writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    status, out, _ = gonogo("queue", "approve", writer.run_dir, "--digest", proposal.digest, "--json")
    made = json.loads(out)
    assert (status, made["decision"], made["digest"], made["already"]) == (0, "approved", proposal.digest, False)


def test_without_a_name_it_must_be_certain_which_is_meant(gonogo: Run, writer: RunWriter) -> None:
    assert gonogo("queue", "show", writer.run_dir)[0] == 2
    for number in (1, 2):
        propose(writer, f"00{number}-train-{number}", make_job(token=str(number) * 16))
    status, _, err = gonogo("queue", "approve", writer.run_dir, "--digest", "0" * 64)
    assert (status, "001-train-1, 002-train-2" in err) == (2, True)


@pytest.mark.parametrize("name", ["009-x-1", "../run", "a b"])
def test_a_name_that_is_not_there_is_bad_input(gonogo: Run, writer: RunWriter, name: str) -> None:
    for verb in (["show"], ["approve", "--digest", "0" * 64], ["reject", "--reason", "no"]):
        status, _, err = gonogo("queue", verb[0], writer.run_dir, name, *verb[1:])
        assert (status, len(err.splitlines())) == (2, 1)


def test_a_folder_without_a_queue_is_bad_input(gonogo: Run, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        status, out, err = gonogo("queue", "list", place)
        assert (status, out, len(err.splitlines())) == (2, "", 1)


class Terminal:
    """A command with a terminal of its own, as an operator has."""

    def __init__(self, *arguments: object) -> None:
        self._main, child = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "console", *map(str, arguments)], preexec_fn=lambda: os.login_tty(child)
        )
        os.close(child)
        self.text = ""

    def until(self, wanted: str, seconds: float = 30) -> None:
        """Read until something was printed."""
        deadline = time.monotonic() + seconds
        while wanted not in self.text:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} did not appear in:\n{self.text}"
            if select.select([self._main], [], [], left)[0]:
                self.text += os.read(self._main, 65536).decode()

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._main, text.encode())

    def press_until_it_ends(self, keys: str, seconds: float = 30) -> None:
        """Press keys again and again, as a person does who wants out."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            assert time.monotonic() < deadline, "it did not end"
            self.type(keys)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)

    def end(self) -> int:
        """Read what is left; the exit status."""
        try:
            while data := os.read(self._main, 65536):
                self.text += data.decode()
        except OSError:  # the other end is closed: the command has ended
            pass
        os.close(self._main)
        return self._process.wait(30)


def test_on_a_terminal_the_whole_job_is_shown_and_its_code_approves(writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    terminal = Terminal("queue", "approve", writer.run_dir)
    terminal.until("code> ")
    assert proposal.digest in terminal.text
    assert "python3 tool.py" in terminal.text
    assert queue.decision_of(proposal) is None
    terminal.type(f"{proposal.digest[:8]}\n")
    assert terminal.end() == 0
    made = queue.decision_of(proposal)
    assert made is not None
    assert (made.decision, made.digest) == ("approved", proposal.digest)
    assert made.terminal.startswith("/dev/pts/")
    assert made.shown_s is not None


@pytest.mark.parametrize("answer", ["", "y", "yes", "12345678", "approve", "\x04"])
def test_on_a_terminal_nothing_but_the_code_approves(writer: RunWriter, answer: str) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    terminal = Terminal("queue", "approve", writer.run_dir)
    terminal.until("code> ")
    terminal.type(f"{answer}\n")
    assert terminal.end() == 1
    assert "it still waits" in terminal.text
    assert queue.decision_of(proposal) is None


def test_keys_typed_before_the_question_answer_nothing(writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    terminal = Terminal("queue", "approve", writer.run_dir)
    terminal.type(f"{proposal.digest[:8]}\n" * 3)
    terminal.until("code> ")
    terminal.type("\n")
    assert terminal.end() == 1
    assert queue.decision_of(proposal) is None


def test_a_job_that_changes_while_it_is_read_is_refused(writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    terminal = Terminal("queue", "approve", writer.run_dir)
    terminal.until("code> ")
    (proposal.folder / "job.json").write_bytes(proposal.job_bytes.replace(b"batch", b"other"))
    terminal.type(f"{proposal.digest[:8]}\n")
    assert terminal.end() == 1
    assert "not the one that was shown" in terminal.text
    assert queue.decision_of(proposal) is None


def test_an_interrupt_decides_nothing(writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    terminal = Terminal("queue", "approve", writer.run_dir)
    terminal.until("code> ")
    # A signal that comes in the instant before the read begins shows only at the next one: press until it ends.
    terminal.press_until_it_ends("\x03")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert queue.decision_of(proposal) is None


def test_on_a_terminal_a_reason_is_asked_for(writer: RunWriter) -> None:
    proposal = propose(writer, "001-train-1", make_job())
    terminal = Terminal("queue", "reject", writer.run_dir)
    terminal.until("reason> ")
    terminal.type("too many nodes\n")
    assert terminal.end() == 0
    made = queue.decision_of(proposal)
    assert made is not None
    assert replace(made, time="", terminal="") == queue.Decision(
        proposal.id, proposal.digest, "rejected", folder.account(), "too many nodes", "", ""
    )
