"""The program behind the cluster's commands and its job runners.

It is run by file name with `-S -E` rather than as a module: without site packages Python is up in a few
milliseconds, which is what a look at the queue twice a second may cost.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # The folder of this file would shadow modules of the standard library; the project's root is what is needed.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol", "sacctmgr")


def program() -> list[str]:
    """Command line of this program."""
    return [sys.executable, "-S", "-E", str(Path(__file__).resolve())]


def main(arguments: list[str]) -> int:
    """Run one of the cluster's commands, or a job."""
    name, *rest = arguments
    if name == "run":
        from backends.sandbox import runner
        from backends.sandbox.place import Place

        return runner.main(Place(Path(rest[0])), int(rest[1]))
    if name not in COMMANDS:
        print(f"no such command: {name}", file=sys.stderr)
        return 127
    import importlib

    from backends.sandbox.commands.usage import SlurmError
    from backends.sandbox.place import here
    from backends.sandbox.store import Store

    command = importlib.import_module(f"backends.sandbox.commands.{name}")
    store = Store(here())
    try:
        return int(command.main(store, rest))
    except SlurmError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except BrokenPipeError:
        return 1
    finally:
        store.close()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
