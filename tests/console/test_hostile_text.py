"""Foreign text in every place where it can appear: no crash, nothing acts, and the layout holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console.release import queue, queue_view
from console.release.job import ExactJob
from console.release.job_view import job_sections
from console.snapshot import Snapshot, Waiting
from console.widgets import board_rows, job_rows
from console.widgets.ink import cells, lay_out, plain
from console.widgets.job_document import document
from console.widgets.log_rows import LogRows, entry_detail
from console.widgets.stage_detail import stage_detail
from tests.console import runs
from tests.console.driving import Console, console

AREAS = ("1", "2", "3", "4")


def check_screen(driven: Console) -> None:
    """Everything on the screen is printable, no row is wider than the window, and nothing was taken for markup."""
    width, _ = driven.app.size
    for row in driven.screen_text.split("\n"):
        assert row.isprintable(), repr(row)
        assert cell_len(row) == width, repr(row)
    for strip in driven.app.screen._compositor.render_strips():
        for segment in strip:
            meta = segment.style.meta if segment.style is not None else {}
            assert "@click" not in meta


SHORT = [text for text in runs.HOSTILE if len(text) < 1000]
CORPUS = {
    "all": " ".join(SHORT),
    "all, the other way round": " ".join(reversed(SHORT)),
    "unclosed": "[b + ",
    "long": next(text for text in runs.HOSTILE if len(text) >= 1000),
}


@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
async def test_every_area_and_the_approval_survive_it(tmp_path: Path, text: str) -> None:
    # Lone surrogates cannot be in a job, which is JSON in UTF-8; they come in names and in live data.
    run = runs.hostile(tmp_path / "run", text.encode("utf-8", "replace").decode())
    run.say(doing=text, problems=[text], jobs=[{"id": text, "state": text}], files=[{"path": text}])
    async with console(run, (100, 30)) as driven:
        for area in AREAS:
            await driven.press(area)
            check_screen(driven)
            await driven.press("end")
            check_screen(driven)
        await driven.press("1", "home")
        for _ in range(4):
            await driven.press("down")
            check_screen(driven)
        name = driven.app.session.snapshot.waiting[-1].id
        await driven.open_approval(name)
        check_screen(driven)
        await driven.press("end")
        check_screen(driven)
        driven.app.say(text)
        await driven.pilot.pause()
        check_screen(driven)


async def test_the_notices_of_a_hostile_run_do_not_push_the_rest_away(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    run.say(problems=["x" * 100_000, "\n" * 50, *[f"problem {number}" for number in range(40)]])
    async with console(run, (80, 24)) as driven:
        text = driven.screen_text
        assert "WAITS FOR YOU" in text
        assert "Pipeline" in text
        assert "1 board" in text


foreign = st.text(max_size=40) | st.sampled_from(runs.HOSTILE)


@given(
    ids=foreign, summary=foreign, problem=foreign, stage=foreign,
    width=st.integers(20, 120),
)  # fmt: skip
def test_queue_rows_of_any_text_fit(ids: str, summary: str, problem: str, stage: str, width: int) -> None:
    snapshot = Snapshot(waiting=(Waiting(ids, stage, stage, 1, summary, problem, problem),))
    lines, _ = board_rows.queue_rows(snapshot, runs.START, width)
    for line in lines:
        assert cells(line) <= width
        assert plain(line).isprintable()


@pytest.mark.parametrize("text", runs.HOSTILE, ids=range(len(runs.HOSTILE)))
@pytest.mark.parametrize("width", [40, 76, 158])
def test_rows_of_every_kind_fit_and_are_printable(tmp_path: Path, text: str, width: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    run = runs.hostile(tmp_path / "run", text)
    from console.reader import Reader

    snapshot = Reader(run.path).poll()
    run.close()
    now = run.time.wall
    lines = [
        *board_rows.pipeline(snapshot, now, width)[0],
        *board_rows.queue_rows(snapshot, now, width)[0],
        *job_rows.job_rows(snapshot, now, width)[0],
        *job_rows.file_rows(snapshot, now, width)[0],
        *job_rows.job_rows(snapshot, now, width, short=True)[0],
        *job_rows.file_rows(snapshot, now, width, short=True)[0],
    ]
    rows = LogRows(snapshot.log)
    lines += [rows.line(index, width) for index in range(len(rows))]
    for entry in snapshot.log:
        lines += lay_out(entry_detail(entry, True), width)
    for stage in snapshot.run.stages:
        lines += lay_out(stage_detail(snapshot, stage, now, width), width)
    for line in lines:
        assert cells(line) <= width, plain(line)[:200]
        assert plain(line).isprintable()


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


@given(summary=texts, body=texts, partition=texts, width=st.integers(30, 160))
def test_two_jobs_that_differ_look_different_however_narrow(
    summary: str, body: str, partition: str, width: int
) -> None:
    def shown(job: ExactJob) -> str:
        rows = lay_out(document(job_sections(job), "x"), width)
        assert all(cells(row) <= width for row in rows)
        return "\n".join(plain(row) for row in rows)

    plain_job = runs.make_job(1, "train", "train")
    job = runs.make_job(1, "train", "train", summary=summary, body=body, partition=partition)
    assert (shown(job) == shown(plain_job)) is (job == plain_job)
    assert json.loads(job.to_bytes())["summary"] == summary


def test_hostile_names_of_proposals_are_not_proposals(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    for name in ("..", ".hidden", "a b", "\x1b[2J", "x" * 200, "-rf"):
        with pytest.raises(queue.QueueError):
            queue.load(run.path, name)
    (run.path / "submissions" / "\x1b[2J").mkdir()
    assert [item.id for item in queue_view.items(run.path, run.writer.state)] == [
        "001-stage_target-1", "002-data-1", "003-train-1",
    ]  # fmt: skip
    run.close()
