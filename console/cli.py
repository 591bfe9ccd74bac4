"""The `gonogo` command: a table of commands, and one place where every error becomes one clear line.

Parsers are built cheaply, and a command's module is imported only when that command is chosen, since `gonogo
open` has to show its first frame before anything costly is loaded.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from console.safe_text import safe_lines

OK, REFUSED, BAD_INPUT, SYSTEMIC, FAULT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 4, 70, 130, 141


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: As it is typed.
        help: One line for `gonogo --help`.
        examples: Command lines for its own help; empty where the module writes that itself.
        module: Module below `console.commands`.
        add: Function of that module that adds the arguments to a parser; "add_parser" adds the parser itself
            to the subparsers that it is given.
        run: Function of that module that does the work and returns the exit status.
    """

    name: str
    help: str
    examples: tuple[str, ...]
    module: str
    add: str = "add_arguments"
    run: str = "run"


COMMANDS = (
    Command(
        "demo",
        "a whole release in about a minute, on an embedded cluster on this machine",
        ("gonogo demo", "gonogo demo --fail server", "gonogo demo --headless --approve-submissions none"),
        "demo",
    ),
    Command(
        "run",
        "start a release",
        ("gonogo run release.yaml", "gonogo run release.yaml --headless --wait 3600"),
        "run",
        "add_run_arguments",
    ),
    Command(
        "resume",
        "go on with a release where its log ends; nothing that passed runs again",
        ("gonogo resume gonogo-runs/RUN",),
        "run",
        "add_resume_arguments",
        "resume",
    ),
    Command(
        "open",
        "look at a release and decide on its jobs, without conducting it",
        ("gonogo open gonogo-runs/RUN", "gonogo open gonogo-runs/RUN --read-only"),
        "open",
    ),
    Command(
        "fleet",
        "all releases below some folders: what each waits for, and whether it is you",
        ("gonogo fleet", "gonogo fleet ~/runs-alpha ~/runs-beta", "gonogo fleet --plain", "gonogo fleet --json"),
        "fleet",
    ),
    Command(
        "serve",
        "the console in a browser on this machine, by a link that is used once",
        ("gonogo serve", "gonogo serve gonogo-runs/RUN", "gonogo serve ~/runs-alpha --read-only --port 8400"),
        "serve",
    ),
    Command(
        "queue",
        "list, show, approve and reject proposed jobs",
        (
            "gonogo queue list RUN_DIR",
            "gonogo queue show RUN_DIR 003-train-1",
            "gonogo queue approve RUN_DIR 003-train-1",
            "gonogo queue reject RUN_DIR 003-train-1 --reason 'wrong partition'",
        ),
        "queue",
    ),
    Command(
        "submit",
        "ask for a job from another program; an operator decides on it",
        (
            "gonogo submit --run RUN_DIR --summary 'Profile the target' -- -p batch -t 10 profile.sh",
            "gonogo submit --run RUN_DIR --no-wait --json -- --wrap 'nvidia-smi'",
            "gonogo submit --run RUN_DIR --status ask-20260102-030405-0123abcd",
        ),
        "submit",
    ),
    Command(
        "sbatch",
        "stand in for sbatch in programs that cannot be changed",
        ("gonogo sbatch --install ~/gonogo-bin", "PATH=~/gonogo-bin:$PATH GONOGO_RUN=RUN_DIR program"),
        "sbatch_shim",
    ),
    Command(
        "mcp",
        "let an agent ask for jobs and look at a release; it decides nothing",
        ("gonogo mcp --run RUN_DIR --proposer NAME", "GONOGO_RUN=RUN_DIR gonogo mcp --proposer NAME"),
        "mcp",
    ),
    Command(
        "log",
        "the work log, with its hash chain checked",
        ("gonogo log RUN_DIR", "gonogo log RUN_DIR --interventions", "gonogo log RUN_DIR --json"),
        "log",
    ),
    Command(
        "replay",
        "a release as it went, moment by moment, from its log or from another program's",
        (
            "gonogo replay RUN_DIR",
            "gonogo replay work_log.md --at 50% --speed 100",
            "gonogo replay RUN_DIR --plain",
            "gonogo replay RUN_DIR --export film.cast --size 120x36 --speed 20",
        ),
        "replay",
    ),
    Command("report", "the report of a release", ("gonogo report RUN_DIR", "gonogo report RUN_DIR --json"), "report"),
    Command(
        "verify",
        "check a run folder from its own bytes: log, approvals, results, every verdict again",
        ("gonogo verify RUN_DIR", "gonogo verify RUN_DIR --wrong", "gonogo verify RUN_DIR --json"),
        "verify",
    ),
    Command(
        "gate",
        "run one gate over result files, without a console",
        (),
        "gate",
        "add_parser",
    ),
    Command(
        "cluster",
        "check whether a cluster is ready for a release, trust its host key, or list the clusters",
        (
            "gonogo cluster check",
            "gonogo cluster check alpha --json",
            "gonogo cluster trust alpha",
            "gonogo cluster trust alpha --fingerprint SHA256:...",
            "gonogo cluster list --clusters clusters.yaml",
        ),
        "cluster",
    ),
    Command(
        "catalog",
        "check, propose or import a catalog of thresholds",
        (
            "gonogo catalog check catalog.yaml",
            "gonogo catalog propose history.sqlite --output catalog.json",
            "gonogo catalog import models_accuracy.json --output catalog.json",
        ),
        "catalog",
    ),
    Command(
        "history",
        "acceptance, speedup and accuracy of a model over its releases",
        (
            "gonogo history",
            "gonogo history Qwen/Qwen3-8B",
            "gonogo history Qwen/Qwen3-8B --json",
            "gonogo history add RUN_DIR",
        ),
        "history",
    ),
    Command(
        "plot",
        "training, acceptance, throughput and speedup of a release, drawn or in words",
        ("gonogo plot gonogo-runs/RUN", "gonogo plot gonogo-runs/RUN --plain"),
        "plot",
    ),
    Command(
        "inspect",
        "what a file of another tool is, what it states in which unit, and what is odd about it",
        (
            "gonogo inspect acceptance_rate.json",
            "gonogo inspect results.json --json",
            "gonogo inspect odd.json --as vllm-bench",
        ),
        "inspect",
    ),
    Command(
        "freeze",
        "freeze a drafter with checksums, or verify a frozen one",
        ("gonogo freeze EXPORT_DIR DESTINATION", "gonogo freeze --verify DIR --manifest-sha256 HEX"),
        "freeze",
    ),
    Command(
        "config",
        "where the settings lie, what they are, and whether they can be used",
        ("gonogo config show", "gonogo config check", 'gonogo config template > "$(gonogo config path)"'),
        "config",
    ),
    Command("version", "versions of gonogo and of what it runs on", ("gonogo version --json",), "version"),
)
_BY_NAME = {command.name: command for command in COMMANDS}

