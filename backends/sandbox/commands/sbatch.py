"""`sbatch`: checks a job as Slurm checks it, and accepts it. Knobs make it accept and then say that it failed."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from backends.sandbox.commands.usage import SlurmError, need_controller, options, whoami
from backends.sandbox.place import poke
from backends.sandbox.store import ACCOUNT, CPUS_PER_NODE, NODES, PARTITIONS, QOS, Store, new_job

_FAILED = "sbatch: error: Batch job submission failed: "
_NO_NODE = f"{_FAILED}Requested node configuration is not available"
_SHORT = "J:p:A:q:N:n:c:t:o:e:D:d:HV"
_SHORT_NAMES = {
    "J": "job-name",
    "p": "partition",
    "A": "account",
    "q": "qos",
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "t": "time",
    "o": "output",
    "e": "error",
    "D": "chdir",
    "d": "dependency",
    "H": "hold",
    "V": "version",
}
_LONG = [
    *(f"{name}=" for name in _SHORT_NAMES.values() if name not in ("hold", "version")),
    *("comment=", "export=", "mem=", "gpus-per-node=", "gres=", "wrap=", "kill-on-invalid-dep=", "begin="),
    *("hold", "version", "parsable", "requeue", "no-requeue"),
]
_MEMORY_MB = 32000


def main(store: Store, arguments: list[str]) -> int:
    """Submit a job."""
    given, rest = _options(arguments)
    if "version" in given:
        print("slurm 22.05.8")
        return 0
    need_controller(store, _FAILED)
    script, words = _script(given, rest)
    given = {**_directives(script), **given}
    fault = store.take_fault() or {}
    how = fault.get("how", "")
    if how == "refuse":
        raise SlurmError(f"sbatch: error: {fault.get('said', 'refused')}")
    if how == "time-out":
        time.sleep(float(fault.get("seconds", 0)))
        raise SlurmError(f"{_FAILED}Socket timed out on send/recv operation")
    values = _job(store, given, words)
    job_id = store.add(values, script)
    poke(store.place)
    if how in ("accept-time-out", "accept-exit-1", "accept-silent"):
        time.sleep(float(fault.get("seconds", 0)))
        said = "Socket timed out on send/recv operation" if how == "accept-time-out" else "Unspecified error"
        raise SlurmError("" if how == "accept-silent" else f"{_FAILED}{said}")
    print(job_id if "parsable" in given else f"Submitted batch job {job_id}")
    return 0


def _options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    found, rest = options("sbatch", arguments, _SHORT, _LONG, stop=True)
    return {_SHORT_NAMES.get(name, name): value for name, value in found.items()}, rest


def _script(given: dict[str, str], rest: list[str]) -> tuple[bytes, list[str]]:
    """The script and its arguments: from --wrap, a file, or standard input."""
    if "wrap" in given:
        return b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + given["wrap"].encode() + b"\n", []
    if rest:
        try:
            script = Path(rest[0]).read_bytes()
        except OSError:
            raise SlurmError(f"sbatch: error: Unable to open file {rest[0]}") from None
    else:
        script = sys.stdin.buffer.read()
    if not script.strip():
        raise SlurmError("sbatch: error: Batch script is empty!")
    if not script.startswith(b"#!"):
        raise SlurmError(
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh"
        )
    if b"\r\n" in script:
        raise SlurmError("sbatch: error: Batch script contains DOS line breaks (\\r\\n)")
    return script, rest[1:]


def _directives(script: bytes) -> dict[str, str]:
    """Options of the script's #SBATCH lines, which stand before its first command."""
    words: list[str] = []
    for line in script.decode("utf-8", "replace").splitlines():
        if line.startswith("#SBATCH"):
            words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
        elif line.strip() and not line.startswith("#"):
            break
    return _options(words)[0] if words else {}


