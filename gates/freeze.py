"""gate_freeze: was exactly the judged export frozen, and is it still the same?

Reads what the freeze program wrote, after a freeze as after a later verification. The program has hashed every file
after it was written, or again; here its record is held against itself: the digest of the manifest must follow from the
listed files, so a record that was edited, or cut, or is of another folder does not pass.

Whatever fails here, a drafter that cannot be vouched for must not be benchmarked: the class is always FREEZE_FAILED.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gates.expectations import SHA256, Expected, Kind, setting
from gates.export import judge_files
from gates.header import judge_header, judge_problems, judge_status, same_path
from gates.reading import ResultBytes
from gates.record import Record, Sheet
from gates.verdict import FailureClass, Verdict

GATE: Final = "freeze"
MANIFEST: Final = "SHA256SUMS"
FROZEN, VERIFIED = "frozen", "verified"
_FAILED: Final = FailureClass.FREEZE_FAILED
PRECEDENCE: Final = (FailureClass.USER_CONFIG_ERROR, _FAILED)
_UNFINISHED: Final = ".partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeExpected(Expected):
    """What a freeze result is compared with."""

    source: str | None = setting(Kind.PATH, "folder that was to be frozen; not compared after a verification")
    destination: str | None = setting(Kind.PATH, "folder of the frozen copy")
    manifest_sha256: str | None = setting(Kind.DIGEST, f"digest of {MANIFEST}, as known from the freeze")


def judge_freeze(freeze: ResultBytes, expected: FreezeExpected | None = None) -> Verdict:
    """Judge a freeze or a verification of one.

    Args:
        freeze: freeze.json.
        expected: What to compare with; None compares with nothing.
    """
    expected = expected or FreezeExpected()
    sheet = Sheet(GATE, _FAILED)
    record = sheet.open(freeze, unread=_FAILED)
    if record is not None:
        judge_header(record, expected)
        status = judge_status(record, _FAILED, (FROZEN, VERIFIED))
        if status in (FROZEN, VERIFIED):
            _judge_done(record, expected, status)
        elif status is not None:
            record.sheet.fact("failure", record.text("failure", optional=True, empty=True))
    return sheet.verdict(_FAILED, PRECEDENCE)


def _judge_done(record: Record, expected: FreezeExpected, status: str) -> None:
    judge_problems(record, _FAILED, optional=True)
    failure = record.text("failure", optional=True, empty=True)
    record.check("failure", not failure, failure or "none", "none", "failure")
    _judge_places(record, expected, status)
    manifest = record.text("manifest_sha256")
    if manifest is not None and not SHA256.fullmatch(manifest):
        record.malformed("manifest_sha256", Kind.DIGEST)
        manifest = None
    if manifest is not None and expected.manifest_sha256 is not None:
        same = manifest == expected.manifest_sha256
        record.check("manifest", same, manifest, f"= {expected.manifest_sha256}", "manifest_sha256")
    total = record.integer("bytes", minimum=1)
    files = record.records("files")
    if files is not None:
        _judge_listing(record, files, manifest, total)


def _judge_places(record: Record, expected: FreezeExpected, status: str) -> None:
    destination = record.text("destination")
    if destination is not None:
        if expected.destination is not None:
            same = same_path(destination, expected.destination)
            record.check("destination", same, destination, f"= {expected.destination}", "destination")
        whole = not destination.rstrip("/").endswith(_UNFINISHED)
        record.check("complete", whole, destination, f"a name that does not end in {_UNFINISHED}", "destination")
    if status == VERIFIED:
        return
    source = record.text("source")
    if source is not None:
        if expected.source is not None:
            record.check("source", same_path(source, expected.source), source, f"= {expected.source}", "source")
        if destination is not None:
            apart = not same_path(source, destination)
            record.check("copied", apart, destination, "another folder than the source", "destination")


def _judge_listing(record: Record, files: Sequence[Record], manifest: str | None, total: int | None) -> None:
    sizes = judge_files(record, files, _FAILED)
    listed = sum(size for path, size in sizes.items() if path != MANIFEST)
    if total is not None:
        known = (listed, sum(sizes.values()))  # the manifest itself may be listed
        record.check("bytes", total in known, total, f"= {listed}, the sum of the files", "bytes", unit="bytes")
    unfinished = [path for path in sizes if _UNFINISHED in path.split("/")[0]]
    record.check("no_unfinished", not unfinished, unfinished or "none", f"no *{_UNFINISHED}", "files")
    record.sheet.fact("files", len(sizes))
    record.sheet.fact("bytes", listed)
    record.sheet.fact("manifest_sha256", manifest)
    digests = [(file.values.get("path"), file.values.get("sha256")) for file in files]
    pairs = [(path, digest) for path, digest in digests if isinstance(path, str) and isinstance(digest, str)]
    pairs = [(path, digest) for path, digest in pairs if path != MANIFEST]
    if manifest is None or not pairs or len(sizes) != len(files):
        return
    computed = manifest_digests(pairs)
    record.check(
        "manifest_of_files",
        manifest in computed,
        manifest,
        f"= {min(computed, default='none')}, the digest of {MANIFEST} over the listed files",
        "manifest_sha256",
    )


def manifest_digests(files: Iterable[tuple[str, str]]) -> frozenset[str]:
    """What the manifest's digest may be: over the lines in the order of the listing, or sorted by the paths' bytes.

    Args:
        files: Path and SHA-256 of each file.
    """
    try:
        lines = [(path.encode("utf-8", "surrogateescape"), manifest_line(path, digest)) for path, digest in files]
    except UnicodeEncodeError:
        return frozenset()
    orders = ([line for _, line in lines], [line for _, line in sorted(lines)])
    return frozenset(hashlib.sha256(b"".join(order)).hexdigest() for order in orders)


def manifest_line(path: str, digest: str) -> bytes:
    r"""One line as GNU `sha256sum` writes it: a path with a backslash, newline or return is escaped, and marked by `\`.

    Raises:
        UnicodeEncodeError: When the path, or the digest, holds what no file name can.
    """
    escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if escaped != path else ""
    return f"{mark}{digest}  {escaped}\n".encode("utf-8", "surrogateescape")
