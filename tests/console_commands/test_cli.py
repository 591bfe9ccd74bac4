"""The command itself: help, errors in one line, exit statuses, and what it does not import."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.errors import CouldNotAsk, NeedsOperator
from console import cli
from console.commands import version
from console.release.errors import InputError, Problem
from console.release.folder import FolderError
from console.release.job import JobError
from console.release.journal import LogError
from console.release.queue import QueueError
from tests.release.making import new_run

HEAVY = ("typer", "pydantic", "yaml", "asyncssh", "textual", "watchfiles", "rich")


def run(*arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "console", *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        env={**os.environ, **environ},
        timeout=60,
    )


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"  {command.name} " in out
        assert command.help in " ".join(out.split())


def test_without_a_command_the_help_is_shown_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda item: item.name)
def test_each_command_explains_itself_with_examples(command: cli.Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command.name, "--help"]) == 0
    out = capsys.readouterr().out
    assert command.help.split(",")[0].lower() in " ".join(out.split()).lower()
    assert f"usage: gonogo {command.name} " in out
    assert all(example in out for example in command.examples)


@pytest.mark.parametrize("arguments", [["nothing"], ["log"], ["queue", "list"], ["queue", "sell", "x"], ["log", "--x"]])
def test_bad_arguments_are_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().out == ""


PROBLEMS = (Problem("release.yaml", "target", "a model id", line=1), Problem("release.yaml", "budget", "dev or full"))


@pytest.mark.parametrize(
    ("error", "status", "lines"),
    [
        (FolderError("no such folder"), 2, ["no such folder"]),
        (LogError("entry 3 was changed"), 2, ["entry 3 was changed"]),
        (QueueError("no such proposal"), 2, ["no such proposal"]),
        (JobError("job.json: token"), 2, ["job.json: token"]),
        (InputError(*PROBLEMS), 2, sorted(map(str, PROBLEMS), key=lambda line: "line 1" in line)),
        (CouldNotAsk("login", "squeue", "timed out"), 4, ["login: could not ask (squeue): timed out"]),
        (NeedsOperator("host", "log in", "no", "load a key"), 4, ["host: could not ask (log in): no; load a key"]),
        (PermissionError(13, "Permission denied", "/root/x"), 2, ["/root/x: Permission denied"]),
        (OSError(28, "No space left on device"), 2, ["No space left on device"]),
        (FolderError("odd\x1b[2J"), 2, ["odd‹ESC›[2J"]),
    ],
)  # fmt: skip
def test_an_expected_error_is_one_clear_line(
    error: Exception, status: int, lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(monkeypatch, error)
    assert cli.main(["version"]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [f"gonogo: {line}" for line in lines]


def fail(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `gonogo version` end with an error."""

    def broken(args: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(version, "run", broken)


def test_an_unexpected_error_is_called_a_fault_and_kept_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fail(monkeypatch, ZeroDivisionError("by \ud800 zero"))
    assert cli.main(["version"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gonogo: a fault of gonogo itself (ZeroDivisionError)")
    path = Path(line.split(" is in ")[1])
    text = path.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "by \\ud800 zero" in text
    assert path.stat().st_mode & 0o077 == 0
    assert path.is_relative_to(tmp_path)


def test_where_no_file_can_be_written_the_fault_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("a file in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fail(monkeypatch, ZeroDivisionError())
    assert cli.main(["version"]) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err.splitlines()[-1]


def test_an_interrupt_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(monkeypatch, KeyboardInterrupt())
    assert cli.main(["version"]) == 130
    assert capsys.readouterr().err == ""


def test_output_that_nobody_reads_ends_quietly(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    for number in range(300):
        writer.record("note", f"{number} " + "x" * 1000)
    command = [sys.executable, "-m", "console", "log", str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("   1 ")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 141


def test_a_terminal_that_lacks_letters_gets_escapes(tmp_path: Path) -> None:
    new_run(tmp_path / "run").record("note", "Größe → ‹ok›")
    done = run("log", str(tmp_path / "run"), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "Gr\\xf6\\xdfe \\u2192" in done.stdout


def loaded_after(*arguments: str) -> set[str]:
    """Which costly modules are loaded once a command has run."""
    code = (
        "import sys; from console.cli import main; status = main(sys.argv[1:]);"
        f"print('loaded', *[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "arguments", [["version"], ["--help"], ["open", "--help"], ["log", "RUN"], ["queue", "list", "RUN"]]
)
def test_cheap_commands_load_nothing_costly(arguments: list[str], tmp_path: Path) -> None:
    new_run(tmp_path / "run")
    assert loaded_after(*[str(tmp_path / "run") if word == "RUN" else word for word in arguments]) == set()


def test_the_parser_for_open_loads_no_other_command() -> None:
    code = (
        "import sys; from console.cli import build_parser; build_parser(['open', 'x']);"
        "print(*sorted(m for m in sys.modules if m.startswith('console.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["console.commands.open"]


def test_versions(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert cli.main(["version", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["gonogo", "python", "textual", "asyncssh"]
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert cli.main(["version"]) == 0
    assert f"gonogo {found['gonogo']}" in capsys.readouterr().out.splitlines()


def test_a_distribution_that_is_not_there_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "DISTRIBUTIONS", ("surely-not-installed",))
    assert version.versions()["surely-not-installed"] == "not installed"