def _job(store: Store, given: dict[str, str], words: list[str]) -> dict[str, Any]:
    partition = given.get("partition", next(iter(PARTITIONS)))
    if partition not in PARTITIONS:
        raise SlurmError(
            f"sbatch: error: invalid partition specified: {partition}\n{_FAILED}Invalid partition name specified"
        )
    if given.get("account", ACCOUNT) != ACCOUNT:
        raise SlurmError(f"{_FAILED}Invalid account or account/partition combination specified")
    if given.get("qos", QOS) != QOS:
        raise SlurmError(f"{_FAILED}Invalid qos specification")
    limit = _seconds(given["time"]) if "time" in given else PARTITIONS[partition]
    if limit > PARTITIONS[partition]:
        raise SlurmError(f"{_FAILED}Requested time limit is invalid (missing or exceeds some limit)")
    now = time.time()
    knobs = store.knobs()
    workdir = os.path.abspath(given.get("chdir", os.getcwd()))
    dependency = given.get("dependency", "")
    if dependency and not re.fullmatch(r"(after\w*:\d+(:\d+)*)(,after\w*:\d+(:\d+)*)*", dependency):
        raise SlurmError(f"{_FAILED}Job dependency problem")
    return new_job(
        now,
        name=given.get("job-name", "wrap" if "wrap" in given else "sbatch"),
        comment=given.get("comment", ""),
        user=whoami(),
        partition=partition,
        nodes=_nodes(given),
        cpus=_cpus(given),
        limit_s=limit,
        workdir=workdir,
        output=given.get("output", "slurm-%j.out"),
        error=given.get("error", ""),
        environment=json.dumps(_environment(given.get("export", "ALL"))),
        arguments=json.dumps(words),
        dependency=dependency,
        kill_on_invalid_dep=int(given.get("kill-on-invalid-dep", "no") == "yes"),
        requeue=int("no-requeue" not in given),
        hold=int("hold" in given),
        visible=now + float(knobs.get("queue_delay_s", 0)),
        eligible=now + float(knobs.get("start_delay_s", 0)),
    )


def _environment(export: str) -> dict[str, str]:
    login = {
        name: os.environ[name] for name in ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG") if name in os.environ
    }
    if export == "NONE":
        return login
    if export.split(",", maxsplit=1)[0] == "ALL":
        login = dict(os.environ)
    for word in export.split(","):
        name, given, value = word.partition("=")
        if given:
            login[name] = value
        elif name in os.environ:
            login[name] = os.environ[name]
    return login


def _nodes(given: dict[str, str]) -> int:
    text = given.get("nodes", "1").partition("-")[0]
    if not text.isdigit() or int(text) < 1:
        raise SlurmError(f"sbatch: error: invalid number of nodes (-N {text})", 255)
    if int(text) > NODES:
        raise SlurmError(f"{_FAILED}Node count specification invalid")
    gpus = re.sub(r"^gpu:", "", given.get("gpus-per-node", given.get("gres", "0")))
    if gpus != "0":
        raise SlurmError(_NO_NODE)
    memory = re.fullmatch(r"(\d+)([KMGT]?)B?", given.get("mem", "0"), re.IGNORECASE)
    if memory is None:
        raise SlurmError("sbatch: error: Invalid --mem specification", 255)
    unit = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[memory.group(2).upper()]
    if int(memory.group(1)) * unit > _MEMORY_MB:
        raise SlurmError(f"sbatch: error: Memory specification can not be satisfied\n{_NO_NODE}")
    return int(text)


def _cpus(given: dict[str, str]) -> int:
    text = given.get("cpus-per-task", "1")
    if not text.isdigit() or int(text) < 1:
        raise SlurmError(f'sbatch: error: Invalid numeric value "{text}" for --cpus-per-task.', 255)
    if int(text) > CPUS_PER_NODE:
        raise SlurmError(f"sbatch: error: CPU count per node can not be satisfied\n{_NO_NODE}")
    return int(text)


def _seconds(text: str) -> int:
    """A time limit as sbatch takes it: minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if found is None:
        raise SlurmError("sbatch: error: Invalid --time specification", 255)
    days, first, second, third = found.groups()
    if days is not None:
        return int(days) * 86400 + int(first) * 3600 + int(second or 0) * 60 + int(third or 0)
    if third is not None:
        return int(first) * 3600 + int(second) * 60 + int(third)
    return int(first) * 60 + int(second or 0)
