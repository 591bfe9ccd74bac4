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
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Callable, Dict, List, Sequence, Tuple, TypeVar

MANIFEST = b"SHA256SUMS"
BLOCK = 4 << 20
SPARE_BYTES = 16 << 20
WORKERS = 4
COARSE_NS = 2_000_000_000

Identity = Tuple[int, int, int, int]
Result = TypeVar("Result")


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


def identity(path: bytes) -> Identity:
    """What changes when a file changes."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def digest(path: bytes, copy_to: BinaryIO | None = None) -> str:
    """SHA-256 of a file in hex, copying what was hashed to another one when asked."""
    hashed = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            hashed.update(block)
            if copy_to is None:
                continue
            if block[0] == block[-1] == 0 and block == bytes(len(block)):
                copy_to.seek(len(block), os.SEEK_CUR)  # a hole, where there may have been one
            else:
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
    """Make the `.partial` folder and hold it; what is in one that nobody holds any more is removed."""
    os.makedirs(os.path.dirname(partial), exist_ok=True)
    try:
        os.mkdir(partial, 0o700)
        made = True
    except FileExistsError:
        made = False
    descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some file systems have no locks on folders. There, only whoever made the folder may have it.
        held = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
        if held or not made:
            os.close(descriptor)
            advice = "" if held else "; this file system cannot tell, so remove it by hand if no run is left"
            raise Refused("busy", "another freeze is writing %s%s" % (text(partial), advice)) from None
    # The lock may be on a folder that its owner has renamed or removed since it was opened here.
    if not os.path.lexists(partial) or os.lstat(partial).st_ino != os.fstat(descriptor).st_ino:
        os.close(descriptor)
        raise Refused("busy", "another freeze ended at %s a moment ago" % text(partial))
    os.chmod(partial, 0o700)
    for name in os.listdir(partial):
        remove(os.path.join(partial, name))
    return descriptor


def remove(path: bytes) -> None:
    """Remove a file, or a folder with everything in it, read-only or not."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o700)
    shutil.rmtree(path)


def copy(source: bytes, partial: bytes, path: bytes) -> Tuple[Dict[str, Any], Identity]:
    """Copy one file, hashing what is read, and hash again what was written."""
    origin, target = os.path.join(source, path), os.path.join(partial, path)
    begun = time.time_ns()
    before = identity(origin)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as stream:
        value = digest(origin, stream)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
    # A file that changed a moment before can change again without its times changing: their clock may be coarse.
    recent = begun - max(before[1], before[3]) < COARSE_NS
    if identity(origin) != before or os.path.getsize(target) != before[0] or (recent and digest(origin) != value):
        raise Refused("source_changed", "%s changed while it was copied" % text(origin))
    forget(target)
    if digest(target) != value:
        raise Refused("copy_differs", "%s does not hold what was written to it" % text(target))
    return {"path": text(path), "size": before[0], "sha256": value}, before


def forget(path: bytes) -> None:
    """Let the system forget a file that is on the disk, so that reading it again reads the disk."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def at_once(work: Callable[[bytes], Result], paths: Sequence[bytes]) -> List[Result]:
    """Do something with several files at a time; results in order, and the first error is raised."""
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        futures = [pool.submit(work, path) for path in paths]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def freeze(source: bytes, destination: bytes) -> Dict[str, Any]:
    """Freeze a folder; returns the result's fields."""
    if not os.path.isdir(source):
        raise Refused("source_missing", "%s is not a folder" % text(source))
    if os.path.lexists(destination):
        raise Refused("destination_exists", "%s exists; a frozen drafter is never written over" % text(destination))
    if (os.path.realpath(destination) + b"/").startswith(os.path.realpath(source) + b"/"):
        raise Refused("destination_inside", "%s lies in the folder that is to be frozen" % text(destination))
    paths = tree(source)
    if not paths:
        raise Refused("source_empty", "%s holds no files" % text(source))
    if MANIFEST in paths:
        raise Refused("manifest_in_source", "%s has a SHA256SUMS of its own" % text(source))
    partial = destination + b".partial"
    descriptor = claim(partial)
    try:
        files = fill(source, partial, paths)
        lines = b"".join(manifest_line(path, file["sha256"]) for path, file in zip(paths, files))
        seal(partial, lines)
        rename(partial, destination)
    except BaseException:
        remove(partial)
        raise
    finally:
        os.close(descriptor)
    sync(os.path.dirname(destination))
    manifest = hashlib.sha256(lines).hexdigest()
    total = sum(file["size"] for file in files)
    return {"status": "frozen", "manifest_sha256": manifest, "files": files, "bytes": total}


