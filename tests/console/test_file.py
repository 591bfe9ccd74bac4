"""A result file on the screen: the bytes that gates read or those on the cluster now, as table and as text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.file_reading import read_file
from console.release import leases
from console.screens.file import ResultFile
from console.widgets.file_table import MOST_COLUMNS, MOST_ROWS, NoTable, TableRows, table_of
from console.widgets.ink import cells, plain
from tests.console import runs
from tests.console.driving import Console, console
from tests.console.outputs import JOB, Output
from tests.console.runs import Run
from tests.console.test_hostile_text import check_screen

NAME = "001-stage_target-1"


def judged(path: Path, data: bytes | None = None) -> tuple[Run, bytes]:
    """A run one of whose results was read and kept, with other bytes in its place where they are given."""
    run = runs.running(path)
    attempt = run.writer.state.attempt(NAME)
    assert attempt is not None
    (result,) = attempt.results
    kept = f'{{"schema_version": 1, "kind": "{result.kind}", "token": "{attempt.token}"}}'.encode()
    assert hashlib.sha256(kept).hexdigest() == result.sha256
    copy = run.path / result.copy
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(kept if data is None else data)
    return run, kept


async def opened(driven: Console, kind: str) -> None:
    await driven.press("3")
    rows = driven.app.screen.query_one("#rows")
    while kind not in rows.key.split("\n"):  # type: ignore[attr-defined]
        await driven.press("down")
    await driven.press("enter")
    await driven.until(lambda: isinstance(driven.app.screen, ResultFile), "the file is open")


async def test_what_gates_read_is_shown_with_digest_and_age_as_table_and_text(tmp_path: Path) -> None:
    run, data = judged(tmp_path / "run")
    async with console(run, (140, 30)) as driven:
        await opened(driven, "stage_target")
        await driven.until(lambda: "✓ read by gates" in driven.screen_text, "it is read")
        for words in ("JSON", hashlib.sha256(data).hexdigest(), " ago", "schema_version", "path"):
            assert words in driven.screen_text, words
        await driven.press("y")
        assert driven.app.clipboard == "schema_version\t1"
        await driven.press("v")
        assert data.decode() in driven.screen_text
        assert not (run.path / leases.NAME).exists(), "nobody has to read it again"
        await driven.press("escape")
        await driven.until(lambda: driven.area.scope == "files", "it is closed")


async def test_bytes_that_are_not_those_that_were_read_are_told(tmp_path: Path) -> None:
    run, _ = judged(tmp_path / "run", b'{"forged": true}')
    async with console(run, (200, 30)) as driven:
        await opened(driven, "stage_target")
        await driven.until(lambda: "these are not the bytes that were read" in driven.screen_text, "it is told")


async def test_a_watched_file_is_asked_for_and_shown_as_it_is_now(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    async with console(run, (160, 30)) as driven:
        await opened(driven, "export_check")
        await driven.until((run.path / leases.NAME).exists, "it asks")
        assert json.loads((run.path / leases.NAME).read_bytes())["what"] == "result-export_check"
        assert "nothing was read of it yet" in driven.screen_text
        output = Output(run, "result-export_check")
        output.write(b'{"half": [1,')
        await driven.until(lambda: '{"half": [1,' in driven.screen_text, "half of it, as text")
        await driven.press("v")
        assert "it is no table" in driven.screen_text
        output.size = 0
        output.write(b'{"half": [1, 2]}', why="replaced")
        await driven.until(lambda: "half[1]" in driven.screen_text, "all of it, as table")
        assert "● watched" in driven.screen_text
        assert hashlib.sha256(b'{"half": [1, 2]}').hexdigest() in driven.screen_text
        output.spool.answer(output.now, "could not ask", "the link was lost")
        await driven.until(lambda: "could not ask: the link was lost" in driven.screen_text, "nobody answers")
        assert "half[1]" in driven.screen_text, "what was last seen stays"


@pytest.mark.parametrize("text", runs.HOSTILE, ids=range(len(runs.HOSTILE)))
async def test_hostile_files_act_on_nothing(tmp_path: Path, text: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    document = json.dumps({clean: [clean, {clean: clean}], "n": 1}, ensure_ascii=False)
    run, _ = judged(tmp_path / "run", document.encode())
    async with console(run, (100, 30)) as driven:
        await opened(driven, "stage_target")
        await driven.until(lambda: "not the bytes" in driven.screen_text, "it is read")
        check_screen(driven)
        await driven.press("v")
        check_screen(driven)
        await driven.press("end")
        check_screen(driven)


def test_a_copy_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    run, _ = judged(tmp_path / "run")
    attempt = run.writer.state.attempt(NAME)
    assert attempt is not None
    copy = run.path / attempt.results[0].copy
    copy.unlink()
    copy.symlink_to("/etc/passwd")
    found = read_file(run.path, run.writer.state, NAME, "stage_target")
    assert (found.data, "leads out of" in found.said) == (b"", True)
    for kind in ("../../x", "/etc/passwd", "a\0b"):
        assert read_file(run.path, run.writer.state, JOB, kind).data == b""
    run.close()


def rows(name: str, data: bytes) -> list[tuple[str, ...]]:
    return table_of(name, data).rows


def test_json_is_flattened_with_numbers_as_they_are_written_and_double_names_twice() -> None:
    data = b'\xef\xbb\xbf{"a": {"b": [1e999, -0.10, NaN, "x"], "b": []}, "k k": null, "n": 1234567890123456789012345}'
    assert rows("x.json", data) == [
        ("a.b[0]", "1e999"), ("a.b[1]", "-0.10"), ("a.b[2]", "NaN"), ("a.b[3]", '"x"'), ("a.b", "[]"),
        ('["k k"]', "null"), ("n", "1234567890123456789012345"),
    ]  # fmt: skip
    assert rows("x.json", b"3.50") == [(".", "3.50")]
    assert rows("x.json", b"[[]]") == [("[0]", "[]")]


def test_json_lines_and_csv_have_columns() -> None:
    found = table_of("x.jsonl", b'{"a": 1, "b": "x"}\n\n{"b": {"c": 2.50}, "d": true, "d": false}\n')
    assert found == ("JSON lines", ("a", "b", "d"), [("1", '"x"', ""), ("", '{"c": 2.50}', "true | false")], "")
    found = table_of("x.csv", b'name,n\n"a,b",1\nlonger,2,3\n')
    assert found == ("CSV", ("name", "n", "column 3"), [("a,b", "1", ""), ("longer", "2", "3")], "")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x", b"\xff", "no UTF-8"),
        ("x", b"  \n", "empty"),
        ("x.csv", b"", "empty"),
        ("x", b"plain\ntext", "neither JSON"),
        ("x", b"[" * 100_000, "nested too deep"),
        ("x", b'{"a": 1}\n[2]', "neither JSON"),
        ("x.csv", b'"open', "no CSV"),
    ],
)
def test_what_is_no_table_says_why(name: str, data: bytes, words: str) -> None:
    with pytest.raises(NoTable, match=words):
        table_of(name, data)


def test_a_table_is_bounded_and_says_what_is_left_out() -> None:
    assert table_of("x", json.dumps(list(range(MOST_ROWS + 5))).encode()).left_out == "5 more values"
    wide = ",".join(str(number) for number in range(MOST_COLUMNS + 2)).encode()
    assert table_of("x.csv", wide + b"\n" + wide).left_out == "2 more columns"


@given(st.text(max_size=200), st.sampled_from(["x.csv", "x.json"]), st.integers(8, 120))
def test_rows_of_any_table_fit(text: str, name: str, width: int) -> None:
    data = text.encode("utf-8", "replace") if name == "x.csv" else json.dumps({text: [text]}).encode()
    try:
        shown = TableRows(table_of(name, data))
    except NoTable:
        return
    for line in [shown.heading(width), *(shown.line(index, width) for index in range(len(shown)))]:
        assert cells(line) <= width
        assert plain(line).isprintable()
