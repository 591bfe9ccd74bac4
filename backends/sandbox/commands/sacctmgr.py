"""`sacctmgr show assoc`: the account that the user may use."""

from __future__ import annotations

from backends.sandbox.commands.usage import SlurmError, options
from backends.sandbox.store import ACCOUNT, Store


def main(store: Store, arguments: list[str]) -> int:
    """Print the user's associations."""
    _, rest = options("sacctmgr", arguments, "nPp", ["noheader", "parsable2", "parsable"])
    if store.knobs().get("accounting") == "down":
        raise SlurmError("sacctmgr: error: Problem talking to the database: Connection refused")
    if rest[:2] not in (["show", "assoc"], ["show", "associations"]):
        raise SlurmError(f"sacctmgr: the embedded cluster does not know: {' '.join(rest)}")
    print(ACCOUNT)
    return 0
