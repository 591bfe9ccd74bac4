"""The whole verification of a run folder, in the order in which its parts rest on each other."""

from __future__ import annotations

import hashlib
from pathlib import Path

from console.release import folder, journal
from console.release.journal import LogError
from console.release.signing import Signers
from console.release.state import RunState, fold
from console.release.verify.facts import Fact, Facts, not_checked, ok, told, wrong
from console.release.verify.folder import check_results, check_submissions, check_top
from console.release.verify.policies import check_policies
from console.release.verify.verdicts import check_gates, check_verdict


def verify(run_dir: Path, signers: Signers | None = None) -> Facts:
    """Everything that can be said about a run folder from its own bytes, a fact at a time.

    Args:
        run_dir: A folder that holds a log.
        signers: Whose signatures count, None where nobody said.
    """
    try:
        data = journal.read_bytes(run_dir)
        entries, torn = journal.scan(data)
    except LogError as error:
        yield wrong(folder.LOG_NAME, f"{error}; nothing else can be checked without it")
        return
    if torn is not None:
        yield wrong(folder.LOG_NAME, str(torn))
    if not entries:
        yield wrong(folder.LOG_NAME, "it has no entry")
        return
    yield ok(
        folder.LOG_NAME, f"{len(entries)} entries, each byte of them, in one chain that ends in {entries[-1].hash[:12]}"
    )
    try:
        state = fold(entries)
    except Exception as error:  # a log with a sound chain, but written by something else
        yield wrong(folder.LOG_NAME, f"its entries do not make up a release ({type(error).__name__})")
        return
    yield from check_top(run_dir, state, entries)
    yield from check_submissions(run_dir, state, entries, signers)
    yield from check_policies(run_dir, state, entries)
    yield from check_results(run_dir, entries)
    yield from check_gates(run_dir, entries)
    yield from check_verdict(state)
    yield _drafter(state)


def _drafter(state: RunState) -> Fact:
    """The frozen drafter, where this machine can see it."""
    place, wanted = state.freeze.get("destination"), state.freeze.get("manifest_sha256")
    if not place or not wanted:
        return not_checked("frozen drafter", "nothing was frozen")
    manifest = Path(str(place)) / "SHA256SUMS"
    try:
        found = hashlib.sha256(manifest.read_bytes()).hexdigest()
    except OSError:
        return not_checked(
            "frozen drafter",
            f"{place} is not on this machine; on its cluster: gonogo freeze --verify {place} "
            f"--manifest-sha256 {wanted}",
        )
    return told(
        found == wanted,
        "frozen drafter",
        f"{manifest} is the manifest that was benchmarked",
        f"{manifest} has SHA-256 {found}, benchmarked was {wanted}",
    )
