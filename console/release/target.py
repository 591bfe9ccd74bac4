"""The target on the cluster: is a copy there, and is it whole?"""

from __future__ import annotations

from importlib import resources

from backends.hosts.base import Host

_FIND = """
if [ -d "$1" ]; then
  if [ -r "$1/config.json" ]; then echo here; else echo unreadable; fi
elif ls -- "$1" >/dev/null 2>&1; then echo unreadable
else echo absent
fi
"""

_CHECK = """
set -u
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
cat > "$work/check_target.py"
"$1" "$work/check_target.py" "$2" --output "$work/out.json" >&2
cat "$work/out.json" || exit 4
"""


async def find(host: Host, path: str) -> str:
    """Whether a folder with a readable config.json lies there.

    Returns:
        "here", "absent" or "unreadable".

    Raises:
        backends.errors.CouldNotAsk: When the host gave no answer.
    """
    result = await host.run(_FIND, [path])
    return result.stdout.decode("ascii", "replace").strip() or "unreadable"


async def check(host: Host, python: str, path: str, timeout: float = 600.0) -> bytes:
    """Run the target check on the login node.

    Returns:
        The bytes of target_check.json; empty when the check wrote none.

    Raises:
        backends.errors.CouldNotAsk: When the host gave no answer.
    """
    program = payload("check_target.py")
    result = await host.run(_CHECK, [python, path], data=program, timeout=timeout)
    return result.stdout if result.exit_status == 0 else b""


def payload(name: str) -> bytes:
    """The bytes of one of our programs for the cluster."""
    return resources.files("backends.payloads").joinpath(name).read_bytes()