# Named, not imported: an error can only be of a class whose module is loaded already.
_EXPECTED = (
    ("console.settings", "SettingsError", BAD_INPUT),
    ("console.release.folder", "FolderError", BAD_INPUT),
    ("console.release.journal", "LogError", BAD_INPUT),
    ("console.release.queue", "QueueError", BAD_INPUT),
    ("console.release.job", "JobError", BAD_INPUT),
    ("console.release.errors", "InputError", BAD_INPUT),
    ("console.release.history", "HistoryError", BAD_INPUT),
    ("gates.results.fields", "ResultError", BAD_INPUT),
    ("backends.errors", "BackendError", SYSTEMIC),
    ("backends.sandbox.lifecycle", "SandboxError", SYSTEMIC),
)
_NO_FAULT_OF_OURS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; None takes those of the process.

    Returns:
        The exit status: the command's own; 2 for input that cannot be used, 4 for a cluster that gives no
        answer, 70 for a fault of gonogo itself, 130 when interrupted, 141 when nobody reads the output.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _make_output_robust()
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except SystemExit as exit_:  # argparse: 0 after help, 2 after bad arguments
        return exit_.code if isinstance(exit_.code, int) else BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return PIPE_CLOSED
    except Exception as error:
        return _explain(error)


def _run(arguments: list[str]) -> int:
    parser, run = build_parser(arguments)
    parsed = parser.parse_args(arguments)
    if run is None:
        parser.print_help()
        return BAD_INPUT
    return run(parsed)


def build_parser(
    arguments: Sequence[str],
) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int] | None]:
    """The parser for these arguments: complete for the command that they name, names only for the others.

    Returns:
        The parser, and the function of the command that is named, None where none is.
    """
    parser = argparse.ArgumentParser(
        prog="gonogo",
        description="Supervise the release of speculative-decoding drafters on Slurm clusters.",
        epilog="`gonogo COMMAND --help` says more about each.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    chosen = next((_BY_NAME[name] for name in arguments[:1] if name in _BY_NAME), None)
    if chosen is None:
        for command in COMMANDS:
            commands.add_parser(command.name, help=command.help)
        return parser, None
    module = importlib.import_module(f"console.commands.{chosen.module}")
    run: Callable[[argparse.Namespace], int] = getattr(module, chosen.run)
    if chosen.add == "add_parser":
        module.add_parser(commands)
        return parser, run
    own = commands.add_parser(
        chosen.name,
        help=chosen.help,
        description=f"{chosen.help[0].upper()}{chosen.help[1:]}.",
        epilog="examples:\n" + "\n".join(f"  {example}" for example in chosen.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    getattr(module, chosen.add)(own)
    return parser, run


def _explain(error: Exception) -> int:
    """One line for an error, and the exit status that it stands for."""
    for module, name, status in _EXPECTED:
        if module in sys.modules and isinstance(error, getattr(sys.modules[module], name)):
            advice = getattr(error, "advice", "") if status == SYSTEMIC else ""
            _complain(f"{error}; {advice}" if advice else str(error))
            return status
    if isinstance(error, OSError) and error.errno in _NO_FAULT_OF_OURS:
        place = f"{error.filename}: " if error.filename else ""
        _complain(f"{place}{error.strerror}")
        return BAD_INPUT
    _complain(f"a fault of gonogo itself ({type(error).__name__}); {_keep_fault(error)}")
    return FAULT


def _complain(text: str) -> None:
    """Say what is wrong on stderr; most errors are one line, inputs have one line for each problem."""
    for line in safe_lines(text):
        print(f"gonogo: {line}", file=sys.stderr)


def _keep_fault(error: Exception) -> str:
    """Write the full text of an unexpected error to the platform's log folder; returns where, in words."""
    import time
    import traceback

    text = "".join(traceback.format_exception(error)).rstrip("\n")
    try:
        from platformdirs import user_log_path

        folder = user_log_path("gonogo", ensure_exists=True)
        path = Path(folder) / f"fault-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        path.chmod(0o600)
    except (OSError, ImportError):
        return f"its full text follows, since no file could be written for it:\n{text}"
    return f"its full text is in {path}"


def _make_output_robust() -> None:
    """Text that the terminal's encoding lacks is written as an escape, never an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _abandon_output() -> None:
    """Nobody reads the output any more: keep the interpreter from trying again when it ends."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    empty = os.open(os.devnull, os.O_WRONLY)
    os.dup2(empty, descriptor)
    os.close(empty)
