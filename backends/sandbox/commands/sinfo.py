"""`sinfo`: the partitions."""

from __future__ import annotations

from backends.sandbox.commands.usage import clock, fill, need_controller, options
from backends.sandbox.store import CPUS_PER_NODE, NODES, PARTITIONS, Store

_DEFAULT = "%12P %.5a %.10l %.6D %6t %N"
_TITLES = {
    "P": "PARTITION", "R": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE",
    "N": "NODELIST", "c": "CPUS", "G": "GRES", "m": "MEMORY", "F": "NODES(A/I/O/T)", "C": "CPUS(A/I/O/T)",
}  # fmt: skip


def main(store: Store, arguments: list[str]) -> int:
    """Print the partitions."""
    found, _ = options("sinfo", arguments, "hso:p:", ["format=", "noheader", "summarize", "partition="])
    need_controller(store, "slurm_load_partitions: ")
    pattern = found.get("o", found.get("format", _DEFAULT))
    if "h" not in found and "noheader" not in found:
        print(fill(pattern, _TITLES))
    busy = sum(job.nodes for job in store.jobs("state = 'RUNNING'"))
    free = NODES - busy
    state = "mix" if busy and free else "alloc" if busy else "idle"
    wanted = found.get("p", found.get("partition", ""))
    for number, (name, limit) in enumerate(PARTITIONS.items()):
        if wanted and name not in wanted.split(","):
            continue
        cpus = CPUS_PER_NODE
        values = {
            "P": name + ("*" if number == 0 else ""), "R": name, "a": "up", "l": clock(limit), "D": str(NODES),
            "t": state, "T": state, "N": f"node[1-{NODES}]", "c": str(cpus), "G": "(null)", "m": "32000",
            "F": f"{busy}/{free}/0/{NODES}", "C": f"{busy * cpus}/{free * cpus}/0/{NODES * cpus}",
        }  # fmt: skip
        print(fill(pattern, values))
    return 0
