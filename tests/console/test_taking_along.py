"""What is on the screen goes to the clipboard or into files: as text that acts on nothing, and over nothing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from console.exporting import save, text_of
from tests.console import runs
from tests.console.driving import console
from tests.console.outputs import Output
from tests.console.test_output import opened


async def test_a_line_is_copied_whole_and_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.running(tmp_path / "run")
    Output(run).write(b"\rfirst\r" + b"long " * 100 + b"\x1b]52;c;aGk=\x07end")
    async with console(run, (80, 24)) as driven:
        lines = await opened(driven)
        await driven.until(lambda: lines.key == "0", "it is read")
        written: list[str] = []
        monkeypatch.setattr(driven.app._driver, "write", written.append)
        await driven.press("y")
        await driven.until(lambda: driven.app.clipboard, "it is copied")
        assert driven.app.clipboard == "long " * 100 + "‹ESC›]52;c;aGk=‹BEL›end"
        (sequence,) = [text for text in written if "\x1b]52" in text]
        assert sequence == f"\x1b]52;c;{base64.b64encode(driven.app.clipboard.encode()).decode()}\a"
        await driven.press("Y")
        await driven.until(lambda: "003-train-1" in driven.app.clipboard, "the screen is copied")
        assert driven.app.clipboard.splitlines()[-1].strip().startswith("1 board")
        await driven.press("4", "question_mark")
        before = driven.app.clipboard
        await driven.press("y")
        await driven.until(lambda: "no line under a cursor" in driven.screen_text, "it says so")
        assert driven.app.clipboard == before


async def test_the_screen_is_exported_as_picture_and_text_into_the_run(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    folder = run.path / "exports"
    async with console(run) as driven:
        await driven.press("x")
        await driven.until(lambda: len(list(folder.glob("*"))) == 2, "it is saved")
        await driven.press("x")
        await driven.until(lambda: len(list(folder.glob("*"))) == 4, "it is saved again, beside the first")
    name = f"board-{run.time.wall:%Y%m%dT%H%M%SZ}"
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{name}-2.svg", f"{name}-2.txt", f"{name}.svg", f"{name}.txt",
    ]  # fmt: skip
    text = (folder / f"{name}.txt").read_text()
    assert "Waiting for you · 1" in text
    assert "WAITS FOR YOU" in text
    assert (folder / f"{name}.svg").read_text().startswith("<svg")


async def test_who_only_looks_on_exports_into_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.waiting(tmp_path / "run")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    async with console(run, read_only=True) as driven:
        await driven.press("x")
        await driven.until(lambda: len(list((tmp_path / "here").iterdir())) == 2, "it is saved")
        assert not (run.path / "exports").exists()


def test_nothing_is_written_over_and_both_or_none_are_made(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    (tmp_path / "a-2.svg").symlink_to(tmp_path / "nowhere")
    made = save(tmp_path, "a", {".svg": "<svg/>", ".txt": "text\n"})
    assert [path.name for path in made] == ["a-3.svg", "a-3.txt"]
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert not (tmp_path / "a.svg").exists()
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(OSError, match=r"a\.txt"):
        save(tmp_path / "a.txt", "b", {".svg": ""})


def test_text_of_a_screen_has_no_spaces_at_its_ends() -> None:
    class Piece:
        def __init__(self, text: str) -> None:
            self.text = text

    assert text_of([[Piece("a "), Piece("b   ")], [Piece("    ")], [Piece("c")], [Piece("  ")]]) == "a b\n\nc\n"
