"""Freeze a drafter: one pass that copies and hashes, checked again before it gets its name; and verify it later.

    freeze.py SOURCE DESTINATION [--output FILE]
    freeze.py --verify DIR --manifest-sha256 HEX [--output FILE]

Writes one JSON document to --output (by a rename) or to standard output, also when it refuses. Exit status: 0
frozen or verified, 1 refused, 2 the arguments could not be used. Python 3.8 and newer, standard library only.

The destination appears by one rename, with `SHA256SUMS` in the form of `sha256sum -c` and without write
permission. A killed run leaves a `.partial` sibling, which the next one removes unless a live run holds it. A link
to a file inside the source is copied as that file; every other link and every special file is refused.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
from typing import Any, BinaryIO

MANIFEST = b"SHA256SUMS"
BLOCK = 4 << 20
SPARE_BYTES = 16 << 20


class Refused(Exception):
    """Why nothing was frozen, or what is not as it was frozen."""

    def __init__(self, failure: str, detail: str) -> None:
        super().__init__(detail)
        self.failure = failure


def text(path: bytes) -> str:
    """A path as JSON text, without loss."""
    return os.fsdecode(path)


def tree(root: bytes) -> list[bytes]:
    """Relative paths (bytes) of all files below a folder, sorted; links resolved, what is no file refused."""
    real_root = os.path.realpath(root)
    found = []
    for folder, folders, files in os.walk(root, onerror=_raise):
        for name in list(folders):
            if os.path.islink(os.path.join(folder, name)):
                raise Refused("link", "%s is a link to a folder" % text(os.path.join(folder, name)))
        for name in files:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                target = os.path.realpath(path)
                if not target.startswith(real_root + b"/"):
                    raise Refused("link", "%s is a link that leaves the export" % text(path))
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise Refused("special_file", "%s is not a regular file" % text(path))
            found.append(os.path.relpath(path, root))
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error


def identity(path: bytes) -> tuple[int, int, int, int]:
    """What changes when a file changes."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def digest(path: bytes, copy_to: BinaryIO | None = None) -> str:
    """SHA-256 of a file in hex, copying what was hashed to another one when asked."""
    hashed = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            hashed.update(block)
            if copy_to is not None:
                copy_to.write(block)
    return hashed.hexdigest()


def manifest_line(path: bytes, value: str) -> bytes:
    """One line as sha256sum writes it: names with a newline or backslash are escaped, and the line says so."""
    escaped = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    mark = b"\\" if escaped != path else b""
    return mark + value.encode("ascii") + b"  " + escaped + b"\n"


def sync(path: bytes) -> None:
    """Make a file or folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def claim(partial: bytes) -> int:
    """Make the `.partial` folder and hold it; remove one that nobody holds any more."""
    os.makedirs(os.path.dirname(partial), exist_ok=True)
    if os.path.lexists(partial):
        descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused("busy", "another freeze is writing %s" % text(partial)) from None
        for folder, _, _ in os.walk(partial):
            os.chmod(folder, 0o700)
        shutil.rmtree(partial)
        os.close(descriptor)
    os.mkdir(partial, 0o700)
    descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def copy(source: bytes, partial: bytes, path: bytes) -> tuple[dict[str, Any], tuple[int, int, int, int]]:
    """Copy one file, hashing what is read, and hash again what was written."""
    origin, target = os.path.join(source, path), os.path.join(partial, path)
    before = identity(origin)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as stream:
        value = digest(origin, stream)
        stream.flush()
        os.fsync(stream.fileno())
    if identity(origin) != before or os.path.getsize(target) != before[0]:
        raise Refused("source_changed", "%s changed while it was copied" % text(origin))
    if digest(target) != value:
        raise Refused("copy_differs", "%s does not hold what was written to it" % text(target))
    return {"path": text(path), "size": before[0], "sha256": value}, before


def freeze(source: bytes, destination: bytes) -> dict[str, Any]:
    """Freeze a folder; returns the result's fields."""
    if not os.path.isdir(source):
        raise Refused("source_missing", "%s is not a folder" % text(source))
    if os.path.lexists(destination):
        raise Refused("destination_exists", "%s exists; a frozen drafter is never written over" % text(destination))
    paths = tree(source)
    if not paths:
        raise Refused("source_empty", "%s holds no files" % text(source))
    if MANIFEST in paths:
        raise Refused("manifest_in_source", "%s has a SHA256SUMS of its own" % text(source))
    partial = destination + b".partial"
    descriptor = claim(partial)
    needed = sum(os.path.getsize(os.path.join(source, path)) for path in paths)
    room = os.statvfs(partial)
    if needed + SPARE_BYTES > room.f_bavail * room.f_frsize:
        raise Refused("no_space", "%d bytes are needed at %s" % (needed, text(destination)))
    files: list[dict[str, Any]] = []
    seen: dict[bytes, tuple[int, int, int, int]] = {}
    for path in paths:
        record, seen[path] = copy(source, partial, path)
        files.append(record)
    if tree(source) != paths or any(identity(os.path.join(source, path)) != seen[path] for path in paths):
        raise Refused("source_changed", "%s changed while it was copied" % text(source))
    lines = b"".join(manifest_line(path, record["sha256"]) for path, record in zip(paths, files))
    with open(os.path.join(partial, MANIFEST), "xb") as stream:
        stream.write(lines)
        stream.flush()
        os.fsync(stream.fileno())
    for folder, folders, names in os.walk(partial, topdown=False):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
        for name in folders:
            os.chmod(os.path.join(folder, name), 0o555)
        sync(folder)
    if os.path.lexists(destination):
        raise Refused("destination_exists", "%s appeared meanwhile" % text(destination))
    os.rename(partial, destination)
    os.chmod(destination, 0o555)
    sync(os.path.dirname(destination))
    os.close(descriptor)
    manifest = hashlib.sha256(lines).hexdigest()
    return {"status": "frozen", "manifest_sha256": manifest, "files": files, "bytes": needed}


