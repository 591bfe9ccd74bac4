"""The board: one look says where the release is, what it waits for, and what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color
from textual.filter import NoColor

from console.app import GonogoApp
from console.screens.approval import Approval
from console.screens.board import Board
from console.session import open_session
from console.snapshot import STALE_SECONDS
from tests.console import runs
from tests.console.driving import console, send


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 36), (160, 50), (200, 60)])
async def test_one_look_says_what_it_waits_for(tmp_path: Path, size: tuple[int, int]) -> None:
    async with console(runs.waiting(tmp_path / "run"), size) as driven:
        text = driven.screen_text
        for words in (
            runs.RUN_ID, "sandbox", runs.LOGIN, "account research", "link up 0.4 s", "conductor runs",
            "0 interventions", "WAITS FOR YOU", "approve or reject 003-train-1", "Waiting for you · 1", "needs YOU",
            "stage_target", "closeout", "Work log",
        ):  # fmt: skip
            assert words in text, words


async def test_every_check_shows_measured_limit_unit_word_file_field_and_digest(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    for size in ((80, 24), (160, 50), (200, 60)):
        async with console(run, size) as driven:
            detail = " ".join(driven.text("#detail").split())
            for check in (*runs.SMOKE_FAILED, *runs.TRAIN_CHECKS):
                assert check.name in detail
                assert check.limit in detail
                assert check.file in detail
                assert check.field in detail
            words_of_all = (
                "1.8732",
                "nats",
                "nothing",
                "FAIL",
                "PASS",
                "NO-GO CHECKPOINT_NOT_SERVABLE",
                "next step retry",
            )
            for words in words_of_all:
                assert words in detail, (size, words)
            gate = run.writer.state.stage("train").gates[-1]
            assert gate.sha256[:12] in detail
        run.conduct()


async def test_the_cursor_follows_the_current_stage_until_it_is_moved(tmp_path: Path) -> None:
    run = runs.trained(tmp_path / "run")
    async with console(run) as driven:
        board = driven.app.screen
        assert isinstance(board, Board)
        pipe = board.part("pipeline")
        assert pipe.key == "stage:train"
        run.passed("train")
        run.stage("freeze")
        await driven.read_again()
        assert pipe.key == "stage:freeze"
        await driven.press("up", "up")
        assert pipe.key == "attempt:002-data-1" or pipe.key.startswith("attempt:")
        chosen = pipe.key
        run.passed("freeze")
        await driven.read_again()
        assert pipe.key == chosen
        assert "Stage · train" in driven.screen_text


async def test_the_cursor_stays_on_its_row_when_rows_come_before_it(tmp_path: Path) -> None:
    run = runs.staged(tmp_path / "run")
    async with console(run) as driven:
        board = driven.app.screen
        assert isinstance(board, Board)
        pipe = board.part("pipeline")
        await driven.press("end")
        assert pipe.key == "stage:closeout"
        run.propose("train", "data")
        await driven.read_again()
        assert pipe.key == "stage:closeout"


async def test_moving_shows_another_stage_in_the_same_moment(tmp_path: Path) -> None:
    async with console(runs.ready(tmp_path / "run"), (120, 36)) as driven:
        await driven.press("home")
        assert "Stage · setup" in driven.screen_text
        assert "slurm version" in driven.text("#detail")
        await driven.press("end")
        detail = driven.text("#detail")
        assert "DRAFTER_READY" in detail
        assert detail.count("GO    ") >= 6, "every station's answer"
        await driven.press("up", "up")
        assert "Stage · bench" in driven.screen_text
        assert "speedup_c8 1.31" in " ".join(driven.text("#detail").split())


async def test_enter_on_a_stage_goes_into_it_and_decides_nothing(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run")) as driven:
        await driven.press("enter")
        board = driven.app.screen
        assert isinstance(board, Board)
        assert board.part("detail").has_focus


async def test_a_new_proposal_never_opens_itself_nor_takes_the_focus(tmp_path: Path) -> None:
    run = runs.staged(tmp_path / "run")
    async with console(run) as driven:
        focused = driven.app.focused
        bells = []
        driven.app.bell = lambda: bells.append(1)  # type: ignore[method-assign]
        run.propose("train", "data")
        await driven.read_again()
        assert driven.app.focused is focused
        assert isinstance(driven.app.screen, Board)
        assert bells == [1]
        assert driven.app.title == f"(1) gonogo {runs.RUN_ID}"
        await driven.read_again()
        assert bells == [1], "once for each job"
        run.propose("bench", "bench")
        await driven.read_again()
        assert bells == [1, 1]
        assert driven.app.title.startswith("(2)")


async def test_w_goes_to_the_queue_from_everywhere_and_opens_nothing(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run")) as driven:
        for key in ("1", "2", "3", "4"):
            await driven.press(key)
            await driven.press("w")
            board = driven.app.screen
            assert isinstance(board, Board)
            assert board.part("queue").has_focus


async def test_the_mouse_opens_what_waits_with_two_clicks(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run")) as driven:
        board = driven.app.screen
        assert isinstance(board, Board)
        await driven.pilot.click("#queue", offset=(5, 1))
        await driven.until(lambda: isinstance(driven.app.screen, Approval), "the approval screen")


async def test_the_areas_can_be_clicked(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run"), (80, 24)) as driven:
        await driven.pilot.click("Keybar", offset=(11, 0))
        await driven.until(lambda: driven.area.scope == "jobs", "the jobs")
        await driven.pilot.click("Keybar", offset=(1, 0))
        await driven.until(lambda: driven.area.scope == "board", "the board")


async def test_clocks_tick_with_animations_off(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        driven.app.animation_level = "none"
        assert "for 0:43" in driven.screen_text
        run.time.go(60)
        await driven.until(lambda: "for 1:43" in driven.screen_text, "the clock went on by itself")


async def test_a_dead_feed_is_marked_with_its_age(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run, (160, 50)) as driven:
        assert "link up" in driven.screen_text
        run.time.go(STALE_SECONDS + 25)
        driven.area.update_view()
        await driven.pilot.pause()
        text = driven.screen_text
        assert "link unknown, last word 30 s ago" in text
        assert "NO SIGN OF LIFE" in text
        assert "Jobs · as of 30 s ago" in text


async def test_without_a_conductor_it_says_how_to_go_on(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    run.close()
    async with console(run, (120, 36)) as driven:
        text = driven.screen_text
        assert "no conductor is running: gonogo resume" in text
        assert "NOT CONDUCTED" in text


@pytest.mark.parametrize(
    ("size", "shown"), [((59, 24), False), ((80, 17), False), ((60, 18), True), ((40, 10), False), ((20, 5), False)]
)
async def test_below_60_by_18_there_is_one_plain_message(tmp_path: Path, size: tuple[int, int], shown: bool) -> None:
    async with console(runs.waiting(tmp_path / "run"), size) as driven:
        text = driven.screen_text
        assert ("Pipeline" in text) is shown
        assert ("too small" in " ".join(text.split())) is not shown


async def test_it_comes_back_when_the_window_is_made_larger(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run"), (50, 12)) as driven:
        await driven.pilot.resize_terminal(160, 50)
        await driven.until(lambda: "Pipeline" in driven.screen_text, "the board")
        await driven.until(lambda: "Result files" in driven.screen_text, "the panels of a wide window")
        await driven.pilot.resize_terminal(80, 24)
        await driven.until(lambda: "Result files" not in driven.screen_text, "the panels of a narrow window")


async def test_problems_of_the_folder_stand_in_the_header(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run, (120, 36)) as driven:
        path = run.path / "work_log.md"
        path.write_bytes(path.read_bytes().replace(b"Stage setup passed", b"Stage setup passes"))
        await driven.read_again()
        assert "work_log.md: entry 4 (line" in driven.screen_text
        assert "was changed" in driven.screen_text


async def test_the_focus_leaves_a_queue_that_is_empty(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        await driven.press("w")
        run.decide("003-train-1")
        await driven.read_again()
        board = driven.app.screen
        assert isinstance(board, Board)
        assert board.part("pipeline").has_focus


async def test_two_keys_in_one_go_reach_what_the_first_one_went_to(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run")) as driven:
        send(driven.pilot, "w", "enter")
        await driven.until(lambda: isinstance(driven.app.screen, Approval), "the approval screen")


async def test_no_color_means_no_colour_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(runs.failed(tmp_path / "run"), (100, 30)) as driven:
        assert [item for item in driven.app._filters if isinstance(item, NoColor)]
        assert driven.app.native_ansi_color
        background = Color.parse("black")
        for strip in driven.app.screen._compositor.render_strips():
            for line_filter in driven.app.get_line_filters():
                strip = strip.apply_filter(line_filter, background)
            for segment in strip:
                colours = (segment.style.color, segment.style.bgcolor) if segment.style is not None else ()
                assert all(colour is None or colour.is_default for colour in colours)
        text = driven.screen_text
        for words in ("needs YOU", "✓", "passed", "◆", "✗ 004-smoke-1 gate failed", "▌"):
            assert words in text


async def test_at_the_end_the_board_says_what_the_bench_measured_series_by_series(tmp_path: Path) -> None:
    for size in ((80, 24), (120, 36)):
        async with console(runs.ready(tmp_path / f"run-{size[0]}"), size) as driven:
            detail = " ".join(driven.text("#detail").split())
            assert "measured by the bench" in detail
            assert "speedup C=1 1.62 C=8 1.31 C=32 0.97" in detail, size


PANELS = ("Waiting for you", "Pipeline", "Jobs", "Result files", "Work log")
"""The panels of the board that begin in its first column, from top to bottom."""


@pytest.mark.parametrize("size", [(120, 36), (160, 50)])
async def test_a_window_with_room_shows_the_limit_beside_what_was_measured(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with console(runs.failed(tmp_path / "run"), size) as driven:
        rows = driven.screen_text.splitlines()
        row = next(row for row in rows if "prompts_passed" in row)
        assert row.index("prompts_passed") < row.index("= 8 count") < row.index("FAIL")
        # Jobs and files stand below the pipeline, in the same column.
        places = {title: next(y for y, row in enumerate(rows) if row.startswith(f"─{title}")) for title in PANELS}
        assert list(places) == sorted(places, key=lambda title: places[title])


async def test_slurms_none_is_no_reason(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    job = {**run.live["jobs"][0], "reason": "None"}
    run.say(jobs=[job])
    async with console(run, (160, 50)) as driven:
        assert "job 1003 RUNNING on node01" in driven.text("#detail")
        await driven.press("2")
        assert "Train and export the tiny drafter" in driven.text("#rows")
        run.say(jobs=[{**job, "reason": "Priority"}])
        await driven.read_again()
        assert "Priority" in driven.text("#rows")


async def test_the_key_bar_says_how_a_waiting_job_is_opened_and_a_click_on_it_does_the_same(tmp_path: Path) -> None:
    async with console(runs.waiting(tmp_path / "run"), (80, 24)) as driven:
        await driven.press("w")
        bar = driven.screen_text.splitlines()[-1]
        assert "enter open" in bar
        await driven.pilot.click("Keybar", offset=(bar.index("enter open"), 0))
        await driven.until(lambda: isinstance(driven.app.screen, Approval), "the approval screen")


async def test_the_tables_of_a_closed_release_do_not_call_themselves_live(tmp_path: Path) -> None:
    async with console(runs.ready(tmp_path / "run"), (120, 36)) as driven:
        for key in ("2", "3"):
            await driven.press(key)
            await driven.until(lambda: "the release is closed" in driven.screen_text, "it says so")
            assert "● live" not in driven.screen_text


def test_leaving_in_the_moment_of_the_first_frame_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.waiting(tmp_path / "run")
    # Before anything that the first frame does without is there, as a key pressed at once does.
    monkeypatch.setattr(GonogoApp, "_begin", lambda app: app.exit(7))
    session = open_session(run.path)
    try:
        app = GonogoApp(session)
        assert app.run(headless=True, size=(100, 30)) == 7
        assert app.return_code == 0
    finally:
        session.close()
        run.close()
