"""From a command line to one exact job in the queue of a run; the proposer's side, which needs the run folder only."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from console.release import queue
from console.release.asking.describing import describe
from console.release.asking.directives import effective
from console.release.asking.sbatch_line import Line, Option, from_environment, read_line, refuse
from console.release.canonical import sha256
from console.release.errors import InputError, Problem
from console.release.job import ExactJob, UploadRef, refuse_secrets
from console.release.state import ASKED, RunState

PREFIX = "ask-"
"""How the names of asked proposals begin; the flow's own begin with a number."""

MAX_SCRIPT_BYTES = 4 << 20
MAX_UPLOAD_BYTES = 64 << 20
_OURS = ("parsable", "job-name", "comment", "export", "wrap", "quiet", "verbose")
"""Options that are taken out of the line: they become fields, or concern the answer only."""


def is_asked(proposal_id: str) -> bool:
    """Whether a proposal was laid into the queue by another program, by its name."""
    return proposal_id.startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a program asks for.

    Attributes:
        line: Its sbatch options, read.
        script: The whole script.
        summary: What it does and why, in one line, in the proposer's words.
        uploads: Files that travel along, by name.
        results: Kind and path (relative to the job's folder) of result files that it writes.
    """

    line: Line
    script: str
    summary: str
    uploads: Mapping[str, bytes]
    results: Mapping[str, str]


def read_asked(
    words: Sequence[str],
    *,
    stdin: bytes | None,
    folder: Path,
    summary: str = "",
    uploads: Mapping[str, bytes] | None = None,
    results: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Asked:
    """Read an sbatch command line with its script.

    Args:
        words: The words after `sbatch`.
        stdin: What stands on standard input, None where nothing is read from there.
        folder: Folder that relative script names belong to.
        summary: What it does, for the operator.
        uploads: Files that travel along.
        results: Result files by kind.
        environ: Environment whose `SBATCH_` variables stand for options, as they do for sbatch; none where None.

    Raises:
        InputError: When it cannot be read, or cannot be represented.
    """
    line = read_line(words)
    line = Line((*from_environment(environ or {}), *line.options), line.words)
    data = _script_bytes(line, stdin, folder)
    try:
        script = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refuse("script", "UTF-8 text", f"other bytes at {error.start}") from None
    if not script.startswith("#!"):
        raise refuse("script", "a first line that begins with #!", repr(script.split("\n")[0][:40]))
    if "\r\n" in script:
        raise refuse("script", "Unix line ends", "DOS line ends")
    if "\0" in script:
        raise refuse("script", "text", "a NUL byte")
    return Asked(line, script, summary or _first_words(line), dict(uploads or {}), dict(results or {}))


def reads_stdin(line: Line) -> bool:
    """Whether the script comes from standard input."""
    return not line.has("wrap") and (not line.words or line.words[0] == "/dev/stdin")


def _script_bytes(line: Line, stdin: bytes | None, folder: Path) -> bytes:
    wrapped = line.value("wrap")
    if wrapped is not None:
        if line.words:
            raise refuse("--wrap", "no script beside it", line.words[0])
        return f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{wrapped}\n".encode(
            "utf-8", "surrogateescape"
        )
    if not reads_stdin(line):
        path = folder / line.words[0]
        try:
            with path.open("rb") as stream:  # a pipe is a script, too, and a device may have no end
                data = stream.read(MAX_SCRIPT_BYTES + 1)
        except OSError as error:
            raise refuse("script", "a file that can be read", f"{line.words[0]}: {error.strerror}") from None
        except ValueError:
            raise refuse("script", "the name of a file", repr(line.words[0])) from None
        return _short_enough(data)
    if stdin is None or not stdin.strip():
        raise refuse("script", "a script, as a file or on standard input", "nothing")
    return _short_enough(stdin)


def _short_enough(data: bytes) -> bytes:
    if len(data) > MAX_SCRIPT_BYTES:
        raise refuse("script", f"at most {MAX_SCRIPT_BYTES} bytes", "more")
    return data


def _first_words(line: Line) -> str:
    return " ".join(line.words)[:200] or line.value("job-name") or line.value("wrap") or "a script"


def exported(line: Line, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables that `--export` names, with their values, which become part of what is approved.

    Raises:
        InputError: For `--export=ALL`, and for a name that is not set.
    """
    value = line.value("export")
    if value in (None, "NONE", ""):
        return ()
    found: dict[str, str] = {}
    for part in str(value).split(","):
        name, given, text = part.partition("=")
        if name == "ALL":
            raise refuse(
                "--export",
                "names of variables, or NONE",
                "ALL",
                "a whole environment is not approved: say which variables the job needs",
            )
        if name in ("NONE", "NIL"):
            continue
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise refuse("--export", "the name of a variable", repr(name))
        if not given and name not in environ:
            raise refuse("--export", "a variable that is set", name)
        found[name] = text if given else environ[name]
    return tuple(found.items())


def build(state: RunState, asked: Asked, environ: Mapping[str, str], *, token: str) -> ExactJob:
    """The exact job, for the cluster that the run works on.

    Raises:
        InputError: When the run does not say yet where it works, or the request cannot be represented.
        console.release.job.JobError: When it would carry a secret by value.
    """
    host, user, port = _login(state)
    workspace = str(state.setup.get("workspace") or "")
    if not workspace:
        raise InputError(Problem("the run", "setup", "a run whose setup is done", "none yet", "try again in a moment"))
    root = f"{workspace}/gonogo/{state.run_id}"
    job_dir, claim_dir = f"{root}/asked/{token[:8]}", f"{root}/claims/{token}"
    line = asked.line
    whole = effective(asked.script, line)
    own_comment = whole.value("comment")
    variables = (("GONOGO_TOKEN", token), ("GONOGO_JOB_DIR", job_dir), *exported(whole, environ))
    refuse_secrets(variables)
    options = [(name, value) for name, value in line.options if name not in _OURS]
    if not whole.has("chdir"):
        options.append(("chdir", job_dir))
    options.append(("export", ",".join(_pair(name, value) for name, value in variables)))
    name = whole.value("job-name") or _plain_name(line)
    fields = describe(options, asked.script)
    summary = asked.summary + (f" (comment: {own_comment})" if own_comment else "")
    return ExactJob(
        run_id=state.run_id,
        stage=ASKED,
        task=f"asked-{token[:8]}",
        attempt=1,
        summary=summary,
        cluster=str(state.inputs.get("cluster", "")),
        host=host,
        port=port,
        user=user,
        token=token,
        job_name=f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:100]}-{token[:8]}",
        options=tuple(written(option) for option in options),
        arguments=line.words[1:],
        job_dir=job_dir,
        claim_dir=claim_dir,
        environment=variables,
        script=asked.script,
        uploads=tuple(
            UploadRef(name=name, sha256=sha256(data), size=len(data)) for name, data in asked.uploads.items()
        ),
        results=tuple(sorted(asked.results.items())),
        **fields,
    )


