"""The freeze program, run as a job would run it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gates.registry import run as run_gate

PROGRAM = Path(__file__).parents[2] / "backends" / "payloads" / "freeze.py"
NAMES = [
    b"plain",
    b"-leading dash",
    b"two\nlines",
    b"back\\slash",
    b"not utf-8 \xff",
    "grüße".encode(),
    b"sub/deep/file",
]


def call(*arguments: object) -> tuple[int, dict[str, Any]]:
    done = subprocess.run([sys.executable, PROGRAM, *map(str, arguments)], capture_output=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    for name in NAMES:
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(name * 3)
    (folder / "empty").touch()
    with open(folder / "sparse", "wb") as sparse:
        sparse.truncate(1 << 20)
    return folder


def test_others_can_check_it_and_the_gate_accepts_it(export: Path, tmp_path: Path) -> None:
    destination = tmp_path / "deep" / "frozen"
    status, result = call(export, destination)
    assert (status, result["status"]) == (0, "frozen")
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=destination, check=True)
    assert not [path for path in destination.rglob("*") if path.stat().st_mode & 0o222]
    assert sorted(tmp_path.joinpath("deep").iterdir()) == [destination]
    expected = {"source": str(export), "destination": str(destination), "manifest_sha256": result["manifest_sha256"]}
    verdict = run_gate("freeze", {"freeze": json.dumps(result).encode()}, expected)
    assert verdict.passed, verdict.detail
    assert call("--verify", destination, "--manifest-sha256", result["manifest_sha256"])[0] == 0


@pytest.mark.parametrize("harm", ["change", "add", "remove", "writable", "manifest"])
def test_verification_names_what_is_not_as_it_was(export: Path, tmp_path: Path, harm: str) -> None:
    destination = tmp_path / "frozen"
    manifest = call(export, destination)[1]["manifest_sha256"]
    destination.chmod(0o755)
    plain = destination / "plain"
    if harm == "change":
        plain.chmod(0o644)
        plain.write_bytes(b"other")
        plain.chmod(0o444)
    elif harm == "add":
        (destination / "more").write_text("x")
        (destination / "more").chmod(0o444)
    elif harm == "remove":
        plain.unlink()
    elif harm == "writable":
        plain.chmod(0o644)
    else:
        (destination / "SHA256SUMS").unlink()
        (destination / "SHA256SUMS").write_text("")
    status, result = call("--verify", destination, "--manifest-sha256", manifest)
    assert (status, result["status"]) == (1, "refused")
    names = {"change": "plain", "add": "more", "remove": "plain", "writable": "plain", "manifest": "SHA256SUMS"}
    assert names[harm] in result["detail"]


@pytest.mark.parametrize("kind", ["out", "folder", "dangling", "fifo"])
def test_links_that_leave_and_special_files_are_refused(export: Path, tmp_path: Path, kind: str) -> None:
    odd = export / "odd"
    if kind == "out":
        (tmp_path / "outside").write_text("x")
        odd.symlink_to(tmp_path / "outside")
    elif kind == "folder":
        odd.symlink_to(export / "sub")
    elif kind == "dangling":
        odd.symlink_to("/nowhere/at/all")
    else:
        os.mkfifo(odd)
    status, result = call(export, tmp_path / "frozen")
    assert (status, result["status"]) == (1, "refused")
    assert "odd" in result["detail"]
    assert not (tmp_path / "frozen").exists()


def test_a_link_to_a_file_inside_becomes_that_file(export: Path, tmp_path: Path) -> None:
    (export / "link").symlink_to("plain")
    assert call(export, tmp_path / "frozen")[0] == 0
    assert not (tmp_path / "frozen" / "link").is_symlink()
    assert (tmp_path / "frozen" / "link").read_bytes() == (export / "plain").read_bytes()


def test_what_a_killed_run_left_is_removed_unless_a_live_one_holds_it(export: Path, tmp_path: Path) -> None:
    partial = tmp_path / "frozen.partial"
    (partial / "sub").mkdir(parents=True)
    (partial / "sub" / "half").write_text("x")
    (partial / "sub").chmod(0o555)
    descriptor = os.open(partial, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    status, result = call(export, tmp_path / "frozen")
    assert (status, result["failure"]) == (1, "busy")
    os.close(descriptor)
    assert call(export, tmp_path / "frozen")[0] == 0
    assert not (tmp_path / "frozen" / "sub" / "half").exists()


def test_an_existing_destination_is_never_touched(export: Path, tmp_path: Path) -> None:
    (tmp_path / "frozen").mkdir()
    status, result = call(export, tmp_path / "frozen")
    assert (status, result["failure"]) == (1, "destination_exists")
    assert list((tmp_path / "frozen").iterdir()) == []


def test_a_refusal_is_written_to_the_result_file_too(tmp_path: Path) -> None:
    output = tmp_path / "freeze.json"
    done = subprocess.run([sys.executable, PROGRAM, tmp_path / "none", tmp_path / "f", "--output", output], check=False)
    assert done.returncode == 2
    assert json.loads(output.read_text())["failure"] == "source_missing"
