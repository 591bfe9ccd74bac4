"""The approval screen: the exact job, whole, and a decision only by a deliberate act on what was shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.release import deciding, queue
from console.release.job import ExactJob
from console.screens.approval import Approval
from console.screens.approval_job import Shown, read_shown
from console.screens.board import Board
from console.widgets.ink import cells, lay_out, plain
from tests.console import runs
from tests.console.driving import Console, console
from tests.console.runs import Run

JOB = "003-train-1"


def decision(run: Run, name: str = JOB) -> queue.Decision | None:
    return queue.decision_of(queue.load(run.path, name))


def code(run: Run, name: str = JOB) -> str:
    return queue.load(run.path, name).job().code


async def approve(driven: Console, name: str = JOB) -> None:
    """What an operator does."""
    await driven.press("a")
    assert driven.approval.field.has_focus
    await driven.type(code(driven.run, name))
    driven.run.time.go(3)
    await driven.press("enter")
    await driven.until(lambda: decision(driven.run, name) is not None, "it is decided")


async def test_reading_to_the_end_and_typing_the_code_approves(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        await driven.open_approval(JOB)
        assert driven.approval.body.has_focus, "nothing that could be pressed has the focus"
        await driven.read_to_end()
        await approve(driven)
        found = decision(run)
        assert found is not None
        assert (found.decision, found.digest) == ("approved", queue.load(run.path, JOB).digest)
        assert found.seen_to_end is True
        assert found.shown_s == 4
        await driven.until(
            lambda: "APPROVED" in driven.screen_text or isinstance(driven.app.screen, Board), "it says so"
        )
        await driven.until(lambda: isinstance(driven.app.screen, Board), "it goes back by itself")
        await driven.until(lambda: not driven.app.session.snapshot.waiting, "nothing waits")


async def test_it_is_locked_until_the_end_was_shown(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        run.time.go(60)
        await driven.press("a")
        assert not approval.field.has_focus
        assert "locked: read the job to its end first" in driven.screen_text
        await driven.press("pagedown")
        assert not approval.guard.seen_to_end
        while not approval.guard.seen_to_end:
            await driven.press("pagedown")
        await driven.press("home", "a")
        assert approval.field.has_focus, "what was seen stays seen"


async def test_it_is_locked_for_a_moment_after_it_appeared(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.press("end")
        await driven.until(lambda: approval.guard.seen_to_end, "its end was shown")
        await driven.press("a", "r")
        assert not approval.field.has_focus
        run.time.go(0.49)
        await driven.press("a", "r")
        assert not approval.field.has_focus
        run.time.go(0.02)
        await driven.press("a")
        assert approval.field.has_focus


async def test_a_short_job_in_a_large_window_is_seen_at_once(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run, (200, 120)) as driven:
        approval = await driven.open_approval(JOB)
        await driven.until(lambda: approval.guard.seen_to_end, "all of it is on the screen")
        assert approval.against("approve"), "the moment of grace still counts"


async def test_a_wrong_code_decides_nothing_and_says_so(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        for text in ("", "00000000", code(run)[:7], code(run) + "0", "yes"):
            if not approval.field.has_focus:
                await driven.press("a")
            await driven.type(text)
            run.time.go(3)
            await driven.press("enter")
            await driven.pilot.pause()
            assert decision(run) is None, text
        assert "not the code of this job" in driven.screen_text


async def test_rejecting_needs_a_reason_and_gives_it_back(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        run.time.go(1)
        await driven.press("r")
        assert approval.field.has_focus
        await driven.press("enter")
        run.time.go(3)
        await driven.press("space", "space", "enter")
        run.time.go(3)
        await driven.press("enter")
        assert decision(run) is None
        await driven.type("too many steps")
        run.time.go(3)
        await driven.press("enter")
        await driven.until(lambda: decision(run) is not None, "it is decided")
        found = decision(run)
        assert found is not None
        assert (found.decision, found.reason, found.seen_to_end) == ("rejected", "too many steps", False)


async def test_a_pasted_code_is_not_taken(tmp_path: Path) -> None:
    from textual import events

    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        for text in (code(run), code(run) + "\n", f"\n{code(run)}\r\n"):
            driven.app.post_message(events.Paste(text))
            await driven.pilot.pause()
            assert approval.field.value == ""
            run.time.go(3)
            await driven.press("enter")
        assert decision(run) is None


async def test_a_code_that_comes_faster_than_anybody_types_is_not_taken(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        run.time.go(60)
        await driven.type(code(run))
        await driven.press("enter")
        await driven.pilot.pause()
        assert decision(run) is None
        assert "too fast" in driven.screen_text


async def test_escape_closes_the_field_and_then_the_screen(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        await driven.type(code(run)[:4])
        await driven.press("escape")
        assert approval.body.has_focus
        assert isinstance(driven.app.screen, Approval)
        await driven.press("a")
        assert approval.field.value == "", "what was typed before is gone"
        await driven.press("escape", "escape")
        await driven.until(lambda: isinstance(driven.app.screen, Board), "it is closed")
        assert decision(run) is None


async def test_a_decision_elsewhere_locks_it_and_is_shown(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        await driven.type(code(run))
        digest = queue.load(run.path, JOB).digest
        deciding.decide(
            run.path, queue.Decision(JOB, digest, "rejected", "bob", "mine", "2026-08-12T09:40:00Z", "tty9")
        )
        await driven.until(lambda: "REJECTED by bob" in driven.screen_text, "it says who decided")
        await driven.until(lambda: approval.body.has_focus, "the field is closed")
        await driven.press("a", "r")
        await driven.type(code(run))
        await driven.press("enter")
        found = decision(run)
        assert found is not None
        assert found.operator == "bob"


async def test_a_decision_in_the_very_moment_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        await driven.type(code(run))
        run.time.go(3)
        # The other console decides after this one looked, and before it writes.
        monkeypatch.setattr(Approval, "run_changed", lambda self: None)
        digest = queue.load(run.path, JOB).digest
        deciding.decide(
            run.path, queue.Decision(JOB, digest, "rejected", "bob", "mine", "2026-08-12T09:40:00Z", "tty9")
        )
        await driven.press("enter")
        await driven.until(lambda: "that decision stands" in driven.screen_text, "it says so")


async def test_a_job_that_changes_on_disk_locks_it(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        await driven.type(code(run))
        other = runs.make_job(3, "train", "train", time="23:00:00")
        (run.path / "submissions" / JOB / "job.json").write_bytes(other.to_bytes())
        await driven.until(lambda: "CHANGED ON DISK" in driven.screen_text, "it says so")
        assert approval.against("approve")
        run.time.go(3)
        await driven.press("enter")
        await driven.type(code(run))
        await driven.press("enter")
        assert decision(run) is None
        # Shown again it still cannot be approved: the log knows another digest for this proposal.
        await driven.press("R")
        await driven.until(lambda: "23:00:00" in driven.text("#body"), "what lies there now")
        await driven.read_to_end()
        await driven.press("a")
        assert not approval.field.has_focus
        assert "was changed after the proposal" in driven.screen_text


async def test_a_changed_upload_locks_it(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    (run.path / "submissions" / JOB / "uploads" / "tiny_train.py").write_bytes(b"print('other')\n")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        assert not approval.field.has_focus
        assert "upload tiny_train.py was changed" in driven.screen_text


async def test_a_job_that_is_no_job_cannot_be_decided(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    (run.path / "submissions" / JOB / "job.json").write_bytes(b'{"schema_version": 1}')
    async with console(run) as driven:
        await driven.until(lambda: driven.app.session.snapshot.waiting, "it waits, with its problem")
        board = driven.app.screen
        assert isinstance(board, Board)
        board.open_approval(JOB)
        await driven.until(lambda: "submissions/003-train-1/job.json" in driven.screen_text, "what is wrong")
        run.time.go(9)
        await driven.press("end", "a", "r")
        assert not driven.approval.field.has_focus


async def test_resizing_starts_the_moment_of_grace_again(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        assert approval.against("approve") == ""
        await driven.pilot.resize_terminal(80, 24)
        await driven.until(lambda: approval.guard._still_since == run.time.seconds, "it was painted anew")
        assert "just appeared" in approval.against("approve")
        await driven.press("a")
        await driven.type(code(run))
        await driven.press("enter")
        assert decision(run) is None
        run.time.go(1)
        assert approval.against("approve") == ""


async def test_a_window_that_is_too_small_decides_nothing(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.press("a")
        await driven.pilot.resize_terminal(50, 12)
        await driven.until(lambda: "too small" in driven.screen_text, "the message")
        run.time.go(9)
        await driven.type(code(run))
        run.time.go(9)
        await driven.press("enter")
        assert approval.against("approve") == "the window is too small to show the job"
        assert decision(run) is None


async def test_the_mouse_has_the_same_locks(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run, (120, 40)) as driven:
        approval = await driven.open_approval(JOB)
        for x in range(2, 60, 7):
            await driven.pilot.click("#lock", offset=(x, 0))
        for x in range(1, 80, 7):
            await driven.pilot.click("Keybar", offset=(x, 0))
            assert not approval.field.has_focus
            if driven.app.screen is not approval:
                await driven.press("escape")
                await driven.until(
                    lambda: driven.app.screen is approval or isinstance(driven.app.screen, Board), "back"
                )
                break
        assert decision(run) is None


async def test_a_click_on_approve_opens_the_field_once_it_may(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run, (120, 40)) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        await driven.pilot.pause()
        row = next(row for row in driven.screen_text.split("\n") if "a approve…" in row and "read to its end" in row)
        await driven.pilot.click("#lock", offset=(row.index("a approve…") + 2, 0))
        assert approval.field.has_focus
        assert decision(run) is None


async def test_several_are_decided_one_by_one(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    run.propose("bench", "bench")
    async with console(run) as driven:
        for name in (JOB, "004-bench-1"):
            await driven.open_approval(name)
            assert driven.approval.proposal_id == name
            await driven.read_to_end()
            await approve(driven, name)
            await driven.until(lambda: isinstance(driven.app.screen, Board), "back on the board")
        await driven.until(lambda: not driven.app.session.snapshot.waiting, "nothing waits")


MARKS: dict[str, Any] = {
    "summary": "what-it-does", "cluster": "that-cluster", "host": "that-host", "port": 40999, "user": "that-user",
    "partition": "that-partition", "account": "that-account", "qos": "that-qos", "nodes": 7, "gpus_per_node": 5,
    "cpus_per_task": 43, "mem": "377G", "time": "03:07:09", "image": "registry/that-image@sha256:12",
    "extra_options": ("--exclusive", "--that-option=1"), "evidence": (("gate:that", "e" * 64),),
    "results": (("that_kind", "that/result.json"),), "body": "echo that-body\n",
}  # fmt: skip


def whole(run_path: Path, name: str, width: int = 78) -> str:
    shown = read_shown(run_path, None, name, False)
    assert isinstance(shown, Shown)
    rows = lay_out(shown.paragraphs, width)
    assert max(map(cells, rows)) <= width
    return "".join(plain(row).replace("↪", "").strip() for row in rows)


def test_every_field_of_the_job_is_shown_whole(tmp_path: Path) -> None:
    run = runs.staged(tmp_path / "run")
    name = run.propose("train", "train", **MARKS)
    run.close()
    text = whole(run.path, name)
    job = queue.load(run.path, name).job()
    assert set(MARKS) - {"body"} <= set(ExactJob.model_fields)
    values = [job.digest, job.code, job.token, job.job_name, job.job_dir, job.claim_dir, *job.sbatch_options()]
    values += [f"{name}={value}" for name, value in job.environment] + [ref.sha256 for ref in job.uploads]
    values += [str(value) for key, value in MARKS.items() if isinstance(value, str) and key != "body"]
    values += ["40999", "that_kind", "that/result.json", "gate:that", "e" * 64, "echo that-body", "35 in all"]
    for value in values:
        assert value.replace(" ", "") in text.replace(" ", ""), value
    for line in job.script.splitlines():
        assert line.replace(" ", "") in text.replace(" ", ""), line


def test_folding_hides_nothing_but_empty_lines(tmp_path: Path) -> None:
    run = runs.staged(tmp_path / "run")
    body = "echo first\n" + "\n" * 200 + "  \n" + "rm -rf /precious  \n" + "\n" * 3 + "echo last\n"
    name = run.propose("train", "train", body=body)
    run.close()
    shown = read_shown(run.path, None, name, False)
    assert isinstance(shown, Shown)
    rows = [plain(row) for row in lay_out(shown.paragraphs, 78)]
    assert any("200 empty lines" in row for row in rows)
    assert len(rows) < 120
    assert any("rm -rf /precious" in row and "SP×2" in row for row in rows)
    last = next(row for row in rows if "echo last" in row)
    number = len(queue.load(run.path, name).job().script.rstrip("\n").split("\n"))
    assert last.split()[0] == str(number), "lines keep their numbers"


async def test_hidden_characters_are_counted_in_a_banner(tmp_path: Path) -> None:
    run = runs.staged(tmp_path / "run")
    run.propose("train", "train", body="echo safe\u202e\u200b\nécho\n")
    async with console(run, (120, 40)) as driven:
        await driven.open_approval("002-train-1")
        assert "▲ script: 2 characters that cannot be seen" in driven.screen_text
        assert "‹U+202E›‹U+200B›" in driven.text("#body")


async def test_what_changed_since_the_last_approved_job_comes_with_the_risky_first(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    async with console(run, (120, 40)) as driven:
        await driven.open_approval("005-smoke-2")
        text = driven.text("#body")
        assert "compared with 004-smoke-1" in text
        assert text.index("RISK") < text.index("SERVER_TIMEOUT=120")
        assert "00:05:00 -> 00:10:00" in text


async def test_the_text_of_uploads_can_be_shown_and_starts_the_reading_again(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval(JOB)
        await driven.read_to_end()
        assert "print('tiny')" not in driven.text("#body")
        await driven.press("u")
        await driven.until(lambda: "print('tiny')" in driven.text("#body"), "the file's text")
        assert not approval.guard.seen_to_end or approval.against("approve")


async def test_the_screen_says_how_much_time_is_left_and_locks_when_it_is_up(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    attempt = run.writer.state.attempt(JOB)
    assert attempt is not None
    until = f"{run.time.wall + timedelta(hours=2):%Y-%m-%dT%H:%M:%S.%fZ}"
    same = ("digest", "token", "task", "attempt", "kind", "summary", "change", "gpus", "limit_s", "job_dir", "proposer")
    about = {name: getattr(attempt, name) for name in same}
    run.record("job_proposed", "Proposed it", stage=attempt.stage, id=JOB, expires_at=until, **about)
    async with console(run) as driven:
        await driven.open_approval(JOB)
        assert "left to decide" in driven.screen_text
        assert f"it expires at {until}" in driven.screen_text
        await driven.read_to_end()
        run.time.go(3 * 3600)
        await driven.press("a")
        assert not driven.approval.field.has_focus
        assert "its time was up at" in driven.screen_text
        assert "EXPIRED" in driven.screen_text