def fill(source: bytes, partial: bytes, paths: List[bytes]) -> List[Dict[str, Any]]:
    """Copy all files; what is known of each, in order."""
    needed = sum(os.path.getsize(os.path.join(source, path)) for path in paths)
    room = os.statvfs(partial)
    if needed + SPARE_BYTES > room.f_bavail * room.f_frsize:
        raise Refused("no_space", "%d bytes are needed at %s" % (needed, text(partial)))
    try:
        copied = at_once(lambda path: copy(source, partial, path), paths)
        changed = any(identity(os.path.join(source, path)) != seen for path, (_, seen) in zip(paths, copied))
    except FileNotFoundError:
        changed = True
    if changed or tree(source) != paths:
        raise Refused("source_changed", "%s changed while it was copied" % text(source))
    return [file for file, _ in copied]


def seal(partial: bytes, lines: bytes) -> None:
    """Write the manifest, and take every right to write from everything."""
    with open(os.path.join(partial, MANIFEST), "xb") as stream:
        stream.write(lines)
        stream.flush()
        os.fsync(stream.fileno())
    for folder, _, names in os.walk(partial, topdown=False):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
        os.chmod(folder, 0o555)
        sync(folder)


def rename(partial: bytes, destination: bytes) -> None:
    """Give the folder its name, if nothing else has it by now: a plain rename would replace an empty folder."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, no_replace = -100, 1
    if renameat2 is not None and renameat2(here, partial, here, destination, no_replace) == 0:
        return
    number = ctypes.get_errno() if renameat2 is not None else errno.ENOSYS
    if number not in (errno.EEXIST, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        raise OSError(number, os.strerror(number), text(destination))
    # Not every file system knows this kind of rename.
    if number == errno.EEXIST or os.path.lexists(destination):
        raise Refused("destination_exists", "%s appeared meanwhile" % text(destination))
    os.rename(partial, destination)


def verify(folder: bytes, manifest: str) -> Dict[str, Any]:
    """Check a frozen folder against the digest of its manifest; returns the result's fields."""
    place = os.path.join(folder, MANIFEST)
    try:
        with open(place, "rb") as stream:
            lines = stream.read()
    except OSError as error:
        raise Refused("manifest_missing", "%s: %s" % (text(place), error.strerror)) from None
    if hashlib.sha256(lines).hexdigest() != manifest:
        raise Refused("manifest_changed", "%s is not the manifest of this digest" % text(place))
    paths = [path for path in tree(folder) if path != MANIFEST]
    files = at_once(lambda path: look(folder, path), paths) if paths else []
    written = [manifest_line(path, file["sha256"]) for path, file in zip(paths, files)]
    odd = set(lines.splitlines(keepends=True)).symmetric_difference(written)
    if odd:
        shown = ", ".join(sorted({text(line.split(b"  ", 1)[-1].strip()) for line in odd}))
        raise Refused("files_changed", "changed, missing or added: %s" % shown)
    judge_kinds(folder)
    total = sum(file["size"] for file in files)
    return {"status": "verified", "manifest_sha256": manifest, "files": files, "bytes": total}


def judge_kinds(folder: bytes) -> None:
    """Make sure that nothing in a frozen folder is a link, writable, or an empty folder."""
    writable = []
    for parent, folders, names in os.walk(folder, onerror=_raise):
        if not folders and not names:
            raise Refused("files_changed", "added: %s, an empty folder" % text(parent))
        for full in [*(os.path.join(parent, name) for name in names), parent]:
            if os.path.islink(full):
                raise Refused("link", "%s is a link; nothing frozen is" % text(full))
            if os.lstat(full).st_mode & 0o222:
                writable.append(text(full))
    if writable:
        raise Refused("writable", "can be written: %s" % ", ".join(writable))


def look(folder: bytes, path: bytes) -> Dict[str, Any]:
    """Hash a frozen file."""
    full = os.path.join(folder, path)
    before = identity(full)
    value = digest(full)
    if identity(full) != before:
        raise Refused("files_changed", "%s changes while it is read" % text(full))
    return {"path": text(path), "size": before[0], "sha256": value}


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
