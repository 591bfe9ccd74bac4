"""A `gonogo` command that ends when its input does: the console that `gonogo serve` starts for a visitor.

Whatever becomes of the server, the pipe to its child closes with it, and no console stays behind that nobody can see.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time

LEAVE_SECONDS = 4.0
"""For so long the console may take to leave by itself."""


def end_with_input(descriptor: int = 0) -> None:
    """End this process when the other end of its input is closed; reads nothing from it.

    Args:
        descriptor: The input: a pipe, or a socket pair.
    """
    threading.Thread(target=_wait, args=(descriptor,), name="tether", daemon=True).start()


def _wait(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # an end that hangs up is always told
    while not any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LEAVE_SECONDS)
    os._exit(1)


def main() -> int:
    """Run one `gonogo` command, tethered."""
    end_with_input()
    from console.cli import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
