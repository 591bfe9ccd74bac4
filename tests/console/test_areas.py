"""Log, jobs, files, help and palette."""

from __future__ import annotations

from pathlib import Path

import themes
from console.release.journal import LOG_NAME
from console.screens.base import Area
from console.screens.log import Log
from console.verbs import in_scopes
from console.widgets.lines import Lines
from tests.console import runs
from tests.console.driving import console


async def test_the_log_shows_every_entry_with_its_columns(tmp_path: Path) -> None:
    run = runs.trained(tmp_path / "run")
    async with console(run, (160, 50)) as driven:
        await driven.press("4")
        rows = driven.text("#entries").split("\n")
        assert len(rows) == len(run.writer.entries)
        for row, entry in zip(rows, run.writer.entries, strict=True):
            for words in (
                str(entry.seq),
                entry.time[11:19],
                str(entry.kind),
                entry.actor,
                entry.stage,
                entry.text[:40],
            ):
                assert words in row
        assert "✓ chain verified" in driven.screen_text
        assert f"{len(rows)} entries" in driven.screen_text


async def test_interventions_are_marked_by_sign_and_word_and_can_be_filtered(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    run.decide("003-train-1", "rejected", "too many steps")
    run.record("note", "Note: half of that", stage="train", actor="operator:alice", human=True)
    async with console(run, (80, 24)) as driven:
        await driven.press("4")
        human = [row for row in driven.text("#entries").split("\n") if "◈ HUMAN" in row]
        assert len(human) == 2
        await driven.press("i")
        rows = driven.text("#entries").split("\n")
        assert len(rows) == 2
        assert "rejected" in rows[0]
        assert "interventions only" in driven.screen_text
        run.record("note", "Note: another", stage="train", actor="operator:alice", human=True)
        run.record("run_resumed", "Resumed")
        await driven.read_again()
        assert len(driven.text("#entries").split("\n")) == 3
        await driven.press("i")
        assert len(driven.text("#entries").split("\n")) == len(run.writer.entries)


async def test_it_follows_until_the_reader_moves_away(tmp_path: Path) -> None:
    run = runs.trained(tmp_path / "run")
    async with console(run, (80, 24)) as driven:
        await driven.press("4")
        entries = driven.app.screen.query_one("#entries", Lines)
        last = len(run.writer.entries)
        assert entries.key == str(last)
        run.stage("freeze")
        await driven.read_again()
        await driven.until(lambda: entries.key == str(last + 1), "it follows")
        assert f"#{last + 1}" in driven.screen_text, "the entry under the cursor is shown in full"
        await driven.press("up", "up", "up")
        place, top = entries.key, entries.scroll_offset.y
        run.passed("freeze")
        await driven.read_again()
        assert (entries.key, entries.scroll_offset.y) == (place, top), "nobody is carried away from what he reads"
        assert "not following" in driven.screen_text
        await driven.press("f")
        assert entries.key == str(len(run.writer.entries))


async def test_a_broken_chain_is_named_and_what_follows_is_marked(tmp_path: Path) -> None:
    run = runs.trained(tmp_path / "run")
    path = run.path / LOG_NAME
    path.write_bytes(path.read_bytes().replace(b'"Stage train begins"', b'"Stage train begun!"'))
    async with console(run, (120, 36)) as driven:
        await driven.press("4")
        assert "CHAIN BROKEN" in driven.screen_text
        assert "? action" in driven.text("#entries") or "? ACTION" in driven.text("#entries")
        await driven.press("end")
        assert "behind a break of the chain" in driven.screen_text


async def test_a_log_of_many_entries_is_a_list_of_visible_lines(tmp_path: Path) -> None:
    run = runs.fresh(tmp_path / "run")
    for number in range(300):
        run.record("note", f"entry number {number}", stage="train")
    async with console(run, (80, 24)) as driven:
        await driven.press("4")
        log = driven.app.screen
        assert isinstance(log, Log)
        entries = log.query_one("#entries", Lines)
        assert len(entries._source) == len(run.writer.entries)
        assert len(entries.children) == 0
        await driven.press("home")
        assert "Release of a dflash drafter" in driven.screen_text
        assert len(entries._drawn) < 60


async def test_jobs_show_states_reasons_nodes_and_times(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    run.live["jobs"][0] |= {"state": "PENDING", "reason": "Priority", "node": ""}
    run.say(jobs=run.live["jobs"], files=run.live["files"])
    async with console(run, (160, 50)) as driven:
        await driven.press("2")
        await driven.until(lambda: "003-train-1" in driven.text("#rows"), "the job is listed")
        row = next(row for row in driven.text("#rows").split("\n") if "003-train-1" in row)
        for words in ("1003", "queued", "Priority", "0:12 / 5:00"):
            assert words in row
        assert "● live" in driven.screen_text
        assert "digest" in driven.text("#job")


async def test_in_a_narrow_window_the_job_under_the_cursor_has_node_and_times(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run, (80, 24)) as driven:
        await driven.press("2")
        assert "asked last  in queue: RUNNING on node01, 0:12 of 5:00" in driven.screen_text


async def test_what_could_not_be_asked_is_neither_gone_nor_red(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    run.live["jobs"][0] |= {"presence": "could not ask"}
    run.live["files"][0] |= {"presence": "could not ask"}
    run.say(jobs=run.live["jobs"], files=run.live["files"])
    async with console(run, (120, 36)) as driven:
        await driven.press("2")
        lines = driven.app.screen.query_one("#rows", Lines)
        row = lines._source.line(0, lines.room)
        assert ("could not ask", "unknown") in [(span.text, span.style) for span in row]
        assert not [span for span in row if span.style == "failed"]
        await driven.press("3")
        lines = driven.app.screen.query_one("#rows", Lines)
        row = lines._source.line(0, lines.room)
        assert ("could not ask", "unknown") in [(span.text, span.style) for span in row]


async def test_a_hanging_job_is_marked(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    run.live["jobs"][0] |= {"hanging": True}
    run.say(jobs=run.live["jobs"])
    async with console(run, (100, 30)) as driven:
        await driven.press("2")
        assert "▲" in driven.text("#rows")
        assert "hanging" in driven.text("#rows")


async def test_files_show_presence_size_age_and_those_that_were_read(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run, (160, 50)) as driven:
        await driven.press("3")
        await driven.until(lambda: driven.text("#rows").count("\n"), "the files are listed")
        rows = driven.text("#rows").split("\n")
        assert "not there yet" in rows[0]
        assert "regression_check" in rows[0]
        assert "seen" in rows[1]
        assert "1.8 kB" in rows[1]
        assert "2.5 s" in rows[1]
        read = next(row for row in rows if "001-stage_target-1" in row)
        attempt = run.writer.state.attempt("001-stage_target-1")
        assert attempt is not None
        assert attempt.results[0].sha256[:12] in read


async def test_a_dead_feed_is_marked_on_jobs_and_files(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    run.time.go(60)
    async with console(run, (100, 30)) as driven:
        for key in ("2", "3"):
            await driven.press(key)
            assert "feed is dead: as of 60 s ago" in driven.screen_text


async def test_the_cursor_of_the_jobs_stays_on_its_attempt(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run, (100, 30)) as driven:
        await driven.press("2")
        rows = driven.app.screen.query_one("#rows", Lines)
        assert rows.key == "003-train-1"
        run.propose("train", "smoke")
        await driven.read_again()
        assert driven.text("#rows").split("\n")[0].strip().startswith("◆")
        assert rows.key == "003-train-1"


async def test_help_explains_the_screen_below_and_closes(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run, (120, 60)) as driven:
        for key, scope in (("1", "board"), ("2", "jobs"), ("4", "log")):
            await driven.press(key, "question_mark")
            text = " ".join(driven.text("#text").split())
            for item in in_scopes([scope, "list", "app"]):
                assert " ".join(item.help.split()) in text
            await driven.press("escape")
            assert driven.area.scope == scope


async def test_help_of_the_approval_screen_hides_the_job_and_nothing_is_decided_from_there(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        approval = await driven.open_approval("003-train-1")
        await driven.read_to_end()
        assert approval.against("approve") == ""
        await driven.press("question_mark")
        assert driven.area.scope == "help"
        await driven.until(lambda: bool(approval.against("approve")), "the job is not on the screen")
        await driven.press("a", "r")
        assert not approval.field.has_focus
        await driven.press("escape")
        await driven.until(lambda: approval.guard._still_since is not None, "it is painted again")
        assert "just appeared" in approval.against("approve")


async def test_the_palette_runs_the_verbs_of_the_screen(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        for key, words, scope in (("colon", "jobs", "jobs"), ("ctrl+p", "log", "log"), ("colon", "board", "board")):
            await driven.press(key)
            await driven.until(lambda: not isinstance(driven.app.screen, Area), "the palette is open")
            await driven.type(words)
            await driven.press("enter")
            await driven.until(
                lambda wanted=scope: isinstance(driven.app.screen, Area) and driven.area.scope == wanted, scope
            )


async def test_themes_change_and_stay_ours(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    async with console(run) as driven:
        before = driven.app.screen.styles.background
        await driven.press("t")
        assert driven.app.theme == "gonogo-light"
        assert driven.app.screen.styles.background != before
        # Through all of them, and round.
        await driven.press(*["t"] * (len(themes.names()) - 1))
        assert driven.app.theme == "gonogo-dark"
        assert driven.app.screen.styles.background == before