def verify(folder: bytes, manifest: str) -> dict[str, Any]:
    """Check a frozen folder against the digest of its manifest; returns the result's fields."""
    place = os.path.join(folder, MANIFEST)
    try:
        with open(place, "rb") as stream:
            lines = stream.read()
    except OSError as error:
        raise Refused("manifest_missing", "%s: %s" % (text(place), error.strerror)) from None
    if hashlib.sha256(lines).hexdigest() != manifest:
        raise Refused("manifest_changed", "%s is not the manifest of this digest" % text(place))
    files: list[dict[str, Any]] = []
    written: list[bytes] = []
    total = 0
    for path in tree(folder):
        if path == MANIFEST:
            continue
        full = os.path.join(folder, path)
        if os.path.islink(full):
            raise Refused("link", "%s is a link; nothing frozen is" % text(full))
        if os.stat(full).st_mode & 0o222:
            raise Refused("writable", "%s can be written" % text(full))
        value, size = digest(full), os.path.getsize(full)
        written.append(manifest_line(path, value))
        files.append({"path": text(path), "size": size, "sha256": value})
        total += size
    expected = set(lines.splitlines(keepends=True))
    odd = expected.symmetric_difference(written)
    if odd:
        names = ", ".join(sorted({text(line.split(b"  ", 1)[-1].strip()) for line in odd}))
        raise Refused("files_changed", "changed, missing or added: %s" % names)
    return {"status": "verified", "manifest_sha256": manifest, "files": files, "bytes": total}


def publish(result: dict[str, Any], output: str | None) -> None:
    """Write the result document."""
    document = json.dumps(result, indent=1, sort_keys=True) + "\n"
    if output is None:
        sys.stdout.write(document)
        return
    temporary = "%s.%d.tmp" % (output, os.getpid())
    with open(temporary, "w", encoding="ascii") as stream:
        stream.write(document)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, output)


def main() -> int:
    """Read the arguments, do the work, write the result."""
    parser = argparse.ArgumentParser(description="Freeze a drafter, or verify a frozen one.")
    parser.add_argument("paths", nargs="*", metavar="SOURCE DESTINATION")
    parser.add_argument("--verify", metavar="DIR")
    parser.add_argument("--manifest-sha256", metavar="HEX")
    parser.add_argument("--output", metavar="FILE")
    args = parser.parse_args()
    if args.verify is not None:
        if args.paths or not args.manifest_sha256:
            parser.error("--verify takes a folder and --manifest-sha256, and nothing else")
        source, destination = "", args.verify
    elif len(args.paths) == 2:
        source, destination = args.paths
    else:
        parser.error("give SOURCE and DESTINATION, or --verify DIR")
    result: dict[str, Any] = {
        "schema_version": 1,
        "producer": "freeze.py",
        "token": os.environ.get("GONOGO_TOKEN", ""),
        "source": source,
        "destination": destination,
        "failure": "",
        "detail": "",
    }
    where = os.path.abspath(os.fsencode(destination))
    try:
        if args.verify is not None:
            result.update(verify(where, args.manifest_sha256))
        else:
            result.update(freeze(os.path.abspath(os.fsencode(source)), where))
    except Refused as error:
        result.update(status="refused", failure=error.failure, detail=str(error))
    except OSError as error:
        result.update(status="refused", failure="input_output", detail=str(error))
    if result["status"] == "refused":
        result.update(manifest_sha256=None, files=[], bytes=0)
    publish(result, args.output)
    if result["failure"] == "source_missing":
        return 2
    return 1 if result["status"] == "refused" else 0


if __name__ == "__main__":
    sys.exit(main())