def written(option: Option) -> str:
    """An option as it is passed."""
    name, value = option
    return f"--{name}" if value is None else f"--{name}={value}"


def _pair(name: str, value: str) -> str:
    if any(letter in value for letter in ",\n'\""):
        raise refuse(
            "--export", "values without commas, quotes and line breaks", f"{name}={value!r}", "write it into the script"
        )
    return f"{name}={value}"


def _plain_name(line: Line) -> str:
    if line.has("wrap"):
        return "wrap"
    return line.words[0].rpartition("/")[2] if line.words else "sbatch"


def _login(state: RunState) -> tuple[str, str, int]:
    found = re.fullmatch(r"(.+)@([^@]+):(\d+)", str(state.inputs.get("login", "")))
    if found is None:
        raise InputError(Problem("the run", "login", "user@host:port", str(state.inputs.get("login", "")), ""))
    return found.group(2), found.group(1), int(found.group(3))


def propose(
    run_dir: Path, state: RunState, asked: Asked, environ: Mapping[str, str], *, proposer: str, now: datetime
) -> queue.Proposal:
    """Put an asked job into the queue of a run.

    Raises:
        InputError: As `build`.
        console.release.job.JobError: As `build`.
    """
    token = secrets.token_hex(8)
    job = build(state, asked, environ, token=token)
    proposal_id = f"{PREFIX}{now:%Y%m%d-%H%M%S}-{token[:8]}"
    return queue.propose(run_dir, proposal_id, job, asked.uploads, proposer=proposer, time=now)
