"""`gonogo gate`: files to kinds, exit status, output for people and programs, and the step summary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from console.commands import gate as command
from gates.registry import GATES
from tests.gates import passing
from tests.gates.test_gate_export import good_tensors, weights

HOSTILE = "x\x1b[2J\n|<img src=x>`@team`\u202e"


@pytest.fixture(autouse=True)
def _no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(command.SUMMARY, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for files in passing.FILES.values():
        for kind, make in files.items():
            (tmp_path / f"{kind}.json").write_bytes(passing.encode(make()))
    return tmp_path


def write(folder: Path, kind: str, document: Any) -> str:
    path = folder / f"{kind}.json"
    path.write_bytes(document if isinstance(document, bytes) else passing.encode(document))
    return str(path)


@pytest.mark.parametrize("gate", sorted(GATES))
def test_passing_files_pass(folder: Path, gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / f"{kind}.json") for kind in passing.FILES[gate]]
    assert main(["gate", gate, *files]) == 0
    out = capsys.readouterr().out
    assert f"gate {gate}: PASS: " in out.splitlines()[-1]
    assert "FAIL" not in out


@pytest.mark.parametrize("gate", sorted(GATES))
def test_the_json_is_that_of_the_registry(folder: Path, gate: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / f"{kind}.json") for kind in passing.FILES[gate]]
    assert main(["gate", gate, *files, "--json", "--expect", f"token={passing.TOKEN}"]) == 0
    printed = json.loads(capsys.readouterr().out)
    verdict = passing.judge(gate, expected=None)
    assert printed["pass"] is True
    assert printed["facts"] == dict(verdict.facts)


def test_a_failure_is_status_one_and_says_measured_and_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(folder, "smoke", passing.change(passing.smoke(), {"acceptance_length": 3.0, "prompts_passed": 7}))
    assert main(["gate", "smoke", path]) == 1
    out = capsys.readouterr().out.splitlines()
    failed = [line for line in out if line.startswith("FAIL")]
    assert len(failed) == 3
    assert any("acceptance_identity" in line and "3 tokens" in line and "= 2.0600" in line for line in failed)
    assert out[-1].startswith("gate smoke: FAIL MEASUREMENT_INVALID: 3 of ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "holds nothing"),
        (b'{"a": 1', "truncated"),
        (b'{"a": 1, "a": 2}', "a is there twice"),
    ],
)
def test_what_cannot_be_read_is_status_two(
    folder: Path, content: bytes | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "smoke.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert main(["gate", "smoke", str(path), "--json"]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert printed["pass"] is False
    assert printed["failure_class"] == "RESULT_MISSING"
    assert words in printed["detail"]


def test_a_folder_and_a_file_without_permission_cannot_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "smoke", str(folder)]) == 2
    assert "Is a directory" in capsys.readouterr().out
    if os.geteuid() != 0:
        (folder / "smoke.json").chmod(0)
        assert main(["gate", "smoke", str(folder / "smoke.json")]) == 2
        assert "Permission denied" in capsys.readouterr().out


def test_files_are_told_apart_by_name_by_order_and_by_prefix(folder: Path) -> None:
    gate = GATES["train"]
    for kind, other in (("regression_check", "a.json"), ("export_check", "b.json")):
        (folder / other).write_bytes((folder / f"{kind}.json").read_bytes())
    a, b = str(folder / "a.json"), str(folder / "b.json")
    named = [str(folder / "export_check.json"), str(folder / "regression_check.json")]
    assert main(["gate", "train", *named]) == 0
    assert main(["gate", "train", a, b]) == 0
    assert main(["gate", "train", b, a]) == 1
    assert main(["gate", "train", f"export_check={b}", a]) == 0
    assert command.assign(gate, [a, named[0]]) == {"export_check": Path(named[0]), "regression_check": Path(a)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "regression_check.json"], "needs export_check.json"),
        (["train"], "needs regression_check.json and export_check.json"),
        (["smoke", "a.json", "b.json"], "b.json: gate smoke reads only smoke.json"),
        (["smoke", "smoke.json", "x/smoke.json"], "reads one smoke"),
        (["train", "--export-only", "x", "y.json"], "takes no result files"),
        (["train", "x", "y", "--target-config", "z"], "goes with --export-only"),
        (["smoke", "x", "--expect", "token"], "is not KEY=VALUE"),
        (["smoke", "x", "--expect", "tokens=1"], "is not KEY=VALUE"),
        (["smoke", "x", "--draft-tokens", "0"], "whole number >= 1"),
        (["smoke", "x", "--min-acceptance-length", "1.0"], "number > 1.04"),
        (["smoke", "x", "--min-acc", "2"], "unrecognized"),
        (["nothing", "x"], "invalid choice"),
    ],
)
def test_arguments_that_make_no_sense_are_status_two(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_optional_file_may_be_left_out_but_not_missing(folder: Path) -> None:
    check = str(folder / "target_check.json")
    assert main(["gate", "target", check]) == 0
    assert main(["gate", "target", check, str(folder / "stage_target.json")]) == 0
    assert main(["gate", "target", check, f"stage_target={folder / 'nothing.json'}"]) == 2


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--expect", "token=another"], 1),
        (["--token", passing.TOKEN], 0),
        (["--expect", f"drafter={passing.EXPORT}", "--expect", "draft-tokens=4"], 0),
        (["--draft-tokens", "5"], 1),
        (["--expect", "draft_tokens=5", "--draft-tokens", "4"], 0),
        (["--min-acceptance-length", "2.06"], 0),
        (["--min-acceptance-length", "2.07"], 1),
        (["--expect", "min_acceptance_length=2.07"], 1),
        (["--min-acceptance-length", "5"], 1),
    ],
)
def test_expectations_and_thresholds(folder: Path, options: list[str], status: int) -> None:
    assert main(["gate", "smoke", str(folder / "smoke.json"), *options]) == status


def test_concurrencies_from_the_command_line(folder: Path) -> None:
    path = str(folder / "bench.json")
    assert main(["gate", "bench", path, "--concurrency", "1,8,32"]) == 0
    assert main(["gate", "bench", path, "--concurrency", "1,8"]) == 1


# Exports ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def export(tmp_path: Path) -> Path:
    made = tmp_path / "export"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(passing.config()))
    (made / "model.safetensors").write_bytes(weights(good_tensors()))
    (tmp_path / "target.json").write_text(json.dumps(passing.target_config()))
    return made


def test_an_export_alone(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = ["--target-config", str(export.parent / "target.json")]
    assert main(["gate", "train", "--export-only", str(export)]) == 0
    assert main(["gate", "train", "--export-only", str(export), *target, "--draft-tokens", "7"]) == 0
    assert main(["gate", "train", "--export-only", str(export), *target, "--draft-tokens", "8"]) == 1
    assert main(["gate", "train", "--export-only", str(export), "--algorithm", "dflash"]) == 1
    assert main(["gate", "train", "--export-only", str(export), "--max-final-loss", "7"]) == 2
    assert main(["gate", "train", "--export-only", str(export / "nothing")]) == 2
    assert main(["gate", "train", "--export-only", str(export), "--target-config", "nothing"]) == 2
    (export.parent / "target.json").write_text(json.dumps({**passing.target_config(), "vocab_size": 300}))
    capsys.readouterr()
    assert main(["gate", "train", "--export-only", str(export), *target, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["failure_class"] == "EXPORT_INVALID"
    assert printed["gate"] == "export"
    assert "300" in printed["detail"]


# Foreign text and the step summary ----------------------------------------------------------------------------------


def hostile(folder: Path) -> str:
    document = passing.change(
        passing.smoke(), {"requested.model": HOSTILE, "server.version": HOSTILE, "token": HOSTILE}
    )
    return write(folder, "smoke", {**document, HOSTILE: float("nan")})


def test_foreign_text_has_no_effect_on_a_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hostile(folder)
    assert main(["gate", "smoke", path, "--token", passing.TOKEN]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert all(line.isprintable() for line in out.splitlines())
    assert main(["gate", "smoke", path, "--json"]) == 1
    assert capsys.readouterr().out.isascii()


def test_a_summary_is_appended_and_inert(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = folder / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv(command.SUMMARY, str(summary))
    assert main(["gate", "smoke", hostile(folder), "--token", passing.TOKEN]) == 1
    assert main(["gate", "data", str(folder / "data.json")]) == 0
    text = summary.read_text()
    assert text.startswith("before\n### gate smoke: FAIL MEASUREMENT_INVALID\n")
    assert "### gate data: PASS" in text
    assert "\x1b" not in text
    assert "<img" not in text.replace("\\<", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    checks = [line for line in rows if line.startswith(("| PASS", "| **FAIL**"))]
    assert len(checks) > 30
    assert all(line.replace("\\|", "").count("|") == 6 for line in checks)
    assert text.index("**FAIL**") < text.index("| PASS")


@pytest.mark.parametrize("place", ["", "nothing/there.md", "."])
def test_a_summary_that_cannot_be_written_changes_nothing_but_a_warning(
    folder: Path, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(command.SUMMARY, str(folder / place) if place else "")
    assert main(["gate", "data", str(folder / "data.json")]) == 0
    assert main(["gate", "data", write(folder, "data", {**passing.data(), "sequences": 0})]) == 1
    err = capsys.readouterr().err
    assert err.count("warning: the step summary could not be written") == (2 if place else 0)


def test_the_command_loads_no_screen_and_no_network(folder: Path) -> None:
    program = (
        "import sys; from console.cli import main; main(['gate', 'smoke', sys.argv[1]]); "
        "print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    made = subprocess.run(
        [sys.executable, "-c", program, str(folder / "smoke.json")], capture_output=True, text=True, check=True
    )
    loaded = set(made.stdout.splitlines()[-1].split()[1:])
    assert not loaded & {"textual", "rich", "asyncssh", "pydantic", "watchfiles", "yaml", "socketserver"}
