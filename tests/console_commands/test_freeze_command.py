"""`gonogo freeze`: the freeze program of the cluster, run here."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from console.cli import main

Run = Callable[..., tuple[int, str, str]]
FILES = {"config.json": b'{"block_size": 4}', "model.safetensors": bytes(range(256)) * 40}


@pytest.fixture
def freeze(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `gonogo freeze`; gives exit status, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main(["freeze", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    return folder


def frozen(freeze: Run, export: Path, destination: Path) -> str:
    """Freeze the export; gives the manifest's digest."""
    status, out, _ = freeze(export, destination, "--json")
    assert status == 0
    return str(json.loads(out)["manifest_sha256"])


def test_a_frozen_drafter_has_the_same_bytes_and_a_manifest_that_others_can_check(
    freeze: Run, export: Path, tmp_path: Path
) -> None:
    destination = tmp_path / "drafts" / "one"
    status, out, _ = freeze(export, destination, "--json")
    result = json.loads(out)
    assert (status, result["status"]) == (0, "frozen")
    assert {name: (destination / name).read_bytes() for name in FILES} == FILES
    manifest = (destination / "SHA256SUMS").read_bytes()
    assert result["manifest_sha256"] == hashlib.sha256(manifest).hexdigest()
    assert {file["path"]: file["sha256"] for file in result["files"]} == {
        name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()
    }
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=destination, check=True, timeout=60)


def test_people_read_what_was_frozen_where(freeze: Run, export: Path, tmp_path: Path) -> None:
    status, out, _ = freeze(export, tmp_path / "one")
    assert status == 0
    assert "status: frozen" in out
    assert f"destination: {tmp_path / 'one'}" in out
    assert f"  {hashlib.sha256(FILES['config.json']).hexdigest()}  config.json" in out


def test_a_frozen_drafter_is_verified_until_a_byte_of_it_changes(freeze: Run, export: Path, tmp_path: Path) -> None:
    destination = tmp_path / "one"
    manifest = frozen(freeze, export, destination)
    status, out, _ = freeze("--verify", destination, "--manifest-sha256", manifest, "--json")
    assert (status, json.loads(out)["status"]) == (0, "verified")
    assert freeze("--verify", destination, "--manifest-sha256", "0" * 64)[0] == 1
    path = destination / "model.safetensors"
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    status, out, _ = freeze("--verify", destination, "--manifest-sha256", manifest)
    assert (status, "model.safetensors" in out) == (1, True)


def test_a_destination_that_exists_is_refused_and_stays(freeze: Run, export: Path, tmp_path: Path) -> None:
    manifest = frozen(freeze, export, tmp_path / "one")
    (export / "config.json").write_text("{}")
    assert freeze(export, tmp_path / "one")[0] == 1
    assert freeze("--verify", tmp_path / "one", "--manifest-sha256", manifest)[0] == 0


def test_a_source_that_is_not_there_is_bad_input(freeze: Run, tmp_path: Path) -> None:
    assert freeze(tmp_path / "nothing", tmp_path / "one")[0] == 2
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["SOURCE"],
        ["--verify", "DIR"],
        ["--manifest-sha256", "0" * 64],
        ["SOURCE", "DESTINATION", "--manifest-sha256", "0" * 64],
        ["SOURCE", "--verify", "DIR", "--manifest-sha256", "0" * 64],
        ["--verify", "DIR", "--manifest-sha256", "0" * 63],
        ["--verify", "DIR", "--manifest-sha256", "A" * 64],
    ],
)
def test_arguments_that_make_no_sense_together_are_one_clear_line(freeze: Run, arguments: list[str]) -> None:
    status, out, err = freeze(*arguments)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("gonogo freeze: ")
