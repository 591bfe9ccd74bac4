"""What sbatch options ask for, as the fields that people read; what is submitted are the options themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from console.release.asking.directives import effective
from console.release.asking.sbatch_line import Line, Option, refuse


def describe(options: Sequence[Option], script: str) -> dict[str, Any]:
    """What options and `#SBATCH` lines together ask for.

    A range of nodes counts as its larger end: nobody should approve more than is shown.

    Raises:
        console.release.errors.InputError: When a value is none.
    """
    line = effective(script, Line(tuple(options), ()))
    nodes = max(1, _number("--nodes", (line.value("nodes") or "1").rpartition("-")[2]))
    time = line.value("time")
    return {
        "partition": line.value("partition") or "",
        "account": line.value("account") or "",
        "qos": line.value("qos") or "",
        "nodes": nodes,
        "gpus_per_node": _gpus(line, nodes),
        "cpus_per_task": _number("--cpus-per-task", line.value("cpus-per-task") or "0"),
        "mem": line.value("mem") or "",
        "time": clock_of(seconds_of(time)) if time is not None else "",
        "image": line.value("container") or "",
    }


def _number(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise refuse(option, "a whole number", repr(text))
    return int(text)


def _gpus(line: Line, nodes: int) -> int:
    """GPUs of one node, by whichever option asks for the most; a total over all nodes is rounded up."""
    tasks = _number("--ntasks", line.value("ntasks") or "0")
    on_node = line.value("ntasks-per-node") or line.value("tasks-per-node") or "1"
    tasks = tasks or nodes * _number("--ntasks-per-node", on_node)
    # Of the sockets of a node only as many are known as are asked for; sbatch takes the option with them only.
    sockets = _number("--sockets-per-node", (line.value("sockets-per-node") or "1").rpartition("-")[2])
    found = [0]
    for name, times, share in (
        ("gpus-per-node", 1, 1),
        ("gres", 1, 1),
        ("gpus", 1, nodes),
        ("gpus-per-task", tasks, nodes),
        ("gpus-per-socket", sockets, 1),
    ):
        value = line.value(name)
        if value is not None:
            found.append(-(-times * _gpu_counts(name, value) // share))
    return max(found)


def _gpu_counts(option: str, value: str) -> int:
    """GPUs that a list of types and counts asks for; of general resources only those that are GPUs."""
    total = 0
    for part in value.split(","):
        words = re.sub(r"\([^()]*\)$", "", part).split(":")
        if option == "gres":
            if words[:1] == ["gres"]:
                words = words[1:]
            if words[:1] != ["gpu"]:
                continue
            words = words[1:] or ["1"]
        if option == "gres" and not words[-1].isdigit():
            words.append("1")  # a type without a count is one of it
        total += _number(f"--{option}", words[-1])
    return total


def seconds_of(time: str) -> int:
    """A time limit as sbatch takes it (minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s), in seconds.

    Raises:
        console.release.errors.InputError: When it is none.
    """
    found = re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?", time)
    if found is None:
        raise refuse("--time", "a time limit, such as 90 (minutes), 1:30:00 or 1-12", repr(time))
    days, *rest = found.groups()
    first, second, third = (int(part or 0) for part in rest)
    if days is not None:
        return int(days) * 86400 + first * 3600 + second * 60 + third
    return first * 3600 + second * 60 + third if rest[2] is not None else first * 60 + second


def clock_of(seconds: int) -> str:
    """Seconds as an exact job holds them ("01:30:00", "2-00:00:00")."""
    days, rest = divmod(seconds, 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text
