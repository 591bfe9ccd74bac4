"""Durable writes: whole or not at all, exactly once, and what a full disk leaves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.release import effects
from console.release.canonical import canonical, sha256


def test_canonical_json_is_sorted_ascii_without_spaces() -> None:
    assert canonical({"b": [1, None, True], "a": "é\x1b\u2028"}) == b'{"a":"\\u00e9\\u001b\\u2028","b":[1,null,true]}'
    assert sha256(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("value", [1.0, {"a": [2.5]}, {1: "x"}, b"x", {"a": {1, 2}}, object()])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {"a": [float("nan")]}])
def test_a_number_that_is_not_finite_is_refused_even_where_floats_may_be(value: object) -> None:
    with pytest.raises(ValueError):
        canonical(value, floats=True)


def test_a_created_file_is_whole_and_never_replaced(tmp_path: Path) -> None:
    effects.create(tmp_path / "f", b"first", "f")
    with pytest.raises(FileExistsError):
        effects.create(tmp_path / "f", b"second", "f")
    assert (tmp_path / "f").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["f"]


def _create(path: Path, start: object, won: object, number: int) -> None:
    start.wait()
    try:
        effects.create(path, str(number).encode() * 5000, "f")
    except FileExistsError:
        return
    won.put(number)


def test_of_many_processes_that_create_one_file_exactly_one_does(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, won = context.Barrier(8), context.Queue()
    workers = [context.Process(target=_create, args=(tmp_path / "f", start, won, n)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    winner = won.get(timeout=10)
    assert won.empty()
    assert (tmp_path / "f").read_bytes() == str(winner).encode() * 5000
    assert os.listdir(tmp_path) == ["f"]


def test_replace_leaves_one_file(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        effects.replace(tmp_path / "f", text, "f")
        assert (tmp_path / "f").read_bytes() == text
    assert os.listdir(tmp_path) == ["f"]


def test_append_adds_at_the_end(tmp_path: Path) -> None:
    effects.append(tmp_path / "f", b"one", "f")
    effects.append(tmp_path / "f", b"two", "f")
    assert (tmp_path / "f").read_bytes() == b"onetwo"


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from console.release import effects
path = Path(sys.argv[1])
effects.append(path, b"whole ", "f")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
try:
    effects.append(path, b"does not fit", "f")
except OSError:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
effects.append(path, b"again", "f")
"""


def test_an_append_that_does_not_fit_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "f"
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "refused\n"
    assert path.read_bytes() == b"whole again"


_CRASH = """
import os, sys
from pathlib import Path
from console.release import effects
effects.arm(dict(os.environ))
place = Path(sys.argv[1])
effects.append(place / "log", b"entry", "log")
effects.replace(place / "state", b"state", "state")
effects.create(place / "decision", b"decision", "decision")
"""


def _crash(place: Path, **environ: str) -> int:
    place.mkdir()
    environment = {**os.environ, **environ}
    return subprocess.run([sys.executable, "-c", _CRASH, str(place)], env=environment, timeout=60).returncode


def test_crash_points_are_counted_and_each_kills(tmp_path: Path) -> None:
    names = tmp_path / "points"
    assert _crash(tmp_path / "all", **{effects.CRASH_LIST: str(names)}) == 0
    points = names.read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in points] == [
        f"{when} {what}" for what in ("append log", "replace state", "create decision") for when in ("before", "after")
    ]
    left = []
    for number in range(1, len(points) + 1):
        place = tmp_path / str(number)
        assert _crash(place, **{effects.CRASH_AT: str(number)}) == -signal.SIGKILL
        left.append(sorted(os.listdir(place)))
    files = ["log", "state", "decision"]
    assert left == [sorted(files[: number // 2]) for number in range(1, len(points) + 1)]
