r"""Freezes an exported drafter: copies it, proves the copy, and makes it read-only. Or verifies a frozen one.

    python3 freeze.py SOURCE DESTINATION [--output freeze.json]
    python3 freeze.py --verify DIR --manifest-sha256 HEX [--output freeze.json]

A file of its own, without anything beside it, so that it can be sent over a connection and run as it is. Without
--output the result goes to standard output.

One pass copies and hashes each file, several files at a time; what was written is read back and hashed again; then
SHA256SUMS is written as GNU sha256sum writes it, so `sha256sum -c SHA256SUMS` accepts it, every mode is made read-only,
and the folder gets its name. Until then it is called DESTINATION.partial: a run that is killed leaves nothing else
behind, and the next one removes it. A lock on that folder keeps two runs apart.

A symbolic link to a file inside SOURCE becomes a file of its own. Refused are links that lead out of SOURCE, to a
folder or to nothing; special files; files that are not finished (`*.partial`, `*.incomplete`); a SHA256SUMS in SOURCE;
a DESTINATION that exists; a SOURCE that changes meanwhile; too little space. Empty folders are left out.

Exit status: 0 frozen or verified, 1 refused or not what it was, 2 an input cannot be read.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple

PRODUCER = "freeze"
SCHEMA_VERSION = 1
MANIFEST = b"SHA256SUMS"
_UNFINISHED = (b".partial", b".incomplete")
_CHUNK = 1 << 20
_WORKERS = 4
_MARGIN = 1 << 20
_WRITABLE = 0o222
_LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
_RACY_NS = 2_000_000_000
"""A file changed so shortly before can change again without its times changing: their clock may be that coarse."""


class Refused(Exception):
    """Freezing or verifying failed.

    Attributes:
        failure: A short word.
        detail: Why, for people.
        exit_status: Of the program.
    """

    def __init__(self, failure: str, detail: str, exit_status: int = 1) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.exit_status = exit_status


class Entry(NamedTuple):
    """A file that is to be frozen.

    Attributes:
        path: Relative to the source, as bytes.
        real: Where its content lies, links resolved.
        facts: What changes when the file does: device, inode, size, mtime and ctime in ns.
    """

    path: bytes
    real: bytes
    facts: Tuple[int, ...]

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.facts[2]


class Frozen(NamedTuple):
    """A file of the copy."""

    path: bytes
    size: int
    sha256: str


def freeze(source: str, destination: str) -> Tuple[bytes, List[Frozen]]:
    """Freeze a folder.

    Returns:
        The manifest's bytes, and the files.

    Raises:
        Refused: When it cannot be done; nothing is left behind then.
        OSError: When something cannot be read or written; nothing is left behind then.
    """
    root, place = os.fsencode(os.path.realpath(source)), os.fsencode(os.path.abspath(destination))
    if not os.path.isdir(root):
        raise Refused("source_missing", f"{source} is no folder", exit_status=2)
    entries = listing(root)
    _check_place(root, place, sum(entry.size for entry in entries))
    partial = place + _UNFINISHED[0]
    lock = _claim(partial)
    try:
        files = _in_parallel(lambda entry: _copy(entry, partial), entries)
        if listing(root) != entries:
            raise Refused("source_changed", "files came, went or changed while they were copied")
        _in_parallel(lambda file: _read_back(file, partial), files)
        manifest = b"".join(manifest_line(file) for file in files)
        _write(os.path.join(partial, MANIFEST), manifest)
        _make_read_only(partial)
        _rename(partial, place)
    except BaseException:
        _remove(partial)
        raise
    finally:
        os.close(lock)
    _sync_folder(os.path.dirname(place))
    return manifest, files


def listing(root: bytes) -> List[Entry]:
    """Everything that is to be frozen, sorted by path.

    Raises:
        Refused: When there is something that cannot be.
    """
    entries = sorted(_walk(root, b""))
    if not entries:
        raise Refused("empty", f"{os.fsdecode(root)} holds no files")
    for entry in entries:
        if entry.path == MANIFEST:
            raise Refused("manifest_in_source", f"{os.fsdecode(MANIFEST)} is the name of the manifest of the copy")
        if any(part.endswith(_UNFINISHED) for part in entry.path.split(b"/")):
            raise Refused("unfinished", f"{os.fsdecode(entry.path)} is not finished, as its name says")
    return entries


def _walk(root: bytes, below: bytes) -> Iterator[Entry]:
    for item in os.scandir(os.path.join(root, below)):
        path = os.path.join(below, item.name)
        if item.is_dir(follow_symlinks=False):
            yield from _walk(root, path)
            continue
        real = os.path.join(root, path)
        if item.is_symlink():
            real = _resolve(root, path)
        status = os.lstat(real)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("special_file", f"{os.fsdecode(path)} is no regular file")
        yield Entry(path, real, _facts(status))


def _resolve(root: bytes, path: bytes) -> bytes:
    """Where a link leads, if that is a file of the tree."""
    real = os.path.realpath(os.path.join(root, path))
    shown = f"{os.fsdecode(path)} -> {os.fsdecode(os.readlink(os.path.join(root, path)))}"
    if not real.startswith(root.rstrip(b"/") + b"/"):
        raise Refused("link_leaves_source", f"{shown} leads out of the folder")
    if os.path.isdir(real):
        raise Refused("link_to_folder", f"{shown} leads to a folder")
    if not os.path.exists(real):
        raise Refused("link_to_nothing", f"{shown} leads to nothing")
    return real


def _facts(status: os.stat_result) -> Tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _check_place(root: bytes, place: bytes, needed: int) -> None:
    """Make sure that the destination can be made, and make the folders above it."""
    if place.endswith(_UNFINISHED):
        raise Refused("destination_name", f"{os.fsdecode(place)} is a name for what is not finished")
    if os.path.lexists(place):
        raise Refused("destination_exists", f"{os.fsdecode(place)} exists")
    if (os.path.realpath(place) + b"/").startswith(root + b"/"):
        raise Refused("destination_inside_source", f"{os.fsdecode(place)} lies in the folder that is to be frozen")
    parent = os.path.dirname(place)
    os.makedirs(parent, exist_ok=True)
    space = os.statvfs(parent)
    free = space.f_bavail * space.f_frsize
    if free < needed + _MARGIN:
        raise Refused("no_space", f"{needed} bytes are to be copied, and {os.fsdecode(parent)} has {free} bytes free")


def _claim(partial: bytes) -> int:
    """Make the unfinished folder, or empty the one of a run that was killed.

    Returns:
        A file descriptor that holds the lock on it.

    Raises:
        Refused: When another run is at work there, or nobody can tell.
    """
    try:
        os.mkdir(partial, 0o700)
        made = True
    except FileExistsError:
        made = False
    lock = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Not every file system has locks on folders; whoever made the folder has it then.
        taken = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
        if taken or not made:
            os.close(lock)
            advice = "" if taken else "; nobody can tell, so remove it by hand if no run is left"
            raise Refused("busy", f"another run is at work on {os.fsdecode(partial)}{advice}") from None
    if not os.path.lexists(partial) or os.lstat(partial).st_ino != os.fstat(lock).st_ino:
        os.close(lock)
        raise Refused("busy", f"{os.fsdecode(partial)} was replaced by another run a moment ago")
    for item in os.scandir(partial):
        _remove(item.path)
    os.chmod(partial, 0o700)
    return lock


def _in_parallel(work: Any, items: Sequence[Any]) -> List[Any]:
    """Do something with every item, a few at a time; results in order, the first error is raised."""
    with ThreadPoolExecutor(max_workers=min(_WORKERS, len(items))) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _copy(entry: Entry, partial: bytes) -> Frozen:
    """Copy and hash a file in one pass; runs of zeros become holes.

    Raises:
        Refused: When the file is not what was listed, or changes meanwhile.
    """
    begun = time.time_ns()
    goal = os.path.join(partial, entry.path)
    os.makedirs(os.path.dirname(goal), exist_ok=True)
    digest = hashlib.sha256()
    with _opened(entry) as source, open(goal, "xb", buffering=0) as copy:
        for chunk in _chunks(source):
            digest.update(chunk)
            if _is_zero(chunk):
                os.lseek(copy.fileno(), len(chunk), os.SEEK_CUR)
            else:
                _write_all(copy.fileno(), chunk)
        size = os.lseek(copy.fileno(), 0, os.SEEK_CUR)
        copy.truncate(size)
        os.fsync(copy.fileno())
        if entry.facts != _facts(os.fstat(source)) or size != entry.size:
            _changed(entry)
        if begun - max(entry.facts[3:]) < _RACY_NS and _hash(source) != digest.hexdigest():
            _changed(entry)
    return Frozen(entry.path, size, digest.hexdigest())


def _changed(entry: Entry) -> NoReturn:
    raise Refused("source_changed", f"{os.fsdecode(entry.path)} changed while it was copied")


@contextlib.contextmanager
def _opened(entry: Entry) -> Iterator[int]:
    """A file descriptor of a source file, if it is still the one that was listed."""
    source = os.open(entry.real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _facts(os.fstat(source)) != entry.facts:
            _changed(entry)
        yield source
    finally:
        os.close(source)


def _chunks(descriptor: int) -> Iterator[memoryview]:
    """A file from its beginning, in pieces of one buffer."""
    buffer = memoryview(bytearray(_CHUNK))
    os.lseek(descriptor, 0, os.SEEK_SET)
    while True:
        count = os.readv(descriptor, [buffer])
        if count == 0:
            return
        yield buffer[:count]


def _hash(descriptor: int) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(descriptor):
        digest.update(chunk)
    return digest.hexdigest()


def _is_zero(chunk: memoryview) -> bool:
    return not (chunk[0] or chunk[-1]) and bytes(chunk) == bytes(len(chunk))


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read_back(file: Frozen, partial: bytes) -> None:
    """Hash what was written, from the storage where the system can be told to forget what it has in memory."""
    descriptor = os.open(os.path.join(partial, file.path), os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if os.fstat(descriptor).st_size != file.size or _hash(descriptor) != file.sha256:
            raise Refused("copy_differs", f"{os.fsdecode(file.path)} is not what was written")
    finally:
        os.close(descriptor)


def manifest_line(file: Frozen) -> bytes:
    """A line of SHA256SUMS; a name with a backslash or a line end is escaped and marked, as GNU sha256sum does it."""
    name = file.path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    mark = b"\\" if name != file.path else b""
    return mark + file.sha256.encode("ascii") + b"  " + name + b"\n"


def _write(path: bytes, data: bytes) -> None:
    with open(path, "xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _make_read_only(partial: bytes) -> None:
    """Take every right to write from everything in the folder and from the folder itself, and put it on the disk."""
    for parent, _, names in os.walk(partial, topdown=False):
        for name in names:
            os.chmod(os.path.join(parent, name), 0o444)
        os.chmod(parent, 0o555)
        _sync_folder(parent)


def _sync_folder(path: bytes) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename(partial: bytes, place: bytes) -> None:
    """Give the folder its name, if nothing has that name meanwhile."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, no_replace = -100, 1
    if renameat2 is not None and renameat2(here, partial, here, place, no_replace) == 0:
        return
    number = ctypes.get_errno() if renameat2 is not None else errno.ENOSYS
    if number in (errno.EEXIST, errno.ENOTEMPTY):
        raise Refused("destination_exists", f"{os.fsdecode(place)} came into being meanwhile")
    if number not in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        raise OSError(number, os.strerror(number), os.fsdecode(place))
    # Not every file system can refuse by itself. A folder with files in it is never replaced.
    if os.path.lexists(place):
        raise Refused("destination_exists", f"{os.fsdecode(place)} came into being meanwhile")
    os.rename(partial, place)


