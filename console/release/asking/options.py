"""The options of sbatch 22.05, as its own parser takes them, and the variables that stand for options.

What an approved job cannot represent is refused by name: it would run as something else than what was approved, or
give the proposer an answer that is not true.
"""

from __future__ import annotations

from collections.abc import Mapping

WITH_VALUE = frozenset((
    "array", "account", "batch", "bb", "begin", "comment", "cpu-freq", "cpus-per-task", "dependency", "deadline",
    "delay-boot", "chdir", "error", "export", "gres", "gres-flags", "input", "job-name", "licenses", "container",
    "distribution", "mail-type", "mail-user", "mcs-label", "mem-bind", "network", "ntasks", "ntasks-per-node",
    "tasks-per-node", "nodes", "open-mode", "output", "partition", "power", "prefer", "priority", "profile", "qos",
    "core-spec", "signal", "switches", "thread-spec", "time", "time-min", "wait-all-nodes", "wckey", "wrap",
    "cluster-constraint", "constraint", "mem", "mincpus", "reservation", "tmp", "nodelist", "exclude", "mem-per-cpu",
    "sockets-per-node", "cores-per-socket", "threads-per-core", "extra-node-info", "ntasks-per-core",
    "ntasks-per-socket", "cpus-per-gpu", "gpus", "gpu-bind", "gpu-freq", "gpus-per-node", "gpus-per-socket",
    "gpus-per-task", "mem-per-gpu", "hint", "ntasks-per-gpu", "acctg-freq", "kill-on-invalid-dep",
))  # fmt: skip
OPTIONAL_VALUE = frozenset(("nice", "exclusive", "propagate", "no-kill"))
FLAGS = frozenset((
    "hold", "ignore-pbs", "no-requeue", "overcommit", "oversubscribe", "parsable", "quiet", "reboot", "requeue",
    "spread-job", "use-min-nodes", "verbose", "contiguous",
))  # fmt: skip

_ONE_CLUSTER = "a run works on one cluster"
_NOT_APPROVED = "the file is not part of what is approved"
_NOT_DOCUMENTED = "sbatch does not document it, so nobody can be shown what it does"
_NOTHING = "nothing would be submitted"
REFUSED: Mapping[str, str] = {
    "wait": "the answer would come before the job has run; watch it instead",
    "clusters": _ONE_CLUSTER,
    "cluster": _ONE_CLUSTER,
    "export-file": f"{_NOT_APPROVED}; name the variables in --export",
    "get-user-env": "what it loads is not part of what is approved",
    "uid": "the job runs as the cluster's account",
    "gid": "the job runs as the cluster's account",
    "nodefile": f"{_NOT_APPROVED}; name the hosts in --nodelist",
    "bbf": _NOT_APPROVED,
    "context": _NOT_DOCUMENTED,
    "ntasks-per-tres": _NOT_DOCUMENTED,
    "test-only": _NOTHING,
    "help": _NOTHING,
    "usage": _NOTHING,
    "version": _NOTHING,
}
"""Options that an approved job cannot represent, and why."""

SHORT: Mapping[str, str] = {
    "a": "array", "A": "account", "b": "begin", "c": "cpus-per-task", "d": "dependency", "D": "chdir", "e": "error",
    "H": "hold", "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "M": "clusters", "m": "distribution",
    "n": "ntasks", "N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet",
    "s": "oversubscribe", "S": "core-spec", "t": "time", "v": "verbose", "V": "version", "W": "wait",
    "C": "constraint", "F": "nodefile", "w": "nodelist", "x": "exclude", "B": "extra-node-info", "G": "gpus",
    "h": "help",
}  # fmt: skip
KNOWN = WITH_VALUE | OPTIONAL_VALUE | FLAGS | frozenset(REFUSED)

_AS_NAMED = (
    "account", "acctg-freq", "batch", "clusters", "cluster-constraint", "constraint", "container", "core-spec",
    "cpus-per-gpu", "delay-boot", "distribution", "error", "exclusive", "export", "get-user-env", "gpu-bind",
    "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "ignore-pbs",
    "input", "job-name", "mem-bind", "mem-per-cpu", "mem-per-gpu", "network", "no-kill", "no-requeue", "open-mode",
    "output", "overcommit", "partition", "power", "profile", "qos", "requeue", "reservation", "signal", "spread-job",
    "thread-spec", "threads-per-core", "use-min-nodes", "wait", "wait-all-nodes", "wckey",
)  # fmt: skip
VARIABLES: Mapping[str, str] = {
    **{f"SBATCH_{name.upper().replace('-', '_')}": name for name in _AS_NAMED},
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_BURST_BUFFER": "bb",
    "SBATCH_CPU_FREQ_REQ": "cpu-freq",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_REQ_SWITCH": "switches",
    "SBATCH_TIMELIMIT": "time",
    "SLURM_CLUSTERS": "clusters",
    "SLURM_HINT": "hint",
}
"""Variables by which sbatch takes options, and the options; they win over the script, the command line over them."""

REFUSED_VARIABLES: Mapping[str, str] = {
    "SBATCH_WAIT4SWITCH": "name both numbers in --switches",
    "SLURM_UMASK": "the umask of the login is used",
}
"""Variables that sbatch reads and that no option stands for."""


def takes_effect(value: str) -> bool:
    """Whether sbatch takes a variable that stands for an option without value as set: empty, `yes`, or no zero."""
    return value in ("", "yes") or (value.isascii() and value.isdigit() and int(value) != 0)
