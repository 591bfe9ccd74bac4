"""The run folder: made whole, locked by one, and state files that are checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from console.release import folder
from console.release.folder import FolderError, Lock, Locked
from tests.release.making import new_run


def test_a_new_run_folder_has_its_inputs_and_its_places(tmp_path: Path) -> None:
    run_dir = tmp_path / "deep" / "run"
    folder.create_run_folder(run_dir, b"target: x\n")
    assert sorted(os.listdir(run_dir)) == ["release.yaml", "requests", "results", "submissions"]
    assert (run_dir / "release.yaml").read_bytes() == b"target: x\n"
    with pytest.raises(FolderError, match="cannot be made"):
        folder.create_run_folder(run_dir, b"")


def test_only_a_new_or_empty_folder_is_free(tmp_path: Path) -> None:
    folder.require_free(tmp_path / "new")
    folder.require_free(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in (tmp_path, tmp_path / "file", tmp_path / "link"):
        with pytest.raises(FolderError, match="gonogo resume"):
            folder.require_free(taken)


def test_a_run_folder_gets_its_name_when_it_is_whole_and_never_replaces_another(tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "log").write_text("mine")
    folder.publish(tmp_path / "fresh", tmp_path / "run")
    assert os.listdir(tmp_path) == ["run"]
    (tmp_path / "fresh").mkdir()
    with pytest.raises(FolderError, match="cannot be used"):
        folder.publish(tmp_path / "fresh", tmp_path / "run")
    assert (tmp_path / "run" / "log").read_text() == "mine"


def test_what_is_no_run_folder_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no such folder"):
        folder.require_run_folder(tmp_path / "nothing")
    with pytest.raises(FolderError, match=r"holds no work_log\.md"):
        folder.require_run_folder(tmp_path)
    new_run(tmp_path / "run")
    folder.require_run_folder(tmp_path / "run")


def test_a_lock_names_its_holder_and_is_given_back(tmp_path: Path) -> None:
    assert folder.holder(tmp_path, "conductor") is None
    lock = Lock(tmp_path, "conductor")
    held = folder.holder(tmp_path, "conductor")
    assert held is not None
    assert (held.pid, held.user) == (os.getpid(), folder.account())
    with pytest.raises(Locked, match=f"another conductor has this run: {held.user} on .*, process {os.getpid()}"):
        Lock(tmp_path, "conductor")
    Lock(tmp_path, "console").close()
    lock.close()
    assert folder.holder(tmp_path, "conductor") is None
    Lock(tmp_path, "conductor").close()


_HOLD = "import sys; from pathlib import Path; from console.release.folder import Lock\n"
_HOLD += "lock = Lock(Path(sys.argv[1]), 'conductor'); print('held', flush=True); sys.stdin.read()"


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        held = folder.holder(tmp_path, "conductor")
        assert held is not None
        assert held.pid == process.pid
        with pytest.raises(Locked):
            Lock(tmp_path, "conductor")
        process.kill()
        process.wait(30)
    Lock(tmp_path, "conductor").close()


def test_looking_who_holds_a_lock_never_keeps_anybody_from_taking_it(tmp_path: Path) -> None:
    Lock(tmp_path, "conductor").close()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            folder.holder(tmp_path, "conductor")

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(100):
            Lock(tmp_path, "conductor").close()
    finally:
        done.set()
        for looker in lookers:
            looker.join(30)


def test_a_lock_file_that_says_nothing_still_counts_as_held(tmp_path: Path) -> None:
    lock = Lock(tmp_path, "conductor")
    (tmp_path / "conductor.lock").write_bytes(b"")
    held = folder.holder(tmp_path, "conductor")
    assert held is not None
    assert "unknown" in str(held)
    lock.close()


def test_the_state_comes_back_as_it_was_written(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    assert folder.read_state(tmp_path / "run") == writer.state
    assert folder.read_state(tmp_path) is None


def change(data: Any, *path: Any, value: Any) -> Any:
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    "path_and_value",
    [
        ("schema_version", 2),
        ("stages", []),
        ("stages", 0, "name", "other"),
        ("stages", 0, "status", "skipped"),
        ("stages", 0, "more", 1),
        ("verdict", "READY"),
        ("log", {}),
        ("log", "entries", "1"),
        ("log", "entries", True),
        ("log", "head", None),
        ("stages", 1, "attempts", [{"attempt": 1}]),
        ("stages", None),
    ],
)
def test_a_state_of_another_shape_is_refused_naming_the_file(tmp_path: Path, path_and_value: tuple[Any, ...]) -> None:
    run_dir = tmp_path / "run"
    new_run(run_dir)
    path = run_dir / folder.STATE_NAME
    data = change(json.loads(path.read_bytes()), *path_and_value[:-1], value=path_and_value[-1])
    path.write_text(json.dumps(data))
    with pytest.raises(FolderError, match=r"specdec_state\.json: "):
        folder.read_state(run_dir)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_state_that_is_no_json_document_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / folder.STATE_NAME).write_bytes(data)
    with pytest.raises(FolderError):
        folder.read_state(tmp_path)


def test_live_is_read_or_empty(tmp_path: Path) -> None:
    assert folder.read_live(tmp_path) == {}
    folder.write_live(tmp_path, {"doing": "watch\x1b"})
    assert folder.read_live(tmp_path) == {"doing": "watch\x1b"}
    for data in (b"", b"[1]", b'{"half', b"\xff"):
        (tmp_path / folder.LIVE_NAME).write_bytes(data)
        assert folder.read_live(tmp_path) == {}
