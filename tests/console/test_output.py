"""A job's output on the screen: it follows, is searched, folded and cut with counts, and asks for itself only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.watcher.folding import Fold
from console.output_reader import MOST_BYTES, OutputReader, fold_in
from console.release import leases
from console.release.spool import Segment, Spool, place
from console.screens.output import Output as OutputScreen
from console.widgets.ink import cells, plain
from console.widgets.lines import Lines
from console.widgets.output_rows import OutputRows, Search, Wrapped
from tests.console import runs
from tests.console.driving import Console, console
from tests.console.outputs import JOB, Output
from tests.console.test_hostile_text import check_screen


async def opened(driven: Console) -> Lines:
    """Go to the job that runs, and open its output."""
    await driven.press("2", "o")
    await driven.until(lambda: isinstance(driven.app.screen, OutputScreen), "the output is open")
    return driven.app.screen.query_one("#lines", Lines)


def rows(lines: Lines) -> list[str]:
    return [plain(lines._source.line(index, lines.room)) for index in range(len(lines._source))]


async def test_it_follows_new_lines_until_somebody_reads_above(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    output = Output(run)
    output.write(b"".join(b"step %d\n" % number for number in range(100)))
    async with console(run) as driven:
        lines = await opened(driven)
        await driven.until(lambda: lines.key == "99", "it is read to its end")
        text = driven.screen_text
        for words in ("step 99", "● live", "100 lines · following", "job 1003", "node01", "stdout and stderr"):
            assert words in text, words
        output.write(b"step 100\n")
        await driven.until(lambda: lines.key == "100", "it follows")
        await driven.press("up", "up", "pageup")
        place, top = lines.key, lines.scroll_offset.y
        output.write(b"step 101\n")
        await driven.until(lambda: len(lines._source) == 102, "it is read on")
        assert (lines.key, lines.scroll_offset.y) == (place, top)
        assert "not following" in driven.screen_text
        await driven.press("home")
        assert lines.key == "0"
        await driven.press("f")
        assert lines.key == "101"
        await driven.press("escape")
        await driven.until(lambda: not isinstance(driven.app.screen, OutputScreen), "it is closed")


async def test_it_asks_the_conductor_while_it_is_open_and_no_longer(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    path = run.path / leases.NAME
    async with console(run) as driven:
        assert not path.exists()
        await opened(driven)
        await driven.until(path.exists, "it asks")
        first = json.loads(path.read_bytes())
        assert (first["id"], first["what"]) == (JOB, "stdout")
        assert "… asking the cluster" in driven.screen_text
        run.time.go(3)
        await driven.until(lambda: json.loads(path.read_bytes())["beat"] > first["beat"], "it asks again")
        await driven.press("escape")
        await driven.until(lambda: not path.exists(), "nobody looks any more")


async def test_a_session_that_only_looks_on_asks_for_nothing_and_shows_what_was_kept(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run, read_only=True) as driven:
        lines = await opened(driven)
        assert "nobody reads it for this console" in driven.screen_text
        Output(run).write(b"kept by another console\n")
        await driven.until(lambda: rows(lines)[:1] == ["kept by another console"], "what was kept")
        assert not (run.path / leases.NAME).exists()


async def test_search_finds_lines_forwards_and_backwards_and_marks_them(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    output = Output(run)
    output.write(b"".join(b"Loss %d\n" % n if n % 40 == 7 else b"line %d\n" % n for n in range(200)))
    async with console(run) as driven:
        lines = await opened(driven)
        await driven.until(lambda: lines.key == "199", "it is read")
        await driven.press("n")
        assert "search for something first" in driven.screen_text
        await driven.press("slash")
        await driven.type("loss")
        await driven.press("enter")
        assert lines.key == "167", "from the end the last one that has it is the nearest"
        assert "/loss: 5 of 5" in driven.screen_text
        await driven.press("N")
        assert lines.key == "127"
        await driven.press("n", "n")
        assert lines.key == "7", "behind the last one it begins again"
        output.write(b"Loss at last\n")
        await driven.until(lambda: "1 of 6" in driven.screen_text, "new lines are searched too")
        await driven.press("slash")
        await driven.type("X")
        await driven.press("enter")
        assert "not found" in driven.screen_text
        await driven.press("escape")
        assert "/lossX" not in driven.text("#lines")
        assert isinstance(driven.app.screen, OutputScreen)


async def test_bars_long_lines_and_gaps_stand_with_their_counts(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    output = Output(run)
    output.write(b"lf a line\n", why="first look", skipped=5_000_000_000)
    output.write(b"".join(b"\r%d%%" % step for step in range(101)) + b"\n" + b"x" * 9000 + b"\n")
    output.write(b"anew\n", why="replaced")
    output.write(b"far ahead\n", why="grew too fast", skipped=2_000_000)
    output.write(b"\x1b[32mgreen\x1b[0m\ttab\x1b]0;title\x07\n")
    async with console(run, (120, 36)) as driven:
        lines = await opened(driven)
        await driven.until(lambda: len(lines._source) >= 9, "it is read")
        found = rows(lines)
        assert found[0] == "── followed from near its end: 5.0 GB were not read before this ──"
        assert found[1:3] == ["…lf a line", "↻100 100%"]
        assert found[3].startswith("✂9.0 kB xxxx")
        assert found[3].endswith("x… (5000 more bytes)")
        assert found[4:6] == ["── the file was cut, or another took its place: it begins anew ──", "anew"]
        assert "2.0 MB were not read" in found[6]
        assert found[8] == "green   tab‹ESC›]0;title‹BEL›"
        assert "2 control sequences left out" in driven.screen_text
        await driven.press("v")
        assert rows(lines)[8] == "‹ESC›[32mgreen‹ESC›[0m‹TAB›tab‹ESC›]0;title‹BEL›"
        await driven.press("z", "home")
        assert len(lines._source) > 40
        assert all(cells(lines._source.line(index, 117)) <= lines.room for index in range(len(lines._source)))
        check_screen(driven)
        before = len(lines._source)
        await driven.pilot.resize_terminal(80, 24)
        await driven.until(lambda: len(lines._source) > before, "it is wrapped for the new width")
        await driven.press("z")
        assert len(lines._source) == 9


async def test_both_streams_where_they_are_apart(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    name = run.propose("train", "train", 2, extra_options=("--error=slurm-%j.err",))
    run.decide(name)
    run.submit(name, "77")
    Output(run, "stdout", name).write(b"said\n")
    Output(run, "stderr", name).write(b"complained\n")
    async with console(run) as driven:
        lines = await opened(driven)
        await driven.until(lambda: rows(lines)[:1] == ["said"], "standard output")
        await driven.until(lambda: "other stream" in driven.screen_text, "there is another stream")
        await driven.press("e")
        await driven.until(lambda: rows(lines)[:1] == ["complained"], "standard error")
        assert "stderr" in driven.screen_text
        await driven.press("e")
        await driven.until(lambda: rows(lines)[:1] == ["said"], "standard output again")


@pytest.mark.parametrize(
    ("presence", "said", "words"),
    [
        ("missing", "", "not there yet"),
        ("could not ask", "login: no answer within 20 s", "? could not ask: login: no answer within 20 s"),
        ("unknown", "each task of an array has an output of its own", "each task of an array"),
    ],
)
async def test_the_three_answers_are_three(tmp_path: Path, presence: str, said: str, words: str) -> None:
    run = runs.running(tmp_path / "run")
    output = Output(run)
    output.spool.answer(output.now, presence, said)
    async with console(run, (120, 30)) as driven:
        await opened(driven)
        await driven.until(lambda: words in driven.screen_text, words)
        run.time.go(30)
        driven.area.update_view()
        await driven.pilot.pause()
        assert "30 s ago" in driven.screen_text


async def test_hostile_output_acts_on_nothing(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    output = Output(run)
    async with console(run) as driven:
        lines = await opened(driven)
        for text in runs.HOSTILE:
            # Sliced, so that escape sequences and characters come in two readings.
            data = text.encode("utf-8", "surrogateescape") + b"\n"
            output.write(data[:2])
            output.write(data[2:])
        output.write(bytes(range(256)))
        await driven.until(lambda: "blank" in driven.text("#lines"), "it is read")
        for keys in ((), ("home",), ("v",), ("z",), ("end",), ("v",)):
            await driven.press(*keys)
            check_screen(driven)
        assert len(lines.children) == 0


async def test_many_lines_a_second_are_drawn_as_lines_over_an_index_and_dropped_with_a_count(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    output = Output(run)
    async with console(run) as driven:
        lines = await opened(driven)
        for start in range(0, 120_000, 5000):
            output.write(b"".join(b"line %d of many\n" % number for number in range(start, start + 5000)))
        await driven.until(lambda: lines.key == "119999", "it is read to its end")
        assert "line 119999 of many" in driven.screen_text
        assert 40_000 <= len(lines._source) <= 50_000
        assert f"the first {120_000 - len(lines._source)} dropped" in driven.screen_text
        assert len(lines.children) == 0


def read_all(reader: OutputReader, fold: Fold) -> Fold:
    while True:
        batch = reader.read()
        fold = Fold() if batch.anew else fold
        fold_in(fold, batch)
        if not batch.more:
            return fold


def test_what_is_given_up_meanwhile_is_counted_and_what_was_read_is_read_once(tmp_path: Path) -> None:
    spool = Spool(place(tmp_path, "a"), "stdout", "/out", most=1000)
    reader, fold = OutputReader(tmp_path, "a", "stdout"), Fold()
    for number in range(200):
        spool.add(
            "", b"%09d\n" % number, size=1, inode=1, segment=Segment(0, 0, "first look", 0) if not number else None
        )
        if number % 7 == 0:
            fold = read_all(reader, fold)
    fold = read_all(reader, fold)
    assert [fold.line(number).data for number in range(fold.end)] == [b"%09d" % number for number in range(200)]
    late = read_all(OutputReader(tmp_path, "a", "stdout"), Fold())
    assert "are not kept any more" in late.line(0).gap
    spool.add("", b"y" * 500, size=1, inode=1, segment=None)
    other = Spool(place(tmp_path, "a"), "stdout", "/another")
    other.add("", b"of another file\n", size=1, inode=1, segment=None)
    fold = read_all(reader, fold)
    assert [fold.line(number).data for number in range(fold.end)] == [b"of another file"]


def test_of_much_that_was_kept_the_end_is_read(tmp_path: Path) -> None:
    spool = Spool(place(tmp_path, "a"), "stdout", "/out")
    spool.add("", b"x" * 99 + b"\n", size=1, inode=1, segment=Segment(0, 0, "first look", 0))
    for _ in range(18):
        spool.add("", (b"x" * 99 + b"\n") * 10_000, size=1, inode=1, segment=None)
    reader, total = OutputReader(tmp_path, "a", "stdout"), 0
    batch = reader.read()
    assert batch.parts[0] == ("1.2 MB that were read before are not shown", True)
    while batch.parts:
        total += sum(len(part) for part in batch.parts if isinstance(part, bytes))
        batch = reader.read()
    assert total == MOST_BYTES


texts = st.lists(st.text(max_size=60) | st.sampled_from([text[:300] for text in runs.HOSTILE]), max_size=12)


@given(texts, st.integers(20, 80), st.booleans(), st.integers(0, 12))
def test_wrapped_rows_are_the_same_whenever_they_are_measured(
    words: list[str], width: int, exact: bool, at: int
) -> None:
    fold, early = Fold(keep_lines=9), Wrapped(width, exact)
    for index, text in enumerate(words):
        fold.feed(text.encode("utf-8", "surrogatepass"))
        if index >= at:
            early.update(fold)
        fold.feed(b"\n")
    early.update(fold)
    late = Wrapped(width, exact)
    late.update(fold)
    assert len(early) == len(late)
    shown = OutputRows(fold, fold.first, fold.end, 0, exact, early)
    for index in range(len(shown)):
        assert early.at(index) == late.at(index)
        line = shown.line(index, width)
        assert cells(line) <= width
        assert plain(line).isprintable()
        key = shown.key(index)
        assert not key or shown.find(key) == index


@given(st.lists(st.sampled_from(["aa", "Aa", "b", "xaax"]), max_size=20), st.sampled_from(["a", "A", "aa"]))
def test_search_in_steps_finds_what_a_search_at_once_finds(words: list[str], wanted: str) -> None:
    fold, search = Fold(keep_lines=10), Search(wanted, False)
    for word in words:
        fold.feed(word.encode() + b"\n")
        search.extend(fold)
    expected = [
        number
        for number in range(fold.first, fold.end)
        if wanted in (words[number].lower() if wanted.islower() else words[number])
    ]
    assert search.numbers == expected
    here, seen = -1, []
    for _ in expected:
        here = search.step(here, 1) or 0
        seen.append(here)
    assert seen == expected
