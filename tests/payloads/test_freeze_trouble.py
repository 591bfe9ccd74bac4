"""The freeze program while something else happens: it is killed, doubled, or its files change under it.

A large file with a hole in it gives the time: the program is stopped as soon as it began to copy.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.payloads.running import result, run, start, until

HOLE = 96 << 20


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "sub" / "small").write_text("small")
    with open(folder / "weights", "wb") as stream:
        stream.write(b"begin")
        stream.truncate(HOLE)
    return folder


@contextmanager
def stopped(export: Path) -> Iterator[subprocess.Popen[str]]:
    """A freeze into `frozen` that stands still in the middle of copying."""
    folder = export.parent
    process = start("freeze.py", export, folder / "frozen", "--output", folder / "first.json", cwd=folder)
    copy = folder / "frozen.partial" / "weights"
    try:
        until(copy.exists, "the copy of the large file")
        process.send_signal(signal.SIGSTOP)
        assert not (folder / "frozen").exists(), "it was over before it could be stopped"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def freeze(export: Path) -> dict[str, Any]:
    """Freeze into `frozen`, to the end."""
    folder = export.parent
    run("freeze.py", export, folder / "frozen", "--output", folder / "second.json", cwd=folder)
    return result(folder / "second.json")


def go_on(process: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    return result(folder / "first.json")


def test_killed_it_leaves_an_unfinished_folder_that_the_next_one_removes(export: Path) -> None:
    folder = export.parent
    with stopped(export) as process:
        process.kill()
        process.communicate(timeout=60)
        assert sorted(path.name for path in folder.iterdir()) == ["export", "frozen.partial"]
    (folder / "frozen.partial" / "left over").write_text("from another time")
    (folder / "frozen.partial").chmod(0o555)
    done = freeze(export)
    assert done["status"] == "frozen", done["detail"]
    assert sorted(path.name for path in folder.iterdir()) == ["export", "frozen", "second.json"]
    assert {file["path"] for file in done["files"]} == {"config.json", "sub/small", "weights"}
    copy = folder / "frozen" / "weights"
    assert copy.stat().st_size == HOLE
    assert copy.stat().st_blocks * 512 < HOLE / 2, "holes stay holes"
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder / "frozen", check=True, timeout=60)


def test_a_second_one_does_not_touch_the_work_of_the_first(export: Path) -> None:
    with stopped(export) as process:
        assert freeze(export)["failure"] == "busy"
        assert go_on(process, export.parent)["status"] == "frozen"
    assert freeze(export)["failure"] == "destination_exists"


def keep_times(change: Callable[[Path], object]) -> Callable[[Path], object]:
    def harm(export: Path) -> None:
        path = export / "config.json"
        before = path.stat()
        change(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return harm


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file grows": lambda export: (export / "config.json").write_text("{} "),
    "a file changes and keeps its size and time": keep_times(lambda path: path.write_text("[]")),
    "a file is replaced": lambda export: (export / "new").replace(export / "config.json"),
    "a file comes": lambda export: (export / "more").write_text("x"),
    "a file goes": lambda export: (export / "sub" / "small").unlink(),
    "a file becomes a link": lambda export: (
        (export / "config.json").unlink(),
        (export / "config.json").symlink_to("sub/small"),
    ),
    "the file that is copied changes": lambda export: os.truncate(export / "weights", HOLE + 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_source_that_changes_meanwhile_is_refused_and_nothing_is_left(export: Path, change: str) -> None:
    folder = export.parent
    if change == "a file is replaced":
        (export / "new").write_text("{}")
    with stopped(export) as process:
        CHANGES[change](export)
        done = go_on(process, folder)
    assert (done["status"], done["failure"]) == ("refused", "source_changed"), done["detail"]
    assert sorted(path.name for path in folder.iterdir()) == ["export", "first.json"]


def test_a_destination_that_appears_meanwhile_is_left_alone(export: Path) -> None:
    """An empty folder too, which a plain rename would replace without a word."""
    folder = export.parent
    with stopped(export) as process:
        (folder / "frozen").mkdir()
        done = go_on(process, folder)
    assert done["failure"] == "destination_exists"
    assert list((folder / "frozen").iterdir()) == []
    assert not (folder / "frozen.partial").exists()


def test_what_does_not_fit_is_refused_before_a_byte_is_copied(export: Path) -> None:
    room = os.statvfs(export)
    free = room.f_bavail * room.f_frsize
    with open(export / "weights", "r+b") as stream:
        try:
            stream.truncate(free + (1 << 30))
        except OSError:
            pytest.skip("this file system has no files that are larger than its free space")
    done = freeze(export)
    assert done["failure"] == "no_space"
    assert not (export.parent / "frozen.partial").exists()


def test_a_destination_inside_the_source_is_refused(export: Path, tmp_path: Path) -> None:
    done = run("freeze.py", export, export / "sub" / "frozen", "--output", tmp_path / "o.json", cwd=tmp_path)
    assert (done.returncode, result(tmp_path / "o.json")["status"]) == (1, "refused")
    assert sorted(path.name for path in (export / "sub").iterdir()) == ["small"]


def test_a_folder_that_can_be_written_and_a_link_are_found_by_verification(export: Path) -> None:
    frozen = export.parent / "frozen"
    manifest = freeze(export)["manifest_sha256"]

    def verify() -> dict[str, Any]:
        output = export.parent / "verify.json"
        run("freeze.py", "--verify", frozen, "--manifest-sha256", manifest, "--output", output, cwd=export.parent)
        return result(output)

    assert verify()["status"] == "verified"
    (frozen / "sub").chmod(0o755)
    assert (verify()["failure"], str(frozen / "sub") in verify()["detail"]) == ("writable", True)
    (frozen / "sub" / "small").rename(frozen / "sub" / "moved")
    (frozen / "sub" / "small").symlink_to(export / "sub" / "small")
    assert verify()["status"] == "refused"
    (frozen / "sub" / "small").unlink()
    (frozen / "sub" / "moved").rename(frozen / "sub" / "small")
    (frozen / "sub" / "empty").mkdir()
    (frozen / "sub" / "empty").chmod(0o555)
    (frozen / "sub").chmod(0o555)
    assert "empty" in verify()["detail"]


def test_the_result_is_json_whatever_the_names(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "export")
    os.mkdir(folder)
    names = [b"\xff\xfe", b"a\rb", b"tab\there", "\N{RIGHT-TO-LEFT OVERRIDE}x".encode()]
    for name in names:
        with open(os.path.join(folder, name), "wb") as stream:
            stream.write(name)
    run("freeze.py", tmp_path / "export", tmp_path / "frozen", "--output", tmp_path / "o.json", cwd=tmp_path)
    done = json.loads((tmp_path / "o.json").read_bytes().decode("ascii"))
    assert sorted(os.fsencode(file["path"]) for file in done["files"]) == sorted(names)
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path / "frozen", check=True, timeout=60)
