"""Freezing the drafter: the same program, as a command on the login node or inside a job.

The command cannot run twice into one destination: the program refuses one that exists. A run that was killed
between the freeze and its log entry finds the result file that the program wrote, or asks for verification of
what lies there against the digests that the export gate saw.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from backends.errors import FileMissing
from backends.hosts.base import Host
from console.release.target import payload

_FREEZE = """
set -u
trap '' HUP
mkdir -p "$4" || exit 3
cat > "$4/freeze.py.$$" && mv "$4/freeze.py.$$" "$4/freeze.py" || exit 3
"$1" "$4/freeze.py" "$2" "$3" --output "$4/freeze.json" >&2
cat "$4/freeze.json" || exit 4
"""

_VERIFY = """
set -u
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
cat > "$work/freeze.py"
"$1" "$work/freeze.py" --verify "$2" --manifest-sha256 "$3" --output "$work/out.json" >&2
cat "$work/out.json" || exit 4
"""

_MANIFEST = """
if command -v sha256sum >/dev/null 2>&1; then sha256sum < "$1/SHA256SUMS" | cut -c1-64
else shasum -a 256 < "$1/SHA256SUMS" | cut -c1-64; fi
"""


@dataclass(frozen=True, slots=True)
class FreezePlace:
    """Where a freeze reads, writes, and leaves its result."""

    python: str
    source: str
    destination: str
    work: str


async def freeze(host: Host, place: FreezePlace, timeout: float = 3600.0) -> bytes:
    """Freeze the export, or pick up the result of a freeze that ended unseen.

    Returns:
        Bytes of freeze.json; empty when the program wrote none.

    Raises:
        backends.errors.CouldNotAsk: When the host gave no answer; the freeze may have happened.
    """
    left = await _left(host, place)
    if left is not None:
        return left
    arguments = [place.python, place.source, place.destination, place.work]
    result = await host.run(_FREEZE, arguments, data=payload("freeze.py"), timeout=timeout)
    return result.stdout if result.exit_status == 0 else b""


async def _left(host: Host, place: FreezePlace) -> bytes | None:
    """What an earlier freeze of this run left: its result, or the verification of what it froze; else None."""
    try:
        data = await host.read(f"{place.work}/freeze.json")
        if json.loads(data).get("status") == "frozen":
            return data
        return None
    except FileMissing:
        pass
    except (ValueError, AttributeError):
        return None
    if await host.stat(f"{place.destination}/SHA256SUMS") is None:
        return None
    result = await host.run(_MANIFEST, [place.destination])
    manifest = result.stdout.decode("ascii", "replace").strip()
    return await verify(host, place.python, place.destination, manifest)


async def verify(host: Host, python: str, destination: str, manifest_sha256: str, timeout: float = 3600.0) -> bytes:
    """Verify a frozen drafter where it lies.

    Returns:
        Bytes of the program's result; empty when it wrote none.

    Raises:
        backends.errors.CouldNotAsk: When the host gave no answer.
    """
    arguments = [python, destination, manifest_sha256]
    result = await host.run(_VERIFY, arguments, data=payload("freeze.py"), timeout=timeout)
    return result.stdout if result.exit_status == 0 else b""