def _remove(path: bytes) -> None:
    """Remove a file or a folder with everything in it, read-only or not."""
    if not os.path.isdir(path) or os.path.islink(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    for parent, _, _ in os.walk(path):
        os.chmod(parent, 0o700)
    shutil.rmtree(path)


def verify(folder: str, manifest_sha256: str) -> Tuple[bytes, List[Frozen]]:
    """Check that a frozen folder is what it was.

    Returns:
        The manifest's bytes, and the files.

    Raises:
        Refused: When it is not.
        OSError: When it cannot be read.
    """
    root = os.fsencode(os.path.abspath(folder))
    if not os.path.isdir(root):
        raise Refused("destination_missing", f"{folder} is no folder", exit_status=2)
    try:
        with open(os.path.join(root, MANIFEST), "rb") as stream:
            manifest = stream.read()
    except FileNotFoundError:
        raise Refused("manifest_missing", f"{folder} has no {os.fsdecode(MANIFEST)}") from None
    found = hashlib.sha256(manifest).hexdigest()
    if found != manifest_sha256:
        raise Refused("manifest_changed", f"the SHA-256 of {os.fsdecode(MANIFEST)} is {found}, not {manifest_sha256}")
    stated = parse_manifest(manifest)
    present, faults = _inventory(root)
    faults += [("file_missing", f"{os.fsdecode(path)} is missing") for path in sorted(stated.keys() - present.keys())]
    faults += [("file_extra", f"{os.fsdecode(path)} is not listed") for path in sorted(present.keys() - stated.keys())]
    entries = [present[path] for path in sorted(stated.keys() & present.keys())]
    files: List[Frozen] = _in_parallel(_hash_entry, entries) if entries else []
    changed = [file for file in files if stated[file.path] != file.sha256]
    faults += [("file_changed", f"{os.fsdecode(file.path)} has another content") for file in changed]
    if faults:
        told = "; ".join(text for _, text in faults[:10]) + (f"; and {len(faults) - 10} more" if faults[10:] else "")
        raise Refused(faults[0][0], told)
    return manifest, files


def parse_manifest(manifest: bytes) -> Dict[bytes, str]:
    """Digests by path.

    Raises:
        Refused: When it is no manifest.
    """
    digests: Dict[bytes, str] = {}
    for line in manifest.split(b"\n")[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise Refused("manifest_invalid", f"a line is none: {os.fsdecode(line[:100])!r}")
        mark, digest, path = match.groups()
        if mark:
            path = re.sub(rb"\\[\\nr]", lambda escape: _ESCAPES[escape.group()], path)
        if path in digests or any(part in (b"", b".", b"..") for part in path.split(b"/")):
            raise Refused("manifest_invalid", f"{os.fsdecode(path)!r} is listed twice, or leads out of the folder")
        digests[path] = digest.decode("ascii")
    if not digests or not manifest.endswith(b"\n"):
        raise Refused("manifest_invalid", "it is empty or cut off")
    return digests


def _inventory(root: bytes) -> Tuple[Dict[bytes, Entry], List[Tuple[str, str]]]:
    """The files of a frozen folder by path, without the manifest, and what is wrong with kinds and modes."""
    files: Dict[bytes, Entry] = {}
    faults: List[Tuple[str, str]] = []
    for parent, folders, names in os.walk(root):
        for name in [b"", *names, *[folder for folder in folders if os.path.islink(os.path.join(parent, folder))]]:
            real = os.path.join(parent, name) if name else parent
            path, status = os.path.relpath(real, root), os.lstat(real)
            if stat.S_IMODE(status.st_mode) & _WRITABLE and not stat.S_ISLNK(status.st_mode):
                faults.append(("mode_changed", f"{os.fsdecode(path)} is writable"))
            if name and not stat.S_ISREG(status.st_mode):
                faults.append(("special_file", f"{os.fsdecode(path)} is no regular file"))
            elif name and path != MANIFEST:
                files[path] = Entry(path, real, _facts(status))
        if not names and not folders:
            faults.append(("file_extra", f"{os.fsdecode(os.path.relpath(parent, root))} is an empty folder"))
    return files, faults


def _hash_entry(entry: Entry) -> Frozen:
    with _opened(entry) as source:
        digest = _hash(source)
        if _facts(os.fstat(source)) != entry.facts:
            _changed(entry)
    return Frozen(entry.path, entry.size, digest)


def _result(args: argparse.Namespace) -> Tuple[int, Dict[str, Any]]:
    """Do what the command line says; returns exit status and result."""
    places = {"source": None, "destination": os.path.abspath(args.verify or args.destination)}
    if args.verify is None:
        places["source"] = os.path.abspath(args.source)
    body: Dict[str, Any] = {"status": "refused", "failure": None, "detail": "", **places}
    body.update(manifest_sha256=None, files=[], bytes=0)
    try:
        if args.verify is not None:
            manifest, files = verify(args.verify, args.manifest_sha256)
        else:
            manifest, files = freeze(args.source, args.destination)
    except Refused as refused:
        body.update(failure=refused.failure, detail=refused.detail)
        return refused.exit_status, body
    except OSError as error:
        failure = "no_space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "unreadable"
        body.update(failure=failure, detail=str(error))
        return 2 if failure == "unreadable" else 1, body
    body.update(
        status="frozen" if args.verify is None else "verified",
        manifest_sha256=hashlib.sha256(manifest).hexdigest(),
        files=[{"path": os.fsdecode(file.path), "size": file.size, "sha256": file.sha256} for file in files],
        bytes=sum(file.size for file in files),
    )
    return 0, body


def write_result(path: Optional[str], body: Mapping[str, Any]) -> None:
    """Write the result by rename, or to standard output.

    Raises:
        OSError: When it cannot be written.
    """
    head = {"schema_version": SCHEMA_VERSION, "producer": PRODUCER, "token": os.environ.get("GONOGO_TOKEN", "")}
    text = json.dumps({**head, **body}, indent=1) + "\n"
    if path is None:
        sys.stdout.write(text)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def main() -> int:
    """Freeze or verify as the command line says."""
    parser = argparse.ArgumentParser(description="Freeze an exported drafter, or verify a frozen one.")
    parser.add_argument("source", nargs="?", help="folder of the export")
    parser.add_argument("destination", nargs="?", help="folder to make")
    parser.add_argument("--verify", metavar="DIR", help="verify a frozen folder instead")
    parser.add_argument("--manifest-sha256", metavar="HEX", help="what the SHA-256 of its SHA256SUMS must be")
    parser.add_argument("--output", help="result file; standard output without")
    args = parser.parse_args()
    wrong = args.source is not None or args.manifest_sha256 is None if args.verify else args.destination is None
    if wrong or (args.verify is None and args.manifest_sha256 is not None):
        parser.error("give SOURCE and DESTINATION, or --verify DIR with --manifest-sha256 HEX")
    status, body = _result(args)
    write_result(args.output, body)
    text = f"freeze: {body['status']} {body['failure'] or body['manifest_sha256']} {body['detail']}"
    print(text.encode("ascii", "backslashreplace").decode("ascii"), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
